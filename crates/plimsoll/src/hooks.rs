//! Closures and programs that are called at certain points of a run, and filters for its input.
//!
//! A closure is passed to a method of the builder, such as
//! [`AgentBuilder::before_turn`](crate::AgentBuilder::before_turn); a program is a [`CommandHook`].
//! [`Hooks`] has the same methods, for the hooks of a single run.
//! `docs/hooks.md` in the repository lists all of these points in order.
//!
//! ```
//! use plimsoll::Agent;
//! use plimsoll::hooks::FilterResult;
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # let model = ScriptedProvider::new([Turn::say("Land!")]);
//!
//! let agent = Agent::builder(model)
//!     .input_filter(|said: &str| match said.contains("password") {
//!         true => FilterResult::Reject("leave the password out".to_owned()),
//!         false => FilterResult::Pass,
//!     })
//!     .before_turn(|_messages, turn| turn < 100)
//!     .build()?;
//! # Ok::<(), plimsoll::Error>(())
//! ```

pub use plimsoll_agent::{Decision, FilterResult, HookPoint, InputFilter, InputFilters};
pub use plimsoll_core::{
    ANSWER_RETRIES, CommandHook, EvictedMessage, HOOK_TIMEOUT, Hook, HookContext, HookInput,
    HookReply, Hooks, Later, MAX_HOOK_CALLS, MAX_HOOK_OUTPUT, Messages, Now, ToolDecision,
};
