//! Decides which tool calls run, which are refused, and which need a person's approval.
//!
//! The rules ([`Permissions`]) decide first, then the [`Gate`](crate::Gate). The first rule that
//! matches a call applies.
//!
//! ```
//! use plimsoll::Agent;
//! use plimsoll::permissions::{DenyAll, Permission, PermissionRule, Permissions};
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # let model = ScriptedProvider::new([Turn::say("Land!")]);
//! # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Shell { command: String }
//! # let bash = plimsoll::tool("bash", "Runs a command.", |it: Shell| async move { Ok::<_, plimsoll::ToolError>(it.command) });
//!
//! let rules = Permissions::new([
//!     PermissionRule::new("bash", Permission::Allow).with_argument("git status*"),
//!     PermissionRule::new("bash", Permission::Ask),
//! ]);
//! let agent = Agent::builder(model).tool(bash).permissions(rules).gate(DenyAll).build()?;
//! # Ok::<(), plimsoll::Error>(())
//! ```

pub use plimsoll_agent::{
    Answer, CallTarget, CommandTarget, MAX_RULES, PathTarget, Pattern, Permission, PermissionRule,
    Permissions, Question, ShellText, SimpleCommand, TargetOf,
};
pub use plimsoll_core::{AllowAll, DenyAll};
