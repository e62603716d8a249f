//! Refusals of Chat Completions servers that break no rule of the request: too long, too many
//! tokens per minute, overloaded. Each server has its own error format.

use plimsoll_context::Tokens;
use plimsoll_wire::openai_chat::{Dialect, ErrorStyle};
use serde_json::{Value, json};

use crate::answer::HttpAnswer;
use crate::api::Size;

/// The refusals of requests that are too long: `server => body` or, for a request with an output limit,
/// `server+output => body`.
const TOO_LONG: &str = include_str!("../../rules/too_long.txt");

/// Returns the server whose refusals are imitated. For an unknown name, the dialect's voice decides.
fn server(dialect: &Dialect) -> &str {
    match dialect.name.as_str() {
        name @ ("vllm" | "openrouter" | "ollama" | "lmstudio" | "groq" | "xai" | "together"
        | "cohere") => name,
        _ => match dialect.voice {
            ErrorStyle::OpenAi => "openai",
            ErrorStyle::DeepSeek => "deepseek",
            ErrorStyle::Template => "llama.cpp",
            ErrorStyle::Mistral => "mistral",
            ErrorStyle::Kimi => "kimi",
        },
    }
}

/// Checks whether the requested output must fit into the window as well.
pub(crate) fn counts_output(dialect: &Dialect) -> bool {
    matches!(
        server(dialect),
        "openai" | "deepseek" | "vllm" | "openrouter"
    )
}

/// Returns the refusal of a request that does not fit the window.
pub(crate) fn too_long(size: Size, dialect: &Dialect) -> HttpAnswer {
    let Size {
        used,
        output,
        window,
    } = size;
    let server = server(dialect);
    let with_output = format!("{server}+output");
    let body = |name: &str| {
        let mut lines = TOO_LONG.lines().filter_map(|line| line.split_once(" => "));
        lines.find_map(|(known, body)| (known == name).then_some(body))
    };
    let asks = (output > Tokens::ZERO).then_some(with_output.as_str());
    let mut text = asks
        .and_then(body)
        .or_else(|| body(server))
        .unwrap_or_default()
        .to_owned();
    for (name, tokens) in [
        ("<used>", used),
        ("<output>", output),
        ("<window>", window),
        ("<requested>", used + output),
        ("<excess>", used.minus(window).max(Tokens(1))),
    ] {
        text = text.replace(name, &tokens.to_string());
    }
    HttpAnswer::new(400, serde_json::from_str(&text).unwrap_or(Value::Null))
}

/// Returns the refusal of a request that exceeds the token limit per minute, in Groq's format.
pub(crate) fn too_many(requested: Tokens, limit: Tokens) -> HttpAnswer {
    let message = format!(
        "Request too large for model `mock` in organization `org_mock` service tier `on_demand` on tokens per minute (TPM): Limit {limit}, Requested {requested}, please reduce your message size and try again."
    );
    let error = json!({"message": message, "type": "tokens", "code": "rate_limit_exceeded"});
    HttpAnswer::new(413, json!({ "error": error }))
}
