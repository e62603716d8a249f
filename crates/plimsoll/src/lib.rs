//! Runs LLM agents within hard limits (context window, tokens, money, time, tool calls, memory)
//! without losing anything.
//!
//! An [`Agent`] has a model, tools and limits. It runs tasks in a [`Session`], whose log is only ever
//! appended to. What is sent to the model is a view of that log: before each request it is weighed, and
//! if it is too large or too expensive, a [`Policy`] shortens, evicts or summarizes a part of it. The
//! log, the archive and the tools to recall from it keep the rest.
//!
//! # A first run
//!
//! ```toml
//! [dependencies]
//! plimsoll = "0.1"
//! tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
//! serde = { version = "1", features = ["derive"] }
//! schemars = "1"
//! ```
//!
//! A model is named as `PROVIDER/NAME`; its key comes from the environment (`OPENAI_API_KEY`).
//!
//! ```no_run
//! use plimsoll::Agent;
//! use plimsoll::providers::ModelClient;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let model = ModelClient::builder("openai/gpt-4o").build()?;
//!     let agent = Agent::builder(model).build()?;
//!     println!("{}", agent.run("What is a Plimsoll line?").await?.text);
//!     Ok(())
//! }
//! ```
//!
//! From here on a script plays the model, so that every example runs without a key:
//! [`testing::ScriptedProvider`]. Your tests can use it as well.
//!
//! # Tools
//!
//! A tool is an async function with a typed input. The model gets the input's JSON Schema, with the
//! documentation of its fields. An error is a result that the model reads, not the end of the run.
//!
//! ```
//! use plimsoll::testing::{ScriptedProvider, Turn};
//! use plimsoll::{Agent, ToolError, tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Look {
//!     /// Where to look.
//!     at: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), plimsoll::Error> {
//! # let model = ScriptedProvider::new([
//! #     Turn::call("look", serde_json::json!({ "at": "the horizon" })),
//! #     Turn::say("Land!"),
//! # ]);
//! let look = tool("look", "Looks somewhere.", |input: Look| async move {
//!     Ok::<_, ToolError>(format!("{}: a green line", input.at))
//! });
//! let agent = Agent::builder(model)
//!     .system("You stand in the crow's nest.")
//!     .tool(look)
//!     .build()?;
//! assert_eq!(agent.run("What do you see?").await?.text, "Land!");
//! # Ok(())
//! # }
//! ```
//!
//! Tools that read, write and edit files, search them and run commands are in [`tools`]. A tool that
//! [asks](FnTool::asks) needs the consent of a [`Gate`].
//!
//! # Streaming
//!
//! An [`Observer`] sees every [`Event`]: text as it comes, tool calls, plans, limits.
//!
//! ```
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! use plimsoll::{Agent, Delta, Event};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), plimsoll::Error> {
//! # let model = ScriptedProvider::new([Turn::say("Land!")]);
//! let agent = Agent::builder(model)
//!     .observer(|event: &Event| {
//!         if let Event::Delta(Delta::Text { text }) = event {
//!             print!("{text}");
//!         }
//!     })
//!     .build()?;
//! agent.run("What do you see?").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//!
//! A limit ends a run, but it is no error: the model is asked to finish, [`AgentOutput::reason`] names the
//! limit, and [`AgentOutput::text`] says what is done. A model that cannot be reached, refuses the
//! request or has too small a window is an [`Error`].
//!
//! ```
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # use std::time::Duration;
//! use plimsoll::{Agent, EndReason, Tokens};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), plimsoll::Error> {
//! # let model = ScriptedProvider::new([]).then_always(Turn::call("row", serde_json::json!({})));
//! let agent = Agent::builder(model)
//!     .max_turns(5) // 50 unless you say
//!     .max_total_tokens(Tokens(200_000))
//!     .max_duration(Duration::from_secs(300))
//!     .build()?;
//! let output = agent.run("Row to the other side.").await?;
//! assert!(matches!(output.reason, EndReason::MaxTurns { .. }));
//! assert!(!output.reason.is_answer());
//! # Ok(())
//! # }
//! ```
//!
//! # Sessions
//!
//! A session has a name and a store. It goes on after a crash, in another process or with another model;
//! a tool that may have run is not run again without saying so.
//!
//! ```
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! use std::sync::Arc;
//! use plimsoll::{Agent, SessionId, store::SqliteStore};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let model = ScriptedProvider::new([Turn::say("East."), Turn::say("Home.")]);
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let store = Arc::new(SqliteStore::open(folder).await?);
//! let agent = Agent::builder(model).store(store).build()?;
//! let mut session = agent.session(SessionId::new("voyage")?).await?;
//! session.run("Where to?").await?;
//! assert_eq!(session.run("And then?").await?.text, "Home.");
//! session.undo().await?; // the view is as before that run; the log has both
//! # Ok(())
//! # }
//! ```
//!
//! # What leaves the view
//!
//! By default old messages are replaced by a summary that repeats the user's words and needs no model,
//! when that saves money or the window is nearly full. [`ContextStrategy`] has the other presets,
//! [`AgentBuilder::summarizer`] a model that writes summaries, and a [`Stage`] of your own is one
//! function: see `examples/context_policy.rs` in the repository.
//!
//! ```
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! use plimsoll::{Agent, ContextStrategy, Tokens, Window};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), plimsoll::Error> {
//! # let model = ScriptedProvider::new([Turn::say("Land!")]);
//! let agent = Agent::builder(model)
//!     .window(Window::Known(Tokens(32_000)))
//!     .context_strategy(ContextStrategy::Evict { max_tokens: None })
//!     .build()?;
//! # agent.run("What do you see?").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | you want to | look at |
//! |---|---|
//! | build an agent | [`AgentBuilder`], [`tool`], [`Gate`], [`Observer`], hooks such as [`AgentBuilder::before_turn`] |
//! | steer or stop one that runs | [`Remote`], from [`Session::remote`] |
//! | let agents call agents | [`sub_agent`] |
//! | weigh or cut messages yourself | [`Transcript`], [`Policy`], [`Plan`], [`TokenCounter`] |
//! | drive the loop yourself | [`Run`], [`Step`], [`Input`] |
//! | call models | [`providers`]; requests and their rules: [`wire`], [`judge`] |
//! | store sessions elsewhere | [`SessionStore`] |
//! | read logs of other agents | `logs` (feature `logs`) |
//! | configure by a file | `config` (feature `config`) |
//! | export spans and metrics | `telemetry` (features `telemetry`, `otlp`) |
//!
//! The repository's `examples` has complete programs, and its `docs` explain each part.

#[cfg(feature = "config")]
pub mod config;
#[cfg(feature = "telemetry")]
pub mod telemetry;
#[cfg(feature = "otlp")]
mod tls;

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
#[cfg(feature = "restate")]
pub use plimsoll_restate as restate;
#[cfg(feature = "store")]
pub use plimsoll_store as store;
#[cfg(feature = "tools")]
pub use plimsoll_tools as tools;
pub use plimsoll_wire as wire;

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
