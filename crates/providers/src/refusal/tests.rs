//! Refusals as failures: a table of what servers answer, with their words. No network.

use super::*;
use plimsoll_agent::Failure as F;

const KEY: &str = "sk-0123456789-hush";

fn failure(model: &str, status: Option<u16>, headers: &[(&'static str, &str)], body: &str) -> F {
    let model: ModelRef = model.parse().unwrap();
    let base = model.vendor().base_url.unwrap_or("http://127.0.0.1:1/v1");
    let base = BaseUrl::parse(base, None).unwrap();
    let secrets = [Secret::new(KEY)];
    let call = Call {
        model: &model,
        base: &base,
        key_from: Some("OPENAI_API_KEY"),
        secrets: &secrets,
        max_output: Some(Tokens(4096)),
    };
    let headers = headers
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect();
    match status {
        Some(status) => call.refused(status, &headers, body),
        None => call.broken(Broken::Refused(body.to_owned())),
    }
}

fn overflow(used: Option<u64>, window: Option<u64>, message: &str) -> F {
    F::Overflow {
        used: used.map(Tokens),
        window: window.map(Tokens),
        message: message.into(),
    }
}

#[test]
fn what_is_too_long_is_told_with_its_numbers() {
    let llama = r#"{"error":{"code":400,"message":"request (2468 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":2468,"n_ctx":2048}}"#;
    let said =
        "request (2468 tokens) exceeds the available context size (2048 tokens), try increasing it";
    assert_eq!(
        failure("llama.cpp", Some(400), &[], llama),
        overflow(Some(2468), Some(2048), said)
    );
    // The same in the middle of a stream, where there is no status.
    assert_eq!(
        failure("llama.cpp", None, &[], llama),
        overflow(Some(2468), Some(2048), said)
    );

    let tpm = "Request too large for model `llama-3.3-70b-versatile` in organization `o` service tier `on_demand` on tokens per minute (TPM): Limit 12000, Requested 14137, please reduce your message size and try again.";
    let groq = format!(
        r#"{{"error":{{"message":"{tpm}","type":"tokens","code":"rate_limit_exceeded"}}}}"#
    );
    assert_eq!(
        failure("groq/m", Some(413), &[], &groq),
        overflow(Some(14_137 - 4_096), Some(12_000), tpm)
    );

    // Bytes, of which tokens say nothing.
    assert_eq!(
        failure("openai/m", Some(413), &[], "Request Entity Too Large"),
        F::BodyTooLarge {
            message: "Request Entity Too Large".into()
        }
    );
    assert_eq!(
        failure("openai-compatible/m", Some(400), &[], ""),
        overflow(None, None, "HTTP 400 without a word")
    );
}

#[test]
fn what_is_too_large_together_with_its_answer_tells_the_window() {
    let body = |used: u64, output: u64| {
        let total = used + output;
        format!(
            r#"{{"object":"error","message":"This model's maximum context length is 16384 tokens. However, you requested {total} tokens ({used} in the messages, {output} in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}}"#
        )
    };
    for (used, output) in [(9_591, 10_000), (16_380, 4_096)] {
        let failure = failure("vllm/m", Some(400), &[], &body(used, output));
        let F::Overflow {
            used: told,
            window: Some(Tokens(16_384)),
            ..
        } = failure
        else {
            panic!("{failure:?}");
        };
        assert_eq!(told, Some(Tokens(used)));
    }
    // An answer that is too long for the model whatever the request is tells none.
    let body = r#"{"error":{"message":"max_tokens is too large: 6000. This model supports at most 4096 completion tokens, whereas you provided 6000.","type":"invalid_request_error","param":"max_tokens","code":null}}"#;
    let lowered = failure("openai/m", Some(400), &[], body);
    let limit = Some(Tokens(4_096));
    assert!(
        matches!(lowered, F::OutputTooLarge { limit: told, .. } if told == limit),
        "{lowered:?}"
    );
}

#[test]
fn who_is_to_wait_is_told_how_long() {
    let limited = |retry_after_ms| F::RateLimited {
        retry_after_ms,
        message: "slow down".into(),
    };
    let body = r#"{"error":{"message":"slow down"}}"#;
    assert_eq!(failure("openai/m", Some(429), &[], body), limited(None));
    assert_eq!(
        failure("openai/m", Some(429), &[("retry-after", "3")], body),
        limited(Some(3_000))
    );
    let busy = failure("openai/m", Some(503), &[("retry-after-ms", "20")], "busy");
    assert_eq!(
        busy,
        F::Transient {
            status: Some(503),
            retry_after_ms: Some(20),
            message: "busy".into()
        }
    );
    assert!(busy.is_retryable());
}

#[test]
fn what_would_fail_again_is_not_retried() {
    for (status, body) in [
        // A template's refusals come as 500.
        (
            500,
            r#"{"error":{"code":500,"message":"Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...","type":"server_error"}}"#,
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]","type":"server_error"}}"#,
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        ),
        (402, r#"{"error":{"message":"Insufficient Balance"}}"#),
        (
            404,
            r#"{"error":{"message":"The model `m` does not exist or you do not have access to it.","code":"model_not_found"}}"#,
        ),
        (422, r#"{"detail":[{"msg":"Field required"}]}"#),
        (301, ""),
    ] {
        let failure = failure("openai/m", Some(status), &[], body);
        assert!(!failure.is_retryable(), "{status} {body}: {failure:?}");
        assert!(
            matches!(failure, F::Refused { status: Some(got), .. } if got == status),
            "{failure:?}"
        );
    }
    for (status, body) in [
        (500, "oops"),
        (502, "<html>"),
        (503, ""),
        (529, "{}"),
        (408, ""),
    ] {
        assert!(failure("openai/m", Some(status), &[], body).is_retryable());
    }
}

#[test]
fn an_error_in_the_stream_says_by_its_own_code_how_bad_it_is() {
    for (body, retryable) in [
        (
            r#"{"error":{"code":502,"message":"upstream gone"},"choices":[]}"#,
            true,
        ),
        (r#"{"error":{"code":400,"message":"no"}}"#, false),
        (r#"{"error":"something"}"#, true),
        ("plain", true),
    ] {
        let failure = failure("openrouter/m", None, &[], body);
        assert_eq!(failure.is_retryable(), retryable, "{body}: {failure:?}");
    }
}

#[test]
fn texts_are_whole_say_the_cure_and_hold_no_key() {
    let text = |status, headers: &[(&'static str, &str)], body: &str| {
        failure("openai/m", Some(status), headers, body).to_string()
    };
    let auth = text(
        401,
        &[],
        &format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}."}}}}"#),
    );
    assert_eq!(
        auth,
        "the provider refused the key: Incorrect API key provided: [key]. (the key is that in OPENAI_API_KEY)"
    );
    let wrapped = r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"odd","provider_name":"X"}}}"#;
    assert!(text(400, &[], wrapped).ends_with(&format!("Provider returned error: {wrapped}")));
    assert!(text(404, &[], "404 page not found").contains("check the model's name and --base-url"));
    assert!(
        text(502, &[], "<html><title>502 Bad Gateway</title>...")
            .ends_with("HTTP 502 with a page titled \"502 Bad Gateway\"")
    );
    let to = "https://api.example.com/v1/chat/completions?token=hush";
    let moved = text(308, &[("location", to)], "");
    assert!(moved.contains("https://api.example.com/v1;"), "{moved}");
    for text in [auth, moved] {
        assert!(!text.contains("hush"), "{text}");
    }
}

#[test]
fn a_missing_key_is_named() {
    let model: ModelRef = "vllm/m".parse().unwrap();
    let base = BaseUrl::parse("127.0.0.1:8000", None).unwrap();
    let call = Call {
        model: &model,
        base: &base,
        key_from: None,
        secrets: &[],
        max_output: None,
    };
    let body = r#"{"error":"Unauthorized"}"#;
    let failure = call.refused(401, &HeaderMap::new(), body).to_string();
    assert!(
        failure.ends_with("Unauthorized (no key was sent: set VLLM_API_KEY)"),
        "{failure}"
    );
}
