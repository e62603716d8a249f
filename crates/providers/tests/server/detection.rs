//! Detection of servers in places that the environment names, and of keys by their variables. The pages of
//! servers are the cases in `tests/cases/pages.txt`.

use plimsoll_providers::{BaseUrl, ServerState, Vendor, detect, detect_keys, detect_servers};
use serde_json::json;

use super::KEY;
use super::mocked::Fake;

fn place(vendor: &str, address: &str) -> (&'static Vendor, BaseUrl) {
    let base = BaseUrl::parse(address, None).unwrap();
    (Vendor::named(vendor).unwrap(), base)
}

#[tokio::test]
async fn a_server_that_is_not_there_is_down() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let found = detect_servers([place("ollama", &address)]).await.remove(0);
    assert_eq!((found.provider, found.state), ("ollama", ServerState::Down));
}

#[tokio::test]
async fn places_come_from_the_environment_and_keys_are_never_shown() {
    let list = json!({"data": [{"id": "m"}]});
    let fake = Fake::new("ollama", []).await.page("/v1/models", 200, list);
    let host = fake.address.clone();
    let env = move |name: &str| match name {
        "OLLAMA_HOST" => Some(host.clone()),
        "GROK_API_KEY" => Some(KEY.to_owned()),
        _ => None,
    };
    let found = detect(&env).await;
    let ollama = found
        .servers
        .iter()
        .find(|server| server.provider == "ollama");
    let models = vec!["m".to_owned()];
    assert_eq!(ollama.unwrap().state, ServerState::Up { models });
    assert_eq!(found.keys, detect_keys(&env));
    let keys: Vec<_> = found
        .keys
        .iter()
        .filter(|key| key.is_set)
        .map(|key| (key.provider, key.variable))
        .collect();
    assert_eq!(keys, [("xai", "GROK_API_KEY")]);
    let json = serde_json::to_string(&found).unwrap();
    assert!(
        !json.contains("hush") && json.contains("OPENAI_API_KEY"),
        "{json}"
    );
}
