//! Floor 5 of Plimsoll: the crate that people depend on. It re-exports the floors below, by
//! feature, and adds nothing of its own but their configuration by a file (feature `config`) and what sends
//! spans and metrics to a collector (features `telemetry` and `otlp`).
//!
//! ```
//! use plimsoll::{Agent, ContextStrategy, ToolError, Tokens, Window, tool};
//! use plimsoll::testing::{ScriptedProvider, Turn};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Look {
//!     /// Where to look.
//!     at: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), plimsoll::Error> {
//! // Any provider goes here; this one follows a script.
//! let model = ScriptedProvider::new([
//!     Turn::call("look", serde_json::json!({ "at": "the horizon" })),
//!     Turn::say("Land!"),
//! ]);
//! let look = tool("look", "Looks somewhere.", |input: Look| async move {
//!     Ok::<_, ToolError>(format!("{}: a green line", input.at))
//! });
//! let agent = Agent::builder(model)
//!     .system("You stand in the crow's nest.")
//!     .tool(look)
//!     .window(Window::Known(Tokens(8_000)))
//!     .context_strategy(ContextStrategy::Evict { max_tokens: None })
//!     .max_turns(10)
//!     .build()?;
//! let output = agent.run("What do you see?").await?;
//! assert_eq!(output.text, "Land!");
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "config")]
pub mod config;
#[cfg(feature = "telemetry")]
pub mod telemetry;

pub use plimsoll_agent::*;
pub use plimsoll_context::*;
pub use plimsoll_core::*;
pub use plimsoll_judge as judge;
#[cfg(feature = "logs")]
pub use plimsoll_logs as logs;
#[cfg(feature = "mock")]
pub use plimsoll_mock as mock;
#[cfg(feature = "providers")]
pub use plimsoll_providers as providers;
#[cfg(feature = "store")]
pub use plimsoll_store as store;
#[cfg(feature = "tools")]
pub use plimsoll_tools as tools;
pub use plimsoll_wire as wire;

/// [`Agent`] by Heartbit's name, so that `AgentRunner::builder(provider)` is read as it was written.
pub type AgentRunner = Agent;

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// What the documentation says of sessions, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/sessions.md")]
struct Sessions;

/// What the documentation says of several agents, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/parallel.md")]
struct Parallel;

/// What the documentation says of servers of tools, compiled.
#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../../../docs/mcp.md")]
struct Mcp;

/// What those who come from other systems write here, run.
#[cfg(doctest)]
mod coming_from {
    #[cfg(feature = "config")]
    #[doc = include_str!("../../../docs/coming-from/heartbit.md")]
    struct Heartbit;
    #[doc = include_str!("../../../docs/coming-from/phi-core.md")]
    struct PhiCore;
    #[doc = include_str!("../../../docs/coming-from/cognipeer.md")]
    struct Cognipeer;
    #[doc = include_str!("../../../docs/coming-from/ambi.md")]
    struct Ambi;
    #[doc = include_str!("../../../docs/coming-from/gaia.md")]
    struct Gaia;
}

/// What the documentation says of hooks, run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/hooks.md")]
struct Hooks;

/// What the documentation says of limits, run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/limits.md")]
struct Limits;

/// What the documentation says of configuration, compiled.
#[cfg(all(doctest, feature = "config"))]
#[doc = include_str!("../../../docs/configuration.md")]
struct Configuration;

/// What the documentation says of telemetry, compiled.
#[cfg(all(doctest, feature = "otlp"))]
#[doc = include_str!("../../../docs/telemetry.md")]
struct Telemetry;
