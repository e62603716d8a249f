//! How servers of Chat Completions refuse what breaks no rule: too long, too much for a minute, down.
//! Each in its own words. When they do is not decided here.

use plimsoll_context::Tokens;
use plimsoll_wire::openai_chat::{Dialect, Voice};
use serde_json::json;

use crate::answer::Answer;
use crate::api::Size;

/// Whether the output that is asked for has to fit into the window too.
pub(crate) fn counts_output(dialect: &Dialect) -> bool {
    matches!(dialect.voice, Voice::OpenAi | Voice::DeepSeek)
}

/// The refusal of a request that does not fit the window.
pub(crate) fn too_long(size: Size, dialect: &Dialect) -> Answer {
    let Size {
        used,
        output,
        window,
    } = size;
    let body = match dialect.voice {
        Voice::Template => json!({"error": {
            "code": 400,
            "message": format!("request ({used} tokens) exceeds the available context size ({window} tokens), try increasing it"),
            "type": "exceed_context_size_error",
            "n_prompt_tokens": used,
            "n_ctx": window,
        }}),
        Voice::Mistral => json!({
            "object": "error",
            "message": format!("Prompt contains {used} tokens and 0 draft tokens, too large for model with {window} maximum context length"),
            "type": "invalid_request_prompt",
            "param": null,
            "code": "3051",
        }),
        Voice::Kimi => json!({"error": {
            "message": format!("Invalid request: Your request exceeded model token limit: {window} (requested: {used})"),
            "type": "invalid_request_error",
        }}),
        Voice::OpenAi | Voice::DeepSeek => {
            let words = match output {
                Tokens::ZERO => format!(
                    "your messages resulted in {used} tokens. Please reduce the length of the messages."
                ),
                output => format!(
                    "you requested {} tokens ({used} in the messages, {output} in the completion). Please reduce the length of the messages or completion.",
                    used + output
                ),
            };
            json!({"error": {
                "message": format!("This model's maximum context length is {window} tokens. However, {words}"),
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }})
        }
    };
    Answer::new(400, body)
}

/// The refusal of a request of more tokens than may be sent in a minute, as Groq words it.
pub(crate) fn too_many(asked: Tokens, limit: Tokens) -> Answer {
    let message = format!(
        "Request too large for model `mock` in organization `org_mock` service tier `on_demand` on tokens per minute (TPM): Limit {limit}, Requested {asked}, please reduce your message size and try again."
    );
    let error = json!({"message": message, "type": "tokens", "code": "rate_limit_exceeded"});
    Answer::new(413, json!({ "error": error }))
}

/// A failure that the script asks for.
pub(crate) fn failure(status: u16, message: Option<&str>) -> Answer {
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
    Answer::new(status, json!({ "error": error }))
}
