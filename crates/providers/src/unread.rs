//! [`Unread`]: reasoning that a server has refused to read, because another key, organisation or
//! deployment wrote it, because it is no longer there, or because what stood before it is not. It is
//! left out of every further request; the session lives on without it. Not the sending; that is
//! `responses.rs` and `messages.rs`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_agent::Failure;
use plimsoll_context::{Delta, Message, Part};
use plimsoll_wire::{anthropic, openai_responses};

/// Items that are remembered, at most: more than any view holds. Beyond it only those of the
/// newest request are.
const MAX_UNREAD: usize = 10_000;
/// What servers of Responses say of reasoning that they do not read, in lower case.
const OF_RESPONSES: Wording = Wording {
    origin: openai_responses::ORIGIN,
    said: &[
        "encrypted content",
        "encrypted_content",
        "items are not persisted when `store`",
        "of type 'reasoning' was provided without its required",
        "without its required 'reasoning' item",
    ],
};
/// What servers of Messages say of thinking likewise.
const OF_MESSAGES: Wording = Wording {
    origin: anthropic::ORIGIN,
    said: &[
        "invalid `signature` in `thinking` block",
        "invalid signature in thinking block",
        "invalid `data` in `redacted_thinking` block",
        "bound to a different conversation", // tidy:allow(conversation)
        "blocks in the latest assistant message cannot be modified",
    ],
};
/// What a person is told.
const TOLD: &str = "the server does not read thinking that this session holds, so it is left out from \
                    here on, which costs the model what it had thought; a history that is imported \
                    with --drop-thinking holds none";

/// Reasoning that a server has refused to read.
#[derive(Debug)]
pub(crate) struct Unread {
    wording: Wording,
    marks: Mutex<BTreeSet<u64>>,
}

/// How a wire's servers say that they do not read reasoning, and whose reasoning it is.
#[derive(Debug, Clone, Copy)]
struct Wording {
    origin: &'static str,
    said: &'static [&'static str],
}

/// Whether a request can be sent again, otherwise than it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cure {
    /// Without the reasoning that it had.
    Without,
    /// It had none, or the failure is another.
    None,
}

impl Unread {
    /// Of OpenAI Responses.
    pub(crate) fn responses() -> Self {
        Self::of(OF_RESPONSES)
    }

    /// Of Anthropic Messages.
    pub(crate) fn messages() -> Self {
        Self::of(OF_MESSAGES)
    }

    fn of(wording: Wording) -> Self {
        Self {
            wording,
            marks: Mutex::default(),
        }
    }

    /// Learns from a failure which reasoning is not read: whatever of it the request had, since
    /// servers do not say which in a form that holds for all. That is whole tool loops. A person is
    /// told through `deltas`.
    pub(crate) fn learn(
        &self,
        failure: &Failure,
        messages: &[Arc<Message>],
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Cure {
        let Failure::Refused { message, .. } = failure else {
            return Cure::None;
        };
        let message = message.to_ascii_lowercase();
        if !self.wording.said.iter().any(|said| message.contains(said)) {
            return Cure::None;
        }
        let sent = messages.iter().flat_map(|message| message.parts());
        let sent: BTreeSet<u64> = sent.filter_map(|part| self.mark(part)).collect();
        let mut known = self.lock();
        if sent.is_subset(&known) {
            return Cure::None;
        }
        if known.len() + sent.len() > MAX_UNREAD {
            known.clear();
        }
        known.extend(sent);
        drop(known);
        deltas(Delta::Warning {
            text: TOLD.to_owned(),
        });
        Cure::Without
    }

    /// The messages without what is not read.
    pub(crate) fn left_out<'m>(&self, messages: &'m [Arc<Message>]) -> Vec<Cow<'m, Message>> {
        let known = self.lock();
        let unread = |part: &Part| {
            !known.is_empty() && self.mark(part).is_some_and(|mark| known.contains(&mark))
        };
        let message = |message: &'m Arc<Message>| match message.as_ref() {
            Message::Assistant { parts } if parts.iter().any(unread) => {
                let parts = parts.iter().filter(|part| !unread(part));
                Cow::Owned(Message::Assistant {
                    parts: parts.cloned().collect(),
                })
            }
            message => Cow::Borrowed(message),
        };
        messages.iter().map(message).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an item of reasoning is known by; `None` for any other part.
    fn mark(&self, part: &Part) -> Option<u64> {
        let Part::Thinking(thinking) = part else {
            return None;
        };
        let opaque = thinking.opaque.as_ref()?;
        if opaque.origin != self.wording.origin {
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
    use plimsoll_wire::openai_responses::ORIGIN;

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

    fn learn(unread: &Unread, failure: &Failure, messages: &[Arc<Message>]) -> Cure {
        let told = Mutex::new(0);
        let cure = unread.learn(failure, messages, &|delta| {
            assert!(matches!(delta, Delta::Warning { .. }), "{delta:?}");
            *told.lock().unwrap() += 1;
        });
        let expected = usize::from(cure == Cure::Without);
        assert_eq!(*told.lock().unwrap(), expected, "each time it is told");
        cure
    }

    #[test]
    fn what_is_refused_once_is_not_sent_again_and_all_else_is() {
        let unread = Unread::responses();
        let said = refused("The encrypted content gAAA... could not be verified.");
        let foreign = [turn("anthropic", "a")];
        assert_eq!(
            learn(&unread, &said, &foreign),
            Cure::None,
            "nothing to leave out"
        );
        let old = [turn(ORIGIN, "a"), turn("anthropic", "a")];
        assert_eq!(
            learn(&unread, &refused("No tool output found."), &old),
            Cure::None
        );
        assert_eq!(unread.left_out(&old)[0].as_ref(), old[0].as_ref());
        assert_eq!(learn(&unread, &said, &old), Cure::Without);
        assert_eq!(learn(&unread, &said, &old), Cure::None, "it was left out");
        let view = [turn(ORIGIN, "a"), turn("anthropic", "a"), turn(ORIGIN, "b")];
        let sent: Vec<usize> = unread
            .left_out(&view)
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
            let cure = learn(&Unread::responses(), &refused(said), &[turn(ORIGIN, "a")]);
            assert_eq!(cure, Cure::Without, "{said}");
        }
        for said in [
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a \
             different conversation", // tidy:allow(conversation)
            "messages.1.content.1: Invalid `data` in `redacted_thinking` block",
            "messages.9.content.4: `thinking` or `redacted_thinking` blocks in the latest assistant \
             message cannot be modified. These blocks must remain as they were in the original response.",
        ] {
            let thought = [turn(anthropic::ORIGIN, "a")];
            let cure = learn(&Unread::messages(), &refused(said), &thought);
            assert_eq!(cure, Cure::Without, "{said}");
            let cure = learn(&Unread::messages(), &refused(said), &[turn(ORIGIN, "a")]);
            assert_eq!(cure, Cure::None, "{said}");
        }
    }

    #[test]
    fn it_is_bounded() {
        let unread = Unread::responses();
        let said = refused("encrypted content");
        for round in 0..3 {
            let view: Vec<Arc<Message>> = (0..MAX_UNREAD / 2)
                .map(|at| turn(ORIGIN, &format!("{round} {at}")))
                .collect();
            assert_eq!(learn(&unread, &said, &view), Cure::Without);
            assert!(unread.lock().len() <= MAX_UNREAD);
        }
    }
}
