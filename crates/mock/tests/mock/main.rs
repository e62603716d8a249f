//! Mock servers as a client meets them, each protocol on its own.

mod chat;
mod docs;
mod gemini;
mod messages;
mod responses;

use plimsoll_mock::{Mock, Script, Server};
use serde_json::Value;

async fn server(mock: Mock, script: &str) -> Server {
    let script = Script::parse(script).unwrap();
    Server::start(mock.script(script)).await.unwrap()
}

/// What a POST is answered with: status and body, whatever it is.
async fn post(
    server: &Server,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> (u16, String) {
    let url = format!("{}{path}", server.address());
    let mut client = client().post(url).body(body.to_string());
    for (name, value) in headers {
        client = client.header(*name, *value);
    }
    read(client.send().await.unwrap()).await
}

async fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let mut client = client().get(format!("{}{path}", server.address()));
    for (name, value) in headers {
        client = client.header(*name, *value);
    }
    let (status, text) = read(client.send().await.unwrap()).await;
    (status, serde_json::from_str(&text).unwrap())
}

/// A client of any server; the tests speak no TLS, but a client has to be able to.
fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

async fn read(response: reqwest::Response) -> (u16, String) {
    let status = response.status().as_u16();
    let text = response.text().await;
    (status, text.unwrap_or_else(|error| format!("cut: {error}")))
}

#[tokio::test]
async fn every_answer_names_its_request() {
    for (mock, path, name) in [
        (Mock::messages(), "/v1/messages", "request-id"),
        (Mock::responses(), "/v1/responses", "x-request-id"),
        (Mock::chat("openai").unwrap(), "/nowhere", "x-request-id"),
    ] {
        let server = server(mock, "").await;
        for number in 1..3 {
            let url = format!("{}{path}", server.address());
            let answer = client().post(url).send().await.unwrap();
            assert_eq!(answer.headers()[name], format!("req_mock{number}"));
        }
    }
}

/// The events of a stream: their names, where they have one, and what they say.
fn events(text: &str) -> Vec<(String, Value)> {
    let mut events = Vec::new();
    for event in text.split("\n\n").filter(|event| !event.trim().is_empty()) {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        let data = field("data: ").unwrap();
        if data != "[DONE]" {
            let name = field("event: ").unwrap_or_default().to_owned();
            events.push((name, serde_json::from_str(data).unwrap()));
        }
    }
    events
}

#[tokio::test]
async fn bodies_are_kept_only_where_they_are_wanted() {
    let body = serde_json::json!({"messages": []});
    for (mock, kept) in [
        (Mock::chat("openai").unwrap(), true),
        (Mock::chat("openai").unwrap().keeps_outlines(), false),
    ] {
        let server = server(mock, "").await;
        let (status, _) = post(&server, "/v1/chat/completions", &[("x-a", "b")], &body).await;
        get(&server, "/v1/models", &[]).await;
        let asked = &server.requests()[0];
        assert_eq!((status, asked.status), (400, 400));
        assert_eq!(asked.body == body, kept);
        assert_eq!(asked.headers.contains_key("x-a"), kept);
        assert_eq!(asked.bytes, body.to_string().len());
        assert!(asked.fault.is_some(), "what was wrong is always known");
        let tally = server.tally();
        assert_eq!((tally.asked, tally.refused), (1, 1));
    }
}
