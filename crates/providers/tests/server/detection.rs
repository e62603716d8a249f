//! Detection of servers by their responses, and of keys by their variables.

use plimsoll_context::Tokens;
use plimsoll_providers::{
    BaseUrl, KeyState, ModelFound, ServerFound, ServerState, Vendor, detect, detect_keys,
    detect_servers,
};
use serde_json::json;

use super::KEY;
use super::mocked::Fake;

fn place(vendor: &str, address: &str) -> (&'static Vendor, BaseUrl) {
    let base = BaseUrl::parse(address, None).unwrap();
    (Vendor::named(vendor).unwrap(), base)
}

fn model(name: &str, window: Option<u64>) -> ModelFound {
    ModelFound {
        name: name.into(),
        window: window.map(Tokens),
    }
}

async fn look(vendor: &str, fake: &Fake) -> ServerFound {
    let mut found = detect_servers([place(vendor, &fake.address)]).await;
    for asked in fake.asked() {
        assert!(
            !asked.headers.contains_key("authorization"),
            "no key is sent"
        );
        assert!(asked.body.is_null(), "nothing is loaded: {}", asked.path);
    }
    found.remove(0)
}

#[tokio::test]
async fn servers_are_known_by_what_they_say() {
    let list = json!({"data": [{"id": "m", "meta": {"n_ctx_train": 131_072}}]});
    let props = json!({"default_generation_settings": {"n_ctx": 4096}});
    let fake = Fake::new("openai", [])
        .await
        .page("/v1/models", 200, list.clone())
        .page("/props", 200, props);
    for port_of in ["llama.cpp", "vllm"] {
        let found = look(port_of, &fake).await;
        assert_eq!(found.provider, "llama.cpp", "whosever port it is");
        assert_eq!(found.base_url, format!("{}/v1", fake.address));
        let models = vec![model("m", Some(4096))];
        assert_eq!(found.state, ServerState::Up { models });
    }

    let fake = Fake::new("openai", []).await.page("/v1/models", 200, list);
    let found = look("llama.cpp", &fake).await;
    assert_eq!(found.provider, "openai-compatible");
    let models = vec![model("m", None)];
    assert_eq!(found.state, ServerState::Up { models });

    let list = json!({"data": [{"id": "m", "max_model_len": 16_384, "owned_by": "vllm"}]});
    let fake = Fake::new("openai", []).await.page("/v1/models", 200, list);
    let found = look("vllm", &fake).await;
    let models = vec![model("m", Some(16_384))];
    assert_eq!(
        (found.provider, found.state),
        ("vllm", ServerState::Up { models })
    );

    let fake = Fake::new("openai", [])
        .await
        .page(
            "/v1/models",
            200,
            json!({"data": [{"id": "a:latest"}, {"id": "b"}]}),
        )
        .page(
            "/api/ps",
            200,
            json!({"models": [{"name": "a:latest", "context_length": 8192}]}),
        );
    let models = vec![model("a:latest", Some(8192)), model("b", None)];
    assert_eq!(
        look("ollama", &fake).await.state,
        ServerState::Up { models }
    );

    let fake = Fake::new("openai", [])
        .await
        .page(
            "/v1/models",
            200,
            json!({"data": [{"id": "a"}, {"id": "b"}]}),
        )
        .page(
            "/api/v0/models",
            200,
            json!({"data": [{"id": "a", "loaded_context_length": 8192}]}),
        );
    let models = vec![model("a", Some(8192)), model("b", None)];
    assert_eq!(
        look("lmstudio", &fake).await.state,
        ServerState::Up { models }
    );
}

#[tokio::test]
async fn what_is_no_server_of_models_is_told_apart() {
    let fake = Fake::new("openai", []).await;
    assert_eq!(look("llama.cpp", &fake).await.state, ServerState::Stranger);
    for status in [401, 503] {
        let fake = Fake::new("openai", [])
            .await
            .page("/v1/models", status, json!({}));
        assert_eq!(
            look("vllm", &fake).await.state,
            ServerState::Refuses { status }
        );
    }
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
    let models = vec![model("m", None)];
    assert_eq!(ollama.unwrap().state, ServerState::Up { models });
    assert_eq!(found.keys, detect_keys(&env));
    let keys: Vec<_> = found
        .keys
        .iter()
        .filter(|key| key.state == KeyState::Set)
        .map(|key| (key.provider, key.variable))
        .collect();
    assert_eq!(keys, [("xai", "GROK_API_KEY")]);
    let json = serde_json::to_string(&found).unwrap();
    assert!(
        !json.contains("hush") && json.contains("OPENAI_API_KEY"),
        "{json}"
    );
}
