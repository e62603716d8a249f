//! [`SentSessions`]: the messages that a client has sent, so that a request of a session that grew
//! renders only its new messages.

use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_context::MessageList;
use plimsoll_wire::{
    BodyChunks, EncodedRequest, RenderInput, RequestRenderer, WrittenMessages, render_next,
};

/// The maximum number of kept sessions. If it is exceeded, the session that was sent longest ago is
/// dropped.
const MAX_SESSIONS: usize = 4;
/// The maximum size of a kept session, in bytes of a request. A window of a million tokens is smaller.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The sessions that were sent last, the newest at the end.
#[derive(Debug, Default)]
pub(crate) struct SentSessions(Mutex<Vec<WrittenMessages>>);

impl SentSessions {
    /// Renders a request. Reuses the kept messages of a request with the same beginning, and keeps the
    /// result. Concurrent requests do not wait for each other.
    pub(crate) fn render(
        &self,
        input: &RenderInput<'_>,
        messages: &MessageList,
        renderer: &impl RequestRenderer,
    ) -> EncodedRequest<BodyChunks> {
        let mut written = self.take(input.system, messages).unwrap_or_default();
        let rendered = render_next(&mut written, input, messages, renderer);
        if written.bytes() <= MAX_BYTES {
            let mut sessions = self.lock();
            if sessions.len() >= MAX_SESSIONS {
                sessions.remove(0);
            }
            sessions.push(written);
        }
        rendered
    }

    /// Removes and returns the longest session that a request begins with.
    fn take(&self, system: Option<&str>, messages: &MessageList) -> Option<WrittenMessages> {
        let mut sessions = self.lock();
        let fitting =
            { sessions.iter().enumerate() }.filter(|(_, one)| one.begins(system, messages));
        let (at, _) = fitting.max_by_key(|(_, written)| written.messages())?;
        Some(sessions.remove(at))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<WrittenMessages>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_agent::Request;
    use plimsoll_context::Message;
    use plimsoll_wire::openai_chat::{Dialect, render};

    use super::*;
    use crate::explain::question;

    fn message(text: &str) -> Arc<Message> {
        Arc::new(Message::user(text))
    }

    /// In any order of requests, each one equals that of a client without kept messages.
    #[test]
    fn what_is_kept_changes_no_request() {
        let messages: Vec<Arc<Message>> = (0..8).map(|n| message(&format!("m{n}"))).collect();
        let other = message("other");
        let with = |system: &str, messages: Vec<Arc<Message>>| Request {
            system: system.into(),
            messages: messages.into(),
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
        let (sent, dialect) = (SentSessions::default(), Dialect::openai());
        for request in &requests {
            let input = RenderInput {
                model: "m",
                system: Some(&*request.system).filter(|system| !system.is_empty()),
                ..RenderInput::default()
            };
            let next = sent.render(&input, &request.messages, &dialect);
            let whole = render(&input, request.messages.iter().map(AsRef::as_ref), &dialect);
            assert_eq!(next.body.into_vec(), whole.unwrap().body);
            assert!(sent.lock().len() <= MAX_SESSIONS);
        }
    }

    #[test]
    fn a_session_that_grows_is_found_again() {
        let (sent, dialect) = (SentSessions::default(), Dialect::openai());
        let mut request = question();
        for n in 0..20 {
            request.messages.push(message(&n.to_string()));
            let input = RenderInput::default();
            let written = sent.lock().first().map_or(0, WrittenMessages::bytes);
            assert_eq!(written > 0, n > 0, "{n}");
            sent.render(&input, &request.messages, &dialect);
            assert_eq!(sent.lock().len(), 1);
        }
    }
}
