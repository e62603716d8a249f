//! The prompt cache of providers: which parts of a request are marked, for how long, and whether they were read.
//!
//! An agent marks its requests by itself, for providers that want marks. [`CacheConfig`] changes how, and
//! [`CacheMonitor`] tells whether less was read from the cache than expected.
//!
//! ```
//! use plimsoll::Agent;
//! use plimsoll::cache::{CacheConfig, CacheStrategy};
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # let model = ScriptedProvider::new([Turn::say("Land!")]);
//!
//! let cache = CacheConfig { strategy: CacheStrategy::Disabled, ..CacheConfig::default() };
//! let agent = Agent::builder(model).cache_config(cache).build()?;
//! # Ok::<(), plimsoll::Error>(())
//! ```

pub use plimsoll_context::{
    Breakpoint, CLEARLY_SHORT, CacheConfig, CacheMiss, CacheMonitor, CachePlan, CacheRetention,
    CacheRules, CacheStrategy, CacheTally, CacheTrail, CacheView, Fingerprint, LEAST_EXPECTED,
    LOOK_BACK, MAX_BREAKPOINTS, USUAL_MINIMUM, breakpoints,
};
