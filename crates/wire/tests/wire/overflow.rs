//! Every known refusal in its provider's words, with its meaning: one row per text.

use plimsoll_context::Tokens;
use plimsoll_wire::overflow::{Overflow, Verdict, classify};
use proptest::prelude::*;
use serde_json::json;

use crate::verdicts::{cap, clamp, over, over_by, over_with_output, soft};

fn openai(message: &str, code: serde_json::Value) -> String {
    json!({"error": {"message": message, "type": "invalid_request_error",
        "param": "messages", "code": code}})
    .to_string()
}

fn anthropic(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

fn openrouter(code: u16, message: &str, raw: Option<String>) -> String {
    json!({"error": {"message": message, "code": code,
        "metadata": {"raw": raw, "provider_name": "Upstream"}}, "user_id": "u"})
    .to_string()
}

fn check(rows: Vec<(Option<u16>, String, Verdict)>) {
    let mut wrong = Vec::new();
    for (status, body, expected) in rows {
        let got = classify(status, &body);
        if got != expected {
            wrong.push(format!(
                "{status:?} {body}\n  expected {expected:?}\n  got      {got:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same, and each text also as OpenRouter and LiteLLM wrap it, and in the middle of a stream,
/// where there is no status any more. What says nothing cannot be wrapped.
fn check_wrapped(rows: Vec<(Option<u16>, String, Verdict)>) {
    let mut all = Vec::new();
    for (status, body, verdict) in rows {
        if !body.trim().is_empty() {
            let code = status.unwrap_or(400);
            let raw = openrouter(code, "Provider returned error", Some(body.clone()));
            let proxy = json!({"error": {
                "message": format!("litellm.BadRequestError: OpenAIException - {body}. Received \
                    Model Group=m\nAvailable Model Group Fallbacks=None"),
                "type": null, "param": null, "code": code.to_string()}});
            all.push((status, raw.clone(), verdict));
            all.push((status, proxy.to_string(), verdict));
            // A bare text is no event of a stream: its status says what it is about.
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&body) {
                let wraps = value.get("error").is_some();
                let event = if wraps {
                    value
                } else {
                    json!({ "error": value })
                };
                all.push((None, format!("data: {event}\n\n"), verdict));
            }
            let both = json!({"error": {"message": format!("litellm.APIError: {raw}")}});
            all.push((status, both.to_string(), verdict));
        }
        all.push((status, body, verdict));
    }
    check(all);
}

const DEEPSEEK: &str = "This model's maximum context length is 131072 tokens. However, you \
    requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the \
    length of the messages or completion.";
const GROQ_TPM: &str = "Request too large for model `llama-3.3-70b-versatile` in organization \
    `org_01` service tier `on_demand` on tokens per minute (TPM): Limit 12000, Requested 14137, \
    please reduce your message size and try again. Need more tokens? Upgrade today.";

#[test]
fn overflows_of_hosted_providers() {
    check_wrapped(vec![
        (
            Some(400),
            openai(
                "This model's maximum context length is 8192 tokens. However, your messages \
                 resulted in 8227 tokens. Please reduce the length of the messages.",
                json!("context_length_exceeded"),
            ),
            over(8227, 8192),
        ),
        (
            Some(400),
            openai(
                "This model's maximum context length is 4097 tokens. However, you requested 4118 \
                 tokens (3118 in the messages, 1000 in the completion). Please reduce the length \
                 of the messages or completion.",
                json!("context_length_exceeded"),
            ),
            clamp(3118, 4097),
        ),
        (
            Some(400),
            openai(
                "Input tokens exceed the configured limit of 272000 tokens. Your messages \
                 resulted in 280000 tokens. Please reduce the length of the messages.",
                json!("context_length_exceeded"),
            ),
            over(280_000, 272_000),
        ),
        (
            None,
            json!({"type": "response.failed", "response": {"error": {
                "code": "context_length_exceeded",
                "message": "Your input exceeds the context window of this model. Please adjust \
                            your input and try again."}}})
            .to_string(),
            over(None, None),
        ),
        (
            Some(400),
            json!({"error": {"code": "BadRequest",
                "message": "prompt tokens (140000) exceed model maximum (128000)"}})
            .to_string(),
            over(140_000, 128_000),
        ),
        (
            Some(400),
            anthropic(
                "invalid_request_error",
                "prompt is too long: 213462 tokens > 200000 maximum",
            ),
            over(213_462, 200_000),
        ),
        (
            Some(400),
            anthropic(
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 198214 + 8192 > 200000, \
                 decrease input length or `max_tokens` and try again",
            ),
            clamp(198_214, 200_000),
        ),
        (
            Some(400),
            anthropic(
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 200001 + 8192 > 200000, \
                 decrease input length or `max_tokens` and try again",
            ),
            over_with_output(200_001, 200_000, 8192),
        ),
        (
            Some(413),
            anthropic("request_too_large", "Request exceeds the maximum size"),
            Verdict::BodyTooLarge,
        ),
        (
            Some(400),
            json!({"__type": "ValidationException",
                "message": "Input is too long for requested model."})
            .to_string(),
            over(None, None),
        ),
        (
            Some(400),
            "ValidationException: The model returned the following errors: prompt is too long: \
             200049 tokens > 200000 maximum"
                .into(),
            over(200_049, 200_000),
        ),
        (
            Some(400),
            r#"{"message":"The model returned the following errors: input length and `max_tokens` exceed context limit"}"#
                .into(),
            over(None, None),
        ),
        (Some(400), r#"{"message":"too many total text bytes: 30000000 > 25165824"}"#.into(), over(None, None)),
        (
            Some(400),
            r##"{"message":"Malformed input request: #/texts/0: expected maxLength: 2048, actual: 19882, please reformat your input and try again."}"##
                .into(),
            over(None, None),
        ),
        (
            Some(400),
            json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message":
                "The input token count (1196265) exceeds the maximum number of tokens allowed \
                 (1048575)."}})
            .to_string(),
            over(1_196_265, 1_048_575),
        ),
        (
            Some(400),
            r#"[{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}]"#
                .into(),
            Verdict::BodyTooLarge,
        ),
        (
            Some(400),
            json!({"code": "Client specified an invalid argument", "error":
                "This model's maximum prompt length is 131072 but the request contains 537812 \
                 tokens."})
            .to_string(),
            over(537_812, 131_072),
        ),
        (
            Some(400),
            openai(
                "Please reduce the length of the messages or completion.",
                json!("context_length_exceeded"),
            ),
            over(None, None),
        ),
        (
            Some(413),
            json!({"error": {"code": "tokens_limit_reached", "message":
                "Request body too large for gpt-4o model. Max size: 8000 tokens.",
                "details": "Request body too large for gpt-4o model. Max size: 8000 tokens."}})
            .to_string(),
            over(None, 8000),
        ),
        (
            Some(400),
            json!({"error": {"message": "prompt token count of 135355 exceeds the limit of 128000",
                "code": "model_max_prompt_tokens_exceeded"}})
            .to_string(),
            over(135_355, 128_000),
        ),
        (Some(413), "failed to parse request".into(), Verdict::BodyTooLarge),
        (Some(413), "<h1>Request Entity Too Large</h1>".into(), Verdict::BodyTooLarge),
        (
            Some(400),
            json!({"object": "error", "type": "invalid_request_invalid_args", "param": null,
                "code": "3051", "message": "Prompt contains 325070 tokens and 0 draft tokens, too \
                large for model with 262144 maximum context length"})
            .to_string(),
            over(325_070, 262_144),
        ),
        (Some(400), openai(DEEPSEEK, json!("invalid_request_error")), clamp(122_942, 131_072)),
        (
            Some(400),
            openai(
                "The input (40000 tokens) is longer than the model's context length (32769 \
                 tokens).",
                json!(null),
            ),
            over(40_000, 32_769),
        ),
        (Some(400), String::new(), over(None, None)),
        (Some(413), "\n".into(), over(None, None)),
        (
            Some(400),
            r#"{"message":"Please reduce the length of the messages or completion. Current length is 8716 while limit is 8192","type":"invalid_request_error","param":"messages"}"#
                .into(),
            over(8716, 8192),
        ),
        (
            Some(400),
            openai(
                "Invalid request: Your request exceeded model token limit: 131072 (requested: \
                 140006)",
                json!(null),
            ),
            over(140_006, 131_072),
        ),
        (
            Some(400),
            openai("invalid params, context window exceeds limit (2013)", json!("2013")),
            over(None, None),
        ),
        (
            Some(400),
            r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#.into(),
            over(None, None),
        ),
        (Some(400), r#"{"error":{"message":"Prompt too long"}}"#.into(), over(None, None)),
        (
            Some(400),
            json!({"error": {"code": "invalid_parameter_error", "type": "invalid_request_error",
                "message": "<400> InternalError.Algo.InvalidParameter: Range of input length \
                should be [1, 129024]"}})
            .to_string(),
            over(None, 129_024),
        ),
        (
            Some(400),
            openrouter(
                400,
                "Provider returned error",
                Some("Input length 150000 exceeds the maximum allowed input length of 131040 tokens.".into()),
            ),
            over(150_000, 131_040),
        ),
        (
            Some(400),
            r#"{"error":"Input request is too long: exceed customer model maximum"}"#.into(),
            over(None, None),
        ),
        (
            Some(400),
            r#"{"errors":[{"message":"this request exceeds the max_model_len of 32768"}]}"#.into(),
            over(None, None),
        ),
    ]);
}

#[test]
fn overflows_of_local_servers() {
    check_wrapped(vec![
        (
            Some(422),
            json!({"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= \
                8192. Given: 6204 `inputs` tokens and 2047 `max_new_tokens`",
                "error_type": "validation"})
            .to_string(),
            clamp(6204, 8192),
        ),
        (
            Some(400),
            json!({"object": "error", "type": "BadRequestError", "param": null, "code": 400,
                "message": "This model's maximum context length is 16384 tokens. However, you \
                requested 19591 tokens (9591 in the messages, 10000 in the completion). Please \
                reduce the length of the messages or completion."})
            .to_string(),
            clamp(9591, 16_384),
        ),
        (
            Some(400),
            json!({"object": "error", "type": "BadRequestError", "code": 400,
                "message": "max_tokens must be at least 1, got -186."})
            .to_string(),
            over_by(186),
        ),
        (
            Some(400),
            openai(
                "This model's maximum context length is 262144 tokens. However, your request has \
                 279750 input tokens. Please reduce the length of the input messages.",
                json!(400),
            ),
            over(279_750, 262_144),
        ),
        (
            Some(400),
            openai("You passed 20000 tokens, but the context length is only 16384 tokens", json!(400)),
            over(None, 16_384),
        ),
        (
            Some(400),
            json!({"error": {"code": 400, "type": "exceed_context_size_error",
                "message": "request (2468 tokens) exceeds the available context size (2048 \
                tokens), try increasing it", "n_prompt_tokens": 2468, "n_ctx": 2048}})
            .to_string(),
            over(2468, 2048),
        ),
        (
            Some(500),
            json!({"error": {"code": 500, "type": "server_error",
                "message": "request (281671 tokens) exceeds the available context size (200192 \
                tokens), try increasing it"}})
            .to_string(),
            over(281_671, 200_192),
        ),
        (
            Some(400),
            json!({"error": {"code": 400, "type": "exceed_context_size_error",
                "message": "the request exceeds the available context size. try increasing the \
                context size or enable context shift", "n_prompt_tokens": 9000, "n_ctx": 8192}})
            .to_string(),
            over(9000, 8192),
        ),
        (
            Some(400),
            r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input."}"#
                .into(),
            over(13_055, 4096),
        ),
        (
            Some(400),
            r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"}"#
                .into(),
            over(None, None),
        ),
        (
            Some(400),
            r#"{"error":"Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough."}"#
                .into(),
            over(10_136, 7866),
        ),
        (None, r#"{"error":{"message":"Context size has been exceeded."}}"#.into(), over(None, None)),
        (
            None,
            r#"data: {"error":{"message":"Reached context length of 32000 tokens with model (arch: gemma3) that does not currently support mid-generation context overflow."}}"#
                .into(),
            over(None, 32_000),
        ),
        (Some(400), r#"{"error":"the prompt is longer than the context length"}"#.into(), over(None, None)),
        (
            Some(400),
            r#"{"error":{"message":"prompt too long; exceeded max context length by 4 tokens","type":"invalid_request_error"}}"#
                .into(),
            over_by(4),
        ),
        (Some(500), r#"{"error":"the input length exceeds the context length"}"#.into(), over(None, None)),
        (
            Some(500),
            "ValueError: Requested tokens (516) exceed context window of 512".into(),
            over(516, 512),
        ),
        (
            Some(400),
            r#"{"error":{"message":"Prompt has 5000 tokens, but the configured context size is 4096 tokens"}}"#
                .into(),
            over(5000, 4096),
        ),
        (
            Some(400),
            r#"{"error":{"message":"Input tokens would exceed the model's maximum context length somehow"}}"#
                .into(),
            over(None, None),
        ),
    ]);
}

#[test]
fn overflows_wrapped_by_others() {
    let nested = openai(DEEPSEEK, json!("invalid_request_error"));
    let groq = json!({"error": {"message": GROQ_TPM, "type": "tokens",
        "code": "rate_limit_exceeded"}})
    .to_string();
    check(vec![
        (
            Some(400),
            openrouter(
                400,
                "This endpoint's maximum context length is 131072 tokens. However, you requested \
                 about 141607 tokens (10535 of text input, 131072 in the output). Please reduce \
                 the length of either one, or use the \"middle-out\" transform to compress your \
                 prompt automatically.",
                None,
            ),
            clamp(10_535, 131_072),
        ),
        (
            Some(400),
            openrouter(
                400,
                "This endpoint's maximum context length is 200000 tokens. However, you requested \
                 about 205000 tokens (160000 of text input, 12000 of tool input, 33000 in the \
                 output). Please reduce the length of either one, or use the context-compression \
                 plugin.",
                None,
            ),
            clamp(172_000, 200_000),
        ),
        (
            Some(400),
            openrouter(
                400,
                "This endpoint's maximum context length is 32768 tokens. However, you requested \
                 about 42832 tokens (42832 of text input). Please reduce the length of either one.",
                None,
            ),
            over(42_832, 32_768),
        ),
        (
            Some(400),
            openrouter(400, "Provider returned error", Some(nested.clone())),
            clamp(122_942, 131_072),
        ),
        (
            Some(400),
            openrouter(
                400,
                "Provider returned error",
                Some(openrouter(
                    400,
                    "Provider returned error",
                    Some(nested.clone()),
                )),
            ),
            clamp(122_942, 131_072),
        ),
        // In a stream that had begun with 200.
        (
            Some(200),
            format!(
                "data: {}",
                openrouter(400, "Provider returned error", Some(nested.clone()))
            ),
            clamp(122_942, 131_072),
        ),
        (
            Some(400),
            json!({"error": {"message": format!("litellm.ContextWindowExceededError: \
                litellm.BadRequestError: ContextWindowExceededError: OpenAIException - {DEEPSEEK}"),
                "type": null, "param": null, "code": "400"}})
            .to_string(),
            clamp(122_942, 131_072),
        ),
        (
            Some(400),
            json!({"error": {"message": format!("litellm.BadRequestError: OpenAIException - \
                {nested}. Received Model Group=m"), "type": null, "code": "400"}})
            .to_string(),
            clamp(122_942, 131_072),
        ),
        (
            Some(400),
            json!({"error": {"message": "litellm.ContextWindowExceededError: XException",
                "code": "400"}})
            .to_string(),
            over(None, None),
        ),
        (
            Some(400),
            r#"{"error":{"message":"Context Window exceeded for given call. No fallback found."}}"#
                .into(),
            over(None, None),
        ),
        // Python's way of printing an error is not JSON.
        (
            Some(500),
            format!("Error code: 400 - {{'error': {{'message': \"{DEEPSEEK}\"}}}}"),
            clamp(122_942, 131_072),
        ),
        (
            Some(413),
            openrouter(413, "Provider returned error", Some(groq)),
            soft(12_000, 14_137),
        ),
        (
            Some(429),
            openrouter(
                429,
                "Provider returned error",
                Some("model is temporarily rate-limited upstream. Please retry shortly".into()),
            ),
            Verdict::RateLimited,
        ),
    ]);
}

/// Anthropic names the limit, and not what was asked for.
#[test]
fn a_minutes_allowance_may_be_said_without_the_request() {
    for text in [
        "This request would exceed your organization's rate limit of 30,000 input tokens per minute \
         (org: x, model: y). For details, refer to: https://docs.claude.com/en/api/rate-limits.",
        "This request would exceed the rate limit for your organization (x) of 30,000 input tokens \
         per minute.",
    ] {
        let body = json!({"type": "error", "error": {"type": "rate_limit_error", "message": text}});
        let limit = Tokens(30_000);
        let verdict = classify(Some(429), &body.to_string());
        assert_eq!(verdict, Verdict::PerMinute { limit }, "{text}");
    }
}

#[test]
fn it_is_said_on_what_an_overflow_rests() {
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
    // A tool's schema is none, whatever it holds.
    let schema = "Invalid schema for function 'x': context length exceeded is not a valid keyword";
    assert_eq!(weigh(Some(400), schema), (Verdict::Invalid, Basis::Said));
}

#[test]
fn a_refusal_that_no_key_would_change_is_not_of_the_key() {
    for body in [
        "<!DOCTYPE html><html><title>Attention Required!</title>authentication</html>",
        r#"{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported"}}"#,
        r#"{"error":{"type":"forbidden","message":"Request not allowed"}}"#,
    ] {
        assert_eq!(classify(Some(403), body), Verdict::Invalid, "{body}");
    }
    for body in [
        "",
        "Forbidden: check your API key",
        r#"{"message":"Missing Authentication Token"}"#,
    ] {
        assert_eq!(classify(Some(403), body), Verdict::Auth, "{body}");
    }
}

#[test]
fn what_looks_like_an_overflow_and_is_not() {
    check_wrapped(vec![
        (
            Some(413),
            json!({"error": {"message": GROQ_TPM, "type": "tokens",
                "code": "rate_limit_exceeded"}})
            .to_string(),
            soft(12_000, 14_137),
        ),
        (
            Some(429),
            json!({"error": {"message": "Request too large for gpt-4o in organization org-x on \
                tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens \
                must be reduced in order to run successfully.", "type": "tokens",
                "code": "rate_limit_exceeded"}})
            .to_string(),
            soft(30_000, 342_389),
        ),
        (
            Some(429),
            json!({"error": {"message": "Rate limit reached for gpt-4o in organization org-x on \
                tokens per min (TPM): Limit 30,000, Used 29,000, Requested 2,000. Please try \
                again in 2s.", "type": "tokens", "code": "rate_limit_exceeded"}})
            .to_string(),
            Verdict::RateLimited,
        ),
        (
            Some(429),
            json!({"error": {"code": "too_many_requests", "message": "The request exceeds the \
                maximum usage size allowed during peak load."}})
            .to_string(),
            Verdict::RateLimited,
        ),
        (
            Some(400),
            json!({"error": {"code": "no_capacity", "message": "The prompt exceeds the maximum \
                usage size allowed during peak load."}})
            .to_string(),
            Verdict::RateLimited,
        ),
        (
            Some(400),
            "the context exceeds the maximum usage size allowed during peak load".into(),
            Verdict::RateLimited,
        ),
        (
            Some(400),
            "ThrottlingException: Too many tokens, please wait before trying again.".into(),
            Verdict::RateLimited,
        ),
        (
            Some(429),
            json!({"__type": "ThrottlingException:http://internal.amazon.com/",
                "message": "Too many tokens, please wait before trying again."})
            .to_string(),
            Verdict::RateLimited,
        ),
        (Some(429), "Too Many Requests".into(), Verdict::RateLimited),
        (
            Some(503),
            r#"{"error":"rate limit exceeded, slow down"}"#.into(),
            Verdict::RateLimited,
        ),
        (
            Some(400),
            json!({"error": {"code": "string_above_max_length", "message": "Invalid \
                'messages[1].content': string too long. Expected a string with maximum length \
                1048576, but got a string with length 1540820 instead."}})
            .to_string(),
            Verdict::Invalid,
        ),
        (
            Some(400),
            openai(
                "max_tokens is too large: 6000. This model supports at most 4096 completion \
                 tokens, whereas you provided 6000.",
                json!("invalid_value"),
            ),
            cap(4096),
        ),
        (
            Some(400),
            openai("max_tokens: 4096 must be less than 2048", json!(null)),
            cap(2048),
        ),
        (
            Some(400),
            anthropic(
                "invalid_request_error",
                "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens \
                 for claude-3-5-sonnet",
            ),
            cap(8192),
        ),
        (
            Some(400),
            openai(
                "`max_tokens` must be less than or equal to `8192`, the maximum value for \
                 `max_tokens` is less than the `context_window` for this model",
                json!(null),
            ),
            cap(8192),
        ),
        (
            Some(400),
            openai(
                "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
                json!(null),
            ),
            cap(8192),
        ),
        (
            Some(429),
            json!({"error": {"message": "You exceeded your current quota, please check your plan \
                and billing details.", "type": "insufficient_quota",
                "code": "insufficient_quota"}})
            .to_string(),
            Verdict::QuotaExceeded,
        ),
        (
            Some(400),
            anthropic(
                "invalid_request_error",
                "Your credit balance is too low to access the Anthropic API.",
            ),
            Verdict::QuotaExceeded,
        ),
        (
            Some(402),
            openrouter(
                402,
                "This request requires more credits, or fewer max_tokens. You requested up to \
                 64000 tokens, but can only afford 2000.",
                None,
            ),
            Verdict::QuotaExceeded,
        ),
    ]);
}

#[test]
fn other_refusals() {
    check(vec![
        (
            Some(401),
            json!({"error": {"message": "Incorrect API key provided: sk-x.",
                "type": "invalid_request_error", "code": "invalid_api_key"}})
            .to_string(),
            Verdict::Auth,
        ),
        (Some(403), "<html>Forbidden</html>".into(), Verdict::Invalid),
        (
            Some(400),
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#
                .into(),
            Verdict::Auth,
        ),
        (
            Some(404),
            json!({"error": {"message": "The model `gpt-9` does not exist or you do not have \
                access to it.", "type": "invalid_request_error", "code": "model_not_found"}})
            .to_string(),
            Verdict::NotFound,
        ),
        (
            Some(404),
            r#"{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error"}}"#
                .into(),
            Verdict::NotFound,
        ),
        (Some(404), "404 page not found".into(), Verdict::NotFound),
        // A local server's 500 for a request that it cannot read: the same again fails again.
        (
            Some(500),
            json!({"error": {"code": 500, "type": "server_error", "message": "Failed to parse \
                tool call arguments as JSON: [json.exception.parse_error.101] parse error at \
                line 1, column 2"}})
            .to_string(),
            Verdict::Invalid,
        ),
        (
            Some(500),
            json!({"error": {"code": 500, "type": "server_error", "message":
                "[json.exception.parse_error.101] parse error at line 1, column 1"}})
            .to_string(),
            Verdict::Invalid,
        ),
        (
            Some(500),
            json!({"error": {"code": 500, "type": "server_error", "message": "Jinja Exception: \
                Conversation roles must alternate user/assistant/user/assistant/..."}})
            .to_string(),
            Verdict::Invalid,
        ),
        (
            Some(500),
            json!({"error": {"code": 500, "type": "server_error", "message": "image input is not \
                supported - hint: if this is unexpected, you may need to provide the mmproj"}})
            .to_string(),
            Verdict::Invalid,
        ),
        (
            Some(500),
            json!({"error": {"message": "litellm.InternalServerError: InternalServerError: \
                Custom_openaiException - Failed to parse tool call arguments as JSON: \
                [json.exception.parse_error.101] parse error", "code": "500"}})
            .to_string(),
            Verdict::Invalid,
        ),
        (
            Some(503),
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#.into(),
            Verdict::Transient,
        ),
        (Some(529), anthropic("overloaded_error", "Overloaded"), Verdict::Transient),
        (Some(502), "<html>Bad Gateway</html>".into(), Verdict::Transient),
        (Some(500), String::new(), Verdict::Transient),
        (Some(408), String::new(), Verdict::Transient),
        (None, r#"{"error":{"message":"upstream idle timeout"}}"#.into(), Verdict::Transient),
        (Some(200), openrouter(502, "Provider disconnected", None), Verdict::Transient),
        (Some(400), openai("Unknown parameter: 'foo'.", json!("unknown_parameter")), Verdict::Invalid),
        (Some(422), r#"{"detail":[{"msg":"Field required","input":{"message":"maximum context length"}}]}"#.into(), Verdict::Invalid),
        (
            Some(400),
            openai(
                "An assistant message with 'tool_calls' must be followed by tool messages \
                 responding to each 'tool_call_id'. The following tool_call_ids did not have \
                 response messages: call_1",
                json!(null),
            ),
            Verdict::Invalid,
        ),
        (
            Some(400),
            openai(
                "thinking is enabled but reasoning_content is missing in assistant tool call \
                 message at index 7",
                json!(null),
            ),
            Verdict::Invalid,
        ),
    ]);
}

#[test]
fn without_a_word_the_status_decides() {
    for (status, verdict) in [
        (413, Verdict::Overflow(Overflow::default())),
        (503, Verdict::Transient),
        (429, Verdict::RateLimited),
        (401, Verdict::Auth),
    ] {
        assert_eq!(classify(Some(status), ""), verdict, "{status}");
    }
}

proptest! {
    #[test]
    fn no_body_breaks_it(status in proptest::option::of(100_u16..700), body in ".{0,400}") {
        let verdict = classify(status, &body);
        prop_assert_eq!(verdict, classify(status, &body));
    }

    /// Texts made of the providers' own words in any order, wrapped to any depth.
    #[test]
    fn no_sentence_breaks_it(
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
