//! Fixtures of a test: a folder with two FIFOs, through which a server reports its input and
//! whether it is alive, and short functions for tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use plimsoll_context::{CallId, Part};
use plimsoll_core::process::Command;
use plimsoll_core::{Tool, ToolContext, ToolError, ToolOutput};
use plimsoll_mcp::{McpServer, McpServers};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::fake::{FOLDER, MODE, TEST};

/// Longer than anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) folder: tempfile::TempDir,
    events: Lines<BufReader<Receiver>>,
    alive: Receiver,
    /// Keeps the events open while no server is there.
    _events: Sender,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fifo = |name: &str| -> PathBuf {
            let path = folder.path().join(name);
            let made = std::process::Command::new("mkfifo").arg(&path).status();
            assert!(made.unwrap().success());
            path
        };
        let (events, alive) = (fifo("events"), fifo("alive"));
        let reader = OpenOptions::new().open_receiver(&events).unwrap();
        let sender = OpenOptions::new().open_sender(&events).unwrap();
        let alive = OpenOptions::new().open_receiver(alive).unwrap();
        Self {
            folder,
            events: BufReader::new(reader).lines(),
            alive,
            _events: sender,
        }
    }

    /// The fake server, called `fake`.
    pub(crate) fn server(&self, mode: &str) -> McpServer {
        self.named("fake", mode)
    }

    pub(crate) fn named(&self, name: &str, mode: &str) -> McpServer {
        server_in(name, mode, self.folder.path())
    }

    /// Waits until a server says that this has happened.
    pub(crate) async fn until(&mut self, event: &str) {
        let until = async {
            while let Some(line) = self.events.next_line().await.unwrap() {
                if line.starts_with(event) {
                    return;
                }
            }
        };
        let until = tokio::time::timeout(PATIENCE, until).await;
        until.unwrap_or_else(|_| panic!("no `{event}` came"));
    }

    /// What has happened up to this; the rest is to come.
    pub(crate) async fn all_until(&mut self, event: &str) -> Vec<String> {
        let mut all = Vec::new();
        let until = async {
            while let Some(line) = self.events.next_line().await.unwrap() {
                let is_it = line.starts_with(event);
                all.push(line);
                if is_it {
                    return;
                }
            }
        };
        let until = tokio::time::timeout(PATIENCE, until).await;
        until.unwrap_or_else(|_| panic!("no `{event}` came"));
        all
    }

    /// Returns once no server is left of those that were there.
    pub(crate) async fn are_gone(mut self) {
        let gone = async {
            self.alive.readable().await.unwrap();
            self.alive.read_to_end(&mut Vec::new()).await.unwrap();
        };
        let gone = tokio::time::timeout(PATIENCE, gone).await;
        gone.expect("a server was left behind");
    }
}

/// The fake server, with its FIFOs in this folder.
pub(crate) fn server_in(name: &str, mode: &str, folder: &Path) -> McpServer {
    let command = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(FOLDER, folder)
        .env(MODE, mode)
        .env("GIVEN_TOKEN", "sk-0123456789-hush");
    McpServer::command(name, command)
        .secret("sk-0123456789-hush")
        .timeout(PATIENCE)
}

pub(crate) async fn connect(server: McpServer) -> McpServers {
    McpServers::connect([server], |_| {}).await.unwrap()
}

/// A server of HTTP under way. Dropping it ends it.
pub(crate) struct ServerGuard(JoinHandle<()>);

/// Serves on loopback; with the address at which it does.
pub(crate) async fn serve(app: Router) -> (String, ServerGuard) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (url, ServerGuard(serving))
}

impl Drop for ServerGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) fn tool(tools: &[Arc<dyn Tool>], name: &str) -> Arc<dyn Tool> {
    let found = tools.iter().find(|tool| tool.spec().name == name);
    Arc::clone(found.unwrap_or_else(|| panic!("no tool {name} in {:?}", names(tools))))
}

pub(crate) fn names(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    tools.iter().map(|tool| tool.spec().name.clone()).collect()
}

pub(crate) fn context() -> ToolContext {
    ToolContext::new(CallId("c1".to_owned()), CancellationToken::new())
}

/// A call's text, or the text of its failure.
pub(crate) async fn call(
    tools: &[Arc<dyn Tool>],
    name: &str,
    arguments: Value,
) -> Result<String, String> {
    let output = tool(tools, name).call(arguments, context()).await;
    let output = output.map_err(|error| error.0)?;
    let text = |part: &Part| match part {
        Part::Text { text } => text.clone(),
        Part::Image(_) => "<image>".to_owned(),
        other => format!("{other:?}"),
    };
    let texts: Vec<String> = output.parts.iter().map(text).collect();
    Ok(texts.join("|"))
}

/// Begins a call, and gives it up at once.
pub(crate) async fn begin(tools: &[Arc<dyn Tool>], name: &str, arguments: Value) {
    let tool = tool(tools, name);
    tokio::select! {
        biased;
        got = tool.call(arguments, context()) => panic!("{name}: {got:?}"),
        () = tokio::task::yield_now() => {}
    }
}

/// Calls that wait for their answers.
type Calls = JoinSet<Result<ToolOutput, ToolError>>;

/// Begins these calls together.
pub(crate) async fn begin_all(tools: &[Arc<dyn Tool>], names: &[&str]) -> Calls {
    let mut calls = JoinSet::new();
    for name in names {
        let tool = tool(tools, name);
        calls.spawn(async move { tool.call(json!({}), context()).await });
    }
    // Each is sent the first time that it is looked at.
    tokio::task::yield_now().await;
    assert!(calls.try_join_next().is_none());
    calls
}
