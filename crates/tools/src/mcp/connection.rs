//! [`Connection`]: one server that is there, spoken with through the SDK. When it is dropped, its
//! child is killed with all that it has started. It is never mended; whoever needs another opens one.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::Bytes;
use plimsoll_core::ToolContext;
use plimsoll_core::process::{Command, Ended, GRACE, Server};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities,
    ClientConfig, ClientRequest, Implementation, JsonObject, ListToolsRequest,
    PaginatedRequestParams, ProgressToken, RequestId, ServerResult, Tool as Described,
};
use rmcp::service::{
    ClientInitializeError, PeerRequestOptions, RunningService, ServiceError, serve_client,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{DynamicTransportError, Transport};
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::bounded::{Bounded, MCP_MESSAGE_MAX};
use super::catalog::{MCP_PAGES, MCP_TOOLS};
use super::ear::{Ear, Heard, Listener, MCP_NOTICES, MCP_NOTICES_IN, Misuse};
use super::error::{McpError, chain, short};
use super::server::{McpServer, Reach};

/// The newest of what a server prints on its standard error; shown when it fails.
pub const MCP_STDERR: Bytes = Bytes(2 * 1024);
/// How often a stream of a server elsewhere is taken up again after it broke.
pub const MCP_RECONNECTS: usize = 5;
/// What we are called.
const CLIENT: &str = "plimsoll";
/// What is said of a server that never began.
const ENDED: &str = "it ended before it was ready";

type Service = RunningService<RoleClient, ClientConfig>;

/// A server that is there.
pub(super) struct Connection {
    // Dropped first: a child reads the end of its input before it is killed.
    service: Service,
    child: Mutex<Option<Server>>,
    heard: Arc<Heard>,
    is_elsewhere: bool,
}

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server is gone.
    Broken(String),
    /// It answers with an error of the protocol.
    Refused(String),
    /// It answers what cannot be read.
    Odd(String),
    /// Nobody wants the answer any more.
    Cancelled,
}

/// Tools as they are listed, and whether there are more than are taken.
pub(super) struct Listed {
    pub(super) tools: Vec<Described>,
    pub(super) cut: bool,
}

impl Connection {
    /// Starts or reaches a server, and greets it, within its time.
    pub(super) async fn open(server: &McpServer) -> Result<Self, McpError> {
        match &server.reach {
            Reach::Command(command) => Self::child(server, command).await,
            Reach::Url {
                url,
                headers,
                bearer,
            } => {
                let config = http(url, headers, bearer.as_deref());
                let config = config.map_err(|why| absent(server, why))?;
                Self::elsewhere(server, config).await
            }
        }
    }

    /// Whether it is still there, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        !self.service.is_transport_closed() && !self.service.is_closed()
    }

    /// Whether it may answer the next request, though it failed to answer one: so it is with one
    /// that is elsewhere, where each request stands for itself.
    pub(super) fn outlives_failures(&self) -> bool {
        self.is_elsewhere && self.is_open()
    }

    pub(super) fn heard(&self) -> &Heard {
        &self.heard
    }

    /// What the server says of itself, for those who are to use it.
    pub(super) fn instructions(&self) -> Option<String> {
        let info = self.service.peer_info()?;
        info.instructions.clone()
    }

    /// Its tools, page after page, within bounds.
    pub(super) async fn list(&self, limit: Duration) -> Result<Listed, Failure> {
        let pages = async {
            let mut tools = Vec::new();
            let mut cursor = None;
            for _ in 0..MCP_PAGES {
                let params = PaginatedRequestParams::default().with_cursor(cursor);
                let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
                let ServerResult::ListToolsResult(page) = self.ask(request).await? else {
                    let text = "its list of tools cannot be read".to_owned();
                    return Err(Failure::Odd(text));
                };
                tools.extend(page.tools);
                if tools.len() > MCP_TOOLS {
                    tools.truncate(MCP_TOOLS);
                    return Ok(Listed { tools, cut: true });
                }
                cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
                if cursor.is_none() {
                    return Ok(Listed { tools, cut: false });
                }
            }
            Ok(Listed { tools, cut: true })
        };
        let late = |_| {
            Err(Failure::Broken(format!(
                "no list of tools within {} s",
                limit.as_secs_f32()
            )))
        };
        timeout(limit, pages).await.unwrap_or_else(late)
    }

    /// Calls a tool. Where nobody wants the answer any more, or the future is dropped, the server is
    /// told.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        cx: &ToolContext,
    ) -> Result<Value, Failure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let mut request = CallToolRequest::new(params);
        request.extensions.insert(Listener(cx.clone()));
        let request = ClientRequest::CallToolRequest(request);
        let options = PeerRequestOptions::no_options();
        let sent = self.service.send_cancellable_request(request, options);
        let handle = match sent.await {
            Ok(handle) => handle,
            Err(error) => return Err(self.failure(error).await),
        };
        let mut pending = Pending {
            peer: self.service.peer().clone(),
            heard: Arc::clone(&self.heard),
            id: Some(handle.id.clone()),
            token: handle.progress_token.clone(),
        };
        let answer = tokio::select! {
            biased;
            answer = handle.await_response() => answer,
            () = cx.cancel.cancelled() => return Err(Failure::Cancelled),
        };
        pending.id = None;
        match answer {
            Ok(result) => serde_json::to_value(result).map_err(|error| Failure::Odd(short(error))),
            Err(error) => Err(self.failure(error).await),
        }
    }

    /// Lets it end by itself, and ends it.
    pub(super) async fn close(self) {
        let _ = self.service.cancel().await;
        if let Some(mut child) = self.child.lock().await.take() {
            // It has read the end of its input.
            let _ = timeout(GRACE, child.exited()).await;
            let _ = child.stop().await;
        }
    }

    async fn child(server: &McpServer, command: &Command) -> Result<Self, McpError> {
        let started = command.talk(MCP_STDERR);
        let (mut child, talk) = started.map_err(|error| absent(server, chain(&error)))?;
        let heard = Arc::new(Heard::default());
        let output = Bounded::new(talk.output, Arc::clone(&heard));
        let max = usize::try_from(MCP_MESSAGE_MAX.0).unwrap_or(usize::MAX);
        // Its own bound is never met: the reader ends before.
        let transport = AsyncRwTransport::new_client(output, talk.input);
        let transport = transport.with_max_line_length(max.saturating_add(2));
        let transport = Ear::new(transport, Arc::clone(&heard));
        match timeout(server.timeout, greet(transport)).await {
            Ok(Ok(service)) => Ok(Self {
                service,
                child: Mutex::new(Some(child)),
                heard,
                is_elsewhere: false,
            }),
            Ok(Err(error)) => {
                let why = match heard.misuse() {
                    Some(misuse) => misuse_text(misuse),
                    // What cannot be written to it ended before it could be read.
                    None => match error {
                        ClientInitializeError::TransportError { .. } => ENDED.to_owned(),
                        error => begun_badly(&error),
                    },
                };
                let last = last_words(child).await;
                Err(absent(server, format!("{why}{last}")))
            }
            Err(_) => {
                let words = said(&mut child);
                let _ = child.stop().await;
                Err(late(server, words))
            }
        }
    }

    async fn elsewhere(
        server: &McpServer,
        config: StreamableHttpClientTransportConfig,
    ) -> Result<Self, McpError> {
        let heard = Arc::new(Heard::default());
        let transport = StreamableHttpClientTransport::from_config(config);
        let transport = Ear::new(transport, Arc::clone(&heard));
        match timeout(server.timeout, greet(transport)).await {
            Ok(Ok(service)) => Ok(Self {
                service,
                child: Mutex::new(None),
                heard,
                is_elsewhere: true,
            }),
            Ok(Err(error)) => Err(absent(server, begun_badly(&error))),
            Err(_) => Err(late(server, String::new())),
        }
    }

    async fn ask(&self, request: ClientRequest) -> Result<ServerResult, Failure> {
        match self.service.send_request(request).await {
            Ok(result) => Ok(result),
            Err(error) => Err(self.failure(error).await),
        }
    }

    async fn failure(&self, error: ServiceError) -> Failure {
        match error {
            ServiceError::McpError(error) => {
                let data = error.data.map_or(String::new(), |data| format!(" {data}"));
                Failure::Refused(short(format!("{}{data}", error.message)))
            }
            ServiceError::UnexpectedResponse => {
                Failure::Odd("its answer cannot be read".to_owned())
            }
            ServiceError::Cancelled { .. } => Failure::Cancelled,
            error => Failure::Broken(self.end(&error).await),
        }
    }

    /// How it ended, in words.
    async fn end(&self, error: &ServiceError) -> String {
        let child = self.child.lock().await.take();
        if let Some(misuse) = self.heard.misuse() {
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

/// A call that is waited for.
struct Pending {
    peer: Peer<RoleClient>,
    heard: Arc<Heard>,
    /// Taken away once it is answered.
    id: Option<RequestId>,
    token: ProgressToken,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.heard.forget(&self.token);
        let Some(id) = self.id.take() else { return };
        let peer = self.peer.clone();
        // Without a runtime there is no connection any more either.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let reason = Some("the result is no longer wanted".to_owned());
                let param = CancelledNotificationParam::new(Some(id), reason);
                let _ = peer.notify_cancelled(param).await;
            });
        }
    }
}

type Greeting = Pin<Box<dyn Future<Output = Result<Service, ClientInitializeError>> + Send>>;

/// The SDK's first exchange with a server; boxed, since its own type is beyond the compiler.
fn greet<T: Transport<RoleClient> + 'static>(transport: T) -> Greeting {
    Box::pin(serve_client(we(), transport))
}

/// How we present ourselves: a client that offers nothing.
fn we() -> ClientConfig {
    let us = Implementation::new(CLIENT, env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), us)
}

fn http(
    url: &str,
    headers: &[(String, String)],
    bearer: Option<&str>,
) -> Result<StreamableHttpClientTransportConfig, String> {
    let mut named = HashMap::new();
    for (name, value) in headers {
        let bad = || format!("`{name}` cannot be a header, or its value cannot");
        let key = HeaderName::from_str(name).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        named.insert(key, value);
    }
    let max = usize::try_from(MCP_MESSAGE_MAX.0).unwrap_or(usize::MAX);
    let mut retries = ExponentialBackoff::default();
    retries.max_times = Some(MCP_RECONNECTS);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(named)
        .max_sse_event_size(max);
    config.retry_config = Arc::new(retries);
    Ok(match bearer {
        Some(token) => config.auth_header(token),
        None => config,
    })
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

/// Why a server did not begin, in words for a person.
fn begun_badly(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => ENDED.to_owned(),
        ClientInitializeError::TransportError { error, .. } => unsent(error),
        ClientInitializeError::JsonRpcError(error) => {
            short(format!("it refuses: {}", error.message))
        }
        error => chain(error),
    }
}

/// Why a request did not get through, down to the cause, which the SDK's own error leaves out.
fn unsent(error: &DynamicTransportError) -> String {
    match error
        .error
        .downcast_ref::<StreamableHttpError<reqwest::Error>>()
    {
        Some(StreamableHttpError::Client(error)) => chain(error),
        _ => chain(&*error.error),
    }
}

fn misuse_text(misuse: Misuse) -> String {
    match misuse {
        Misuse::TooLong => format!(
            "it sent more than {} MiB in one message and was ended; ask it for less at once",
            MCP_MESSAGE_MAX.0 / (1024 * 1024)
        ),
        Misuse::Flood => format!(
            "it sent more than {MCP_NOTICES} messages in {} s that nobody asked for, and was ended",
            MCP_NOTICES_IN.as_secs()
        ),
    }
}

/// How a child ended, and what it said last.
async fn last_words(mut child: Server) -> String {
    let _ = timeout(GRACE, child.exited()).await;
    let words = said(&mut child);
    let ended = match child.stop().await {
        Some(Ended::Exited(code)) => format!(" (exit {code})"),
        Some(Ended::Signalled(signal)) => format!(" (signal {signal})"),
        _ => String::new(),
    };
    format!("{ended}{words}")
}

fn said(child: &mut Server) -> String {
    let text = child.log().text();
    let text = format!("{}{}", text.head, text.tail);
    match text.trim() {
        "" => String::new(),
        text => format!("; it said: {text}"),
    }
}
