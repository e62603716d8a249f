//! Every known refusal in its provider's words, with its meaning: the cases in `tests/cases/refusals.txt`.
//!
//! `status` is that of the answer; a refusal in a stream has none. A `body` is classified as it is or, with
//! `wrapped`, also in the bodies of gateways and as an event of a stream. A `text` is classified in every
//! possible body: the provider's own (`own`), bare, with `code` and `type` as numbers and as texts, wrapped by
//! OpenRouter, by LiteLLM and by both, and in the middle of a stream of each protocol.

use std::path::Path;

use plimsoll_context::{StopReason, Tokens};
use plimsoll_testkit::cases::{self, Case};
use plimsoll_wire::overflow::{Overflow, Verdict, classify};
use plimsoll_wire::{StreamDecoder, WireError, anthropic, openai_chat, openai_responses};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn each_refusal_means_the_same_in_every_body() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/refusals.txt");
    cases::check(&file, |case| {
        let mut lines: Vec<String> = Vec::new();
        for (status, body) in answers(case) {
            let verdict = told(classify(status, &body));
            match lines.first() {
                None => lines.push(verdict),
                Some(first) if *first == verdict => {}
                Some(_) => lines.push(format!("but {verdict}: {status:?} {body}")),
            }
        }
        lines
    });
}

/// Returns all statuses and bodies of a case.
fn answers(case: &Case) -> Vec<(Option<u16>, String)> {
    let status = case.get("status").map(|status| status.parse().unwrap());
    let text = |key: &str| {
        case.get(key)
            .map(|text| cases::json(text).as_str().unwrap().to_owned())
    };
    if let Some(body) = text("body") {
        let mut answers = vec![(status, body.clone())];
        if case.get("wrapped").is_some() && !body.trim().is_empty() {
            answers.extend(wrapped(status, &body));
        }
        return answers;
    }
    let error = ErrorText {
        status: status.unwrap(),
        text: text("text").unwrap(),
        code: case.get("code").map(str::to_owned),
        kind: case.get("type").map(str::to_owned),
        own: case.json("own"),
    };
    let answers = error.answers().into_iter().map(|body| (status, body));
    let events = error.in_streams().into_iter().map(|body| (None, body));
    answers.chain(events).collect()
}

/// Returns a body as gateways wrap it, and as an event of a stream, which has no status.
fn wrapped(status: Option<u16>, body: &str) -> Vec<(Option<u16>, String)> {
    let code = status.unwrap_or(400);
    let raw = openrouter(code, body);
    let both = json!({"error": {"message": format!("litellm.APIError: {raw}")}}).to_string();
    let mut answers = vec![(status, litellm(code, body)), (status, both), (status, raw)];
    // A bare text is no event of a stream: only its status tells what it is about.
    if let Ok(value) = serde_json::from_str::<Value>(body) {
        let is_error = value.get("error").is_some();
        let event = if is_error {
            value
        } else {
            json!({ "error": value })
        };
        answers.push((None, format!("data: {event}\n\n")));
    }
    answers
}

/// Returns a verdict as the cases have it.
fn told(verdict: Verdict) -> String {
    let number = |name: &str, tokens: Option<Tokens>| {
        tokens.map_or_else(String::new, |tokens| format!(" {name} {}", tokens.0))
    };
    match verdict {
        Verdict::Overflow(Overflow {
            used,
            window,
            output,
            excess,
        }) => [
            "overflow".to_owned(),
            number("used", used),
            number("window", window),
            number("output", output),
            number("excess", excess),
        ]
        .concat(),
        Verdict::OutputTooLarge {
            limit,
            used,
            window,
        } => {
            let limit = number("limit", Some(limit));
            format!(
                "output too large{limit}{}{}",
                number("used", used),
                number("window", window)
            )
        }
        Verdict::SoftWindow { limit, requested } => {
            format!("soft window limit {} requested {}", limit.0, requested.0)
        }
        Verdict::PerMinute { limit } => format!("per minute limit {}", limit.0),
        Verdict::BodyTooLarge => "body too large".to_owned(),
        Verdict::RateLimited => "rate limited".to_owned(),
        Verdict::QuotaExceeded => "quota exceeded".to_owned(),
        Verdict::Auth => "authentication".to_owned(),
        Verdict::NotFound => "not found".to_owned(),
        Verdict::Invalid => "invalid".to_owned(),
        Verdict::Transient => "transient".to_owned(),
    }
}

/// One text of a provider, with the code and the type beside it, and bodies of the provider's own form.
struct ErrorText {
    status: u16,
    text: String,
    code: Option<String>,
    kind: Option<String>,
    own: Vec<Value>,
}

impl ErrorText {
    /// Returns the bodies of providers and of servers that copy them.
    fn bodies(&self) -> Vec<Value> {
        let (text, status) = (&self.text, self.status);
        let kind = self.kind.as_deref().unwrap_or("invalid_request_error");
        let codes = [
            json!(self.code),
            json!(null),
            json!(status),
            json!(status.to_string()),
        ];
        let mut bodies = self.own.clone();
        for code in codes {
            bodies.push(
                json!({"error": {"message": text, "type": kind, "param": "messages",
                "code": code}}),
            );
            bodies.push(
                json!({"object": "error", "message": text, "type": "BadRequestError",
                "param": null, "code": code}),
            );
        }
        bodies.push(json!({"type": "error", "error": {"type": kind, "message": text}}));
        bodies.push(json!({"error": {"code": status, "message": text,
            "status": "INVALID_ARGUMENT"}}));
        bodies.push(json!([{"error": {"code": status, "message": text}}]));
        bodies.push(json!({"message": text}));
        bodies.push(json!({"message": text, "__type": "ValidationException"}));
        bodies.push(json!({"error": text}));
        bodies.push(json!({"detail": text}));
        bodies.push(json!({"error": {"error": {"message": text}}}));
        bodies
    }

    /// Returns the bodies of refusals with a status.
    fn answers(&self) -> Vec<String> {
        let mut answers = vec![self.text.clone()];
        for body in self.bodies() {
            let body = body.to_string();
            answers.push(openrouter(self.status, &body));
            answers.push(openrouter(self.status, &openrouter(self.status, &body)));
            answers.push(litellm(self.status, &body));
            answers.push(litellm(self.status, &openrouter(self.status, &body)));
            answers.push(openrouter(self.status, &litellm(self.status, &body)));
            answers.push(body);
        }
        answers.push(openrouter(self.status, &self.text));
        answers.push(litellm(self.status, &self.text));
        answers.push(litellm(self.status, &python(self.status, &self.text)));
        answers.push(python(self.status, &self.text));
        answers
    }

    /// Returns the errors in the middle of a stream, as the reader of its protocol reports them.
    fn in_streams(&self) -> Vec<String> {
        let (text, status) = (&self.text, self.status);
        let kind = self.kind.as_deref().unwrap_or("invalid_request_error");
        let code = self.code.as_deref().unwrap_or("server_error");
        let mut chat = vec![
            json!({"error": {"message": text, "type": kind, "code": status}}),
            json!({"error": {"message": text, "type": kind, "code": self.code}}),
            json!({"error": {"message": text}}),
            json!({"object": "error", "message": text, "code": status}),
            json!({"id": "gen-1", "object": "chat.completion.chunk", "model": "m",
                "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
                "error": {"code": status, "message": text}}),
        ];
        for body in self.bodies() {
            let raw = openrouter(status, &body.to_string());
            chat.push(serde_json::from_str(&raw).unwrap());
        }
        let messages = [
            json!({"type": "error", "error": {"type": kind, "message": text}}),
            json!({"type": "error", "error": {"type": "api_error", "message": text},
                "request_id": "req_1"}),
        ];
        let responses = [
            json!({"type": "response.failed", "response": {"id": "resp_1", "status": "failed",
                "output": [], "error": {"code": code, "message": text}}}),
            json!({"type": "response.failed", "response": {"status": "failed",
                "error": {"message": text}}}),
            json!({"type": "error", "code": code, "message": text, "param": null,
                "sequence_number": 3}),
            json!({"type": "error", "error": {"type": kind, "code": self.code, "message": text,
                "param": "input"}}),
        ];
        let chat = chat.iter().map(|event| {
            let mut state = openai_chat::ChatStreamState::new();
            let begun = json!({"id": "r", "choices": [{"index": 0, "delta": {"content": "hal"}}]});
            state.push(&begun.to_string()).unwrap();
            refused(state.push(&event.to_string()), event)
        });
        let messages = messages.iter().map(|event| {
            let mut state = anthropic::MessagesStreamState::new();
            let begun = json!({"type": "message_start", "message": {"id": "msg_1", "content": [],
                "usage": {"input_tokens": 1, "output_tokens": 1}}});
            state.push(&begun.to_string()).unwrap();
            refused(state.push(&event.to_string()), event)
        });
        let responses = responses.iter().map(|event| {
            let mut state = openai_responses::ResponsesStreamState::new();
            let begun = json!({"type": "response.created", "response": {"id": "resp_1"}});
            state.push(&begun.to_string()).unwrap();
            refused(state.push(&event.to_string()), event)
        });
        let mut events: Vec<String> = chat.chain(messages).chain(responses).collect();
        // The stream itself, if it was kept as the body.
        let event = json!({"type": "error", "error": {"type": kind, "code": self.code,
            "message": text}});
        events.push(format!("event: error\ndata: {event}\n\n"));
        events.push(format!(
            "data: {{\"id\":\"r\",\"choices\":[]}}\n\ndata: {event}\n\ndata: [DONE]\n\n"
        ));
        events
    }
}

fn refused<T: std::fmt::Debug>(pushed: Result<T, WireError>, event: &Value) -> String {
    match pushed {
        Err(WireError::Provider { body }) => body,
        other => panic!("{event} is no refusal: {other:?}"),
    }
}

/// Wraps the upstream's body in a string.
fn openrouter(code: u16, raw: &str) -> String {
    json!({"error": {"message": "Provider returned error", "code": code,
        "metadata": {"raw": raw, "provider_name": "Upstream", "is_byok": false}},
        "user_id": "user_1"})
    .to_string()
}

/// Puts a sentence before the upstream's body and one behind it.
fn litellm(code: u16, body: &str) -> String {
    let message = format!(
        "litellm.BadRequestError: OpenAIException - {body}. Received Model Group=m\nAvailable \
         Model Group Fallbacks=None LiteLLM Retried: 1 times, LiteLLM Max Retries: 2"
    );
    json!({"error": {"message": message, "type": null, "param": null, "code": code.to_string()}})
        .to_string()
}

/// Formats an error as Python prints it.
fn python(status: u16, text: &str) -> String {
    format!(
        "Error code: {status} - {{'error': {{'message': \"{text}\", 'type': 'BadRequestError', \
         'param': None, 'code': {status}}}}}"
    )
}

#[test]
fn the_basis_of_an_overflow_is_reported() {
    use plimsoll_wire::overflow::{Basis, weigh};
    for (body, basis) in [
        ("", Basis::Guessed),
        (
            "context length exceeded is not a valid keyword",
            Basis::Guessed,
        ),
        ("Too many tokens in your tool description", Basis::Guessed),
        (
            r#"{"error":{"code":"context_length_exceeded"}}"#,
            Basis::Said,
        ),
        ("prompt is too long: 9 tokens > 8 maximum", Basis::Said),
    ] {
        let (verdict, rests) = weigh(Some(400), body);
        assert!(matches!(verdict, Verdict::Overflow(_)), "{body}");
        assert_eq!(rests, basis, "{body}");
    }
    // An invalid schema of a tool is not an overflow.
    let schema = "Invalid schema for function 'x': context length exceeded is not a valid keyword";
    assert_eq!(weigh(Some(400), schema), (Verdict::Invalid, Basis::Said));
}

#[test]
fn a_reply_that_the_window_ended_is_reported() {
    let reply = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "half"}], "stop_sequence": null,
        "stop_reason": "model_context_window_exceeded",
        "usage": {"input_tokens": 190_000, "output_tokens": 10_000}});
    let reply = anthropic::read_reply(&reply.to_string()).unwrap();
    assert_eq!(reply.stop, StopReason::Window);
    assert_eq!(reply.usage.unwrap().total_tokens(), Tokens(200_000));
    let choice = json!({"index": 0, "finish_reason": "model_context_window_exceeded",
        "message": {"role": "assistant", "content": "half"}});
    let usage = json!({"prompt_tokens": 120_000, "completion_tokens": 80_000});
    let reply = json!({"choices": [choice], "usage": usage});
    let reply = openai_chat::read_reply(&reply.to_string()).unwrap();
    assert_eq!(reply.stop, StopReason::Window);
}

#[test]
fn minimax_refuses_with_status_200() {
    let text = "invalid params, context window exceeds limit (2013)";
    let body = json!({"id": "x", "choices": null,
        "base_resp": {"status_code": 2013, "status_msg": text}});
    let Err(WireError::Provider { body }) = openai_chat::read_reply(&body.to_string()) else {
        panic!("{body} is no reply");
    };
    assert_eq!(told(classify(Some(200), &body)), "overflow");
    let fine = json!({"id": "x", "base_resp": {"status_code": 0, "status_msg": ""},
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "hello"}}]});
    assert!(openai_chat::read_reply(&fine.to_string()).is_ok());
}

#[test]
fn lm_studio_may_answer_nothing() {
    let mut state = openai_chat::ChatStreamState::new();
    state.push("[DONE]").unwrap();
    let reply = state.finish().unwrap();
    assert!(reply.usage.is_none() && reply.parts.is_empty());
}

proptest! {
    #[test]
    fn any_body_has_a_verdict(status in proptest::option::of(100_u16..700), body in ".{0,400}") {
        let verdict = classify(status, &body);
        prop_assert_eq!(verdict, classify(status, &body));
    }

    /// Texts made of the providers' own words in any order, wrapped to any depth.
    #[test]
    fn any_sentence_has_a_verdict(
        words in proptest::collection::vec(
            prop_oneof![
                Just("maximum context length is"), Just("requested about"), Just("tokens"),
                Just("tokens per min"), Just("limit"), Just("requested"), Just("(TPM):"),
                Just("{\"error\":"), Just("}"), Just("exceeds"), Just("99999999999999999999999"),
                Just("1,024"), Just("-5"), Just("🦀"), Just("max_tokens must be at least 1, got"),
            ],
            0..30,
        ),
        depth in 0_usize..9,
    ) {
        let mut body = words.join(" ");
        for _ in 0..depth {
            body = json!({"error": {"message": body, "code": 400}}).to_string();
        }
        let verdict = classify(Some(400), &body);
        let waits = matches!(verdict, Verdict::PerMinute { .. } | Verdict::Transient);
        prop_assert!(!waits);
    }
}
