//! [`CallKey`]: the identifier of one tool call among all calls of all sessions.
//!
//! The id that the model assigns is not unique and may occur again.

use std::fmt;
use std::sync::Arc;

use plimsoll_context::{CallId, Message, Seq};

use crate::state::State;

/// The identifier of one tool call. The key stays the same if the call is repeated after a crash, and
/// is never reused for another call. Its text form, `SESSION.SEQ-INDEX`, can be used as an idempotency
/// key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CallKey {
    /// The session.
    pub session: Arc<str>,
    /// The number of the message that contains the call.
    pub seq: Seq,
    /// The index of the call in that message, from 0.
    pub index: usize,
}

impl CallKey {
    /// Returns the key of a call of the model's newest message. If several calls have the same id, it
    /// is the first one without a result. Returns `None` if there is no such call.
    #[must_use]
    pub fn of(session: &Arc<str>, state: &State, call: &CallId) -> Option<Self> {
        let items = state.transcript.items().iter().rev();
        let mut answers = items.filter(|item| matches!(*item.message, Message::Assistant { .. }));
        let item = answers.next()?;
        let open = state.batch.as_ref().and_then(|batch| batch.at(call));
        let index = match open {
            Some(index) => index,
            None => item
                .message
                .calls()
                .position(|answers| answers.id == *call)?,
        };
        Some(Self {
            session: Arc::clone(session),
            seq: item.seq,
            index,
        })
    }
}

impl fmt::Display for CallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}-{}", self.session, self.seq.0, self.index)
    }
}
