//! Keys are only sent to the server that they belong to. They are not sent to redirect targets and
//! do not appear in error messages or logs.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use plimsoll_mcp::{McpServer, McpServers, McpState};
use serde_json::{Value, json};

use crate::stage::{call, connect, serve};

const TOKEN: &str = "tok-0123456789-hush";

/// Whatever is written.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A server that answers as it should, but where it sends us elsewhere for `moves`.
async fn answer(elsewhere: String, headers: HeaderMap, body: Bytes) -> Response {
    assert_eq!(headers["authorization"], format!("Bearer {TOKEN}"));
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    };
    let result = match (
        message["method"].as_str(),
        message["params"]["name"].as_str(),
    ) {
        (Some("initialize"), _) => {
            json!({ "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} }, "serverInfo": { "name": "web", "version": "1" } })
        }
        (Some("tools/list"), _) => {
            let names = ["echo", "moves"];
            let tools =
                names.map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
            json!({ "tools": tools })
        }
        (_, Some("moves")) => {
            let place = [(header::LOCATION, elsewhere)];
            return (StatusCode::TEMPORARY_REDIRECT, place).into_response();
        }
        (_, Some(_)) => json!({ "content": [{ "type": "text", "text": "hello" }] }),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    ([("content-type", "application/json")], answer.to_string()).into_response()
}

fn server(url: String) -> McpServer {
    McpServer::url("web", url)
        .bearer(TOKEN)
        .header("X-Key", format!("key-{TOKEN}"))
        .timeout(Duration::from_secs(20))
}

async fn absent(server: McpServer) -> String {
    let servers = McpServers::connect([server], |_| {}).await.unwrap();
    match servers.status()[0].state.clone() {
        McpState::Absent(error) => error.to_string(),
        state => panic!("it is there: {state:?}"),
    }
}

#[tokio::test]
async fn nobody_else_is_shown_a_key_and_no_log_has_one() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);

    let seen = Arc::new(Mutex::new(0));
    let counts = Arc::clone(&seen);
    let other = any(move || {
        *counts.lock().unwrap() += 1;
        async { "{}" }
    });
    let (elsewhere, _other) = serve(Router::new().fallback(other)).await;
    let place = format!("{elsewhere}/mcp?key={TOKEN}");
    let moved = place.clone();
    let redirect =
        move || async move { (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, moved)]) };
    let app = Router::new()
        .route(
            "/mcp",
            any(move |headers, body| answer(place, headers, body)),
        )
        .route("/moved", any(redirect));
    let (url, _serving) = serve(app).await;

    let servers = connect(server(format!("{url}/mcp?key={TOKEN}"))).await;
    let tools = servers.tools(&[]);
    let got = call(&tools, "web_echo", json!({})).await;
    assert_eq!(got.as_deref(), Ok("hello"));
    let got = call(&tools, "web_moves", json!({})).await.unwrap_err();
    assert!(got.contains("307") && !got.contains("hush"), "{got}");
    drop(tools);
    servers.close().await;
    let told = absent(server(format!("{url}/moved?key={TOKEN}"))).await;
    assert!(told.contains("308") && !told.contains("hush"), "{told}");
    assert_eq!(*seen.lock().unwrap(), 0, "somebody else was asked");
    // Where nobody listens, the library names the address.
    let told = absent(server(format!(
        "http://127.0.0.1:1/{TOKEN}/mcp?key={TOKEN}"
    )))
    .await;
    assert!(told.contains("refused") && !told.contains("hush"), "{told}");

    // And one that says our key back to us.
    let wants = [(header::WWW_AUTHENTICATE, format!("Bearer hint=\"{TOKEN}\""))];
    let refuses = any(move || async move { (StatusCode::UNAUTHORIZED, wants) });
    let (url, _refusing) = serve(Router::new().fallback(refuses)).await;
    let told = absent(server(format!("{url}/mcp"))).await;
    assert!(told.contains("401") && !told.contains("hush"), "{told}");

    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("rmcp"), "nothing was logged at all");
    let leaks: Vec<&str> = text.lines().filter(|line| line.contains("hush")).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

#[tokio::test]
async fn one_that_wants_another_key_is_told_of_with_what_to_do() {
    let challenge = |status: StatusCode| {
        let wants = format!("Bearer error=\"insufficient_scope\", hint=\"{TOKEN}\"");
        (status, [(header::WWW_AUTHENTICATE, wants)])
    };
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32001, "message": format!("no, {TOKEN}") } });
    let refused = move |status: StatusCode| {
        let kind = [("content-type", "application/json")];
        (status, kind, error.to_string())
    };
    let again = refused.clone();
    let app = Router::new()
        .route(
            "/401",
            any(move || async move { challenge(StatusCode::UNAUTHORIZED) }),
        )
        .route(
            "/403",
            any(move || async move { challenge(StatusCode::FORBIDDEN) }),
        )
        .route("/401/bare", any(|| async { StatusCode::UNAUTHORIZED }))
        .route("/403/bare", any(|| async { StatusCode::FORBIDDEN }))
        .route(
            "/401/json",
            any(move || async move { refused(StatusCode::UNAUTHORIZED) }),
        )
        .route(
            "/403/json",
            any(move || async move { again(StatusCode::FORBIDDEN) }),
        );
    let (url, _serving) = serve(app).await;
    for (status, cure) in [
        (
            "401",
            "it wants a token, or another one; `bearer_env` names its variable",
        ),
        ("403", "its token does not allow this"),
    ] {
        for kind in ["", "/bare", "/json"] {
            let told = absent(server(format!("{url}/{status}{kind}"))).await;
            assert!(told.contains(cure), "{status}{kind}: {told}");
            assert!(!told.contains("hush"), "{status}{kind}: {told}");
        }
    }
}
