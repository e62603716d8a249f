//! [`Caller`]: the run that made a tool call, as needed by the call and by an agent that it starts.

use std::fmt;
use std::sync::Arc;

use plimsoll_agent::CallKey;
use plimsoll_context::{Fingerprint, Message};

use crate::parts::Parts;
use crate::store::{SessionId, new_session_id};

/// Maximum length of a session id in characters.
const MAX_SESSION_ID: usize = 128;

/// The run that has made a call.
pub(crate) struct Caller {
    pub(crate) key: CallKey,
    /// Number of calls that may run concurrently, including this one.
    pub(crate) beside: u64,
    /// The session that changed files are kept for.
    pub(crate) files_of: SessionId,
    /// What the run acts through. Agents below it share its store, gate and observers.
    pub(crate) parts: Arc<Parts>,
}

impl Caller {
    /// Returns the session id for an agent that the call starts. It is the same if the call is
    /// repeated after a crash, and differs for every other call.
    pub(crate) fn session_of(&self, tool: &str) -> SessionId {
        let (seq, index) = (self.key.seq.0, self.key.index);
        named_below(&self.key.session, &format!("{tool}.{seq}-{index}"))
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// Returns the id of a session that works for another: its id and `place`, or a hash and `place` if
/// that is too long. A place has at most 95 characters, since a tool's name has at most 64.
pub(crate) fn named_below(session: &str, place: &str) -> SessionId {
    let whole = format!("{session}.{place}");
    let name = if whole.len() <= MAX_SESSION_ID {
        whole
    } else {
        format!("{}.{place}", Fingerprint::of([&Message::user(whole)]))
    };
    SessionId::new(name).unwrap_or_else(|_| new_session_id())
}

#[cfg(test)]
mod tests {
    use plimsoll_context::Seq;

    use super::*;
    use crate::testing::ScriptedProvider;

    #[test]
    fn each_call_has_a_session_of_its_own_whatever_the_names() {
        let agent = crate::Agent::builder(ScriptedProvider::new([]))
            .build()
            .unwrap();
        let caller = |session: &str, place: (Seq, usize)| Caller {
            files_of: SessionId::new(session).unwrap(),
            parts: Arc::clone(&agent.parts),
            key: CallKey {
                session: session.into(),
                seq: place.0,
                index: place.1,
            },
            beside: 1,
        };
        let short = caller("s", (Seq(12), 0)).session_of("helper");
        assert_eq!(short.as_str(), "s.helper.12-0");
        let long = "x".repeat(128);
        let tool = "t".repeat(64);
        let one = caller(&long, (Seq(u64::MAX), 0)).session_of(&tool);
        let other = caller(&long, (Seq(u64::MAX), 1)).session_of(&tool);
        assert!(one.as_str().len() <= MAX_SESSION_ID && one != other);
    }
}
