//! Mock servers as a client meets them.

mod docs;
mod exchanges;

use plimsoll_mock::{Mock, Script, Server, Turn};
use serde_json::{Value, json};

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

/// Sends a GET and returns the status and the body of the answer.
async fn fetch(server: &Server, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let mut client = client().get(format!("{}{path}", server.address()));
    for (name, value) in headers {
        client = client.header(*name, *value);
    }
    read(client.send().await.unwrap()).await
}

/// A client of any server; the tests speak no TLS, but a client has to be able to.
fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

async fn read(response: reqwest::Response) -> (u16, String) {
    let status = response.status().as_u16();
    let text = response.text().await;
    (status, text.unwrap_or_else(|_| "cut".to_owned()))
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

#[tokio::test]
async fn requests_are_recorded_with_their_bodies_and_headers() {
    let body = json!({"messages": []});
    let server = server(Mock::chat("openai").unwrap(), "").await;
    let (status, _) = post(&server, "/v1/chat/completions", &[("x-a", "b")], &body).await;
    fetch(&server, "/v1/models", &[]).await;
    let asked = &server.requests()[0];
    assert_eq!((status, asked.status), (400, 400));
    assert_eq!(asked.body, body);
    assert_eq!(asked.headers["x-a"], "b");
    assert_eq!(asked.bytes, body.to_string().len());
    assert!(asked.fault.is_some());
    let tally = server.tally();
    assert_eq!((tally.asked, tally.refused), (1, 1));
}

#[tokio::test]
async fn an_answer_may_depend_on_the_request() {
    let mock = Mock::chat("openai").unwrap().then(|request, number| {
        let asked = request["messages"][0]["content"].as_str().unwrap();
        Turn::say(format!("{asked} {number}"))
    });
    let server = server(mock, "{\"say\": \"the script comes first\"}").await;
    for (asked, said) in [("a", "the script comes first"), ("b", "b 1"), ("c", "c 2")] {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": asked}]});
        let (_, reply) = post(&server, "/v1/chat/completions", &[], &body).await;
        let reply: Value = serde_json::from_str(&reply).unwrap();
        assert_eq!(reply["choices"][0]["message"]["content"], said);
    }
    let (turn, opener) = Turn::say("slow").gated(1);
    assert_eq!(turn, turn.clone());
    opener.open();
}

#[tokio::test]
async fn a_page_may_be_replaced_and_invalid_json_is_refused() {
    let mock = Mock::chat("openai")
        .unwrap()
        .page("/v1/models", 503, json!({}));
    let server = server(mock, "").await;
    assert_eq!(fetch(&server, "/v1/models", &[]).await.0, 503);
    server.page("/v1/models", 200, json!([]));
    assert_eq!(fetch(&server, "/v1/models", &[]).await, (200, "[]".into()));
    let url = format!("{}/v1/chat/completions", server.address());
    let sent = client().post(url).body("{").send().await.unwrap();
    let (status, body) = read(sent).await;
    assert_eq!(status, 400);
    assert!(body.contains("not valid JSON"), "{body}");
}

#[tokio::test]
async fn a_server_ends_when_it_is_dropped() {
    let server = server(Mock::chat("openai").unwrap(), "").await;
    let url = format!("{}/v1/models", server.address());
    drop(server);
    tokio::task::yield_now().await;
    assert!(client().get(url).send().await.is_err());
}
