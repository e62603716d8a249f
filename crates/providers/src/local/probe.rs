//! Checks whether a server is ready and can calculate: it must generate one token.

use std::net::TcpListener;
use std::time::Duration;

use plimsoll_core::process::ServerProcess;
use reqwest::Client;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::tls;

/// The pause between attempts. A server that loads its model refuses to generate.
const PAUSE: Duration = Duration::from_millis(100);

/// The result of waiting for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerStart {
    Yes,
    Died,
    Late,
}

/// Returns a free port.
pub(super) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Waits until a server has generated a token.
pub(super) async fn wait(server: &mut ServerProcess, port: u16, patience: Duration) -> ServerStart {
    let Some(client) = tls::plain_client()
        .ok()
        .and_then(|client| client.build().ok())
    else {
        return ServerStart::Late;
    };
    let ready = async {
        while !generates(&client, port).await {
            sleep(PAUSE).await;
        }
    };
    tokio::select! {
        biased;
        () = server.exited() => ServerStart::Died,
        outcome = timeout(patience, ready) => match outcome {
            Ok(()) => ServerStart::Yes,
            Err(_) => ServerStart::Late,
        },
    }
}

async fn generates(client: &Client, port: u16) -> bool {
    let question = json!({
        "messages": [{ "role": "user", "content": "Say yes." }],
        "max_tokens": 1,
    });
    let asked = client
        .post(format!("http://127.0.0.1:{port}/v1/chat/completions"))
        .header("content-type", "application/json")
        .body(question.to_string());
    let answer = asked.send().await;
    answer.is_ok_and(|answer| answer.status().is_success())
}
