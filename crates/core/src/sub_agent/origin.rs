//! [`Origin`]: whose tool call it is, as far as an agent that it starts needs to know. Not the call's
//! arguments.

use std::fmt;
use std::sync::Arc;

use plimsoll_agent::CallKey;
use plimsoll_context::{Fingerprint, Message};

use crate::driver::Parts;
use crate::store::SessionId;

/// Characters of a session's name, at most.
const MAX_SESSION_ID: usize = 128;

/// Whose tool call it is.
#[derive(Clone, Default)]
pub(crate) struct Origin {
    /// Nobody's, for a call that no run has made.
    pub(crate) of: Option<Caller>,
}

/// The run that has made a call.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) session: SessionId,
    pub(crate) parts: Arc<Parts>,
    pub(crate) key: CallKey,
    /// Calls that may run beside it, itself among them.
    pub(crate) beside: u64,
}

impl Caller {
    /// The name of the session of an agent that the call starts: the same again where the call is made
    /// again after a crash, and that of no other call.
    pub(crate) fn session_of(&self, tool: &str) -> Option<SessionId> {
        let (seq, index) = (self.key.seq.0, self.key.index);
        named_below(&self.session, &format!("{tool}.{seq}-{index}"))
    }
}

/// The name of a session that works for another: the other's and `place`; of one that is too long, a
/// hash. A place has at most 95 characters: a tool's name has 64.
pub(crate) fn named_below(session: &SessionId, place: &str) -> Option<SessionId> {
    let whole = format!("{session}.{place}");
    let name = match whole.len() <= MAX_SESSION_ID {
        true => whole,
        false => format!("{}.{place}", Fingerprint::of([&Message::user(whole)])),
    };
    SessionId::new(name).ok()
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.of.as_ref().map(|caller| &caller.session);
        f.debug_struct("Origin")
            .field("session", &session)
            .finish_non_exhaustive()
    }
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
            session: SessionId::new(session).unwrap(),
            parts: Arc::clone(&agent.parts),
            key: CallKey {
                session: session.into(),
                seq: place.0,
                index: place.1,
            },
            beside: 1,
        };
        let short = caller("s", (Seq(12), 0)).session_of("helper").unwrap();
        assert_eq!(short.as_str(), "s.helper.12-0");
        let long = "x".repeat(128);
        let tool = "t".repeat(64);
        let one = caller(&long, (Seq(u64::MAX), 0)).session_of(&tool);
        let other = caller(&long, (Seq(u64::MAX), 1)).session_of(&tool);
        assert!(one.is_some() && other.is_some() && one != other);
    }
}
