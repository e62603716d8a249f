//! [`CallKey`]: the name of one tool call among all calls of all sessions. Not the id that the model gave
//! it, which may come again.

use std::fmt;
use std::sync::Arc;

use plimsoll_context::{CallId, Message, Seq};

use crate::run::Run;

/// Names one tool call: the same again if the call is made again after a crash, and never the name of
/// another call. As text, `SESSION.SEQ-INDEX`, it is an idempotency key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CallKey {
    /// The session.
    pub session: Arc<str>,
    /// The number of the message that makes the call.
    pub seq: Seq,
    /// The call's place in that message, from 0.
    pub index: usize,
}

impl Run {
    /// Returns the key of a call of the model's newest message. Of several calls with one id it is that of
    /// the first without a result. `None` if there is no such call.
    #[must_use]
    pub fn key_of(&self, call: &CallId) -> Option<CallKey> {
        let items = self.state.transcript.items().iter().rev();
        let mut asked = items.filter(|item| matches!(*item.message, Message::Assistant { .. }));
        let item = asked.next()?;
        let open = self.state.batch.as_ref().and_then(|batch| batch.at(call));
        let index = match open {
            Some(index) => index,
            None => item.message.calls().position(|asked| asked.id == *call)?,
        };
        Some(CallKey {
            session: Arc::clone(&self.setup.session),
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
