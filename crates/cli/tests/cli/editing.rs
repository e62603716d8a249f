//! An editor: the protocol's own client, connected to the binary, which ends when this is dropped.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, InitializeRequest, LoadSessionRequest, McpServer,
    NewSessionRequest, PromptRequest, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, SessionId, SessionNotification,
    SessionUpdate, StopReason,
};
use agent_client_protocol::{
    Agent, Client, Error, Lines, on_receive_notification, on_receive_request,
};
use futures_util::{sink, stream};
use plimsoll_testkit::ChildGuard;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::mpsc::unbounded_channel;

use super::command::{CommandOutput, Home, with};
use super::fake::Fake;

/// What has not come by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// An editor that is connected.
pub(crate) struct Editor {
    pub(crate) agent: ConnectionTo<Agent>,
    pub(crate) heard: Arc<EditorRecord>,
}

/// What an editor has heard.
#[derive(Default)]
pub(crate) struct EditorRecord {
    updates: Mutex<Vec<SessionNotification>>,
    /// Questions, and the options of each.
    asked: Mutex<Vec<RequestPermissionRequest>>,
    /// What will be answered: the kinds of an option, or `cancel`.
    answers: Mutex<VecDeque<&'static str>>,
    arrived: Notify,
}

/// Starts the agent, does something with it, and ends the connection.
pub(crate) fn edit<R>(
    home: &Home,
    fake: &Fake,
    args: &[&str],
    work: impl AsyncFnOnce(&Editor) -> R,
) -> (R, CommandOutput) {
    let mut args = with(fake, args);
    args[0] = "acp".to_owned();
    let child = home
        .command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = ChildGuard::new(child);
    let stdin = child.stdin.take().unwrap();
    let (lines, mut incoming) = unbounded_channel();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || {
        for line in stdout.lines() {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    let mut stderr = child.stderr.take().unwrap();
    let err = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        text
    });
    let outgoing = sink::unfold(stdin, |mut stdin, line: String| async move {
        writeln!(stdin, "{line}")?;
        Ok::<_, std::io::Error>(stdin)
    });
    let incoming = stream::poll_fn(move |context| incoming.poll_recv(context));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let done = connected(Lines::new(Box::pin(outgoing), incoming), work);
    let done = runtime.block_on(async { tokio::time::timeout(PATIENCE, done).await });
    let done = done.expect("the agent did not answer").unwrap();
    let code = child.wait().unwrap().code();
    let (out, err) = (String::new(), err.join().unwrap());
    (done, CommandOutput { code, out, err })
}

async fn connected<R>(
    transport: impl agent_client_protocol::ConnectTo<Client> + 'static,
    work: impl AsyncFnOnce(&Editor) -> R,
) -> Result<R, Error> {
    let heard = Arc::new(EditorRecord::default());
    let (hears, asked) = (Arc::clone(&heard), Arc::clone(&heard));
    Client
        .v1()
        .on_receive_notification(
            async move |update: SessionNotification, _| {
                hears.updates.lock().unwrap().push(update);
                hears.arrived.notify_waiters();
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |question: RequestPermissionRequest, responder, agent| {
                let outcome = asked.answer(&question, &agent);
                asked.asked.lock().unwrap().push(question);
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            on_receive_request!(),
        )
        .connect_with(transport, async |agent| {
            let hello = InitializeRequest::new(ProtocolVersion::V1);
            let about = agent.send_request(hello).block_task().await?;
            assert_eq!(about.protocol_version, ProtocolVersion::V1);
            assert!(about.agent_capabilities.load_session);
            let editor = Editor { agent, heard };
            Ok(work(&editor).await)
        })
        .await
}

impl EditorRecord {
    fn answer(
        &self,
        question: &RequestPermissionRequest,
        agent: &ConnectionTo<Agent>,
    ) -> RequestPermissionOutcome {
        let answer = self.answers.lock().unwrap().pop_front();
        let answer = answer.expect("no question was expected");
        if answer == "cancel" {
            let cancel = CancelNotification::new(question.session_id.clone());
            agent.send_notification(cancel).unwrap();
            return RequestPermissionOutcome::Cancelled;
        }
        let mut options = question.options.iter();
        let option = options.find(|option| json(&option.kind) == answer).unwrap();
        let selected = SelectedPermissionOutcome::new(option.option_id.clone());
        RequestPermissionOutcome::Selected(selected)
    }
}

impl Editor {
    /// What the next questions are answered: `allow_once`, `allow_always`, `reject_once` or `cancel`.
    pub(crate) fn answers(&self, answers: impl IntoIterator<Item = &'static str>) {
        self.heard.answers.lock().unwrap().extend(answers);
    }

    /// A new session in this folder.
    pub(crate) async fn open(&self, folder: impl AsRef<Path>) -> SessionId {
        self.open_with(folder, Vec::new()).await.unwrap()
    }

    /// The same with servers of tools.
    pub(crate) async fn open_with(
        &self,
        folder: impl AsRef<Path>,
        servers: Vec<McpServer>,
    ) -> Result<SessionId, Error> {
        let request = NewSessionRequest::new(folder.as_ref()).mcp_servers(servers);
        let opened = self.agent.send_request(request).block_task().await?;
        Ok(opened.session_id)
    }

    /// Opens a session that there is.
    pub(crate) async fn load(&self, session: &SessionId, folder: impl AsRef<Path>) {
        let request = LoadSessionRequest::new(session.clone(), folder.as_ref());
        self.agent.send_request(request).block_task().await.unwrap();
    }

    /// Says something, and waits for the end of the run.
    pub(crate) async fn say(&self, session: &SessionId, text: &str) -> Result<StopReason, Error> {
        self.prompt(session, vec![ContentBlock::from(text)]).await
    }

    pub(crate) async fn prompt(
        &self,
        session: &SessionId,
        prompt: Vec<ContentBlock>,
    ) -> Result<StopReason, Error> {
        let request = PromptRequest::new(session.clone(), prompt);
        let ended = self.agent.send_request(request).block_task().await?;
        Ok(ended.stop_reason)
    }

    pub(crate) fn cancel(&self, session: &SessionId) {
        let cancel = CancelNotification::new(session.clone());
        self.agent.send_notification(cancel).unwrap();
    }

    /// Waits until these words were heard.
    pub(crate) async fn until(&self, session: &SessionId, words: &str) {
        loop {
            // Listening begins before the look, so that nothing is missed.
            let arrived = self.heard.arrived.notified();
            if self.text(session).contains(words) {
                return;
            }
            arrived.await;
        }
    }

    /// All updates of a session, in JSON.
    pub(crate) fn updates(&self, session: &SessionId) -> Vec<Value> {
        let updates = self.heard.updates.lock().unwrap();
        let updates = updates
            .iter()
            .filter(|update| update.session_id == *session);
        updates
            .map(|update| serde_json::to_value(&update.update).unwrap())
            .collect()
    }

    /// What the agent has said in a session.
    pub(crate) fn text(&self, session: &SessionId) -> String {
        let updates = self.heard.updates.lock().unwrap();
        let updates = updates
            .iter()
            .filter(|update| update.session_id == *session);
        let texts = updates.filter_map(|update| match &update.update {
            SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            },
            _ => None,
        });
        texts.collect()
    }

    /// The updates of tool calls in a session: which call, its title if that is said, and its status.
    pub(crate) fn calls(&self, session: &SessionId) -> Vec<(String, String, String)> {
        let updates = self.updates(session).into_iter();
        let calls = updates.filter(|update| {
            let kind = update["sessionUpdate"].as_str().unwrap();
            kind.starts_with("tool_call")
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        calls
            .map(|call| {
                (
                    text(&call["toolCallId"]),
                    text(&call["title"]),
                    text(&call["status"]),
                )
            })
            .collect()
    }

    /// What was asked until now: the title of the call, and the names of the options.
    pub(crate) fn asked(&self) -> Vec<(String, Vec<String>)> {
        let asked = self.heard.asked.lock().unwrap();
        let asked = asked.iter().map(|question| {
            let title = question.tool_call.fields.title.clone();
            let options = question.options.iter().map(|option| option.name.clone());
            (title.unwrap_or_default(), options.collect())
        });
        asked.collect()
    }
}

fn json(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap();
    value.as_str().unwrap_or_default().to_owned()
}
