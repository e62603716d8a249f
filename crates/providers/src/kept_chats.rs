//! [`KeptChats`]: the chats that a client has sent, so that a request of a chat that grew renders only its
//! new messages.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_agent::Request;
use plimsoll_context::Message;
use plimsoll_wire::openai_chat::{Dialect, GrowingChat};

/// Chats that are kept at most. Beyond it, the one that was sent longest ago is dropped.
const MAX_CHATS: usize = 4;
/// Larger chats are not kept, in bytes of a request: a window of a million tokens holds less.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The chats that were sent last, the newest at the end.
#[derive(Debug, Default)]
pub(crate) struct KeptChats(Mutex<Vec<KeptChat>>);

/// A chat, and the messages that are in it.
#[derive(Debug)]
pub(crate) struct KeptChat {
    system: Arc<str>,
    messages: Vec<Arc<Message>>,
    pub(crate) chat: GrowingChat,
}

impl KeptChats {
    /// Returns a chat with the messages of a request: a kept one if the request begins with its messages,
    /// else a new one. It is no longer kept until it is [put back](Self::keep), so that requests at the
    /// same time do not wait for each other.
    pub(crate) fn of(&self, request: &Request, dialect: &Dialect) -> KeptChat {
        let mut kept = self.take(request).unwrap_or_else(|| {
            let system = Some(&*request.system).filter(|system| !system.is_empty());
            KeptChat {
                system: Arc::clone(&request.system),
                messages: Vec::new(),
                chat: GrowingChat::new(system, dialect),
            }
        });
        let new = request.messages.get(kept.messages.len()..);
        for message in new.unwrap_or_default() {
            kept.chat.push(message);
            kept.messages.push(Arc::clone(message));
        }
        kept
    }

    /// Keeps a chat for the next request.
    pub(crate) fn keep(&self, chat: KeptChat) {
        if chat.chat.bytes() > MAX_BYTES {
            return;
        }
        let mut chats = self.lock();
        if chats.len() >= MAX_CHATS {
            chats.remove(0);
        }
        chats.push(chat);
    }

    /// Takes out the longest chat that the request begins with.
    fn take(&self, request: &Request) -> Option<KeptChat> {
        let mut chats = self.lock();
        let fitting = chats
            .iter()
            .enumerate()
            .filter(|(_, kept)| kept.begins(request));
        let (at, _) = fitting.max_by_key(|(_, kept)| kept.messages.len())?;
        Some(chats.remove(at))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<KeptChat>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptChat {
    /// Whether a request has the same system prompt and begins with the same messages. Messages never
    /// change, so that it is enough to compare their addresses.
    fn begins(&self, request: &Request) -> bool {
        let len = self.messages.len();
        let same = |(one, other): (&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(one, other);
        let begins = request.messages.get(..len).is_some_and(|messages| {
            // A chat that was cut differs at the end first.
            messages
                .iter()
                .rev()
                .zip(self.messages.iter().rev())
                .all(same)
        });
        len > 0 && self.system == request.system && begins
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::RenderInput;
    use plimsoll_wire::openai_chat::render;

    use super::*;
    use crate::explain::question;

    fn message(text: &str) -> Arc<Message> {
        Arc::new(Message::user(text))
    }

    /// Whatever is asked in whatever order, each request is that of a client which keeps nothing.
    #[test]
    fn kept_chats_change_no_request() {
        let messages: Vec<Arc<Message>> = (0..8).map(|n| message(&format!("m{n}"))).collect();
        let other = message("other");
        let with = |system: &str, messages: Vec<Arc<Message>>| Request {
            system: system.into(),
            messages,
            ..question()
        };
        let cut = [
            vec![Arc::clone(&other)],
            messages.get(4..).unwrap().to_vec(),
        ]
        .concat();
        let swapped = [messages.get(..2).unwrap(), &[other]].concat();
        let requests = [
            with("a", messages.get(..2).unwrap().to_vec()),
            with("a", messages.get(..5).unwrap().to_vec()),
            with("b", messages.get(..5).unwrap().to_vec()),
            with("a", messages.get(..3).unwrap().to_vec()),
            with("a", messages.clone()),
            with("a", cut),
            with("a", swapped),
            with("", messages.clone()),
            with("a", messages),
        ];
        let (kept, dialect) = (KeptChats::default(), Dialect::openai());
        for request in &requests {
            let input = RenderInput {
                model: "m",
                system: Some(&*request.system).filter(|system| !system.is_empty()),
                ..RenderInput::default()
            };
            let chat = kept.of(request, &dialect);
            let whole = render(&input, request.messages.iter().map(AsRef::as_ref), &dialect);
            assert_eq!(chat.chat.request(&input).body, whole.unwrap().body);
            kept.keep(chat);
            assert!(kept.lock().len() <= MAX_CHATS);
        }
    }

    #[test]
    fn a_chat_that_grows_is_found_again() {
        let (kept, dialect) = (KeptChats::default(), Dialect::openai());
        let mut request = question();
        for n in 0..20 {
            request.messages.push(message(&n.to_string()));
            let chat = kept.take(&request);
            assert_eq!(chat.is_some(), n > 0, "{n}");
            chat.into_iter().for_each(|chat| kept.keep(chat));
            kept.keep(kept.of(&request, &dialect));
            assert_eq!(kept.lock().len(), 1);
        }
    }
}
