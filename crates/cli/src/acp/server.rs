//! [`AcpServer`]: the open sessions of one connection, and the requests of its client.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    self, AgentCapabilities, ClientRequest, CloseSessionResponse, Implementation,
    InitializeResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionResponse,
    McpCapabilities, McpServer, NewSessionResponse, PromptCapabilities, PromptRequest,
    PromptResponse, SessionCapabilities, SessionInfo, SessionMode, SessionModeState,
    SetSessionModeRequest, SetSessionModeResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error, ErrorCode};
use futures_util::future::join_all;
use plimsoll::SessionStore;
use plimsoll::session::new_session_id;
use plimsoll::store::SqliteStore;
use plimsoll::{PermissionMode, SessionId};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::outbox::Outbox;
use super::servers::servers;
use super::session::OpenSession;
use crate::error::{self, CliError};
use crate::listing::when;
use crate::lock;
use crate::sessions::list;
use crate::settings::Sources;

/// Maximum number of messages whose work waits. Beyond it, the client waits.
const WAITING: usize = 256;
/// Maximum number of open sessions.
const MAX_SESSIONS: usize = 64;
/// Maximum number of listed sessions. The newest are listed.
const LISTED: usize = 200;
/// Maximum wait for requests that are being answered when the connection ends. Prompts end at once.
const ANSWERING: Duration = Duration::from_secs(1);

/// The state of one client's connection.
pub(super) struct AcpServer {
    sources: Sources,
    store: Arc<SqliteStore>,
    sessions: Mutex<HashMap<schema::SessionId, Arc<OpenSession>>>,
    is_initialized: AtomicBool,
    /// A permit for each message whose work may still wait.
    permits: Arc<Semaphore>,
    /// The last work of each session. Each work waits for the one before it.
    last: Mutex<HashMap<schema::SessionId, JoinHandle<()>>>,
    /// The number of requests that are being answered: its receivers.
    answering: watch::Sender<()>,
    /// The number of sessions that are being opened: its receivers.
    opening: watch::Sender<()>,
}

impl AcpServer {
    /// Creates the server of a connection.
    pub(super) fn new(sources: Sources, store: Arc<SqliteStore>) -> Self {
        Self {
            sources,
            store,
            sessions: Mutex::default(),
            is_initialized: AtomicBool::default(),
            permits: Arc::new(Semaphore::new(WAITING)),
            last: Mutex::default(),
            answering: watch::Sender::new(()),
            opening: watch::Sender::new(()),
        }
    }

    /// Does the work for a message in the background, after that for the messages before it to the
    /// same session.
    async fn enqueue(
        &self,
        session: Option<schema::SessionId>,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let mut last = lock(&self.last);
        last.retain(|_, work| !work.is_finished());
        let before = session.as_ref().and_then(|session| last.remove(session));
        let work = tokio::spawn(async move {
            if let Some(before) = before {
                // An error means that it has panicked.
                let _ = before.await;
            }
            work.await;
            drop(permit);
        });
        if let Some(session) = session {
            last.insert(session, work);
        }
        Ok(())
    }

    /// Cancels the current prompt of a session at once, and again after its requests that wait: one of
    /// them may be the prompt.
    pub(super) async fn receive_cancel(
        self: &Arc<Self>,
        id: schema::SessionId,
    ) -> Result<(), Error> {
        self.cancel(&id);
        let (server, session) = (Arc::clone(self), id.clone());
        self.enqueue(Some(session), async move { server.cancel(&id) })
            .await
    }

    /// Answers a request in the background, after those before it to the same session. Only a prompt
    /// that has begun is not waited for.
    pub(super) async fn receive(
        self: &Arc<Self>,
        request: ClientRequest,
        responder: Responder<Value>,
        client: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        if matches!(request, ClientRequest::InitializeRequest(_)) {
            self.is_initialized.store(true, Ordering::SeqCst);
            return responder.respond_with_result(json(Self::initialize()));
        }
        if !self.is_initialized.load(Ordering::SeqCst) {
            let why = "the connection is not initialized; send initialize first";
            return responder.respond_with_error(Error::new(ErrorCode::INVALID_REQUEST, why));
        }
        let session = match &request {
            ClientRequest::PromptRequest(prompt) => Some(prompt.session_id.clone()),
            ClientRequest::LoadSessionRequest(load) => Some(load.session_id.clone()),
            ClientRequest::CloseSessionRequest(close) => Some(close.session_id.clone()),
            ClientRequest::SetSessionModeRequest(set) => Some(set.session_id.clone()),
            _ => None,
        };
        let (server, answering) = (Arc::clone(self), self.answering.subscribe());
        let work = async move {
            let mut opened = None;
            let answer = match request {
                ClientRequest::PromptRequest(prompt) => match server.begin_prompt(prompt) {
                    Ok(ended) => {
                        tokio::spawn(async move {
                            let _ = responder.respond_with_result(ended.await);
                            drop(answering);
                        });
                        return;
                    }
                    Err(error) => Err(error),
                },
                request => server.answer(request, client, &mut opened).await,
            };
            let _ = responder.respond_with_result(answer);
            if let Some(session) = opened {
                session.offer_commands();
            }
            drop(answering);
        };
        self.enqueue(session, work).await
    }

    /// Begins a prompt. Its answer is ready when the run has ended.
    fn begin_prompt(
        &self,
        request: PromptRequest,
    ) -> Result<impl Future<Output = Result<Value, Error>> + use<>, Error> {
        let session = self.session(&request.session_id)?;
        let (host, cancels) = (session.claim()?, session.cancel.subscribe());
        Ok(async move {
            let ended = session.prompt(host, request.prompt, cancels).await?;
            json(PromptResponse::new(ended))
        })
    }

    /// Answers any other request. `opened` becomes the session that it opens.
    async fn answer(
        &self,
        request: ClientRequest,
        client: ConnectionTo<Client>,
        opened: &mut Option<Arc<OpenSession>>,
    ) -> Result<Value, Error> {
        match request {
            ClientRequest::NewSessionRequest(new) => {
                let session = self.open(None, (new.cwd, new.mcp_servers), client).await?;
                let session = opened.insert(session);
                let response = NewSessionResponse::new(session.id().clone());
                json(response.modes(modes(session.gate.mode())))
            }
            ClientRequest::LoadSessionRequest(load) => {
                let (id, given) = (load.session_id, (load.cwd, load.mcp_servers));
                let session = opened.insert(self.open(Some(id), given, client).await?);
                json(LoadSessionResponse::new().modes(modes(session.gate.mode())))
            }
            ClientRequest::CloseSessionRequest(close) => {
                self.session(&close.session_id)?;
                self.shut(&close.session_id).await;
                json(CloseSessionResponse::new())
            }
            ClientRequest::ListSessionsRequest(list) => self.list(list).await,
            ClientRequest::SetSessionModeRequest(set) => self.set_mode(&set),
            _ => Err(Error::method_not_found()),
        }
    }

    fn initialize() -> InitializeResponse {
        let prompts = PromptCapabilities::new().image(true).embedded_context(true);
        let sessions = SessionCapabilities::new()
            .list(schema::SessionListCapabilities::new())
            .close(schema::SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(prompts)
            .mcp_capabilities(McpCapabilities::new().http(true))
            .session_capabilities(sessions);
        let about = Implementation::new("plimsoll", env!("CARGO_PKG_VERSION")).title("Plimsoll");
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(about)
    }

    /// Opens a new session, or the one with this id.
    async fn open(
        &self,
        id: Option<schema::SessionId>,
        (folder, given): (PathBuf, Vec<McpServer>),
        client: ConnectionTo<Client>,
    ) -> Result<Arc<OpenSession>, Error> {
        let id = match id {
            Some(id) => self.known(&id).await?,
            None => new_session_id(),
        };
        let name = schema::SessionId::new(id.as_str());
        let sources = self.sources_in(&folder, given)?;
        // A client that lost its state may load a session that is still open.
        self.shut(&name).await;
        let opening = {
            let sessions = lock(&self.sessions);
            if sessions.len() + self.opening.receiver_count() >= MAX_SESSIONS {
                let why = format!("{MAX_SESSIONS} sessions are open; close one first");
                return Err(CliError::failed(why).into());
            }
            self.opening.subscribe()
        };
        let outbox = Outbox {
            client,
            session: name.clone(),
        };
        let store = Arc::clone(&self.store);
        let session = OpenSession::open(store, outbox, id, sources, &folder).await?;
        let mut sessions = lock(&self.sessions);
        sessions.insert(name, Arc::clone(&session));
        drop(opening);
        Ok(session)
    }

    async fn list(&self, request: ListSessionsRequest) -> Result<Value, Error> {
        let all = list::sessions(&*self.store, false).await?.into_iter();
        let sessions = all.filter_map(|list::ListedSession { info, folder, .. }| {
            let folder = folder?;
            let is_wanted = request.cwd.as_ref().is_none_or(|cwd| *cwd == folder);
            is_wanted.then(|| {
                SessionInfo::new(info.id.as_str().to_owned(), folder)
                    .title(Some(info.title).filter(|title| !title.is_empty()))
                    .updated_at(date(info.updated))
            })
        });
        json(ListSessionsResponse::new(sessions.take(LISTED).collect()))
    }

    fn set_mode(&self, request: &SetSessionModeRequest) -> Result<Value, Error> {
        let session = self.session(&request.session_id)?;
        let mode = request.mode_id.0.parse::<PermissionMode>();
        let mode = mode.map_err(|_| {
            let names = PermissionMode::NAMES.join(", ");
            CliError::usage(format!(
                "there is no mode `{}`; there are: {names}",
                request.mode_id
            ))
        })?;
        session.gate.set_mode(mode);
        json(SetSessionModeResponse::new())
    }

    /// Cancels the current prompt of a session.
    fn cancel(&self, id: &schema::SessionId) {
        if let Ok(session) = self.session(id) {
            session.cancel.send_replace(());
        }
    }

    /// Ends all sessions.
    pub(super) async fn close_all(&self) {
        let mut sessions = std::mem::take(&mut *lock(&self.sessions));
        for session in sessions.values() {
            session.cancel.send_replace(());
        }
        let _ = timeout(ANSWERING, self.answering.closed()).await;
        // Some may have been opened meanwhile.
        sessions.extend(lock(&self.sessions).drain());
        join_all(sessions.values().map(|session| session.close())).await;
    }

    /// Returns the settings of a session in this folder.
    fn sources_in(&self, folder: &Path, given: Vec<McpServer>) -> Result<Sources, CliError> {
        let is_folder = folder.is_absolute() && folder.is_dir();
        let Some(root) = folder.to_str().filter(|_| is_folder) else {
            return Err(CliError::usage(format!(
                "{} is not a folder; give the absolute path of an existing one as cwd",
                folder.display()
            )));
        };
        let mut sources = self.sources.clone();
        sources.flags.set("--root", "root", root);
        sources.folder = Some(folder.to_owned());
        sources.mcp_servers = servers(given)?;
        Ok(sources)
    }

    /// Returns the session in the store with this id.
    async fn known(&self, id: &schema::SessionId) -> Result<SessionId, Error> {
        let known = SessionId::new(id.0.as_ref()).map_err(CliError::usage)?;
        match self.store.head(&known).await.map_err(CliError::failed)? {
            Some(_) => Ok(known),
            None => Err(unknown(
                id,
                format!("there is no session {id}; `plimsoll sessions list` lists them"),
            )),
        }
    }

    /// Returns the open session with this id.
    fn session(&self, id: &schema::SessionId) -> Result<Arc<OpenSession>, Error> {
        let found = lock(&self.sessions).get(id).map(Arc::clone);
        found.ok_or_else(|| {
            let why = format!("no session {id} is open; open it with session/new or session/load");
            unknown(id, why)
        })
    }

    /// Ends an open session.
    async fn shut(&self, id: &schema::SessionId) {
        let session = lock(&self.sessions).remove(id);
        if let Some(session) = session {
            session.cancel.send_replace(());
            session.close().await;
        }
    }
}

impl From<CliError> for Error {
    fn from(stop: CliError) -> Self {
        let code = match stop.code {
            error::USAGE => ErrorCode::INVALID_PARAMS,
            _ => ErrorCode::INTERNAL_ERROR,
        };
        Self::new(code, stop.text)
    }
}

fn json(response: impl Serialize) -> Result<Value, Error> {
    Ok(serde_json::to_value(response).map_err(CliError::from)?)
}

fn unknown(id: &schema::SessionId, text: String) -> Error {
    let error = Error::new(ErrorCode::RESOURCE_NOT_FOUND, text);
    error.data(serde_json::json!({ "sessionId": id }))
}

/// Returns the permission modes, for the client to offer.
fn modes(current: PermissionMode) -> SessionModeState {
    let does = [
        "Asks before files are changed and commands run",
        "Changes files of the folder without asking",
        "Never asks",
        "No command or file change runs",
    ];
    let modes = PermissionMode::NAMES.into_iter().zip(does);
    let modes = modes.map(|(name, does)| SessionMode::new(name, name).description(does));
    SessionModeState::new(current.name(), modes.collect())
}

/// Formats a time in ISO 8601.
fn date(at: u64) -> String {
    when(at).replace(' ', "T") + "Z"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_iso_8601_has_them() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(1_795_662_000), "2026-11-26T03:00:00Z");
    }
}
