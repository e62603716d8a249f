//! The window that a server reports, over time. The pages of each server are the cases in
//! `tests/cases/pages.txt`.

use plimsoll_context::Tokens;
use plimsoll_core::Provider;
use serde_json::json;

use super::mocked::Fake;
use super::{KEY, chat};

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
