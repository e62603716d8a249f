//! The MCP project's own "everything" server, over both transports; skipped where it is not on this
//! machine.

use std::path::PathBuf;
use std::time::Duration;

use plimsoll_core::process::Command;
use plimsoll_tools::mcp::McpServer;
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
            // It fetches from the internet.
            "every_gzip-file-as-resource" => continue,
            // It demands a task, which we do not offer to keep.
            "every_simulate-research-query" => {
                has("requires task augmentation");
                continue;
            }
            _ => {}
        }
        assert!(got.is_ok(), "{name}: {said}");
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
    let command = Command::new("node").arg(script).arg("streamableHttp");
    let command = command.env("PORT", port.to_string());
    let server = command.serve(plimsoll_context::Bytes(10_000)).unwrap();
    // It is there once it takes a connection.
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
    works(McpServer::url(
        "every",
        format!("http://127.0.0.1:{port}/mcp"),
    ))
    .await;
    server.stop().await;
}
