//! The window as servers report it, each in its own format. It is never guessed.

use plimsoll_context::Tokens;
use plimsoll_core::Provider;
use serde_json::{Value, json};

use super::mocked::Fake;
use super::{KEY, chat};

/// What a server with these pages is understood to say of a model.
async fn window(model: &str, pages: &[(&str, Value)]) -> Option<u64> {
    let mut fake = Fake::new("openai", []).await;
    for (path, page) in pages {
        fake = fake.page(path, 200, page.clone());
    }
    let window = chat(model, &fake).window().await;
    window.map(|tokens| tokens.0)
}

#[tokio::test]
async fn each_server_is_understood() {
    let models = |key: &str, tokens: u64| json!({"object": "list", "data": [{"id": "other", key: 1}, {"id": "m", key: tokens}]});
    let slots = json!({"default_generation_settings": {"n_ctx": 4096}, "total_slots": 2});
    let trained = json!({"data": [{"id": "m", "meta": {"n_ctx_train": 131_072}}]});
    let ps = json!({"models": [{"name": "m:latest", "model": "m:latest", "context_length": 4096}]});
    let loaded = json!({"data": [
        {"id": "m", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 8192}
    ]});
    let not_loaded =
        json!({"data": [{"id": "m", "state": "not-loaded", "max_context_length": 131_072}]});
    let routed = json!({"data": [
        {"id": "m", "context_length": 262_144, "top_provider": {"context_length": 131_072}}
    ]});
    type Pages = Vec<(&'static str, Value)>;
    let rows: Vec<(&str, Pages, Option<u64>)> = vec![
        ("llama.cpp/m", vec![("/props", slots.clone())], Some(4096)),
        ("llama.cpp/m", vec![("/v1/models", trained.clone())], None),
        (
            "llama.cpp/m",
            vec![(
                "/props",
                json!({"default_generation_settings": {"n_ctx": 0}}),
            )],
            None,
        ),
        ("local", vec![("/props", slots.clone())], Some(4096)),
        (
            "vllm/m",
            vec![("/v1/models", models("max_model_len", 16_384))],
            Some(16_384),
        ),
        (
            "vllm/absent",
            vec![("/v1/models", models("max_model_len", 16_384))],
            None,
        ),
        (
            "groq/m",
            vec![("/v1/models", models("context_window", 131_072))],
            Some(131_072),
        ),
        (
            "mistral/m",
            vec![("/v1/models", models("max_context_length", 32_768))],
            Some(32_768),
        ),
        (
            "kimi/m",
            vec![("/v1/models", models("context_length", 262_144))],
            Some(262_144),
        ),
        (
            "together/m",
            vec![("/v1/models", json!([{"id": "m", "context_length": 8192}]))],
            Some(8192),
        ),
        ("openrouter/m", vec![("/v1/models", routed)], Some(131_072)),
        ("ollama/m", vec![("/api/ps", ps)], Some(4096)),
        ("lmstudio/m", vec![("/api/v0/models", loaded)], Some(8192)),
        ("lmstudio/m", vec![("/api/v0/models", not_loaded)], None),
        // What a server of unknown make was trained for is not what it serves.
        (
            "openai-compatible/m",
            vec![("/v1/models", trained.clone())],
            None,
        ),
        (
            "openai-compatible/m",
            vec![("/v1/models", trained), ("/props", slots)],
            Some(4096),
        ),
        // Another server in OpenAI's place may say it.
        (
            "openai/m",
            vec![("/v1/models", models("context_length", 9000))],
            Some(9000),
        ),
        ("openai/m", vec![("/v1/models", json!("odd"))], None),
        (
            "openai/m",
            vec![("/v1/models", models("context_length", 0))],
            None,
        ),
        ("openai/m", vec![], None),
    ];
    for (model, pages, expected) in rows {
        assert_eq!(window(model, &pages).await, expected, "{model} {pages:?}");
    }
}

#[tokio::test]
async fn ollama_loads_a_model_to_know_its_window() {
    let idle = json!({"models": []});
    let show = json!({
        "parameters": "stop                           \"<|im_end|>\"\nnum_ctx                        16384",
        "model_info": {"general.architecture": "qwen2", "qwen2.context_length": 8192}
    });
    let fake = Fake::new("ollama", [])
        .await
        .page("/api/ps", 200, idle)
        .page(
            "/api/generate",
            200,
            json!({"done": true, "done_reason": "load"}),
        )
        .page("/api/show", 200, show);
    // A version that does not list what it runs: the file says it, up to what was trained.
    assert_eq!(chat("ollama/m", &fake).window().await, Some(Tokens(8192)));
    let asked = fake.asked();
    assert_eq!(
        fake.paths(),
        ["/api/ps", "/api/generate", "/api/ps", "/api/show"]
    );
    assert_eq!(asked[1].body, json!({"model": "m", "stream": false}));
    assert_eq!(asked[1].headers["authorization"], format!("Bearer {KEY}"));

    // A model that cannot be loaded has no window.
    let fake = Fake::new("ollama", [])
        .await
        .page("/api/ps", 200, json!({"models": []}));
    assert_eq!(chat("ollama/m", &fake).window().await, None);
}

#[tokio::test]
async fn an_answer_is_kept_and_silence_is_not() {
    let fake = Fake::new("llama.cpp", []).await;
    let chat = chat("llama.cpp", &fake);
    assert_eq!(chat.window().await, None);
    let props = json!({"default_generation_settings": {"n_ctx": 4096}});
    let fake = fake.page("/props", 200, props);
    assert_eq!(chat.window().await, Some(Tokens(4096)));
    let fake = fake.page("/props", 200, json!({}));
    assert_eq!(chat.window().await, Some(Tokens(4096)));
    assert_eq!(fake.paths(), ["/props", "/props"]);
}

#[tokio::test]
async fn hosted_providers_that_do_not_tell_are_not_asked() {
    let fake = Fake::new("deepseek", []).await;
    let chat = super::ModelClient::builder("deepseek/deepseek-chat");
    let chat = chat
        .key(super::Secret::new(KEY))
        .build_with(&|_| None)
        .unwrap();
    assert_eq!(chat.window().await, None);
    assert!(fake.asked().is_empty());
}
