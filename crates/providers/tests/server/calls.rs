//! Chat Completions: requests that every dialect accepts, growing sessions, and levels of thinking.

use std::sync::Arc;

use plimsoll_agent::ThinkingLevel;
use plimsoll_context::{Message, Part};
use plimsoll_core::{Agent, Provider};
use plimsoll_providers::{ModelRef, VENDORS};
use plimsoll_testkit::Warnings;
use serde_json::json;

use super::mocked::{Fake, Turn};
use super::{call, chat, request};

const HI: &str = r#"{"id":"1","model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":"hi"}}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

#[tokio::test]
async fn what_every_dialect_sends_is_accepted() {
    for vendor in VENDORS.iter() {
        let script = [Turn::events([HI, STOP, "[DONE]"])];
        let fake = Fake::new(vendor.dialect, script).await;
        let model = format!("{}/m", vendor.name);
        let (reply, _) = call(&chat(&model, &fake)).await;
        let reply = reply.unwrap_or_else(|failure| panic!("{model}: {failure}"));
        assert_eq!(reply.parts, [Part::text("hi")]);
        assert_eq!(reply.model.as_deref(), Some("m-1"));
    }
}

#[tokio::test]
async fn a_session_that_grows_is_sent_whole_and_with_its_length() {
    let script = (0..4).map(|_| Turn::events([HI, STOP, "[DONE]"]));
    let fake = Fake::new("openai", script).await;
    let chat = chat("openai/gpt-x", &fake);
    let mut request = request();
    let mut said: Vec<String> = Vec::new();
    for turn in 0..4 {
        said.push(format!("{turn} says {}", "a lot ".repeat(20_000)));
        let message = Message::user(said[turn].as_str());
        Arc::make_mut(&mut request.messages).push(message.into());
        chat.call(&request, &|_| {}).await.unwrap();
        let asked = fake.asked().remove(turn);
        assert_eq!(asked.headers["content-length"], asked.bytes.to_string());
        assert!(!asked.headers.contains_key("transfer-encoding"));
        let messages = asked.body["messages"].as_array().unwrap();
        let texts = messages.iter().filter_map(|one| one["content"].as_str());
        let texts: Vec<&str> = texts.filter(|text| text.contains("says")).collect();
        assert_eq!(texts, said);
    }
}

/// A level that is not sent is reported, and one that is sent is not.
#[tokio::test]
async fn a_thinking_level_without_effect_is_reported() {
    for (model, level, is_idle) in [
        ("openai/gpt-4o", ThinkingLevel::High, true),
        ("openai/gpt-5.2", ThinkingLevel::High, false),
        ("openai-compatible/qwen3", ThinkingLevel::Low, true),
    ] {
        let fake = Fake::new("openai", []).await;
        let mut sampling = request().sampling;
        sampling.thinking = Some(level);
        let notes = chat(model, &fake).sampling_notes(&sampling);
        let text = format!("thinking_level has no effect: {model} is not known to take one");
        assert_eq!(
            notes.iter().any(|note| note.contains(&text)),
            is_idle,
            "{model}: {notes:?}"
        );
    }
}

#[tokio::test]
async fn thinking_is_turned_off_in_the_words_of_each_server() {
    let disabled = json!({"type": "disabled"});
    let template = json!({"enable_thinking": false});
    for (model, key, value, warned) in [
        ("deepseek/deepseek-v4-flash", "thinking", &disabled, false),
        ("kimi/kimi-k2.6", "thinking", &disabled, false),
        ("ollama/qwen3", "reasoning_effort", &json!("none"), false),
        (
            "groq/qwen/qwen3-32b",
            "reasoning_effort",
            &json!("none"),
            false,
        ),
        ("llama.cpp/m", "chat_template_kwargs", &template, false),
        ("vllm/m", "chat_template_kwargs", &template, false),
        ("openrouter/a/b", "reasoning_effort", &json!("none"), false),
        ("xai/grok-4.5", "reasoning_effort", &json!("low"), true),
        (
            "openai-compatible/m",
            "reasoning_effort",
            &json!(null),
            true,
        ),
        ("openai/gpt-4o", "reasoning_effort", &json!(null), false),
    ] {
        let dialect = model.parse::<ModelRef>().unwrap().vendor().dialect;
        let turn = || Turn::events([HI, STOP, "[DONE]"]);
        let fake = Fake::new(dialect, [turn(), turn()]).await;
        for level in [Some(ThinkingLevel::Off), None] {
            let warnings = Warnings::default();
            let agent = Agent::builder(chat(model, &fake)).observer(warnings.observer());
            let agent = match level {
                Some(level) => agent.thinking_level(level),
                None => agent,
            };
            agent.build().unwrap().run("go").await.unwrap();
            let warnings = warnings.all();
            let said = warnings.iter().any(|text| text.contains("thinking"));
            assert_eq!(said, warned && level.is_some(), "{model}: {warnings:?}");
        }
        let bodies: Vec<_> = fake.asked().into_iter().map(|asked| asked.body).collect();
        let calls: Vec<_> = bodies.iter().filter(|body| body.is_object()).collect();
        assert_eq!(&calls[0][key], value, "{model}");
        assert_eq!(calls[1].get(key), None, "{model}");
    }
}
