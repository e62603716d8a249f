//! The MCP project's own "everything" server, over both transports. Skipped if it is not installed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_core::process::{Command, ServerProcess};
use plimsoll_mcp::McpServer;
use serde_json::json;

use crate::stage::{call, connect, names};

/// Names the server's `index.js`.
const PATH: &str = "PLIMSOLL_TEST_MCP_EVERYTHING";

fn script() -> Option<PathBuf> {
    let path = std::env::var_os(PATH)
        .map(PathBuf::from)
        .filter(|path| path.is_file());
    if path.is_none() {
        println!(
            "skipped: {PATH} does not name the everything server's index.js; `cargo xtask mcp` installs \
             and tests it"
        );
    }
    path
}

async fn works(server: McpServer) {
    let servers = connect(server.timeout(Duration::from_secs(60))).await;
    let tools = servers.tools(&[]);
    println!("{:?}\n{:?}", servers.status(), names(&tools));
    assert!(tools.len() > 5, "{:?}", servers.status());
    for tool in &tools {
        let name = tool.spec().name.as_str();
        let arguments = match name {
            name if name.contains("long") => json!({"duration": 1, "steps": 2}),
            "every_echo" => json!({"message": "hello"}),
            "every_get-annotated-message" => json!({"messageType": "success"}),
            name if name.contains("sum") => json!({"a": 2, "b": 3}),
            name if name.contains("structured") => json!({"location": "Chicago"}),
            // What it packs is by default on the internet.
            name if name.contains("gzip") => json!({"data": "data:text/plain;base64,YmFsbGFzdA=="}),
            _ => json!({}),
        };
        let got = call(&tools, name, arguments).await;
        let said = match &got {
            Ok(said) | Err(said) => said,
        };
        println!("{name}: {}", said.chars().take(200).collect::<String>());
        let has = |words: &str| assert!(said.contains(words), "{name}: {said}");
        match name {
            "every_echo" => has("hello"),
            "every_get-sum" => has("5"),
            "every_get-tiny-image" => has("<image>"),
            "every_get-structured-content" => has("temperature"),
            "every_get-resource-links" => has("demo://resource"),
            "every_trigger-long-running-operation" => has("completed"),
            "every_gzip-file-as-resource" => has("application/gzip"),
            _ => {}
        }
        // It demands to be run as a task, which is not supported.
        let is_task = name == "every_simulate-research-query";
        assert_eq!(got.is_ok(), !is_task, "{name}: {said}");
    }
    drop(tools);
    servers.close().await;
}

#[tokio::test]
async fn over_pipes() {
    let Some(script) = script() else { return };
    let command = Command::new("node").arg(script).arg("stdio");
    works(McpServer::command("every", command)).await;
}

#[tokio::test]
async fn over_http() {
    let Some(script) = script() else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let server = listen(&script, port).await;
    works(McpServer::url(
        "every",
        format!("http://127.0.0.1:{port}/mcp"),
    ))
    .await;
    server.stop().await;
}

#[tokio::test]
async fn it_is_found_again_where_it_has_forgotten_us() {
    let Some(script) = script() else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let server = listen(&script, port).await;
    let servers = connect(McpServer::url(
        "every",
        format!("http://127.0.0.1:{port}/mcp"),
    ))
    .await;
    let tools = servers.tools(&[]);
    let hello = || call(&tools, "every_echo", json!({"message": "hello"}));
    assert_eq!(hello().await.as_deref(), Ok("Echo: hello"));
    server.stop().await;
    let gone = hello().await.unwrap_err();
    assert!(gone.contains("gave no answer"), "{gone}");
    // Another, which knows nothing of our session and says so with the status 400.
    let server = listen(&script, port).await;
    assert_eq!(hello().await.as_deref(), Ok("Echo: hello"));
    drop(tools);
    servers.close().await;
    server.stop().await;
}

/// The server at this port, once it takes a connection.
async fn listen(script: &Path, port: u16) -> ServerProcess {
    let command = Command::new("node").arg(script).arg("streamableHttp");
    let command = command.env("PORT", port.to_string());
    let server = command.serve(plimsoll_context::Bytes(10_000)).unwrap();
    let there = async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), there)
        .await
        .unwrap();
    server
}
