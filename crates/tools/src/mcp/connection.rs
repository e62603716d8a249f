//! [`Connection`]: an open connection to one server, through the SDK.
//!
//! When it is dropped, the server's process and all its children are killed. A connection is never
//! repaired; a new one is opened instead.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex as Lock};
use std::time::Duration;

use plimsoll_context::Bytes;
use plimsoll_core::Secret;
use plimsoll_core::process::{Command, GRACE, ProcessEnd, ServerProcess};
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, ErrorCode, Implementation, ListToolsRequest,
    PaginatedRequestParams, RequestId, ServerResult, Tool as Described,
};
use rmcp::service::{
    ClientInitializeError, PeerRequestOptions, RequestHandle, RunningService, ServiceError,
    serve_client,
};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::bounded::{Bounded, MCP_MESSAGE_MAX};
use super::cancellations::PendingCancellations;
use super::catalog::{MCP_PAGES, MCP_TOOLS};
use super::client::Client;
use super::error::{McpError, chain, short};
use super::http::{self, ENDED, begun_badly, unsent};
use super::listed;
use super::lock;
use super::server::{McpServer, Reach};
use super::transport_tap::{MCP_NOTICES, MCP_NOTICES_IN, Misuse, ServerActivity, TransportTap};

/// Maximum size of the newest standard error output of a server, which is shown if it fails.
pub const MCP_STDERR: Bytes = Bytes(2 * 1024);
/// Number of consecutive waits without any message of the server, including an answer to the ping that
/// was sent with the second one. The next call then opens another connection. Overlapping calls count
/// as one.
pub const MCP_SILENCES: u32 = 2;
/// Time for a remote server to close the session.
pub const MCP_CLOSE: Duration = Duration::from_secs(6);
/// The client name that the server receives.
const CLIENT: &str = "plimsoll";

type Service = RunningService<RoleClient, ClientConfig>;

/// An open connection to a server.
pub(super) struct Connection {
    // Dropped first, so that a child reads the end of its input before it is killed.
    pub(super) service: Service,
    child: Mutex<Option<ServerProcess>>,
    pub(super) activity: Arc<ServerActivity>,
    pub(super) cancellations: Arc<PendingCancellations>,
    /// Tools that are known to require a task; at most one entry for each tool.
    tasks: Lock<HashSet<String>>,
    is_elsewhere: bool,
}

/// The reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server has ended.
    Broken(String),
    /// The server returned a protocol error.
    Refused(String),
    /// The server does not support the method.
    NoMethod(String),
    /// The server does not know the session any more, and has not processed the request.
    NoSession(String),
    /// The answer cannot be parsed.
    Odd(String),
    /// The call was cancelled.
    Cancelled,
}

/// The listed tools, and whether the list was cut at the limit.
pub(super) struct ToolListing {
    pub(super) tools: Vec<Described>,
    pub(super) cut: bool,
    /// Number of tools that cannot be parsed.
    pub(super) odd: usize,
}

impl Connection {
    /// Starts or contacts a server and initializes the connection, within the server's timeout.
    pub(super) async fn open(server: &McpServer) -> Result<Self, McpError> {
        match &server.reach {
            Reach::Command(command) => Self::child(server, command).await,
            Reach::Url {
                url,
                headers,
                bearer,
            } => {
                let config = http::config(url, headers, bearer.as_ref().map(Secret::expose));
                let config = config.map_err(|why| absent(server, why))?;
                Self::elsewhere(server, config).await
            }
        }
    }

    /// Returns `true` if the connection is open, as far as known.
    pub(super) fn is_open(&self) -> bool {
        !self.service.is_transport_closed() && !self.service.is_closed()
    }

    /// Returns `true` if the connection is open, but the server does not answer any more.
    pub(super) fn is_silent(&self) -> bool {
        self.activity.silences() >= MCP_SILENCES
    }

    /// Checks whether this tool is known to require a task.
    pub(super) fn wants_task(&self, tool: &str) -> bool {
        lock(&self.tasks).contains(tool)
    }

    /// Records that this tool was run as a task.
    pub(super) fn has_task(&self, tool: &str) {
        lock(&self.tasks).insert(tool.to_owned());
    }

    /// Returns `true` if the connection remains usable after a failed request. This is the case for
    /// open connections to remote servers, because each HTTP request is independent.
    pub(super) fn outlives_failures(&self) -> bool {
        self.is_elsewhere && self.is_open()
    }

    pub(super) fn activity(&self) -> &ServerActivity {
        &self.activity
    }

    /// Returns the server's instructions.
    pub(super) fn instructions(&self) -> Option<String> {
        let info = self.service.peer_info()?;
        info.instructions.clone()
    }

    /// Returns the server's tools, page after page, within limits.
    pub(super) async fn list(&self, limit: Duration) -> Result<ToolListing, Failure> {
        let pages = async {
            let (mut tools, mut odd) = (Vec::new(), 0);
            let mut cursor = None;
            for _ in 0..MCP_PAGES {
                let params = PaginatedRequestParams::default().with_cursor(cursor);
                let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
                let Some(page) = listed::page(self.ask(request).await?) else {
                    let text = "its list of tools cannot be read".to_owned();
                    return Err(Failure::Odd(text));
                };
                tools.extend(page.tools);
                odd += page.odd;
                if tools.len() > MCP_TOOLS {
                    tools.truncate(MCP_TOOLS);
                    return Ok(ToolListing {
                        tools,
                        cut: true,
                        odd,
                    });
                }
                cursor = page.next.filter(|cursor| !cursor.is_empty());
                if cursor.is_none() {
                    return Ok(ToolListing {
                        tools,
                        cut: false,
                        odd,
                    });
                }
            }
            Ok(ToolListing {
                tools,
                cut: true,
                odd,
            })
        };
        let wait = self.waits(limit);
        let late = |_| {
            self.activity.was_in_vain(&wait);
            Err(Failure::Broken(format!(
                "no list of tools within {} s",
                limit.as_secs_f32()
            )))
        };
        timeout(limit, pages).await.unwrap_or_else(late)
    }

    /// Closes the connection. A local server can end by itself, and is stopped otherwise.
    pub(super) async fn close(self) {
        // Waiting is limited, because the server may have stopped reading.
        let patience = if self.is_elsewhere { MCP_CLOSE } else { GRACE };
        let _ = timeout(patience, self.cancellations.are_sent()).await;
        let _ = timeout(patience, self.service.cancel()).await;
        if let Some(mut child) = self.child.lock().await.take() {
            // The server has read the end of its input.
            let _ = timeout(GRACE, child.exited()).await;
            let _ = child.stop().await;
        }
    }

    async fn child(server: &McpServer, command: &Command) -> Result<Self, McpError> {
        let started = command.talk(MCP_STDERR);
        let (mut child, talk) = started.map_err(|error| absent(server, chain(&error)))?;
        let activity = Arc::new(ServerActivity::default());
        let output = Bounded::new(talk.output, Arc::clone(&activity));
        let max = usize::try_from(MCP_MESSAGE_MAX.0).unwrap_or(usize::MAX);
        // The limit of the transport is never reached: the reader ends before.
        let transport = AsyncRwTransport::new_client(output, talk.input);
        let transport = transport.with_max_line_length(max.saturating_add(2));
        let transport = TransportTap::new(transport, Arc::clone(&activity));
        match timeout(server.timeout, greet(transport)).await {
            Ok(Ok(service)) => Ok(Self::new(service, Some(child), activity)),
            Ok(Err(error)) => {
                let why = match activity.misuse() {
                    Some(misuse) => misuse_text(misuse),
                    // The server ended before the message could be written.
                    None => match error {
                        ClientInitializeError::TransportError { .. } => ENDED.to_owned(),
                        error => begun_badly(&error),
                    },
                };
                let last = last_words(child).await;
                Err(absent(server, format!("{why}{last}")))
            }
            Err(_) => {
                let words = log_text(&mut child);
                let _ = child.stop().await;
                Err(late(server, words))
            }
        }
    }

    async fn elsewhere(
        server: &McpServer,
        config: StreamableHttpClientTransportConfig,
    ) -> Result<Self, McpError> {
        let activity = Arc::new(ServerActivity::default());
        let client = Client::new(server).map_err(|why| absent(server, why))?;
        let transport = StreamableHttpClientTransport::with_client(client, config);
        let transport = TransportTap::new(transport, Arc::clone(&activity));
        match timeout(server.timeout, greet(transport)).await {
            Ok(Ok(service)) => Ok(Self::new(service, None, activity)),
            Ok(Err(error)) => Err(absent(server, begun_badly(&error))),
            Err(_) => Err(late(server, String::new())),
        }
    }

    fn new(service: Service, child: Option<ServerProcess>, activity: Arc<ServerActivity>) -> Self {
        Self {
            service,
            is_elsewhere: child.is_none(),
            child: Mutex::new(child),
            activity,
            cancellations: Arc::default(),
            tasks: Lock::default(),
        }
    }

    /// Sends a request and returns its result. May be dropped before.
    pub(super) async fn ask(&self, request: ClientRequest) -> Result<ServerResult, Failure> {
        let handle = self.send(request).await?;
        let answer = {
            let _asked = PendingRequest(&self.activity, handle.id.clone());
            handle.await_response().await
        };
        match answer {
            Ok(result) => Ok(result),
            Err(error) => Err(self.failure(error).await),
        }
    }

    /// Sends a request. The returned handle awaits the answer.
    pub(super) async fn send(
        &self,
        request: ClientRequest,
    ) -> Result<RequestHandle<RoleClient>, Failure> {
        let options = PeerRequestOptions::no_options();
        let sent = self.service.send_cancellable_request(request, options);
        match sent.await {
            Ok(handle) => Ok(handle),
            Err(error) => Err(self.failure(error).await),
        }
    }

    /// Converts the error of a request.
    pub(super) async fn failure(&self, error: ServiceError) -> Failure {
        match error {
            ServiceError::McpError(error) => {
                let is_forgotten = self.is_elsewhere && http::has_forgotten_us(&error);
                let data = error.data.map_or(String::new(), |data| format!(" {data}"));
                let text = short(format!("{}{data}", error.message));
                match error.code {
                    _ if is_forgotten => Failure::NoSession(text),
                    ErrorCode::METHOD_NOT_FOUND => Failure::NoMethod(text),
                    _ => Failure::Refused(text),
                }
            }
            ServiceError::UnexpectedResponse => {
                Failure::Odd("its answer cannot be read".to_owned())
            }
            ServiceError::Cancelled { .. } => Failure::Cancelled,
            error => Failure::Broken(self.end(&error).await),
        }
    }

    /// Describes how the server ended.
    async fn end(&self, error: &ServiceError) -> String {
        let child = self.child.lock().await.take();
        if let Some(misuse) = self.activity.misuse() {
            return misuse_text(misuse);
        }
        match (child, error) {
            (Some(child), _) => format!("it ended{}", last_words(child).await),
            (None, ServiceError::TransportSend(error)) => unsent(error),
            (None, ServiceError::TransportClosed) => "it ended".to_owned(),
            (None, error) => chain(error),
        }
    }
}

/// A request that waits for its answer until it is dropped.
struct PendingRequest<'a>(&'a ServerActivity, RequestId);

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        let Self(activity, id) = self;
        activity.gives_up(id);
    }
}

type Greeting = Pin<Box<dyn Future<Output = Result<Service, ClientInitializeError>> + Send>>;

/// Initializes the connection. Boxed, because the compiler cannot handle its own type.
fn greet<T: Transport<RoleClient> + 'static>(transport: T) -> Greeting {
    Box::pin(serve_client(we(), transport))
}

/// Returns our client information, without any capabilities.
fn we() -> ClientConfig {
    let us = Implementation::new(CLIENT, env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), us)
}

fn absent(server: &McpServer, why: String) -> McpError {
    McpError::Absent {
        server: server.name.clone(),
        why: server.strike_out(why),
    }
}

fn late(server: &McpServer, words: String) -> McpError {
    McpError::Late {
        server: server.name.clone(),
        secs: server.timeout.as_secs_f32(),
        words: server.strike_out(words),
    }
}

fn misuse_text(misuse: Misuse) -> String {
    match misuse {
        Misuse::TooLong => format!(
            "it sent more than {} MiB in one message and was ended; ask it for less at once",
            MCP_MESSAGE_MAX.0 / (1024 * 1024)
        ),
        Misuse::Flood => format!(
            "it sent more than {MCP_NOTICES} unrequested messages in {} s and was stopped",
            MCP_NOTICES_IN.as_secs()
        ),
    }
}

/// Describes how a child ended, with its last output.
async fn last_words(mut child: ServerProcess) -> String {
    let _ = timeout(GRACE, child.exited()).await;
    let words = log_text(&mut child);
    let ended = match child.stop().await {
        Some(ProcessEnd::Exited(code)) => format!(" (exit {code})"),
        Some(ProcessEnd::Signalled(signal)) => format!(" (signal {signal})"),
        _ => String::new(),
    };
    format!("{ended}{words}")
}

fn log_text(child: &mut ServerProcess) -> String {
    let text = child.log().text();
    let text = format!("{}{}", text.head, text.tail);
    match text.trim() {
        "" => String::new(),
        text => format!("; it said: {text}"),
    }
}
