//! HTTP servers with odd behaviour: they lose the session without the proper error, break off
//! streams, redirect, or require another key.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use plimsoll_mcp::McpServer;
use serde_json::{Value, json};

use crate::stage::{ServerGuard, call, connect, serve};

#[derive(Default)]
struct OddHttpState {
    heard: Mutex<Vec<String>>,
    session: Mutex<usize>,
    /// The request whose answer a stream still owes.
    owed: Mutex<Value>,
}

struct Odd {
    shared: Arc<OddHttpState>,
    url: String,
    _serving: ServerGuard,
}

impl Odd {
    async fn start() -> Self {
        let shared = Arc::new(OddHttpState::default());
        let app = Router::new()
            .route("/mcp", any(answer))
            .with_state(Arc::clone(&shared));
        let (url, _serving) = serve(app).await;
        let url = format!("{url}/mcp");
        Self {
            shared,
            url,
            _serving,
        }
    }

    fn server(&self) -> McpServer {
        McpServer::url("web", &self.url).timeout(Duration::from_secs(60))
    }

    fn heard(&self) -> Vec<String> {
        self.shared.heard.lock().unwrap().clone()
    }

    fn count(&self, what: &str) -> usize {
        self.heard().iter().filter(|heard| *heard == what).count()
    }
}

fn events(text: String) -> Response {
    ([("content-type", "text/event-stream")], text).into_response()
}

fn error(id: &Value, message: &str) -> Response {
    let error =
        json!({ "jsonrpc": "2.0", "error": { "code": -32000, "message": message }, "id": id });
    let kind = [("content-type", "application/json")];
    (StatusCode::BAD_REQUEST, kind, error.to_string()).into_response()
}

async fn answer(
    State(shared): State<Arc<OddHttpState>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let header = |name: &str| {
        headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    };
    let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    if method == Method::GET {
        let owed = shared.owed.lock().unwrap().clone();
        let done = json!({ "jsonrpc": "2.0", "id": owed, "result": text("resumed") });
        return match header("last-event-id") {
            "" => StatusCode::METHOD_NOT_ALLOWED.into_response(),
            "e1" => events(format!("id: e2\ndata: {done}\n\n")),
            _ => {
                let mut heard = shared.heard.lock().unwrap();
                heard.push("GET again".to_owned());
                match heard.iter().filter(|what| *what == "GET again").count() {
                    1 => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
                    _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
                }
            }
        };
    }
    if method == Method::DELETE {
        shared.heard.lock().unwrap().push("DELETE".to_owned());
        return StatusCode::NO_CONTENT.into_response();
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
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        (kind, answer.to_string()).into_response()
    };
    let session = shared.session.lock().unwrap().to_string();
    let tool = params["name"].as_str().unwrap_or("");
    match (name, tool) {
        ("initialize", _) => {
            *shared.session.lock().unwrap() += 1;
            let value = shared.session.lock().unwrap().to_string();
            let mut answer = result(
                json!({ "protocolVersion": params["protocolVersion"], "capabilities": { "tools": {} }, "serverInfo": { "name": "web", "version": "1" } }),
            );
            answer
                .headers_mut()
                .insert("mcp-session-id", value.parse().unwrap());
            answer
        }
        // As the protocol's own server says it, and as one that has not read the request.
        (_, "echo") if header("mcp-session-id") != session => {
            error(id, "Bad Request: No valid session ID provided")
        }
        (_, "whom") if header("mcp-session-id") != session => {
            error(&Value::Null, "Session not found")
        }
        ("tools/list", _) => {
            let names = [
                "echo",
                "whom",
                "forgets",
                "refuses",
                "resumes",
                "breaks_off",
                "never_resumes",
            ];
            let tools =
                names.map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
            result(json!({ "tools": tools }))
        }
        ("tools/call", "forgets") => {
            *shared.session.lock().unwrap() += 1;
            result(text("who are you?"))
        }
        ("tools/call", "refuses") => error(id, "Invalid session: this one is closed"),
        ("tools/call", "resumes" | "never_resumes") => {
            *shared.owed.lock().unwrap() = id.clone();
            let last = if tool == "resumes" { "e1" } else { "e9" };
            events(format!("id: {last}\nretry: 1\ndata:\n\n"))
        }
        ("tools/call", "breaks_off") => events(": hello\n\n".to_owned()),
        ("tools/call", _) => result(text(&format!("{tool} says hello"))),
        ("ping", _) => result(json!({})),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

#[tokio::test]
async fn one_that_has_forgotten_us_and_says_so_in_its_own_words_is_told_again() {
    let odd = Odd::start().await;
    let tools = connect(odd.server()).await.tools(&[]);
    for (at, name) in [(2, "echo"), (3, "whom")] {
        let got = call(&tools, "web_forgets", json!({})).await;
        assert_eq!(got.as_deref(), Ok("who are you?"));
        let got = call(&tools, &format!("web_{name}"), json!({})).await;
        assert_eq!(got, Ok(format!("{name} says hello")));
        assert_eq!(odd.count("initialize"), at);
    }
    // So it is with several calls at once, whose errors do not say for which of them they are.
    let got = call(&tools, "web_forgets", json!({})).await;
    assert_eq!(got.as_deref(), Ok("who are you?"));
    let whom = || call(&tools, "web_whom", json!({}));
    let all = tokio::join!(whom(), whom(), whom());
    for got in [all.0, all.1, all.2] {
        assert_eq!(got.as_deref(), Ok("whom says hello"));
    }
    // Where that does not help, it is said, after one more try.
    let got = call(&tools, "web_refuses", json!({})).await.unwrap_err();
    assert_eq!(got, "`web` refuses: Invalid session: this one is closed");
    assert_eq!(odd.count("tools/call refuses"), 2);
}

#[tokio::test]
async fn a_stream_that_breaks_is_taken_up_again_where_it_can_be() {
    let odd = Odd::start().await;
    let tools = connect(odd.server()).await.tools(&[]);
    let got = call(&tools, "web_resumes", json!({})).await;
    assert_eq!(got.as_deref(), Ok("resumed"));
    for name in ["web_breaks_off", "web_never_resumes"] {
        let got = call(&tools, name, json!({})).await.unwrap_err();
        let told = "the MCP server `web` gave no answer: ";
        assert!(got.starts_with(told), "{name}: {got}");
        assert!(got.contains("not known"), "{name}: {got}");
    }
    // It was tried again, until the server said that it keeps no streams.
    assert_eq!(odd.count("GET again"), 2);
    let got = call(&tools, "web_echo", json!({})).await;
    assert_eq!(got.as_deref(), Ok("echo says hello"));
}
