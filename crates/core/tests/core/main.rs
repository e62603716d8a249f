//! Runs agents as a program does, and checks the provider's requests, the caller's output and the log.
//! The tests of memory are programs of their own, since they count every allocation.

mod asked;
mod cache;
#[cfg(unix)]
mod command_hooks;
mod compaction;
mod context;
mod deadlines;
mod driver;
mod dropped_writes;
mod edges;
mod events;
mod forks;
mod hooks;
mod hosted;
mod journal;
mod kept_files;
mod limits;
mod losses;
mod parallel;
mod rewrites;
mod run_settings;
mod run_stream;
mod steering;
mod sub_agents;
mod tools;
mod windows;

use plimsoll_core::SessionId;

/// The session of most tests.
fn id() -> SessionId {
    plimsoll_testkit::session_id("s")
}
