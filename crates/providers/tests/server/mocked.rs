//! Servers of the mock crate, configured for these tests: they describe themselves only by a given
//! page, and count tokens only if a test enables it.

use std::ops::Deref;

use plimsoll_mock::{Mock, RecordedRequest, Script, Server};
use plimsoll_wire::openai_responses::ResponsesProfile;
use serde_json::{Value, json};

pub(crate) use plimsoll_mock::Turn;

/// What most servers do not have, unless a test says so.
const ABSENT: [&str; 3] = [
    "/v1/models",
    "/v1/messages/count_tokens",
    "/v1/responses/input_tokens",
];

/// A server, with its address at hand.
pub(crate) struct Fake {
    pub(crate) address: String,
    server: Server,
}

impl Deref for Fake {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Fake {
    /// A server of that dialect that answers chats by this script.
    pub(crate) async fn new(dialect: &str, script: impl IntoIterator<Item = Turn>) -> Self {
        Self::of(Mock::chat(dialect).unwrap(), script).await
    }

    /// A server of Responses with models of that profile.
    pub(crate) async fn responses(
        profile: ResponsesProfile,
        script: impl IntoIterator<Item = Turn>,
    ) -> Self {
        Self::of(Mock::responses_by(move |_| profile.clone()), script).await
    }

    /// A server of Messages that answers what it is asked, the first answers by this script.
    pub(crate) async fn messages(
        script: impl IntoIterator<Item = Turn>,
        then: impl Fn(&Value) -> Turn + Send + Sync + 'static,
    ) -> Self {
        Self::of(Mock::messages().then(move |asked, _| then(asked)), script).await
    }

    /// A server like that, with a script.
    pub(crate) async fn of(mut mock: Mock, script: impl IntoIterator<Item = Turn>) -> Self {
        for path in ABSENT {
            mock = mock.page(path, 404, json!({}));
        }
        Self::exactly(mock, script).await
    }

    /// A server that has all that it has.
    pub(crate) async fn exactly(mock: Mock, script: impl IntoIterator<Item = Turn>) -> Self {
        let server = Server::start(mock.script(Script::new(script)))
            .await
            .unwrap();
        let address = server.address();
        Self { address, server }
    }

    /// A fixed answer at a path.
    pub(crate) fn page(self, path: &str, status: u16, body: Value) -> Self {
        self.server.page(path, status, body);
        self
    }

    /// All that was asked so far.
    pub(crate) fn asked(&self) -> Vec<RecordedRequest> {
        self.server.requests()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.path).collect()
    }
}
