//! Refusals of Chat Completions servers that break no rule of the request: too long, too many
//! tokens per minute, overloaded. Each server has its own error format.

use plimsoll_context::Tokens;
use plimsoll_wire::openai_chat::{Dialect, ErrorStyle};
use serde_json::{Value, json};

use crate::answer::HttpAnswer;
use crate::api::Size;

/// The server whose error format is used for a request that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EmulatedServer {
    OpenAi,
    DeepSeek,
    Vllm,
    OpenRouter,
    LlamaCpp,
    Ollama,
    LmStudio,
    Mistral,
    Kimi,
    Groq,
    Xai,
    Together,
    Cohere,
}

impl EmulatedServer {
    /// Returns the server by the dialect's name. For an unknown name, the dialect's voice decides.
    fn of(dialect: &Dialect) -> Self {
        match dialect.name.as_str() {
            "vllm" => Self::Vllm,
            "openrouter" => Self::OpenRouter,
            "ollama" => Self::Ollama,
            "lmstudio" => Self::LmStudio,
            "groq" => Self::Groq,
            "xai" => Self::Xai,
            "together" => Self::Together,
            "cohere" => Self::Cohere,
            _ => match dialect.voice {
                ErrorStyle::OpenAi => Self::OpenAi,
                ErrorStyle::DeepSeek => Self::DeepSeek,
                ErrorStyle::Template => Self::LlamaCpp,
                ErrorStyle::Mistral => Self::Mistral,
                ErrorStyle::Kimi => Self::Kimi,
            },
        }
    }
}

/// Checks whether the requested output must fit into the window as well.
pub(crate) fn counts_output(dialect: &Dialect) -> bool {
    matches!(
        EmulatedServer::of(dialect),
        EmulatedServer::OpenAi
            | EmulatedServer::DeepSeek
            | EmulatedServer::Vllm
            | EmulatedServer::OpenRouter
    )
}

/// Returns the refusal of a request that does not fit the window.
pub(crate) fn too_long(size: Size, dialect: &Dialect) -> HttpAnswer {
    let Size {
        used,
        output,
        window,
    } = size;
    let limit = (output > Tokens::ZERO).then_some(output);
    let body = match EmulatedServer::of(dialect) {
        EmulatedServer::OpenAi => {
            let mut body = error(
                &match limit {
                    None => format!(
                        "This model's maximum context length is {window} tokens. However, your \
                         messages resulted in {used} tokens. Please reduce the length of the \
                         messages."
                    ),
                    Some(output) => requested(used, output, window),
                },
                "invalid_request_error",
                json!("context_length_exceeded"),
            );
            if let Some(error) = body.get_mut("error").and_then(Value::as_object_mut) {
                error.insert("param".into(), "messages".into());
            }
            body
        }
        // DeepSeek mentions the completion even if no output limit was requested.
        EmulatedServer::DeepSeek => error(
            &requested(used, output, window),
            "invalid_request_error",
            json!("invalid_request_error"),
        ),
        EmulatedServer::Vllm => error(
            &match limit {
                None => format!(
                    "This model's maximum context length is {window} tokens. However, your request \
                     has {used} input tokens. Please reduce the length of the input messages."
                ),
                Some(output) => requested(used, output, window),
            },
            "BadRequestError",
            json!(400),
        ),
        EmulatedServer::OpenRouter => open_router(size),
        EmulatedServer::LlamaCpp => json!({"error": {
            "code": 400,
            "message": format!("request ({used} tokens) exceeds the available context size ({window} tokens), try increasing it"),
            "type": "exceed_context_size_error",
            "n_prompt_tokens": used,
            "n_ctx": window,
        }}),
        // Ollama only reports the excess.
        EmulatedServer::Ollama => {
            let excess = used.minus(window).max(Tokens(1));
            let words = format!("prompt too long; exceeded max context length by {excess} tokens");
            error(&words, "invalid_request_error", Value::Null)
        }
        EmulatedServer::LmStudio => json!({"error": format!(
            "The number of tokens to keep from the initial prompt is greater than the context length \
             (n_keep: {used}>= n_ctx: {window}). Try to load the model with a larger context length, \
             or provide a shorter input."
        )}),
        EmulatedServer::Mistral => json!({
            "object": "error",
            "message": format!("Prompt contains {used} tokens and 0 draft tokens, too large for model with {window} maximum context length"),
            "type": "invalid_request_invalid_args",
            "param": null,
            "code": "3051",
        }),
        EmulatedServer::Kimi => json!({"error": {
            "message": format!("Invalid request: Your request exceeded model token limit: {window} (requested: {used})"),
            "type": "invalid_request_error",
        }}),
        // Groq reports no numbers.
        EmulatedServer::Groq => error(
            "Please reduce the length of the messages or completion.",
            "invalid_request_error",
            json!("context_length_exceeded"),
        ),
        EmulatedServer::Xai => json!({
            "code": "Client specified an invalid argument",
            "error": format!("This model's maximum prompt length is {window} but the request contains {used} tokens."),
        }),
        EmulatedServer::Together => {
            let words = format!(
                "The input ({used} tokens) is longer than the model's context length ({window} \
                 tokens)."
            );
            error(&words, "invalid_request_error", Value::Null)
        }
        EmulatedServer::Cohere => json!({"message": format!(
            "too many tokens: total number of tokens in the prompt cannot exceed {window} - \
             received {used}. Try using a shorter prompt, or enabling prompt truncating."
        )}),
    };
    HttpAnswer::new(400, body)
}

/// Returns the message of several servers for a request with an output limit.
fn requested(used: Tokens, output: Tokens, window: Tokens) -> String {
    format!(
        "This model's maximum context length is {window} tokens. However, you requested {} tokens \
         ({used} in the messages, {output} in the completion). Please reduce the length of the \
         messages or completion.",
        used + output
    )
}

/// Returns the error of OpenRouter, which counts before it calls a provider.
fn open_router(size: Size) -> Value {
    let Size {
        used,
        output,
        window,
    } = size;
    let (split, cure) = match output {
        Tokens::ZERO => (
            format!("({used} of text input)"),
            "Please reduce the length of either one.",
        ),
        output => (
            format!("({used} of text input, {output} in the output)"),
            "Please reduce the length of either one, or use the \"middle-out\" transform to \
             compress your prompt automatically.",
        ),
    };
    let message = format!(
        "This endpoint's maximum context length is {window} tokens. However, you requested about {} \
         tokens {split}. {cure}",
        used + output
    );
    json!({"error": {"message": message, "code": 400, "metadata": {"provider_name": null}}})
}

fn error(message: &str, kind: &str, code: Value) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

/// Returns the refusal of a request that exceeds the token limit per minute, in Groq's format.
pub(crate) fn too_many(requested: Tokens, limit: Tokens) -> HttpAnswer {
    let message = format!(
        "Request too large for model `mock` in organization `org_mock` service tier `on_demand` on tokens per minute (TPM): Limit {limit}, Requested {requested}, please reduce your message size and try again."
    );
    let error = json!({"message": message, "type": "tokens", "code": "rate_limit_exceeded"});
    HttpAnswer::new(413, json!({ "error": error }))
}

/// Returns a failure from the script.
pub(crate) fn failure(status: u16, message: Option<&str>) -> HttpAnswer {
    let words = match status {
        401 | 403 => "Incorrect API key provided.",
        429 => "Rate limit reached for requests.",
        503 => "The server is overloaded or not ready yet.",
        _ => "The server had an error while processing your request.",
    };
    let kind = match status {
        401 | 403 => "authentication_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    let message = message.unwrap_or(words);
    let error = json!({"message": message, "type": kind, "param": null, "code": null});
    HttpAnswer::new(status, json!({ "error": error }))
}
