//! A hand-written streamable HTTP server on loopback: JSON and event streams, lost sessions, and
//! keys that no other server receives.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::any;
use plimsoll_mcp::{McpServer, McpServers, McpState};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::stage::{ServerGuard, call, connect, context, names, serve, tool};

const TOKEN: &str = "tok-0123456789-hush";

#[derive(Default)]
struct HttpState {
    heard: Mutex<Vec<String>>,
    sessions: Mutex<BTreeSet<String>>,
    cancelled: Notify,
    called: Notify,
}

struct Elsewhere {
    shared: Arc<HttpState>,
    url: String,
    _serving: ServerGuard,
}

impl Elsewhere {
    async fn start() -> Self {
        let shared = Arc::new(HttpState::default());
        let app = Router::new()
            .route("/mcp", any(answer))
            .route(
                "/moved",
                any(|| async { Redirect::to("http://127.0.0.1:1/mcp") }),
            )
            .route(
                "/broken",
                any(|| async { (StatusCode::INTERNAL_SERVER_ERROR, format!("no, {TOKEN}")) }),
            )
            .route("/silent", any(std::future::pending::<String>))
            .with_state(Arc::clone(&shared));
        let (url, _serving) = serve(app).await;
        Self {
            shared,
            url,
            _serving,
        }
    }

    fn server(&self, path: &str) -> McpServer {
        McpServer::url("web", format!("{}/{path}", self.url))
            .bearer(TOKEN)
            .header("X-Team", "harbour")
            .timeout(Duration::from_secs(20))
    }

    fn heard(&self) -> Vec<String> {
        self.shared.heard.lock().unwrap().clone()
    }
}

async fn answer(
    State(shared): State<Arc<HttpState>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let header = |name: &str| {
        headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    };
    if header("authorization") != format!("Bearer {TOKEN}") || header("x-team") != "harbour" {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let session = header("mcp-session-id").to_owned();
    if method != Method::POST {
        shared
            .heard
            .lock()
            .unwrap()
            .push(format!("{method} {session}"));
        if method == Method::DELETE {
            shared.sessions.lock().unwrap().remove(&session);
            return StatusCode::NO_CONTENT.into_response();
        }
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    let (name, id, params) = (
        message["method"].as_str().unwrap_or(""),
        &message["id"],
        &message["params"],
    );
    let what = format!("{name} {}", params["name"].as_str().unwrap_or(""));
    shared.heard.lock().unwrap().push(what.trim().to_owned());
    let result = |result: Value| {
        let kind = [("content-type", "application/json")];
        (
            kind,
            json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string(),
        )
            .into_response()
    };
    if name == "initialize" {
        let mut sessions = shared.sessions.lock().unwrap();
        let heard = shared.heard.lock().unwrap();
        let number = heard.iter().filter(|what| *what == "initialize").count();
        sessions.insert(format!("s{number}"));
        let mut answer = result(
            json!({ "protocolVersion": params["protocolVersion"], "capabilities": { "tools": {} }, "serverInfo": { "name": "web", "version": "1" } }),
        );
        let value = format!("s{number}").parse().unwrap();
        answer.headers_mut().insert("mcp-session-id", value);
        return answer;
    }
    if !shared.sessions.lock().unwrap().contains(&session) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    match (name, params["name"].as_str()) {
        ("tools/list", _) => {
            let names = ["echo", "steps", "hangs", "forgets", "breaks", "huge"];
            let tools = names.map(|name| json!({ "name": name, "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": name == "breaks" } }));
            result(json!({ "tools": tools }))
        }
        ("tools/call", Some("echo")) => result(text(params["arguments"]["text"].as_str().unwrap())),
        ("tools/call", Some("forgets")) => {
            shared.sessions.lock().unwrap().clear();
            result(text("who are you?"))
        }
        ("tools/call", Some("breaks")) => {
            (StatusCode::BAD_GATEWAY, format!("bad {TOKEN}")).into_response()
        }
        ("tools/call", Some("huge")) => result(text(&"x".repeat(17 << 20))),
        ("tools/call", Some("hangs")) => {
            shared.called.notify_one();
            std::future::pending().await
        }
        ("tools/call", Some("steps")) => {
            let token = &params["_meta"]["progressToken"];
            let mut events = String::new();
            for step in 1..=2 {
                let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token, "progress": step } });
                events.push_str(&format!("event: message\ndata: {progress}\n\n"));
            }
            let done = json!({ "jsonrpc": "2.0", "id": id, "result": text("done") });
            events.push_str(&format!("event: message\ndata: {done}\n\n"));
            ([("content-type", "text/event-stream")], Body::from(events)).into_response()
        }
        ("notifications/cancelled", _) => {
            shared.cancelled.notify_one();
            StatusCode::ACCEPTED.into_response()
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

#[tokio::test]
async fn its_tools_are_offered_and_called() {
    let elsewhere = Elsewhere::start().await;
    let servers = connect(elsewhere.server("mcp")).await;
    let tools = servers.tools(&[]);
    assert_eq!(
        names(&tools),
        [
            "web_breaks",
            "web_echo",
            "web_forgets",
            "web_hangs",
            "web_huge",
            "web_steps"
        ]
    );
    let got = call(&tools, "web_echo", json!({"text": "over there"})).await;
    assert_eq!(got.as_deref(), Ok("over there"));
    assert_eq!(
        call(&tools, "web_steps", json!({})).await.as_deref(),
        Ok("done")
    );
    // It is told when we leave.
    drop(tools);
    servers.close().await;
    assert!(elsewhere.heard().contains(&"DELETE s1".to_owned()));
}

#[tokio::test]
async fn a_session_that_it_has_forgotten_is_begun_anew() {
    let elsewhere = Elsewhere::start().await;
    let tools = connect(elsewhere.server("mcp")).await.tools(&[]);
    let got = call(&tools, "web_forgets", json!({})).await;
    assert_eq!(got.as_deref(), Ok("who are you?"));
    let got = call(&tools, "web_echo", json!({"text": "me again"})).await;
    assert_eq!(got.as_deref(), Ok("me again"));
    let begun = elsewhere
        .heard()
        .iter()
        .filter(|what| *what == "initialize")
        .count();
    assert_eq!(begun, 2);
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled_there() {
    let elsewhere = Elsewhere::start().await;
    let tools = connect(elsewhere.server("mcp")).await.tools(&[]);
    let cx = context();
    let cancel = cx.cancel.clone();
    let hangs = tool(&tools, "web_hangs");
    let waiting = tokio::spawn(async move { hangs.call(json!({}), cx).await });
    elsewhere.shared.called.notified().await;
    cancel.cancel();
    assert_eq!(waiting.await.unwrap().unwrap_err().0, "cancelled");
    elsewhere.shared.cancelled.notified().await;
}

#[tokio::test]
async fn one_that_fails_is_told_and_no_key_with_it() {
    let elsewhere = Elsewhere::start().await;
    let tools = connect(elsewhere.server("mcp").trusted()).await.tools(&[]);
    let broken = call(&tools, "web_breaks", json!({})).await.unwrap_err();
    assert!(
        broken.starts_with("the MCP server `web` gave no answer: "),
        "{broken}"
    );
    assert!(
        broken.contains("502") && !broken.contains("hush"),
        "{broken}"
    );
    // It was idempotent, so it was tried twice.
    let tried = elsewhere
        .heard()
        .iter()
        .filter(|what| *what == "tools/call breaks")
        .count();
    assert_eq!(tried, 2);
    let huge = call(&tools, "web_huge", json!({})).await.unwrap_err();
    assert!(huge.contains("16777216 bytes"), "{huge}");
    let got = call(&tools, "web_echo", json!({"text": "fine"})).await;
    assert_eq!(got.as_deref(), Ok("fine"));

    for (server, why) in [
        (elsewhere.server("broken"), "500"),
        (elsewhere.server("moved"), "303"),
        (
            elsewhere
                .server("silent")
                .timeout(Duration::from_millis(300)),
            "not ready within 0.3 s",
        ),
        (
            McpServer::url("web", format!("{}/mcp?key={TOKEN}", elsewhere.url)),
            "401",
        ),
        (
            McpServer::url("web", format!("http://127.0.0.1:1/mcp?key={TOKEN}")),
            "Connection refused",
        ),
        (
            elsewhere.server("mcp").header("bad name", "x"),
            "`bad name` cannot be a header",
        ),
    ] {
        let shown = format!("{server:?}");
        let servers = McpServers::connect([server], |_| {}).await.unwrap();
        let McpState::Absent(error) = servers.status()[0].state.clone() else {
            panic!("it is there: {why}")
        };
        let error = error.to_string();
        assert!(error.contains(why), "{why}: {error}");
        assert!(
            !error.contains("hush") && !shown.contains("hush"),
            "{error} {shown}"
        );
    }
}
