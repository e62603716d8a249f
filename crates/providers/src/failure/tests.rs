//! A table of error responses and the failures that they become. Uses no network.

use super::*;
use plimsoll_agent::Failure as F;

const KEY: &str = "sk-0123456789-hush";

fn failure(model: &str, status: Option<u16>, headers: &[(&'static str, &str)], body: &str) -> F {
    let asked = RequestFacts {
        max_output: Some(Tokens(4096)),
        ..RequestFacts::default()
    };
    refused(asked, model, status, headers, body)
}

fn without_key<'a>(model: &'a ModelRef, base: &'a BaseUrl) -> CallContext<'a> {
    CallContext {
        model,
        base,
        key_from: None,
        secrets: &[],
        facts: RequestFacts::default(),
    }
}

fn refused(
    facts: RequestFacts,
    model: &str,
    status: Option<u16>,
    headers: &[(&'static str, &str)],
    body: &str,
) -> F {
    let model: ModelRef = model.parse().unwrap();
    let base = model.vendor().base_url.unwrap_or("http://127.0.0.1:1/v1");
    let base = BaseUrl::parse(base, None).unwrap();
    let secrets = [Secret::new(KEY)];
    let call = CallContext {
        model: &model,
        base: &base,
        key_from: Some("OPENAI_API_KEY"),
        secrets: &secrets,
        facts,
    };
    let headers = headers
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect();
    match status {
        Some(status) => call.refused(status, &headers, body),
        None => call.broken(BrokenResponse::Refused(body.to_owned())),
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
    // In the middle of a stream there is no status.
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
        F::SoftWindow {
            used: Some(Tokens(14_137 - 4_096)),
            limit: Tokens(12_000),
            retry_after_ms: None,
            message: tpm.into()
        }
    );

    // A limit in bytes says nothing about tokens.
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
    // An output limit of the model says nothing about the size of the request.
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
        // Templates report errors with status 500.
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
        "the provider refused the key: Incorrect API key provided: [secret]. (the key is that in OPENAI_API_KEY)"
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
    let call = without_key(&model, &base);
    let body = r#"{"error":"Unauthorized"}"#;
    let failure = call.refused(401, &HeaderMap::new(), body).to_string();
    assert!(
        failure.ends_with("Unauthorized (no key was sent: set VLLM_API_KEY)"),
        "{failure}"
    );
}

/// Creates a request of this size, in a window of 128,000 tokens.
fn weighs(weight: u64, previous: Option<u64>) -> RequestFacts {
    RequestFacts {
        max_output: None,
        weight: Some(Tokens(weight)),
        previous: previous.map(Tokens),
        window: Some(Tokens(128_000)),
    }
}

#[test]
fn words_that_may_mean_anything_are_no_overflow_of_a_small_request() {
    let schema = r#"{"error":{"message":"context length exceeded is not a valid keyword","type":"invalid_request_error"}}"#;
    let name = "Too many tokens in your tool description: name too long";
    for body in ["", schema, name] {
        let small = refused(weighs(70, None), "openai/m", Some(400), &[], body);
        assert!(
            matches!(
                small,
                F::Refused {
                    status: Some(400),
                    ..
                }
            ),
            "{body}: {small:?}"
        );
        let large = refused(weighs(100_000, None), "openai/m", Some(400), &[], body);
        assert!(matches!(large, F::Overflow { .. }), "{body}: {large:?}");
    }
    // An unknown window may be small. An explicit statement of the provider is believed.
    let unknown = |weight| RequestFacts {
        window: None,
        ..weighs(weight, None)
    };
    let of = |asked| refused(asked, "openai-compatible/m", Some(400), &[], name);
    assert!(matches!(of(unknown(70)), F::Refused { .. }));
    assert!(matches!(of(unknown(3_000)), F::Overflow { .. }));
    let said = r#"{"error":{"message":"too long","code":"context_length_exceeded"}}"#;
    let said = refused(weighs(70, None), "openai/m", Some(400), &[], said);
    assert!(matches!(said, F::Overflow { .. }), "{said:?}");
}

#[test]
fn a_minute_that_cannot_carry_the_request_is_waited_for_only_where_a_cache_may_help() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 30,000 input tokens per minute (org: x). For details, refer to: https://docs.claude.com/en/api/rate-limits."}}"#;
    let of = |facts| {
        refused(
            facts,
            "anthropic/m",
            Some(429),
            &[("retry-after", "9")],
            body,
        )
    };
    // Everything except the new messages may be cached and not counted, or nothing may.
    for (asked, wait) in [
        (weighs(31_000, Some(29_000)), Some(9_000)),
        (weighs(40_000, Some(35_000)), Some(9_000)),
        (weighs(61_000, Some(29_000)), None),
        (weighs(31_000, None), None),
    ] {
        let failure = of(asked);
        let F::SoftWindow {
            used,
            limit,
            retry_after_ms,
            ..
        } = &failure
        else {
            panic!("{asked:?}: {failure:?}");
        };
        assert_eq!((*used, *limit), (asked.weight, Tokens(30_000)));
        assert_eq!(*retry_after_ms, wait, "{asked:?}");
        assert_eq!(failure.is_retryable(), wait.is_some());
    }
    // The provider may count slightly more than Plimsoll.
    let close = of(weighs(29_000, None));
    assert!(
        matches!(
            close,
            F::SoftWindow {
                used: Some(Tokens(30_001)),
                ..
            }
        ),
        "{close:?}"
    );
    // The limit of the current minute is used up.
    for asked in [weighs(28_000, None), RequestFacts::default()] {
        let failure = of(asked);
        assert!(
            matches!(
                failure,
                F::RateLimited {
                    retry_after_ms: Some(9_000),
                    ..
                }
            ),
            "{asked:?}: {failure:?}"
        );
    }
}

#[test]
fn a_limits_headers_say_nothing_of_other_failures() {
    let empty = [
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    let wait = |status, headers: &[_], body| {
        failure("openai/m", Some(status), headers, body).retry_after_ms()
    };
    assert_eq!(wait(429, &empty, "slow down"), Some(60_000));
    assert_eq!(wait(503, &empty, "busy"), None);
    let again = "Rate limit reached. Please try again in 1.2s.";
    assert_eq!(wait(429, &empty, again), Some(1_200));
}

#[test]
fn who_may_not_come_in_with_any_key_is_not_told_of_the_key() {
    let cloudflare = "<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head><body>You have been blocked. Your authentication token …</body></html>";
    let country = r#"{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,"type":"request_forbidden"}}"#;
    for body in [
        cloudflare,
        country,
        "Request not allowed",
        "You may not use this model",
    ] {
        let failure = failure("openai/m", Some(403), &[], body);
        assert!(
            matches!(
                failure,
                F::Refused {
                    status: Some(403),
                    ..
                }
            ),
            "{body}: {failure:?}"
        );
        assert!(!failure.to_string().contains("key"), "{failure}");
    }
    for body in [
        "",
        r#"{"message":"Missing Authentication Token"}"#,
        r#"{"error":{"message":"Your API key may not do this","type":"permission_error"}}"#,
    ] {
        let failure = failure("openai/m", Some(403), &[], body);
        assert!(matches!(failure, F::Auth { .. }), "{body}: {failure:?}");
    }
}

#[test]
fn a_cure_is_said_once() {
    let model: ModelRef = "openai/m".parse().unwrap();
    let base = BaseUrl::parse("127.0.0.1:8000", None).unwrap();
    let call = without_key(&model, &base);
    let limit = plimsoll_wire::WireError::TooLarge {
        limit: plimsoll_context::Bytes(9),
    };
    for why in [limit.to_string(), "the answer exceeds 9 bytes".to_owned()] {
        let text = call.broken(BrokenResponse::TooLarge(why)).to_string();
        assert_eq!(text.matches("fewer output tokens").count(), 1, "{text}");
    }
    let many = plimsoll_wire::WireError::TooManyParts { limit: 1_024 };
    let text = call.broken(BrokenResponse::from(many)).to_string();
    assert!(text.contains("more than 1024 tool calls"), "{text}");
    assert!(
        !text.contains("bytes") && !text.contains("output tokens"),
        "{text}"
    );
    let packed = call.packed("gzip");
    assert!(!packed.is_retryable() && packed.to_string().contains("`gzip`"));
}

#[test]
fn where_chat_refers_to_responses_its_name_is_said() {
    let said = |model: &str, status: u16, words: &str| {
        let body = serde_json::json!({ "error": { "message": words } }).to_string();
        let F::Refused { message, .. } = failure(model, Some(status), &[], &body) else {
            panic!("{words}")
        };
        message
    };
    let only = "This model is only supported in v1/responses and not in v1/chat/completions.";
    let message = said("openai/gpt-5-pro", 404, only);
    assert!(
        message.ends_with("; use openai-responses/gpt-5-pro"),
        "{message}"
    );
    let apart = "Function tools with reasoning_effort are not supported for gpt-5.6 in \
                 /v1/chat/completions. To use function tools, use /v1/responses or set \
                 reasoning_effort to 'none'.";
    let message = said("openai-compatible/gpt-5.6", 400, apart);
    let cure = "; use openai-responses/gpt-5.6 with this --base-url";
    assert!(message.ends_with(cure), "{message}");
    let message = said("openai-responses/gpt-5.6", 404, only);
    assert!(
        message.ends_with("check the model's name and --base-url"),
        "{message}"
    );
}

#[test]
fn a_kind_in_a_header_is_part_of_the_error() {
    let mut headers = HeaderMap::new();
    let plain = r#"{"message":"no"}"#;
    assert_eq!(with_error_type(plain, &headers), plain);
    let kind = "ThrottlingException:http://internal/coral/";
    headers.insert(ERROR_TYPE, kind.parse().unwrap());
    let coded = r#"{"message":"no","code":"ThrottlingException"}"#;
    assert_eq!(with_error_type(plain, &headers), coded);
    assert_eq!(with_error_type("no JSON", &headers), "no JSON");
}
