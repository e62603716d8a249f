//! [`Group`] for systems without process groups. Starting one always fails.

use std::io;
use std::process::ExitStatus;

use super::Command;

/// The read end of a group's output.
pub(super) type Pipe = tokio::io::Empty;
/// The write end of a group's input.
pub(super) type Feed = tokio::io::Sink;

pub(super) struct Streams {
    pub(super) output: Pipe,
    pub(super) apart: Option<(Feed, Pipe)>,
}

/// A signal to a group.
#[derive(Debug, Clone, Copy)]
pub(super) enum Signal {
    /// Terminate.
    TERM,
}

/// A group that cannot exist.
#[derive(Debug)]
pub(super) enum Group {}

impl Group {
    pub(super) fn start(_command: &Command, _is_apart: bool) -> io::Result<(Self, Streams)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn id(&self) -> u32 {
        match *self {}
    }

    pub(super) async fn exited(&self) {
        match *self {}
    }

    pub(super) fn has_exited(&self) -> bool {
        match *self {}
    }

    pub(super) fn signal(&self, _signal: Signal) {
        match *self {}
    }

    pub(super) async fn end(self) -> io::Result<ExitStatus> {
        match self {}
    }
}

/// Returns `None`, since there are no signals.
pub(super) fn signal_of(_status: ExitStatus) -> Option<i32> {
    None
}
