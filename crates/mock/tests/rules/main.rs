//! The requests that servers refuse, and those that our protocols render: by cases, by properties and by
//! recorded sessions.

mod anthropic_normalized;
mod anthropic_properties;
mod anthropic_render;
mod anthropic_thinking;
mod anthropic_validate;
mod bedrock_validate;
mod blank_results;
mod cache;
mod custom_tools;
mod damage;
mod damaged;
mod details;
mod dialects;
mod every_dialect;
mod exceptions;
mod found;
mod gemini_converse_properties;
mod gemini_validate;
mod hosted;
mod names_and_ids;
mod normalized;
mod openai_chat_settings;
mod openai_responses_properties;
mod openai_responses_render;
mod openai_responses_validate;
mod properties;
mod render;
mod rules;
mod sample_chats;
mod unique_ids;
mod validate;

use plimsoll_wire::openai_chat::Dialect;
use serde_json::{Value, json};

fn named(name: &str) -> Dialect {
    Dialect::named(name).unwrap()
}

/// A message of the user, on the protocols that write it alike.
fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// An answer without calls, on the protocols that write it alike.
fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}
