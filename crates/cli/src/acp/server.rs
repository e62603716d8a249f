//! [`AcpServer`]: answers the requests of a client and keeps its open sessions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    self, AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse,
    Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest,
    ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, McpCapabilities, McpServer,
    NewSessionRequest, NewSessionResponse, PromptCapabilities, PromptRequest, PromptResponse,
    ResumeSessionRequest, ResumeSessionResponse, SessionCapabilities, SessionInfo, SessionMode,
    SessionModeState, SetSessionModeRequest, SetSessionModeResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error, ErrorCode, JsonRpcResponse, RequestCancellation};
use futures_util::future::join_all;
use plimsoll::session::new_session_id;
use plimsoll::store::{SessionReader, SqliteStore};
use plimsoll::{PermissionMode, SessionId};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::servers::servers;
use super::session::{History, OpenSession, Surroundings};
use super::transport::Outbox;
use crate::error::{self, CliError};
use crate::lock;
use crate::sessions::ledger::when;
use crate::sessions::list;
use crate::settings::Sources;
use crate::usage::day;

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
    outbox: Arc<Outbox>,
    sessions: Mutex<HashMap<schema::SessionId, Arc<OpenSession>>>,
    places: Arc<Semaphore>,
    /// Whether the client shows notices.
    takes_notices: Mutex<bool>,
    closing: watch::Sender<bool>,
    /// The number of requests that are being answered.
    answering: watch::Sender<usize>,
}

/// Counts a request while it is being answered.
struct AnsweringGuard(watch::Sender<usize>);

impl AnsweringGuard {
    fn begin(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }
}

impl Drop for AnsweringGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

impl AcpServer {
    pub(super) fn new(sources: Sources, store: Arc<SqliteStore>, outbox: Arc<Outbox>) -> Self {
        Self {
            sources,
            store,
            outbox,
            sessions: Mutex::default(),
            places: Arc::new(Semaphore::new(MAX_SESSIONS)),
            takes_notices: Mutex::default(),
            closing: watch::Sender::new(false),
            answering: watch::Sender::new(0),
        }
    }

    /// Answers a request in the background, so that other messages are handled meanwhile.
    pub(super) fn answer<T: JsonRpcResponse + Send + 'static>(
        &self,
        responder: Responder<T>,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<(), Error> {
        let answering = AnsweringGuard::begin(&self.answering);
        tokio::spawn(async move {
            // An error means that the connection has ended.
            let _ = responder.respond_with_result(work.await);
            drop(answering);
        });
        Ok(())
    }

    /// Answers a request that opens a session. Then offers its commands to the client.
    pub(super) fn answer_opened<T: JsonRpcResponse + Send + 'static>(
        &self,
        responder: Responder<T>,
        opening: impl Future<Output = Result<(T, Arc<OpenSession>), Error>> + Send + 'static,
    ) -> Result<(), Error> {
        let answering = AnsweringGuard::begin(&self.answering);
        tokio::spawn(async move {
            // An error means that the connection has ended.
            let _ = match opening.await {
                Ok((response, session)) => {
                    let answered = responder.respond(response);
                    answered.and_then(|()| session.offer_commands())
                }
                Err(error) => responder.respond_with_error(error),
            };
            drop(answering);
        });
        Ok(())
    }

    pub(super) fn initialize(&self, request: &InitializeRequest) -> InitializeResponse {
        let session = request.client_capabilities.session.as_ref();
        *lock(&self.takes_notices) = session.is_some_and(|session| session.notices.is_some());
        let prompts = PromptCapabilities::new().image(true).embedded_context(true);
        let sessions = SessionCapabilities::new()
            .list(schema::SessionListCapabilities::new())
            .resume(schema::SessionResumeCapabilities::new())
            .close(schema::SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(prompts)
            .mcp_capabilities(McpCapabilities::new().http(cfg!(feature = "mcp")))
            .session_capabilities(sessions);
        let about = Implementation::new("plimsoll", env!("CARGO_PKG_VERSION")).title("Plimsoll");
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(about)
    }

    pub(super) async fn new_session(
        self: Arc<Self>,
        request: NewSessionRequest,
        client: ConnectionTo<Client>,
    ) -> Result<(NewSessionResponse, Arc<OpenSession>), Error> {
        let id = new_session_id();
        let given = (request.cwd, request.mcp_servers);
        let session = self.open(id, given, History::New, client).await?;
        let id = session.id().clone();
        let response = NewSessionResponse::new(id).modes(modes(session.mode()));
        Ok((response, session))
    }

    pub(super) async fn load(
        self: Arc<Self>,
        request: LoadSessionRequest,
        client: ConnectionTo<Client>,
    ) -> Result<(LoadSessionResponse, Arc<OpenSession>), Error> {
        let id = self.known(&request.session_id).await?;
        let given = (request.cwd, request.mcp_servers);
        let session = self.open(id, given, History::Replayed, client).await?;
        let response = LoadSessionResponse::new().modes(modes(session.mode()));
        Ok((response, session))
    }

    pub(super) async fn resume(
        self: Arc<Self>,
        request: ResumeSessionRequest,
        client: ConnectionTo<Client>,
    ) -> Result<(ResumeSessionResponse, Arc<OpenSession>), Error> {
        let id = self.known(&request.session_id).await?;
        let given = (request.cwd, request.mcp_servers);
        let session = self.open(id, given, History::Known, client).await?;
        let response = ResumeSessionResponse::new().modes(modes(session.mode()));
        Ok((response, session))
    }

    pub(super) async fn close(
        self: Arc<Self>,
        request: CloseSessionRequest,
    ) -> Result<CloseSessionResponse, Error> {
        self.session(&request.session_id)?;
        self.shut(&request.session_id).await;
        Ok(CloseSessionResponse::new())
    }

    pub(super) async fn list(
        self: Arc<Self>,
        request: ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Error> {
        let all = list::sessions(&*self.store, false).await;
        let all = all.map_err(refused)?.into_iter();
        let sessions = all.filter_map(|(info, last)| {
            let folder = last.folder?;
            let is_wanted = request.cwd.as_ref().is_none_or(|cwd| *cwd == folder);
            is_wanted.then(|| {
                SessionInfo::new(info.id.as_str().to_owned(), folder)
                    .title(Some(info.title).filter(|title| !title.is_empty()))
                    .updated_at(date(info.updated))
            })
        });
        Ok(ListSessionsResponse::new(sessions.take(LISTED).collect()))
    }

    pub(super) fn set_mode(
        &self,
        request: &SetSessionModeRequest,
    ) -> Result<SetSessionModeResponse, Error> {
        let session = self.session(&request.session_id)?;
        let mode = request.mode_id.0.parse::<PermissionMode>();
        session.set_mode(mode.map_err(|error| refused(CliError::usage(error)))?);
        Ok(SetSessionModeResponse::new())
    }

    /// Handles a prompt. As soon as this returns, the prompt can be cancelled, by session or by
    /// request.
    pub(super) fn prompt(
        &self,
        request: PromptRequest,
        cancellation: RequestCancellation,
    ) -> Result<impl Future<Output = Result<PromptResponse, Error>> + Send + use<>, Error> {
        let session = self.session(&request.session_id)?;
        let cancels = session.cancels();
        Ok(async move {
            let mut ended = pin!(session.prompt(request.prompt, cancels));
            let ended = tokio::select! {
                biased;
                ended = &mut ended => ended,
                () = cancellation.cancelled() => {
                    session.cancel();
                    ended.await
                }
            };
            ended.map(PromptResponse::new).map_err(refused)
        })
    }

    pub(super) fn cancel(&self, request: &CancelNotification) {
        if let Ok(session) = self.session(&request.session_id) {
            session.cancel();
        }
    }

    /// Ends all sessions.
    pub(super) async fn close_all(&self) {
        self.closing.send_replace(true);
        let mut answering = self.answering.subscribe();
        let _ = timeout(ANSWERING, answering.wait_for(|count| *count == 0)).await;
        let sessions = std::mem::take(&mut *lock(&self.sessions));
        join_all(sessions.values().map(|session| session.close())).await;
    }

    /// Waits until the connection ends.
    pub(super) async fn closing(&self) {
        let mut closing = self.closing.subscribe();
        let _ = closing.wait_for(|closing| *closing).await;
    }

    async fn open(
        &self,
        id: SessionId,
        (folder, given): (PathBuf, Vec<McpServer>),
        history: History,
        client: ConnectionTo<Client>,
    ) -> Result<Arc<OpenSession>, Error> {
        let sources = self.sources_in(&folder, given).map_err(refused)?;
        // A client that lost its state may load a session that is still open.
        self.shut(&schema::SessionId::new(id.as_str())).await;
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| {
            refused(CliError::failed(format!(
                "{MAX_SESSIONS} sessions are open; close one first"
            )))
        })?;
        let around = Surroundings {
            store: Arc::clone(&self.store),
            outbox: Arc::clone(&self.outbox),
            client,
            takes_notices: *lock(&self.takes_notices),
            closing: self.closing.subscribe(),
            place,
        };
        let opened = OpenSession::open(around, id, sources, &folder, history).await;
        let session = opened.map_err(refused)?;
        lock(&self.sessions).insert(session.id().clone(), Arc::clone(&session));
        Ok(session)
    }

    /// Returns the settings of a session in this folder.
    fn sources_in(&self, folder: &Path, given: Vec<McpServer>) -> Result<Sources, CliError> {
        let shown = folder.display();
        if !folder.is_absolute() {
            return Err(CliError::usage(format!(
                "the folder `{shown}` is relative; give an absolute path as cwd"
            )));
        }
        let Some(root) = folder.to_str().filter(|_| folder.is_dir()) else {
            return Err(CliError::usage(format!(
                "{shown} is not a folder; give an existing one as cwd"
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
        let known =
            SessionId::new(id.0.as_ref()).map_err(|error| refused(CliError::usage(error)))?;
        let info = self.store.info(&known).await;
        match info.map_err(|error| refused(CliError::failed(error)))? {
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
            unknown(
                id,
                format!("no session {id} is open; open it with session/new or session/load"),
            )
        })
    }

    /// Ends an open session.
    async fn shut(&self, id: &schema::SessionId) {
        let session = lock(&self.sessions).remove(id);
        if let Some(session) = session {
            session.cancel();
            session.close().await;
        }
    }
}

/// Converts an error to one of the protocol.
fn refused(stop: CliError) -> Error {
    let code = match stop.code {
        error::USAGE => ErrorCode::INVALID_PARAMS,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    Error::new(code, stop.text)
}

fn unknown(id: &schema::SessionId, text: String) -> Error {
    let error = Error::new(ErrorCode::RESOURCE_NOT_FOUND, text);
    error.data(serde_json::json!({ "sessionId": id }))
}

fn modes(current: PermissionMode) -> SessionModeState {
    let mode = |mode: PermissionMode, name: &str, does: &str| {
        SessionMode::new(mode.name(), name).description(does)
    };
    let all = vec![
        mode(
            PermissionMode::Ask,
            "Ask",
            "Asks before files are changed and commands run",
        ),
        mode(
            PermissionMode::AutoEdit,
            "Auto-edit",
            "Changes files of the folder without asking",
        ),
        mode(PermissionMode::Yes, "Yes", "Never asks"),
        mode(
            PermissionMode::ReadOnly,
            "Read-only",
            "No command or file change runs",
        ),
    ];
    SessionModeState::new(current.name(), all)
}

/// Formats a time in ISO 8601.
fn date(at: u64) -> String {
    let time = when(at);
    let time = time.rsplit(' ').next().unwrap_or_default();
    format!("{}T{time}Z", day(at))
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
