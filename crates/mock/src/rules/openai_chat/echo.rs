//! Checks whether reasoning is sent back if the server requires it: OC6. Part of the validator.

use plimsoll_wire::openai_chat::{EchoReasoning, EmptyReasoning, ErrorStyle};
use serde_json::Value;

use super::validate::{ChatCheck, calls, role};

/// Judges a list of messages.
pub(super) fn check(check: &mut ChatCheck<'_>, messages: &[Value]) {
    match check.profile.echo_reasoning {
        EchoReasoning::Never => {}
        EchoReasoning::ToolTurns => {
            let all = messages.iter().enumerate();
            all.filter(|(_, message)| !calls(message).is_empty())
                .for_each(|(index, message)| missing(check, index, message));
        }
        EchoReasoning::ToolExchanges => {
            let mut from = 0;
            for exchange in messages.split(|message| role(message) == "user") {
                if exchange.iter().any(|message| !calls(message).is_empty()) {
                    all(check, from, exchange);
                }
                from += exchange.len() + 1;
            }
        }
        EchoReasoning::Always => all(check, 0, messages),
    }
}

/// Judges all assistant messages.
fn all(check: &mut ChatCheck<'_>, from: usize, messages: &[Value]) {
    for (index, message) in messages.iter().enumerate() {
        if role(message) == "assistant" {
            missing(check, from + index, message);
        }
    }
}

fn missing(check: &mut ChatCheck<'_>, index: usize, message: &Value) {
    let dialect = check.profile;
    let is_echoed = match message.get("reasoning_content") {
        Some(Value::String(text)) => {
            !text.is_empty() || dialect.empty_reasoning != EmptyReasoning::Space
        }
        _ => dialect.empty_reasoning == EmptyReasoning::Omit,
    };
    if is_echoed {
        return;
    }
    let refusal = match dialect.voice {
        ErrorStyle::Kimi => "no-reasoning-kimi",
        _ => "no-reasoning",
    };
    let place = format!("messages[{index}].reasoning_content");
    check.report(refusal, place, &[&index]);
}
