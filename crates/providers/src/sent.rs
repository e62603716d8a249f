//! [`SentSessions`]: the messages that a client has sent, so that a request of a session that grew
//! renders only its new messages.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_agent::Request;
use plimsoll_context::MessageList;
use plimsoll_wire::{
    BodyChunks, EncodedRequest, RenderInput, RequestRenderer, WrittenMessages, render_next,
};

/// The maximum number of kept sessions. If it is exceeded, the session that was sent longest ago is
/// dropped.
const MAX_SESSIONS: usize = 4;
/// The maximum size of a kept session, in bytes of a request. A window of a million tokens is smaller.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The sessions that were sent last, the newest at the end. `D` is the type of the protocol's decisions
/// about their messages.
#[derive(Debug, Default)]
pub(crate) struct SentSessions<D = ()>(Mutex<Vec<Session<D>>>);

/// A session in the state in which it was sent.
#[derive(Debug)]
struct Session<D> {
    system: Arc<str>,
    messages: MessageList,
    written: WrittenMessages<D>,
}

impl<D: Default> SentSessions<D> {
    /// Renders a request. Reuses the kept messages of a request with the same beginning, and keeps the
    /// result. Concurrent requests do not wait for each other.
    pub(crate) fn render(
        &self,
        request: &Request,
        input: &RenderInput<'_>,
        renderer: &impl RequestRenderer<Decisions = D>,
    ) -> EncodedRequest<BodyChunks> {
        let mut written = self.take(request).unwrap_or_default();
        let rendered = render_next(&mut written, input, &request.messages, renderer);
        self.keep(Session {
            system: Arc::clone(&request.system),
            messages: request.messages.clone(),
            written,
        });
        rendered
    }

    fn keep(&self, session: Session<D>) {
        if session.written.bytes() > MAX_BYTES {
            return;
        }
        let mut sessions = self.lock();
        if sessions.len() >= MAX_SESSIONS {
            sessions.remove(0);
        }
        sessions.push(session);
    }

    /// Removes and returns the rendered messages of the longest session that the request begins with.
    fn take(&self, request: &Request) -> Option<WrittenMessages<D>> {
        let mut sessions = self.lock();
        let fitting =
            { sessions.iter().enumerate() }.filter(|(_, session)| session.begins(request));
        let (at, _) = fitting.max_by_key(|(_, session)| session.messages.len())?;
        Some(sessions.remove(at).written)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Session<D>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D> Session<D> {
    /// Returns `true` if a request has the same system prompt and begins with the same messages.
    fn begins(&self, request: &Request) -> bool {
        !self.messages.is_empty()
            && request.messages.starts_with(&self.messages)
            && self.system == request.system
    }
}

#[cfg(test)]
mod tests {
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
            let next = sent.render(request, &input, &dialect);
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
            let written = sent.lock().first().map_or(0, |one| one.written.bytes());
            assert_eq!(written > 0, n > 0, "{n}");
            sent.render(&request, &input, &dialect);
            assert_eq!(sent.lock().len(), 1);
        }
    }
}
