//! Refusals of Chat Completions servers that break no rule of the request: too long, too many
//! tokens per minute, overloaded. Each server has its own error format.

use plimsoll_context::Tokens;
use plimsoll_wire::openai_chat::{Dialect, ErrorStyle};
use serde_json::{Value, json};

use super::FRAMES;
use crate::answer::HttpAnswer;
use crate::api::Size;
use crate::frames::Values;

/// Returns the server whose refusals are imitated. For an unknown name, the dialect's voice decides.
fn server(dialect: &Dialect) -> &str {
    match dialect.voice {
        _ if FRAMES.has(&dialect.name) => &dialect.name,
        ErrorStyle::OpenAi => "openai",
        ErrorStyle::DeepSeek => "deepseek",
        ErrorStyle::Template => "llama.cpp",
        ErrorStyle::Mistral => "mistral",
        ErrorStyle::Kimi => "kimi",
    }
}

/// Returns the template of a refusal that mentions the requested output.
fn with_output(dialect: &Dialect) -> String {
    format!("{}+output", server(dialect))
}

/// Checks whether the requested output must fit into the window as well.
pub(crate) fn counts_output(dialect: &Dialect) -> bool {
    FRAMES.has(&with_output(dialect))
}

/// Returns the refusal of a request that does not fit the window.
pub(crate) fn too_long(size: Size, dialect: &Dialect) -> HttpAnswer {
    let Size {
        used,
        output,
        window,
    } = size;
    let with_output = with_output(dialect);
    let frame = if output > Tokens::ZERO && FRAMES.has(&with_output) {
        with_output.as_str()
    } else {
        server(dialect)
    };
    let values = json!({
        "used": used,
        "output": output,
        "window": window,
        "requested": used + output,
        "excess": used.minus(window).max(Tokens(1)),
    });
    HttpAnswer::new(400, FRAMES.one(frame, &Values::new(&Value::Null, values)))
}

/// Returns the refusal of a request that exceeds the token limit per minute.
pub(crate) fn too_many(requested: Tokens, limit: Tokens) -> HttpAnswer {
    let values = json!({"requested": requested, "limit": limit});
    let values = Values::new(&Value::Null, values);
    HttpAnswer::new(413, FRAMES.one("too-many", &values))
}
