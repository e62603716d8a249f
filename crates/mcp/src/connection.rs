//! [`Connection`]: an open connection to one server, through the SDK.
//!
//! When it is dropped, the server's process and all its children are killed. A connection is never
//! repaired; a new one is opened instead.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_context::Bytes;
use plimsoll_core::process::{GRACE, ProcessEnd, ServerProcess};
use plimsoll_core::{Secret, ToolContext};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, JsonObject,
    ListToolsRequest, PaginatedRequestParams, PingRequest, ProgressToken, RequestId, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, PeerRequestOptions, RequestHandle, RunningService, ServiceError,
    serve_client,
};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransport;
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::catalog::{MCP_TOOLS, ToolListing};
use crate::error::{McpError, chain, short};
use crate::handler::Handler;
use crate::http::{self, HttpClient};
use crate::server::{McpServer, Reach};

/// Maximum size of the newest standard error output of a server, which is shown if it fails.
pub const MCP_STDERR: Bytes = Bytes(2 * 1024);
/// Time for a remote server to close the session.
pub const MCP_CLOSE: Duration = Duration::from_secs(6);
/// Time for the answer to the ping that precedes a call if the call before was given up, unless the server's
/// timeout is shorter, and for the notification about a call that is given up.
pub const MCP_PING: Duration = Duration::from_secs(5);

/// The reason in the notification about a cancelled call.
const UNWANTED: &str = "the result is no longer wanted";
/// The description of a server that ended during initialization.
const ENDED: &str = "it ended before it was ready";

type Service = RunningService<RoleClient, Handler>;

/// An open connection to a server.
pub(crate) struct Connection {
    // Dropped first, so that a child reads the end of its input before it is killed.
    service: Service,
    child: Mutex<Option<ServerProcess>>,
    is_remote: bool,
    /// Set if a call was given up: the server may hang.
    is_doubtful: AtomicBool,
}

/// The reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server has ended, or cannot be reached.
    Broken(String),
    /// The server does not know the session any more, and has not processed the request.
    NoSession(String),
    /// The server has refused the request, or its answer cannot be read.
    Refused(String),
    /// The call was cancelled.
    Cancelled,
}

impl Connection {
    /// Starts or contacts a server and initializes the connection, within the server's timeout.
    pub(crate) async fn open(server: &McpServer) -> Result<Self, McpError> {
        let absent = |why| server.absent(why);
        let (child, initializing) = match &server.reach {
            Reach::Command(command) => {
                let started = command.talk(MCP_STDERR);
                let (child, talk) = started.map_err(|error| absent(chain(&error)))?;
                let transport = AsyncRwTransport::new_client(talk.output, talk.input);
                (Some(child), initialize(transport))
            }
            Reach::Url(url) => {
                let bearer = server.bearer.as_ref().map(Secret::expose);
                let config = http::config(url, &server.headers, bearer).map_err(absent)?;
                let client = HttpClient::new(server).map_err(absent)?;
                let transport = StreamableHttpClientTransport::with_client(client, config);
                (None, initialize(transport))
            }
        };
        let error = match timeout(server.timeout, initializing).await {
            Ok(Ok(service)) => return Ok(Self::new(service, child)),
            Ok(Err(error)) => error,
            Err(_) => {
                let words = child.as_ref().map_or(String::new(), log_text);
                if let Some(child) = child {
                    let _ = child.stop().await;
                }
                return Err(server.late("it was not ready", &words));
            }
        };
        let Some(child) = child else {
            return Err(absent(initialize_error(&error)));
        };
        let why = match error {
            // It ended before the message could be written.
            ClientInitializeError::TransportError { .. } => ENDED.to_owned(),
            error => initialize_error(&error),
        };
        Err(absent(format!("{why}{}", last_words(child).await)))
    }

    /// Returns `true` if the connection is open, as far as known.
    pub(crate) fn is_open(&self) -> bool {
        !self.service.is_transport_closed() && !self.service.is_closed()
    }

    /// Checks whether the server still answers. It is only asked after a call was given up, so that a
    /// slow server is not taken for one that hangs. Waits for at most `limit`.
    pub(crate) async fn is_alive(&self, limit: Duration) -> bool {
        if !self.is_doubtful.load(Ordering::Acquire) {
            return true;
        }
        let ping = ClientRequest::PingRequest(PingRequest::default());
        // A refusal is an answer, too.
        let is_alive = matches!(
            timeout(MCP_PING.min(limit), self.service.send_request(ping)).await,
            Ok(Ok(_) | Err(ServiceError::McpError(_)))
        );
        self.is_doubtful.store(!is_alive, Ordering::Release);
        is_alive
    }

    /// Returns `true` if the connection remains usable after a failed request. This is the case for
    /// open connections to remote servers, because each HTTP request is independent.
    pub(crate) fn outlives_failures(&self) -> bool {
        self.is_remote && self.is_open()
    }

    pub(crate) fn handler(&self) -> &Handler {
        self.service.service()
    }

    /// Returns the server's tools, page after page, up to a maximum number.
    pub(crate) async fn list(&self) -> Result<ToolListing, Failure> {
        let mut listing = ToolListing::default();
        let mut cursor = None;
        loop {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = self.send(request).await?.await_response().await;
            let page = self.value(page).await?;
            let Some(tools) = page.get("tools").and_then(Value::as_array) else {
                let text = "its list of tools cannot be read".to_owned();
                return Err(Failure::Refused(text));
            };
            listing.tools.extend(tools.iter().cloned());
            let next = page.get("nextCursor").and_then(Value::as_str);
            cursor = next.filter(|next| !next.is_empty()).map(str::to_owned);
            if cursor.is_none() || listing.tools.len() > MCP_TOOLS {
                break;
            }
        }
        listing.is_cut = cursor.is_some() || listing.tools.len() > MCP_TOOLS;
        listing.tools.truncate(MCP_TOOLS);
        Ok(listing)
    }

    /// Calls a tool. If the call is cancelled or the future is dropped, the server is notified.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        cx: &ToolContext,
    ) -> Result<Value, Failure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = self.send(request).await?;
        let mut pending = PendingCall {
            connection: self,
            id: Some(handle.id.clone()),
            token: handle.progress_token.clone(),
        };
        let token = handle.progress_token.clone();
        self.handler().follow(token, cx.clone());
        let answer = tokio::select! {
            biased;
            answer = handle.await_response() => answer,
            () = cx.cancel.cancelled() => return Err(Failure::Cancelled),
        };
        pending.id = None;
        self.value(answer).await
    }

    /// Closes the connection. A local server can end by itself, and is stopped otherwise.
    pub(crate) async fn close(self) {
        // Waiting is limited, because the server may have stopped reading.
        let patience = if self.is_remote { MCP_CLOSE } else { GRACE };
        let _ = timeout(patience, self.service.cancel()).await;
        if let Some(mut child) = self.child.into_inner() {
            // The server has read the end of its input.
            let _ = timeout(GRACE, child.exited()).await;
            let _ = child.stop().await;
        }
    }

    fn new(service: Service, child: Option<ServerProcess>) -> Self {
        Self {
            service,
            is_remote: child.is_none(),
            child: Mutex::new(child),
            is_doubtful: AtomicBool::new(false),
        }
    }

    /// Sends a request. The returned handle awaits the answer.
    async fn send(&self, request: ClientRequest) -> Result<RequestHandle<RoleClient>, Failure> {
        let options = PeerRequestOptions::no_options();
        match self
            .service
            .send_cancellable_request(request, options)
            .await
        {
            Ok(handle) => Ok(handle),
            Err(error) => Err(self.failure(error).await),
        }
    }

    /// Returns an answer as JSON: the types of the SDK are stricter than some servers.
    async fn value(&self, answer: Result<ServerResult, ServiceError>) -> Result<Value, Failure> {
        match answer {
            Ok(result) => {
                serde_json::to_value(result).map_err(|error| Failure::Refused(short(error)))
            }
            Err(error) => Err(self.failure(error).await),
        }
    }

    /// Converts the error of a request.
    async fn failure(&self, error: ServiceError) -> Failure {
        match error {
            ServiceError::McpError(error) => {
                let has_lost_session = self.is_remote && http::has_lost_session(&error);
                let data = error.data.map_or(String::new(), |data| format!(" {data}"));
                let text = short(format!("{}{data}", error.message));
                if has_lost_session {
                    Failure::NoSession(text)
                } else {
                    Failure::Refused(text)
                }
            }
            ServiceError::UnexpectedResponse => {
                Failure::Refused("its answer cannot be read".to_owned())
            }
            ServiceError::Cancelled { .. } => Failure::Cancelled,
            error => Failure::Broken(self.end_text(&error).await),
        }
    }

    /// Describes how the server ended.
    async fn end_text(&self, error: &ServiceError) -> String {
        let child = self.child.lock().await.take();
        match (child, error) {
            (Some(child), _) => format!("it ended{}", last_words(child).await),
            (None, ServiceError::TransportSend(error)) => http::send_error(error),
            (None, ServiceError::TransportClosed) => "it ended".to_owned(),
            (None, error) => chain(error),
        }
    }
}

/// A call in progress. If it is dropped before its answer, the server is notified.
struct PendingCall<'a> {
    connection: &'a Connection,
    /// `None` once the call is answered.
    id: Option<RequestId>,
    token: ProgressToken,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        self.connection.handler().forget(&self.token);
        let Some(id) = self.id.take() else { return };
        self.connection.is_doubtful.store(true, Ordering::Release);
        // Without a runtime the connection does not exist either.
        if let Ok(runtime) = Handle::try_current() {
            let peer = self.connection.service.peer().clone();
            runtime.spawn(timeout(MCP_PING, cancel(peer, id)));
        }
    }
}

/// Notifies a server that a request is cancelled.
async fn cancel(peer: Peer<RoleClient>, id: RequestId) {
    let param = CancelledNotificationParam::new(Some(id), Some(UNWANTED.to_owned()));
    let _ = peer.notify_cancelled(param).await;
}

type Initializing = Pin<Box<dyn Future<Output = Result<Service, ClientInitializeError>> + Send>>;

/// Initializes the connection. Boxed, because the compiler cannot handle its own type.
fn initialize<T: Transport<RoleClient> + 'static>(transport: T) -> Initializing {
    Box::pin(serve_client(Handler::default(), transport))
}

/// Describes why the initialization failed, for the user.
fn initialize_error(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => ENDED.to_owned(),
        ClientInitializeError::TransportError { error, .. } => http::send_error(error),
        ClientInitializeError::JsonRpcError(error) => {
            short(format!("it refuses: {}", error.message))
        }
        error => chain(error),
    }
}

/// Describes how a child ended, with its last output.
async fn last_words(mut child: ServerProcess) -> String {
    let _ = timeout(GRACE, child.exited()).await;
    let words = log_text(&child);
    let ended = match child.stop().await {
        Some(ProcessEnd::Exited(code)) => format!(" (exit {code})"),
        Some(ProcessEnd::Signalled(signal)) => format!(" (signal {signal})"),
        _ => String::new(),
    };
    format!("{ended}{words}")
}

fn log_text(child: &ServerProcess) -> String {
    let text = child.log();
    let text = format!("{}{}", text.head, text.tail);
    match text.trim() {
        "" => String::new(),
        text => format!("; it said: {text}"),
    }
}
