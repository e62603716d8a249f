//! The user's own facts about a model in the requests to it.

use std::sync::Arc;

use plimsoll_agent::{Expects, Sampling};
use plimsoll_context::{
    CachePlan, CallId, Image, Message, Part, Source, Tokens, ToolCall, ToolResult,
};
use plimsoll_wire::prompt_texts;
use serde_json::Value;

use super::*;
use crate::models::{ModelBook, Origin};
use crate::{ModelClient, ModelRef, Secret};

#[test]
fn a_name_is_one_segment() {
    assert_eq!(segment("amazon.nova-pro-v1:0"), "amazon.nova-pro-v1%3A0");
    assert_eq!(segment("arn:aws:x/y ü"), "arn%3Aaws%3Ax%2Fy%20%C3%BC");
    assert_eq!(segment("gemini-2.5-pro"), "gemini-2.5-pro");
}

/// Returns a client of a model of Anthropic's with this row of the user.
fn client(model: &str, row: &str) -> ModelClient {
    let book = ModelBook::parse(
        &format!("[anthropic.{model}]\n{row}"),
        Origin::Configuration,
    )
    .unwrap();
    let model = ModelRef::parse(&format!("anthropic/{model}")).unwrap();
    let facts = ModelBook::built_in().clone().overlay(book).facts(&model);
    let builder = ModelClient::builder(model).key(Secret::new("k"));
    builder.facts(facts).build_with(&|_| None).unwrap()
}

#[test]
fn the_nearest_effort_that_is_allowed_is_asked_for() {
    use ThinkingLevel::{High, Low, Medium, Minimal, Off};
    for (row, wanted, asked) in [
        ("window = 9000", Minimal, Some(Effort::Minimal)),
        ("efforts = [\"low\", \"high\"]", Minimal, Some(Effort::Low)),
        ("efforts = [\"low\", \"high\"]", Medium, Some(Effort::Low)),
        ("efforts = [\"medium\"]", High, Some(Effort::Medium)),
        ("efforts = [\"medium\"]", Off, Some(Effort::None)),
        (
            "efforts = [\"minimal\", \"high\"]",
            Low,
            Some(Effort::Minimal),
        ),
        ("efforts = [\"xhigh\"]", High, Some(Effort::Xhigh)),
        ("efforts = []", High, None),
        ("thinking = false", High, None),
        ("thinking = true", Low, Some(Effort::Low)),
    ] {
        let mut request = request(Vec::new());
        request.sampling.thinking = Some(wanted);
        let client = client("m", row);
        let effort = effort(&client.connection, &request);
        assert_eq!(effort, asked, "{row} {wanted:?}");
    }
}

fn request(parts: Vec<Part>) -> Request {
    let result = Message::ToolResult(ToolResult {
        call: CallId("c".into()),
        parts: parts.clone(),
        is_error: false,
    });
    let call = Part::ToolCall(ToolCall {
        id: CallId("c".into()),
        name: "look".into(),
        arguments: "{}".into(),
        opaque: None,
    });
    let messages = [
        Message::User { parts },
        Message::Assistant { parts: vec![call] },
        result,
    ];
    Request {
        system: "".into(),
        hosted_tools: Arc::default(),
        tools: [].into(),
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        dynamic_context: None,
        tool_choice: plimsoll_agent::ToolChoice::Auto,
        max_output: None,
        sampling: Sampling {
            thinking: Some(ThinkingLevel::High),
            ..Sampling::default()
        },
        counted: Tokens(1),
        cache: CachePlan::default(),
        expects: Expects::default(),
    }
}

fn sent(model: &str, row: &str, request: &Request) -> Value {
    client(model, row).json(request)
}

#[test]
fn a_note_stands_for_each_image_where_the_user_says_that_it_takes_none() {
    let image = Part::Image(Image {
        source: Source::Data {
            media_type: "image/png".into(),
            base64: "aGk=".into(),
        },
        size: None,
        detail: None,
    });
    let request = request(vec![Part::text("see"), image]);
    let images = |row: &str| {
        let body = sent("claude-opus-4-6", row, &request).to_string();
        (
            body.matches("aGk=").count(),
            body.matches(prompt_texts::LEFT_OUT).count(),
        )
    };
    assert_eq!(images("images = false"), (0, 2));
    assert_eq!(images("images = true"), (2, 0));
    assert_eq!(images("max_output = 9000"), (2, 0));
}

#[test]
fn what_the_user_says_of_thinking_is_sent_to_a_claude() {
    let mut request = request(vec![Part::text("hi")]);
    Arc::make_mut(&mut request.messages).truncate(1);
    let sent = |model: &str, row: &str| {
        let body = sent(model, row, &request);
        let kind = body["thinking"]["type"].as_str().map(str::to_owned);
        let effort = body["output_config"]["effort"].as_str().map(str::to_owned);
        (kind, effort)
    };
    let word = |text: &str| Some(text.to_owned());
    for (model, row, kind, effort) in [
        (
            "claude-opus-4-6",
            "images = true",
            word("adaptive"),
            word("high"),
        ),
        ("claude-opus-4-6", "thinking = false", None, None),
        ("claude-sonnet-4-5", "thinking = false", None, None),
        (
            "claude-opus-4-6",
            "efforts = [\"low\"]",
            word("adaptive"),
            word("low"),
        ),
        (
            "claude-opus-4-6",
            "efforts = [\"minimal\", \"medium\"]",
            word("adaptive"),
            word("medium"),
        ),
        ("claude-3-5-haiku", "images = true", None, None),
        (
            "claude-3-5-haiku",
            "thinking = true\nmax_output = 64_000",
            word("enabled"),
            None,
        ),
    ] {
        assert_eq!(sent(model, row), (kind, effort), "{model} {row}");
    }
}
