//! [`RejectedReasoning`]: reasoning that a server has refused to read.
//!
//! A server rejects reasoning that another key, organisation or deployment wrote, that it no longer
//! stores, or whose prefix has changed. Such reasoning is left out of all further requests.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_agent::{Failure, Request};
use plimsoll_context::{Delta, Message, MessageList, Part};

/// The maximum number of remembered items, more than any view contains. Beyond it only the items of
/// the newest request are kept.
const MAX_REJECTED: usize = 10_000;
/// The warning for the user.
const TOLD: &str = "the server refuses thinking in this session, so thinking is removed from now \
                    on and the model loses it; `sessions import --drop-thinking` imports a \
                    history without any";

/// Reasoning that a server has refused to read.
#[derive(Debug)]
pub(crate) struct RejectedReasoning {
    texts: Option<RejectionTexts>,
    marks: Mutex<BTreeSet<u64>>,
}

/// The texts with which the servers of a protocol reject reasoning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RejectionTexts {
    /// The origin of the reasoning, as recorded in each part.
    pub(crate) origin: &'static str,
    /// Parts of the texts, in lower case.
    pub(crate) texts: &'static [&'static str],
}

impl RejectedReasoning {
    /// Creates an empty set. Without texts nothing is ever learned.
    pub(crate) fn new(texts: Option<RejectionTexts>) -> Self {
        Self {
            texts,
            marks: Mutex::default(),
        }
    }

    /// Learns from a failure that the reasoning of the request is rejected: all of it, because servers do
    /// not identify the part in a uniform way. Returns `true` if the request can be sent again
    /// without it. Warns the user through `deltas`.
    pub(crate) fn learn(
        &self,
        failure: &Failure,
        messages: &MessageList,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> bool {
        let (Failure::Refused { message, .. }, Some(rejection)) = (failure, self.texts) else {
            return false;
        };
        let message = message.to_ascii_lowercase();
        if !rejection.texts.iter().any(|text| message.contains(text)) {
            return false;
        }
        let sent = messages.iter().flat_map(|message| message.parts());
        let sent: BTreeSet<u64> = sent.filter_map(|part| self.mark(part)).collect();
        let mut known = self.lock();
        if sent.is_subset(&known) {
            return false;
        }
        if known.len() + sent.len() > MAX_REJECTED {
            known.clear();
        }
        known.extend(sent);
        drop(known);
        deltas(Delta::Warning {
            text: TOLD.to_owned(),
        });
        true
    }

    /// Returns the request without the rejected reasoning.
    pub(crate) fn without<'r>(&self, request: &'r Request) -> Cow<'r, Request> {
        let known = self.lock();
        let rejected = |part: &Part| self.mark(part).is_some_and(|mark| known.contains(&mark));
        let affected = |message: &Message| message.parts().iter().any(rejected);
        if known.is_empty() || !request.messages.iter().any(|message| affected(message)) {
            return Cow::Borrowed(request);
        }
        let messages = request
            .messages
            .iter()
            .map(|message| match message.as_ref() {
                Message::Assistant { parts } if affected(message) => {
                    let parts = parts.iter().filter(|part| !rejected(part));
                    let parts = parts.cloned().collect();
                    Arc::new(Message::Assistant { parts })
                }
                _ => Arc::clone(message),
            });
        Cow::Owned(Request {
            messages: Arc::new(messages.collect()),
            ..request.clone()
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the hash that identifies an item of reasoning, or `None` for any other part.
    fn mark(&self, part: &Part) -> Option<u64> {
        let Part::Thinking(thinking) = part else {
            return None;
        };
        let opaque = thinking.opaque.as_ref()?;
        if self.texts.is_none_or(|texts| opaque.origin != texts.origin) {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        opaque.data.hash(&mut hasher);
        Some(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_context::{Opaque, Thinking};
    use plimsoll_wire::anthropic;
    use plimsoll_wire::openai_responses::ORIGIN;

    use crate::explain::question;
    use crate::protocol::{MESSAGES_REJECTIONS, RESPONSES_REJECTIONS};

    fn turn(origin: &str, data: &str) -> Arc<Message> {
        let opaque = Opaque {
            origin: origin.into(),
            data: data.into(),
        };
        let thinking = Thinking {
            text: String::new(),
            opaque: Some(opaque),
        };
        Arc::new(Message::Assistant {
            parts: vec![Part::Thinking(thinking), Part::text("x")],
        })
    }

    fn refused(message: &str) -> Failure {
        Failure::Refused {
            status: Some(400),
            message: message.to_owned(),
        }
    }

    fn learn(unread: &RejectedReasoning, failure: &Failure, messages: &[Arc<Message>]) -> bool {
        let told = Mutex::new(0);
        let messages = messages.to_vec().into();
        let cure = unread.learn(failure, &messages, &|delta| {
            assert!(matches!(delta, Delta::Warning { .. }), "{delta:?}");
            *told.lock().unwrap() += 1;
        });
        let expected = usize::from(cure);
        assert_eq!(*told.lock().unwrap(), expected, "each time it is told");
        cure
    }

    fn without(rejected: &RejectedReasoning, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
        let mut request = question();
        request.messages = messages.to_vec().into();
        let sent = rejected.without(&request);
        sent.messages.iter().cloned().collect()
    }

    #[test]
    fn what_is_refused_once_is_not_sent_again_and_all_else_is() {
        let unread = RejectedReasoning::new(Some(RESPONSES_REJECTIONS));
        let said = refused("The encrypted content gAAA... could not be verified.");
        let foreign = [turn("anthropic", "a")];
        assert!(!learn(&unread, &said, &foreign), "nothing to leave out");
        let old = [turn(ORIGIN, "a"), turn("anthropic", "a")];
        assert!(!learn(&unread, &refused("No tool output found."), &old));
        assert_eq!(without(&unread, &old)[0], old[0]);
        assert!(learn(&unread, &said, &old));
        assert!(!learn(&unread, &said, &old), "it was left out");
        let view = [turn(ORIGIN, "a"), turn("anthropic", "a"), turn(ORIGIN, "b")];
        let sent: Vec<usize> = without(&unread, &view)
            .iter()
            .map(|message| message.parts().len())
            .collect();
        assert_eq!(sent, [1, 2, 2]);
    }

    #[test]
    fn every_way_to_say_so_is_understood() {
        for said in [
            "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
            "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
            "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
            "reasoning encrypted_content was not issued to this caller",
        ] {
            let cure = learn(
                &RejectedReasoning::new(Some(RESPONSES_REJECTIONS)),
                &refused(said),
                &[turn(ORIGIN, "a")],
            );
            assert!(cure, "{said}");
        }
        for said in [
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a \
             different conversation",
            "messages.1.content.1: Invalid `data` in `redacted_thinking` block",
            "messages.9.content.4: `thinking` or `redacted_thinking` blocks in the latest assistant \
             message cannot be modified. These blocks must remain as they were in the original response.",
        ] {
            let thought = [turn(anthropic::ORIGIN, "a")];
            let cure = learn(
                &RejectedReasoning::new(Some(MESSAGES_REJECTIONS)),
                &refused(said),
                &thought,
            );
            assert!(cure, "{said}");
            let cure = learn(
                &RejectedReasoning::new(Some(MESSAGES_REJECTIONS)),
                &refused(said),
                &[turn(ORIGIN, "a")],
            );
            assert!(!cure, "{said}");
        }
    }

    #[test]
    fn it_is_bounded() {
        let unread = RejectedReasoning::new(Some(RESPONSES_REJECTIONS));
        let said = refused("encrypted content");
        for round in 0..3 {
            let view: Vec<Arc<Message>> = (0..MAX_REJECTED / 2)
                .map(|at| turn(ORIGIN, &format!("{round} {at}")))
                .collect();
            assert!(learn(&unread, &said, &view));
            assert!(unread.lock().len() <= MAX_REJECTED);
        }
    }
}
