//! Runs LLM agents within hard limits (context window, tokens, money, time, tool calls, memory)
//! without losing anything.
//!
//! An [`Agent`] has a model, tools and limits. It runs tasks in a [`Session`] with an append-only
//! log. The messages that are sent to the model are a view of that log. Plimsoll counts the view's
//! tokens before each request. If the view is too large, a [`policy`] shortens,
//! evicts or summarizes a part of it. The log keeps the rest, and the model has
//! tools to recall it.
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
//! [`ScriptedProvider`](testing::ScriptedProvider). Your tests can use it as well.
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
//! [asks](tools::FnTool::asks) needs the consent of a [`Gate`].
//!
//! # Streaming
//!
//! [`Session::start`] returns the [`Event`]s of a run: text as it comes, tool calls, plans, limits.
//! An [`Observer`] sees those of all sessions of an agent, each with its session and run.
//!
//! ```
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! use plimsoll::session::new_session_id;
//! use plimsoll::{Agent, Delta, Event};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), plimsoll::Error> {
//! # let model = ScriptedProvider::new([Turn::say("Land!")]);
//! let agent = Agent::builder(model).build()?;
//! let mut session = agent.session(new_session_id()).await?;
//! let mut run = session.start("What do you see?");
//! while let Some(event) = run.next().await {
//!     if let Event::Delta(Delta::Text { text }) = event {
//!         print!("{text}");
//!     }
//! }
//! assert_eq!(run.output().await?.text, "Land!");
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//!
//! A limit ends a run without an error: [`reason`](machine::Outcome::reason) names the limit, and
//! [`text`](machine::Outcome::text) describes the finished work. By default the model writes this text in a last
//! call, if the limit leaves room for one ([`AtLimit`](limits::AtLimit)). If the model cannot be
//! reached, refuses the request or has too small a window, the run returns an [`Error`].
//!
//! ```
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # use std::time::Duration;
//! use plimsoll::{Agent, Tokens};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), plimsoll::Error> {
//! # let model = ScriptedProvider::new([]).then_always(Turn::call("row", serde_json::json!({})));
//! let agent = Agent::builder(model)
//!     .max_turns(5) // 50 unless you say
//!     .max_total_tokens(Tokens(200_000))
//!     .max_duration(Duration::from_secs(300))
//!     .build()?;
//! let output = agent.run("Row to the other side.").await?;
//! assert_eq!(output.reason.word(), "max_turns");
//! assert!(!output.reason.is_answer());
//! # Ok(())
//! # }
//! ```
//!
//! # Sessions
//!
//! A session has a name and a store. It can be continued after a crash, in another process or with
//! another model. A tool that may have run already is not run again silently.
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
//! # Evicting messages
//!
//! By default, old messages are replaced by a summary that repeats the user's words and needs no
//! model, when the request reaches a working size: half of the available tokens, 60,000 at most.
//! [`ContextStrategy`] has other presets, [`AgentBuilder::summarizer`] sets a model that writes summaries, and a
//! [`Stage`](policy::Stage) of your own is one function: see `examples/context_policy.rs` in the
//! repository.
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
//! # The modules
//!
//! The root has the names that most programs use. Each module has the names for one task.
//!
//! | to | look at |
//! |---|---|
//! | choose a model, its key and its address | [`providers`], with [`ModelClient`](providers::ModelClient) |
//! | put a model of your own behind an agent, or read messages | [`model`] |
//! | give an agent tools, or another agent as a tool | [`tools`] |
//! | decide which tool calls run | [`permissions`] |
//! | bound a run in turns, tokens, time, money and memory | [`limits`] |
//! | choose when a view is compacted, to which size, and which messages stay | [`context`] |
//! | write a stage of a policy, or price a plan | [`policy`] |
//! | count tokens | [`tokens`] |
//! | look up the prices of models | [`pricing`] |
//! | use the prompt cache | [`cache`] |
//! | fork, compact and undo a session | [`session`] |
//! | steer or stop a run | [`Remote`], from [`Session::remote`] |
//! | keep sessions | [`store`] |
//! | search and recall evicted messages | [`recall`] |
//! | run code of yours in the middle of a run | [`hooks`] |
//! | show the progress of a run | [`Session::start`], [`Observer`], [`events`] |
//! | ask several agents at once | [`parallel`] |
//! | finish runs that another process began | [`durable`] |
//! | drive the loop yourself | [`machine`] |
//! | start programs that end with this one | [`process`] |
//! | configure by a file, `plimsoll.toml` | `config` (feature `config`) |
//! | observe runs by `tracing` | [`telemetry`] |
//! | render a view for a provider, or read its refusal | [`wire`] |
//! | repair and compact requests of other programs | [`foreign`] |
//! | read logs of other agents | `logs` (feature `logs`) |
//! | test without a model | [`testing`], and the crate `plimsoll-mock` |
//!
//! The repository's `examples` has complete programs, and its `docs` explain each part.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod cache;
#[cfg(feature = "config")]
pub mod config;
pub mod context;
pub mod durable;
pub mod events;
pub mod hooks;
pub mod limits;
pub mod machine;
pub mod model;
pub mod parallel;
pub mod permissions;
pub mod policy;
pub mod pricing;
pub mod recall;
pub mod session;
pub mod store;
pub mod tokens;
pub mod tools;
pub mod wire;

pub use plimsoll_agent::{
    EndReason, Event, ExecutionLimits, PermissionMode, SessionEvent, ThinkingLevel,
};
pub use plimsoll_context::{
    ContextStrategy, Delta, Message, Money, Part, SettingFault, Tokens, ToolCall, ToolResult, Usage,
};
pub use plimsoll_core::{
    Agent, AgentBuilder, AgentOutput, Error, Gate, Observer, Provider, Remote, RetryConfig,
    Session, SessionId, SessionStore, Tool, ToolContext, ToolError, ToolOutput, Window, process,
    telemetry, testing, tool,
};
#[doc(inline)]
pub use plimsoll_foreign as foreign;
#[cfg(feature = "logs")]
#[doc(inline)]
pub use plimsoll_logs as logs;
#[cfg(feature = "providers")]
#[doc(inline)]
pub use plimsoll_providers as providers;

/// The documentation, whose examples are compiled and run.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/sessions.md")]
    struct Sessions;
    #[doc = include_str!("../../../docs/parallel.md")]
    struct Parallel;
    #[cfg(feature = "mcp")]
    #[doc = include_str!("../../../docs/mcp.md")]
    struct Mcp;
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
    #[doc = include_str!("../../../docs/hooks.md")]
    struct Hooks;
    #[doc = include_str!("../../../docs/limits.md")]
    struct Limits;
    #[cfg(feature = "config")]
    #[doc = include_str!("../../../docs/configuration.md")]
    struct Configuration;
    #[doc = include_str!("../../../docs/telemetry.md")]
    struct Telemetry;
}
