//! Layer 4 of Plimsoll: the session logs of other agents.
//!
//! [`SessionLog::read`] reads logs of Claude Code, Codex, opencode, pi or Gemini CLI, the output of
//! `codex exec --json`, and trajectories of OpenHands, SWE-agent and mini-SWE-agent, and returns the
//! messages of the active branch.
//! [`SessionLog::take_chat`] returns them as units that know their lines, and [`copy()`](copy) turns the
//! changed units into a new session of the same agent. [`find`] finds the sessions on this machine.
//!
//! A log is never changed. Damaged lines are reported with their number and skipped.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod agent;
mod blocks;
mod claude_code;
mod codex;
mod copy;
mod detect;
mod error;
mod find;
mod gemini;
mod ids;
mod input;
mod opencode;
mod pi;
mod read;
mod session;
mod trajectory;
mod tree;

pub use agent::{Agent, shell_word};
pub use copy::{Copy, copy};
pub use detect::{HEAD, detect};
pub use error::LogError;
pub use find::{Candidate, MAX_CANDIDATES, find, folders, place_of_copy};
pub use ids::Ids;
pub use input::{MAX_LINE, MAX_LOG, unpack};
pub use session::{Damage, MAX_DAMAGE, ReportedSize, SessionLog};
