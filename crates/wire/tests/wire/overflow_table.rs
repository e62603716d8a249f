//! The table of refusals, one test per row: each text as its provider writes it, in every possible
//! body: the provider's own, bare, with codes as numbers and as strings, wrapped by OpenRouter, by
//! LiteLLM and by both, and in the middle of a stream of each protocol. Other refusals are in
//! `overflow.rs`.

use plimsoll_context::{StopReason, Tokens};
use plimsoll_wire::overflow::{Overflow, Verdict, classify};
use plimsoll_wire::{StreamDecoder, WireError, anthropic, openai_chat, openai_responses};
use serde_json::{Value, json};

use crate::verdicts::{cap, clamp, over, over_by, over_with_output, soft};

/// One text of a provider.
struct ErrorText {
    status: u16,
    text: String,
    /// The code and the type that stand beside it.
    code: Option<&'static str>,
    kind: Option<&'static str>,
    means: Verdict,
    /// Bodies of the provider's own form.
    own: Vec<Value>,
}

fn said(status: u16, text: impl Into<String>, means: Verdict) -> ErrorText {
    ErrorText {
        status,
        text: text.into(),
        code: None,
        kind: None,
        means,
        own: Vec::new(),
    }
}

impl ErrorText {
    fn code(self, code: &'static str) -> Self {
        Self {
            code: Some(code),
            ..self
        }
    }

    fn kind(self, kind: &'static str) -> Self {
        Self {
            kind: Some(kind),
            ..self
        }
    }

    fn own(mut self, body: Value) -> Self {
        self.own.push(body);
        self
    }

    /// The bodies of providers and of servers that copy them.
    fn bodies(&self) -> Vec<Value> {
        let (text, status) = (&self.text, self.status);
        let kind = self.kind.unwrap_or("invalid_request_error");
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

    /// What comes with a status.
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

    /// What comes in the middle of a stream, read by the reader of its wire.
    fn in_streams(&self) -> Vec<String> {
        let (text, status) = (&self.text, self.status);
        let kind = self.kind.unwrap_or("invalid_request_error");
        let code = self.code.unwrap_or("server_error");
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
        // The stream itself, where somebody kept it as the body.
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

/// What wraps the upstream's body in a string.
fn openrouter(code: u16, raw: &str) -> String {
    json!({"error": {"message": "Provider returned error", "code": code,
        "metadata": {"raw": raw, "provider_name": "Upstream", "is_byok": false}},
        "user_id": "user_1"})
    .to_string()
}

/// What puts a sentence before the upstream's body and one behind it.
fn litellm(code: u16, body: &str) -> String {
    let message = format!(
        "litellm.BadRequestError: OpenAIException - {body}. Received Model Group=m\nAvailable \
         Model Group Fallbacks=None LiteLLM Retried: 1 times, LiteLLM Max Retries: 2"
    );
    json!({"error": {"message": message, "type": null, "param": null, "code": code.to_string()}})
        .to_string()
}

/// How Python prints an error.
fn python(status: u16, text: &str) -> String {
    format!(
        "Error code: {status} - {{'error': {{'message': \"{text}\", 'type': 'BadRequestError', \
         'param': None, 'code': {status}}}}}"
    )
}

fn check(row: impl IntoIterator<Item = ErrorText>) {
    let mut wrong = Vec::new();
    for said in row {
        let answers = said.answers().into_iter();
        let answers = answers.map(|body| (Some(said.status), body));
        let events = said.in_streams().into_iter().map(|body| (None, body));
        for (status, body) in answers.chain(events) {
            let got = classify(status, &body);
            if got != said.means {
                wrong.push(format!("{status:?} {body}\n  {got:?}\n  {:?}", said.means));
            }
        }
    }
    let first = wrong.iter().take(5).cloned().collect::<Vec<_>>();
    assert!(
        first.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        first.join("\n")
    );
}

#[test]
fn openai_chat_completions() {
    check([
        said(
            400,
            "This model's maximum context length is 8192 tokens. However, your messages resulted \
             in 8227 tokens.",
            over(8227, 8192),
        )
        .code("context_length_exceeded"),
        said(
            400,
            "This model's maximum context length is 4097 tokens. However, you requested 4118 \
             tokens (3118 in the messages, 1000 in the completion). Please reduce the length of \
             the messages or completion.",
            clamp(3118, 4097),
        )
        .code("context_length_exceeded"),
        said(
            400,
            "This model's maximum context length is 4097 tokens. However, you requested 5200 \
             tokens (4200 in the messages, 1000 in the completion). Please reduce the length of \
             the messages or completion.",
            over_with_output(4200, 4097, 1000),
        )
        .code("context_length_exceeded"),
    ]);
}

#[test]
fn openai_responses_and_codex() {
    for text in [
        "Your input exceeds the context window of this model.",
        "Your input exceeds the context window of this model. Please adjust your input and try \
         again.",
    ] {
        check([said(400, text, over(None, None)).code("context_length_exceeded")]);
    }
}

#[test]
fn openai_tokens_per_minute_is_no_overflow() {
    check([said(
        429,
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The \
         input or output tokens must be reduced in order to run successfully.",
        soft(30_000, 342_389),
    )
    .code("rate_limit_exceeded")
    .kind("tokens")]);
}

#[test]
fn azure_openai() {
    check([
        said(
            400,
            "This model's maximum context length is 128000 tokens. However, your messages resulted \
             in 140000 tokens. Please reduce the length of the messages.",
            over(140_000, 128_000),
        )
        .code("context_length_exceeded"),
        said(
            400,
            "prompt tokens (140000) exceed model maximum (128000)",
            over(140_000, 128_000),
        ),
        said(
            429,
            "The prompt exceeds the maximum usage size allowed during peak load",
            Verdict::RateLimited,
        )
        .code("too_many_requests"),
        said(
            400,
            "The context exceeds the maximum usage size allowed during peak load",
            Verdict::RateLimited,
        )
        .code("no_capacity"),
    ]);
}

#[test]
fn anthropic_prompt_is_too_long() {
    check([said(
        400,
        "prompt is too long: 213462 tokens > 200000 maximum",
        over(213_462, 200_000),
    )]);
}

#[test]
fn anthropic_input_and_max_tokens() {
    check([
        said(
            400,
            "input length and `max_tokens` exceed context limit: 198214 + 8192 > 200000, decrease \
             input length or `max_tokens` and try again",
            clamp(198_214, 200_000),
        ),
        said(
            400,
            "input length and `max_tokens` exceed context limit: 200001 + 8192 > 200000, decrease \
             input length or `max_tokens` and try again",
            over_with_output(200_001, 200_000, 8192),
        ),
    ]);
}

#[test]
fn anthropic_body_too_large() {
    check([said(
        413,
        "Request exceeds the maximum size",
        Verdict::BodyTooLarge,
    )
    .kind("request_too_large")]);
}

#[test]
fn anthropic_the_window_ended_the_reply() {
    let reply = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "half"}], "stop_sequence": null,
        "stop_reason": "model_context_window_exceeded",
        "usage": {"input_tokens": 190_000, "output_tokens": 10_000}});
    let reply = anthropic::read_reply(&reply.to_string()).unwrap();
    assert_eq!(reply.stop, StopReason::Window);
    assert_eq!(reply.usage.unwrap().total_tokens(), Tokens(200_000));
}

#[test]
fn bedrock() {
    let both = "The model returned the following errors: ";
    check([
        said(
            400,
            "Input is too long for requested model.",
            over(None, None),
        ),
        said(
            400,
            "input length and `max_tokens` exceed context limit",
            over(None, None),
        ),
        said(
            400,
            format!(
                "{both}input length and `max_tokens` exceed context limit: 197626 + 8192 > 200000"
            ),
            clamp(197_626, 200_000),
        ),
        said(
            400,
            format!("{both}prompt is too long: 200049 tokens > 200000 maximum"),
            over(200_049, 200_000),
        ),
        said(
            400,
            "too many total text bytes: 30000000 > 25165824",
            over(None, None),
        ),
        said(
            400,
            "Malformed input request: #/texts/0: expected maxLength: 2048, actual: 19882, please \
             reformat your input and try again.",
            over(None, None),
        ),
    ]);
}

#[test]
fn bedrock_throttling_is_no_overflow() {
    check([said(
        429,
        "Too many tokens, please wait before trying again.",
        Verdict::RateLimited,
    )
    .own(
        json!({"__type": "ThrottlingException:http://internal.amazon.com/coral/",
        "message": "Too many tokens, please wait before trying again."}),
    )
    .own(
        json!({"message": "ThrottlingException: Too many tokens, please wait before trying \
        again."}),
    )]);
}

#[test]
fn the_output_limit_of_bedrock() {
    for exceeds in ["exceeds", "exceed"] {
        check([said(
            400,
            format!(
                "The maximum tokens you requested {exceeds} the model limit of 4096. Try again \
                 with a maximum tokens value that is lower than 4096."
            ),
            cap(4096),
        )]);
    }
}

#[test]
fn sglang() {
    check([
        said(
            400,
            "Requested token count exceeds the model's maximum context length of 32768 tokens. You \
             requested a total of 36000 tokens: 3000 tokens from the input messages and 33000 \
             tokens for the completion. Please reduce the number of tokens in the input messages \
             or the completion to fit within the limit.",
            clamp(3_000, 32_768),
        )
        .kind("BadRequestError"),
        said(
            400,
            "Input length (35000) exceeds model's maximum context length (32768).",
            over(35_000, 32_768),
        ),
    ]);
}

#[test]
fn gemini_and_vertex() {
    check([
        said(
            400,
            "The input token count (1196265) exceeds the maximum number of tokens allowed \
             (1048575).",
            over(1_196_265, 1_048_575),
        )
        .kind("INVALID_ARGUMENT"),
        said(
            400,
            "The input token count exceeds the maximum number of tokens allowed 1048576.",
            over(None, 1_048_576),
        )
        .kind("INVALID_ARGUMENT"),
        said(
            400,
            "Unable to submit request because the input token count is 1251952 but model only \
             supports up to 1048576. Reduce the input token count and try again. You can also use \
             the CountTokens API to calculate prompt token count and billable characters.",
            over(1_251_952, 1_048_576),
        )
        .kind("INVALID_ARGUMENT"),
        said(
            400,
            "Request payload size exceeds the limit: 20971520 bytes.",
            Verdict::BodyTooLarge,
        ),
        said(
            400,
            "Request payload size exceeds the limit",
            Verdict::BodyTooLarge,
        ),
    ]);
}

#[test]
fn xai() {
    let text = "This model's maximum prompt length is 131072 but the request contains 537812 \
                tokens.";
    check([said(400, text, over(537_812, 131_072))
        .own(json!({"code": "Client specified an invalid argument", "error": text}))]);
}

#[test]
fn groq() {
    check([said(
        400,
        "Please reduce the length of the messages or completion.",
        over(None, None),
    )
    .code("context_length_exceeded")]);
}

#[test]
fn groq_tokens_per_minute_is_a_soft_window() {
    check([said(
        413,
        "Request too large for model `llama-3.3-70b-versatile` in organization `org_01` service \
         tier `on_demand` on tokens per minute (TPM): Limit 12000, Requested 14137, please reduce \
         your message size and try again. Need more tokens? Upgrade to Dev Tier today.",
        soft(12_000, 14_137),
    )
    .code("rate_limit_exceeded")
    .kind("tokens")]);
}

#[test]
fn github_models() {
    let text = "Request body too large for gpt-4o model. Max size: 8000 tokens.";
    check([said(413, text, over(None, 8000))
        .code("tokens_limit_reached")
        .own(
            json!({"error": {"code": "tokens_limit_reached", "message": text, "details": text}}),
        )]);
}

#[test]
fn github_copilot() {
    check([
        said(
            400,
            "prompt token count of 135355 exceeds the limit of 128000",
            over(135_355, 128_000),
        )
        .code("model_max_prompt_tokens_exceeded"),
        said(413, "Request Entity Too Large", Verdict::BodyTooLarge),
        said(
            413,
            "<html><head><title>413 Request Entity Too Large</title></head></html>",
            Verdict::BodyTooLarge,
        ),
    ]);
    // Only its status says what this is about.
    for body in [
        "failed to parse request".to_owned(),
        json!({"error": {"message": "failed to parse request", "code": ""}}).to_string(),
        openrouter(413, "failed to parse request"),
        litellm(413, "failed to parse request"),
    ] {
        assert_eq!(classify(Some(413), &body), Verdict::BodyTooLarge, "{body}");
    }
    assert_eq!(
        classify(Some(400), "failed to parse request"),
        Verdict::Invalid
    );
}

#[test]
fn openrouter_itself() {
    check([
        said(
            400,
            "This endpoint's maximum context length is 131072 tokens. However, you requested about \
             141607 tokens (10535 of text input, 131072 in the output). Please reduce the length \
             of either one, or use the \"middle-out\" transform to compress your prompt \
             automatically.",
            clamp(10_535, 131_072),
        ),
        said(
            400,
            "This endpoint's maximum context length is 200000 tokens. However, you requested about \
             205000 tokens (160000 of text input, 12000 of tool input, 33000 in the output). \
             Please reduce the length of either one, or use the context-compression plugin to \
             compress your prompt automatically.",
            clamp(172_000, 200_000),
        ),
        said(
            400,
            "This endpoint's maximum context length is 200000 tokens. However, you requested about \
             260000 tokens (215000 of text input, 12000 of tool input, 33000 in the output). \
             Please reduce the length of either one, or use the context-compression plugin to \
             compress your prompt automatically.",
            over_with_output(227_000, 200_000, 33_000),
        ),
        said(
            400,
            "This endpoint's maximum context length is 32768 tokens. However, you requested about \
             42832 tokens (42832 of text input). Please reduce the length of either one.",
            over(42_832, 32_768),
        ),
        said(
            400,
            "This endpoint's maximum context length is 32768 tokens. However, you requested about \
             42832 tokens (40832 of text input, 2000 of tool input). Please reduce the length of \
             either one.",
            over(42_832, 32_768),
        ),
    ]);
}

#[test]
fn mistral() {
    let text = "Prompt contains 325070 tokens and 0 draft tokens, too large for model with 262144 \
                maximum context length";
    let own = |code: Value| {
        json!({"object": "error", "message": text, "type": "invalid_request_invalid_args",
            "param": null, "code": code})
    };
    check([said(400, text, over(325_070, 262_144))
        .code("3051")
        .kind("invalid_request_invalid_args")
        .own(own(json!("3051")))
        .own(own(json!(3051)))]);
}

#[test]
fn deepseek() {
    check([said(
        400,
        "This model's maximum context length is 131072 tokens. However, you requested 131134 \
         tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the \
         messages or completion.",
        clamp(122_942, 131_072),
    )
    .code("invalid_request_error")]);
}

#[test]
fn together() {
    check([said(
        400,
        "The input (40000 tokens) is longer than the model's context length (32769 tokens).",
        over(40_000, 32_769),
    )]);
}

#[test]
fn cerebras() {
    // Without a word.
    for status in [400, 413] {
        for body in ["", " \n"] {
            assert_eq!(classify(Some(status), body), over(None, None), "{status}");
        }
    }
    check([
        said(
            400,
            "Current length is 8716 while limit is 8192",
            over(8716, 8192),
        ),
        said(
            400,
            "Please reduce the length of the messages or completion. Current length is 8716 while \
             limit is 8192",
            over(8716, 8192),
        )
        .code("context_length_exceeded"),
    ]);
}

#[test]
fn kimi() {
    check([said(
        400,
        "Invalid request: Your request exceeded model token limit: 131072 (requested: 140006)",
        over(140_006, 131_072),
    )]);
}

#[test]
fn minimax() {
    let text = "invalid params, context window exceeds limit (2013)";
    check([said(400, text, over(None, None))
        .own(json!({"base_resp": {"status_code": 2013, "status_msg": text}}))
        .own(
            json!({"type": "error", "error": {"type": "bad_request_error", "message": text,
            "http_code": "400"}}),
        )]);
}

#[test]
fn minimax_answers_200() {
    let text = "invalid params, context window exceeds limit (2013)";
    let body = json!({"id": "x", "choices": null,
        "base_resp": {"status_code": 2013, "status_msg": text}});
    let Err(WireError::Provider { body }) = openai_chat::read_reply(&body.to_string()) else {
        panic!("{body} is no reply");
    };
    assert_eq!(classify(Some(200), &body), over(None, None));
    let fine = json!({"id": "x", "base_resp": {"status_code": 0, "status_msg": ""},
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "hello"}}]});
    assert!(openai_chat::read_reply(&fine.to_string()).is_ok());
}

#[test]
fn zai() {
    check([
        said(400, "Prompt too long", over(None, None)).code("1261"),
        said(400, "Prompt exceeds max length", over(None, None))
            .code("1261")
            .own(json!({"error": {"code": 1261, "message": "Prompt exceeds max length"}})),
    ]);
    // The code says it alone, whatever the words are.
    for code in [json!("1261"), json!(1261)] {
        let body = json!({"error": {"code": code, "message": "提示词过长"}}).to_string();
        let events = format!("data: {{\"id\":\"r\"}}\n\ndata: {body}\n\ndata: [DONE]\n\n");
        for body in [openrouter(400, &body), litellm(400, &body), events, body] {
            assert_eq!(classify(Some(400), &body), over(None, None), "{body}");
        }
    }
    let choice = json!({"index": 0, "finish_reason": "model_context_window_exceeded",
        "message": {"role": "assistant", "content": "half"}});
    let usage = json!({"prompt_tokens": 120_000, "completion_tokens": 80_000});
    let reply = json!({"choices": [choice], "usage": usage});
    let reply = openai_chat::read_reply(&reply.to_string()).unwrap();
    assert_eq!(reply.stop, StopReason::Window);
}

#[test]
fn dashscope() {
    for text in [
        "Range of input length should be [1, 129024]",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
    ] {
        check([said(400, text, over(None, 129_024)).code("invalid_parameter_error")]);
    }
}

#[test]
fn poolside() {
    check([said(
        400,
        "Input length 150000 exceeds the maximum allowed input length of 131040 tokens.",
        over(150_000, 131_040),
    )]);
}

#[test]
fn text_generation_inference() {
    let text = "`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 6204 `inputs` tokens \
                and 2047 `max_new_tokens`";
    let whole = format!("Input validation error: {text}");
    check([
        said(422, text, clamp(6204, 8192)),
        said(422, whole.clone(), clamp(6204, 8192))
            .own(json!({"error": whole, "error_type": "validation"})),
    ]);
}

#[test]
fn vllm() {
    check([
        said(
            400,
            "This model's maximum context length is 16384 tokens. However, you requested 19591 \
             tokens (9591 in the messages, 10000 in the completion). Please reduce the length of \
             the messages or completion.",
            clamp(9591, 16_384),
        )
        .kind("BadRequestError"),
        said(
            400,
            "max_tokens must be at least 1, got -186.",
            over_by(186),
        ),
        said(
            400,
            "context length is only 16384 tokens",
            over(None, 16_384),
        ),
        said(
            400,
            "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum \
             context length is 32768 tokens and your request has 1000 input tokens (32000 > 32768 \
             - 1000).",
            clamp(1000, 32_768),
        ),
    ]);
}

/// It stops counting where it is too much: what it says of the request is no size, and to ask for
/// what is "left" would be to ask for one token less each time.
#[test]
fn vllm_where_it_stops_counting() {
    for text in [
        "This model's maximum context length is 32768 tokens. However, you requested 8192 output \
         tokens and your prompt contains at least 24577 input tokens, for a total of at least 32769 \
         tokens. Please reduce the length of the input prompt or the number of requested output \
         tokens.",
        "You passed 24577 input tokens and requested 8192 output tokens. However, the model's \
         context length is only 32768 tokens, resulting in a maximum input length of 24576 tokens. \
         Please reduce the length of the input prompt. (parameter=input_tokens, value=24577)",
    ] {
        let means = Verdict::Overflow(Overflow {
            window: Some(Tokens(32_768)),
            output: Some(Tokens(8192)),
            ..Overflow::default()
        });
        check([said(400, text, means).kind("BadRequestError")]);
    }
    // By characters, without counting at all.
    check([said(
        400,
        "This model's maximum context length is 8192 tokens. However, you requested 64 output \
         tokens and your prompt contains 262145 characters (more than 260096 characters, which is \
         the upper bound for 8128 input tokens). Please reduce the length of the input prompt or \
         the number of requested output tokens.",
        over(None, 8192),
    )]);
    check([said(
        400,
        "This model's maximum context length is 8192 tokens. However, you requested 4096 output \
         tokens and your prompt contains 5000 input tokens, for a total of 9096 tokens.",
        clamp(5000, 8192),
    )]);
}

#[test]
fn others_that_are_not_in_the_table() {
    check([
        said(
            400,
            "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token \
             count: 9279",
            over(9279, 8192),
        ),
        said(
            400,
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received \
             4292. Try using a shorter prompt, or enabling prompt truncating.",
            over(4292, 4081),
        ),
        said(
            400,
            "The prompt is too long: 265392, model maximum context length: 262144",
            over(265_392, 262_144),
        ),
        said(
            413,
            "3010: AiError: The estimated number of input and maximum output tokens (35000) \
             exceeded this model context window limit (24000)",
            over(35_000, 24_000),
        ),
    ]);
}

#[test]
fn llama_cpp() {
    let plain = "the request exceeds the available context size. try increasing the context size \
                 or enable context shift";
    let numbers = "request (281671 tokens) exceeds the available context size (200192 tokens), \
                   try increasing it";
    check([
        said(400, plain, over(None, None)),
        said(400, numbers, over(281_671, 200_192)),
        said(500, numbers, over(281_671, 200_192)),
    ]);
    // Structured, whatever the words are.
    for text in [plain, numbers, "too much"] {
        for status in [400, 500] {
            for code in [json!(status), json!(status.to_string()), json!(null)] {
                let body = json!({"error": {"code": code, "message": text,
                    "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 8192}});
                let body = body.to_string();
                let event = format!("data: {body}\n\n");
                for body in [
                    openrouter(status, &body),
                    litellm(status, &body),
                    event,
                    body,
                ] {
                    assert_eq!(classify(Some(status), &body), over(9000, 8192), "{body}");
                    assert_eq!(classify(None, &body), over(9000, 8192), "{body}");
                }
            }
        }
    }
}

#[test]
fn lm_studio() {
    check([
        said(
            400,
            "The number of tokens to keep from the initial prompt is greater than the context \
             length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context \
             length, or provide a shorter input.",
            over(13_055, 4096),
        ),
        said(
            400,
            "The number of tokens to keep from the initial prompt is greater than the context \
             length. Try to load the model with a larger context length, or provide a shorter input",
            over(None, None),
        ),
        said(
            400,
            "Trying to keep the first 10136 tokens when context the overflows. However, the model \
             is loaded with context length of only 7866 tokens, which is not enough. Try to load \
             the model with a larger context length, or provide a shorter input",
            over(10_136, 7866),
        ),
        said(400, "Context size has been exceeded", over(None, None)),
        said(
            400,
            "Reached context length of 32000 tokens with model (arch: gemma3) that does not \
             currently support mid-generation context overflow.",
            over(None, 32_000),
        ),
    ]);
    // Or 200 and nothing at all.
    let mut state = openai_chat::ChatStreamState::new();
    state.push("[DONE]").unwrap();
    let reply = state.finish().unwrap();
    assert!(reply.usage.is_none() && reply.parts.is_empty());
}

#[test]
fn ollama() {
    for status in [400, 500] {
        check([
            said(
                status,
                "the prompt is longer than the context length",
                over(None, None),
            ),
            said(
                status,
                "prompt too long; exceeded max context length by 4 tokens",
                over_by(4),
            ),
            said(
                status,
                "the input length exceeds the context length",
                over(None, None),
            ),
        ]);
    }
}

#[test]
fn llama_cpp_python() {
    for text in [
        "Requested tokens (516) exceed context window of 512",
        "ValueError: Requested tokens (516) exceed context window of 512",
    ] {
        check([
            said(500, text, over(516, 512)),
            said(400, text, over(516, 512)),
        ]);
    }
}

#[test]
fn ds4() {
    check([said(
        400,
        "Prompt has 5000 tokens, but the configured context size is 4096 tokens",
        over(5000, 4096),
    )]);
}

#[test]
fn litellm_itself() {
    check([
        said(
            400,
            "litellm.ContextWindowExceededError: litellm.BadRequestError: \
             ContextWindowExceededError: XException - too much",
            over(None, None),
        ),
        said(
            400,
            "litellm.ContextWindowExceededError: AnthropicError - \
             {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt \
             is too long: 213462 tokens > 200000 maximum\"}}",
            over(213_462, 200_000),
        ),
        said(
            400,
            "Context Window exceeded for given call. No context_window_fallback set in parameters",
            over(None, None),
        ),
    ]);
}

#[test]
fn writer_llama_api_and_sagemaker() {
    check([
        said(
            400,
            "this request exceeds the max_model_len of 32768",
            over(None, None),
        ),
        said(
            400,
            "Input request is too long: exceed customer model maximum",
            over(None, None),
        ),
    ]);
}

#[test]
fn throttling_and_rate_limits_are_no_overflow() {
    check([
        said(
            429,
            "Too many tokens, please wait before trying again.",
            Verdict::RateLimited,
        ),
        said(
            429,
            "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit \
             30,000, Used 29,000, Requested 2,000. Please try again in 2s.",
            Verdict::RateLimited,
        )
        .code("rate_limit_exceeded"),
        said(
            429,
            "This request would exceed the rate limit for your organization",
            Verdict::RateLimited,
        )
        .kind("rate_limit_error"),
        said(429, "Too many requests", Verdict::RateLimited),
        said(
            429,
            "The request exceeds the maximum usage size allowed during peak load.",
            Verdict::RateLimited,
        )
        .code("too_many_requests"),
    ]);
}

#[test]
fn a_field_that_is_too_long_is_no_overflow() {
    check([said(
        400,
        "Invalid 'messages[1].content': string too long. Expected a string with maximum length \
         1048576, but got a string with length 1540820 instead.",
        Verdict::Invalid,
    )
    .code("string_above_max_length")]);
}

#[test]
fn an_output_limit_that_is_too_large_is_no_overflow() {
    check([said(
        400,
        "max_tokens is too large: 6000. This model supports at most 4096 completion tokens, \
         whereas you provided 6000.",
        cap(4096),
    )
    .code("invalid_value")]);
}

#[test]
fn quota_and_billing_are_no_overflow() {
    check([
        said(
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            Verdict::QuotaExceeded,
        )
        .code("insufficient_quota")
        .kind("insufficient_quota"),
        said(
            400,
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & \
             Billing to upgrade or purchase credits.",
            Verdict::QuotaExceeded,
        ),
        said(402, "Insufficient Balance", Verdict::QuotaExceeded),
        said(
            402,
            "This request requires more credits, or fewer max_tokens. You requested up to 64000 \
             tokens, but can only afford 2000.",
            Verdict::QuotaExceeded,
        ),
        said(
            400,
            "Billing hard limit has been reached",
            Verdict::QuotaExceeded,
        )
        .code("billing_hard_limit_reached"),
    ]);
}
