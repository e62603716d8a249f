//! The table of providers' error codes and texts, with their meanings. In lower case, because providers
//! change theirs. `tests/overflow.rs` contains the original texts.

use OverflowMeaning::{
    Auth, Body, Invalid, NotFound, Output, Overflow, PerMinute, Quota, RateLimited, Transient,
};

/// The meaning of a code or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverflowMeaning {
    Overflow,
    /// The output limit alone is too large; `{limit}` is the largest.
    Output,
    /// The tokens allowed per minute. They are too few for the request if `{requested}` > `{limit}`.
    PerMinute,
    Body,
    RateLimited,
    Quota,
    Auth,
    NotFound,
    Invalid,
    Transient,
}

/// A text and its meaning.
#[derive(Debug, Clone, Copy)]
pub(super) struct OverflowRow {
    pub(super) pattern: &'static str,
    pub(super) says: OverflowMeaning,
}

const fn row(says: OverflowMeaning, pattern: &'static str) -> OverflowRow {
    OverflowRow { pattern, says }
}

/// Codes, types and statuses that decide alone. Overflows come first, so that a wrapped one wins. Codes
/// with several meanings (`invalid_request_error`, `server_error`) are not included.
pub(super) const CODES: [(&str, OverflowMeaning); 64] = [
    ("context_length_exceeded", Overflow),
    ("exceed_context_size_error", Overflow),
    ("model_context_window_exceeded", Overflow),
    ("context_window_exceeded", Overflow),
    ("tokens_limit_reached", Overflow),
    // z.ai.
    ("1261", Overflow),
    ("request_too_large", Body),
    ("insufficient_quota", Quota),
    ("quota_exceeded", Quota),
    ("billing_error", Quota),
    ("billing_hard_limit_reached", Quota),
    ("insufficient_balance", Quota),
    ("payment_required", Quota),
    ("rate_limit_exceeded", RateLimited),
    ("rate_limit_error", RateLimited),
    ("rate_limited", RateLimited),
    ("too_many_requests", RateLimited),
    ("no_capacity", RateLimited),
    ("throttlingexception", RateLimited),
    ("toomanyrequestsexception", RateLimited),
    ("resource_exhausted", RateLimited),
    ("invalid_api_key", Auth),
    ("incorrect_api_key", Auth),
    ("api_key_invalid", Auth),
    ("authentication_error", Auth),
    ("invalid_authentication_error", Auth),
    ("permission_error", Auth),
    ("permission_denied", Auth),
    ("unauthenticated", Auth),
    ("accessdeniedexception", Auth),
    ("unrecognizedclientexception", Auth),
    ("model_not_found", NotFound),
    ("not_found_error", NotFound),
    ("resourcenotfoundexception", NotFound),
    ("string_above_max_length", Invalid),
    ("content_filter", Invalid),
    ("content_policy_violation", Invalid),
    ("invalid_function_call", Invalid),
    ("invalid_function_parameters", Invalid),
    ("unsupported_country_region_territory", Invalid),
    ("invalid_request_message_order", Invalid),
    // OpenAI Responses, also in the middle of a stream.
    ("invalid_prompt", Invalid),
    ("invalid_image", Invalid),
    ("invalid_image_format", Invalid),
    ("invalid_base64_image", Invalid),
    ("invalid_image_url", Invalid),
    ("invalid_image_mode", Invalid),
    ("image_too_large", Invalid),
    ("image_too_small", Invalid),
    ("image_parse_error", Invalid),
    ("image_content_policy_violation", Invalid),
    ("image_file_too_large", Invalid),
    ("unsupported_image_media_type", Invalid),
    ("empty_image_file", Invalid),
    ("image_file_not_found", Invalid),
    ("bio_policy", Invalid),
    ("misalignment_policy_violation", Invalid),
    ("data_residency_mismatch", Invalid),
    ("invalid_encrypted_content", Invalid),
    ("overloaded_error", Transient),
    ("unavailable", Transient),
    ("unavailable_error", Transient),
    ("serviceunavailableexception", Transient),
    ("modelnotreadyexception", Transient),
];

/// Texts that look like an overflow, or like a temporary fault, and are neither.
pub(super) const LOOKALIKES: [OverflowRow; 53] = [
    // One request that exceeds the tokens per minute, or many requests that together do.
    row(
        PerMinute,
        "request too large for*limit {limit}, requested {requested}",
    ),
    row(
        PerMinute,
        "tokens per min*limit {limit}, *requested {requested}",
    ),
    // Anthropic: only the limit.
    row(PerMinute, "would exceed*of {limit} input tokens per min"),
    row(RateLimited, "too many tokens, please wait"),
    row(RateLimited, "tokens per min"),
    row(RateLimited, "rate limit"),
    row(RateLimited, "ratelimit"),
    row(RateLimited, "too many requests"),
    row(RateLimited, "throttlingexception"),
    // Azure under load.
    row(RateLimited, "usage size allowed during peak load"),
    row(Quota, "exceeded your current quota"),
    row(Quota, "credit balance is too low"),
    row(Quota, "insufficient balance"),
    row(Quota, "insufficient credits"),
    row(Quota, "requires more credits"),
    row(Quota, "billing hard limit"),
    row(Auth, "api key not valid"),
    row(Auth, "incorrect api key"),
    row(Auth, "invalid api key"),
    row(NotFound, "model*does not exist"),
    row(NotFound, "model*not found, try pulling it first"),
    row(NotFound, "is not a valid model id"),
    // The output limit, without the request's size. vLLM's "must be at least 1" does not belong here.
    row(
        Output,
        "max_tokens is too large: {requested}. this model supports at most {limit}",
    ),
    row(
        Output,
        "max_completion_tokens is too large: {requested}. this model supports at most {limit}",
    ),
    row(
        Output,
        "max_tokens: {requested} must be less than or equal to {limit}",
    ),
    row(Output, "max_tokens: {requested} must be less than {limit}"),
    row(
        Output,
        "max_tokens: {requested} > {limit}, which is the maximum allowed number of output",
    ),
    row(
        Output,
        "max_tokens` must be less than or equal to `{limit}`",
    ),
    row(
        Output,
        "max_completion_tokens` must be less than or equal to `{limit}`",
    ),
    // Bedrock; some of its models use "exceed".
    row(
        Output,
        "maximum tokens you requested exceed*the model limit of {limit}",
    ),
    row(Output, "valid range of max_tokens is [1, {limit}]"),
    row(Output, "range of max_tokens should be [1, {limit}]"),
    row(
        Output,
        "max_output_tokens': integer above maximum value. expected a value <= {limit}",
    ),
    // About a field, not the request.
    row(
        Invalid,
        "string too long. expected a string with maximum length",
    ),
    // Answered with 500 by servers that run a template: the same request fails again.
    row(Invalid, "jinja exception"),
    // Any fault of a tool's schema.
    row(Invalid, "invalid schema for function"),
    row(Invalid, "failed to parse tool call arguments as json"),
    row(Invalid, "json.exception.parse_error"),
    row(Invalid, "image input is not supported"),
    row(Invalid, "failed to parse messages"),
    // tidy:allow(conversation)
    row(Invalid, "conversation roles must alternate"),
    row(Invalid, "no user query found in messages"),
    row(Invalid, "system message must be at the beginning"),
    row(Invalid, "only supports single tool-calls at once"),
    row(Invalid, "assistant response prefill is incompatible"),
    row(
        Invalid,
        "must be followed by tool messages responding to each",
    ),
    row(Invalid, "must be a response to a prece"),
    row(Invalid, "reasoning_content is missing"),
    row(
        Invalid,
        "`reasoning_content` in the thinking mode must be passed back",
    ),
    // OpenAI Responses; the last with 404.
    row(Invalid, "no tool output found for"),
    row(Invalid, "no tool call found for"),
    row(Invalid, "was provided without its required"),
    row(Invalid, "items are not persisted when `store`"),
];

/// Providers' own texts. If one text begins with another, the one with more numbers comes first.
pub(super) const PROVIDERS: [OverflowRow; 69] = [
    // OpenAI, DeepSeek, vLLM.
    row(
        Overflow,
        "maximum context length is {window} tokens*requested {total} tokens ({used} in the messages, {output} in the completion",
    ),
    row(
        Overflow,
        "maximum context length is {window} tokens*messages resulted in {used} tokens",
    ),
    // vLLM stops counting when the request is too large, so "at least" is not the size of the request.
    row(
        Overflow,
        "maximum context length is {window} tokens*requested {output} output tokens and your prompt contains at least",
    ),
    row(
        Overflow,
        "maximum context length is {window} tokens*requested {output} output tokens and your prompt contains {used} input tokens",
    ),
    row(
        Overflow,
        "is too large: {output}. this model's maximum context length is {window} tokens and your request has {used} input tokens",
    ),
    row(
        Overflow,
        "maximum context length is {window} tokens*request has {used} input tokens",
    ),
    // OpenRouter.
    row(
        Overflow,
        "maximum context length is {window} tokens*requested about {total} tokens ({used} of text input, {tool} of tool input, {output} in the output",
    ),
    row(
        Overflow,
        "maximum context length is {window} tokens*requested about {total} tokens ({used} of text input, {output} in the output",
    ),
    row(
        Overflow,
        "maximum context length is {window} tokens*requested about {total} tokens ({used} of text input, {tool} of tool input",
    ),
    row(
        Overflow,
        "maximum context length is {window} tokens*requested about {total} tokens",
    ),
    row(
        Overflow,
        "maximum context length is {window} tokens*requested {total} tokens",
    ),
    row(Overflow, "maximum context length is {window} tokens"),
    row(
        Overflow,
        "input tokens exceed the configured limit of {window} tokens*messages resulted in {used} tokens",
    ),
    row(
        Overflow,
        "input tokens exceed the configured limit of {window} tokens",
    ),
    row(Overflow, "exceeds the context window of this model"),
    // Azure.
    row(
        Overflow,
        "prompt tokens ({used}) exceed model maximum ({window})",
    ),
    // Anthropic, Bedrock.
    row(
        Overflow,
        "prompt is too long: {used} tokens > {window} maximum",
    ),
    // Ollama's cloud.
    row(
        Overflow,
        "prompt is too long: {used}, model maximum context length: {window}",
    ),
    row(Overflow, "prompt is too long"),
    row(
        Overflow,
        "exceed context limit: {used} + {output} > {window}",
    ),
    row(
        Overflow,
        "input length and `max_tokens` exceed context limit",
    ),
    row(Overflow, "input is too long for requested model"),
    row(
        Overflow,
        "too many input tokens. max input tokens: {window}, request input token count: {used}",
    ),
    row(Overflow, "too many total text bytes"),
    row(Overflow, "expected maxlength"),
    // Gemini, Vertex.
    row(
        Overflow,
        "input token count ({used}) exceeds the maximum number of tokens allowed ({window})",
    ),
    row(
        Overflow,
        "input token count exceeds the maximum number of tokens allowed {window}",
    ),
    row(
        Overflow,
        "input token count*exceeds the maximum number of tokens allowed",
    ),
    row(
        Overflow,
        "input token count is {used} but model only supports up to {window}",
    ),
    // SGLang.
    row(
        Overflow,
        "maximum context length of {window} tokens*total of {total} tokens: {used} tokens from the input messages and {output} tokens for the completion",
    ),
    row(
        Overflow,
        "input length ({used}) exceeds model's maximum context length ({window})",
    ),
    // xAI.
    row(
        Overflow,
        "maximum prompt length is {window} but the request contains {used} tokens",
    ),
    // GitHub Models, GitHub Copilot.
    row(
        Overflow,
        "request body too large for*max size: {window} tokens",
    ),
    row(
        Overflow,
        "prompt token count of {used} exceeds the limit of {window}",
    ),
    // Mistral.
    row(
        Overflow,
        "prompt contains {used} tokens*too large for model with {window} maximum context length",
    ),
    // Together.
    row(
        Overflow,
        "the input ({used} tokens) is longer than the model's context length ({window} tokens)",
    ),
    // Cerebras.
    row(Overflow, "current length is {used} while limit is {window}"),
    // Kimi.
    row(
        Overflow,
        "exceeded model token limit: {window} (requested: {used})",
    ),
    // MiniMax.
    row(Overflow, "context window exceeds limit"),
    // z.ai.
    row(Overflow, "prompt exceeds max length"),
    row(
        Overflow,
        "prompt too long; exceeded max context length by {excess} tokens",
    ),
    row(Overflow, "prompt too long"),
    // DashScope.
    row(Overflow, "range of input length should be [1, {window}]"),
    // Poolside.
    row(
        Overflow,
        "input length {used} exceeds the maximum allowed input length of {window} tokens",
    ),
    // Text Generation Inference.
    row(
        Overflow,
        "`inputs` tokens + `max_new_tokens` must be <= {window}. given: {used} `inputs` tokens and {output} `max_new_tokens`",
    ),
    // vLLM when the prompt alone fills the window.
    row(Overflow, "max_tokens must be at least 1, got -{excess}"),
    // The passed tokens are only the count at which it stopped: one more than would fit.
    row(
        Overflow,
        "you passed*requested {output} output tokens*context length is only {window} tokens",
    ),
    row(Overflow, "context length is only {window} tokens"),
    // llama.cpp.
    row(
        Overflow,
        "request ({used} tokens) exceeds the available context size ({window} tokens)",
    ),
    row(Overflow, "exceeds the available context size"),
    // LM Studio.
    row(
        Overflow,
        "greater than the context length (n_keep: {used}>= n_ctx: {window})",
    ),
    row(
        Overflow,
        "number of tokens to keep from the initial prompt is greater than the context length",
    ),
    row(
        Overflow,
        "trying to keep the first {used} tokens when context the overflows*context length of only {window} tokens",
    ),
    row(Overflow, "context size has been exceeded"),
    row(Overflow, "reached context length of {window} tokens"),
    // Ollama.
    row(Overflow, "the prompt is longer than the context length"),
    row(Overflow, "the input length exceeds the context length"),
    // llama-cpp-python.
    row(
        Overflow,
        "requested tokens ({used}) exceed context window of {window}",
    ),
    // Cohere.
    row(
        Overflow,
        "tokens in the prompt cannot exceed {window} - received {used}",
    ),
    row(Overflow, "tokens in the prompt cannot exceed {window}"),
    // Workers AI.
    row(
        Overflow,
        "input and maximum output tokens ({total}) exceeded this model context window limit ({window})",
    ),
    // DS4.
    row(
        Overflow,
        "prompt has {used} tokens, but the configured context size is {window} tokens",
    ),
    // LiteLLM, after the texts that it wraps.
    row(Overflow, "contextwindowexceedederror"),
    row(Overflow, "context window exceeded for given call"),
    // Writer, LlamaAPI, SageMaker.
    row(Overflow, "exceeds the max_model_len"),
    row(Overflow, "exceed customer model maximum"),
    // Bytes, not tokens: Anthropic, Vertex, Copilot.
    row(Body, "request exceeds the maximum size"),
    row(Body, "request payload size exceeds the limit"),
    row(Body, "request entity too large"),
];

/// Likely texts of unknown servers.
pub(super) const GENERAL: [OverflowRow; 13] = [
    row(Overflow, "please reduce the length of the messages"),
    row(Overflow, "context length exceeded"),
    row(Overflow, "context_length_exceeded"),
    row(Overflow, "exceeds*context length"),
    row(Overflow, "exceeded*context length"),
    row(Overflow, "exceeds*context window"),
    row(Overflow, "exceeded*context window"),
    row(Overflow, "exceeds*context size"),
    row(Overflow, "longer than*context"),
    row(Overflow, "maximum context length"),
    row(Overflow, "too many input tokens"),
    row(Overflow, "too many tokens"),
    row(Overflow, "length of all messages is too long"),
];
