//! The prompt cache of providers: which parts of a request are marked, and for how long.
//!
//! An agent marks its requests by itself, for providers that want marks. [`CacheConfig`] changes how.
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
    Breakpoint, CacheConfig, CachePlan, CacheRetention, CacheRules, CacheStrategy, CacheView,
    Fingerprint, LOOK_BACK, MAX_BREAKPOINTS, USUAL_MINIMUM, breakpoints,
};
