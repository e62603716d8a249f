//! The requests that servers refuse, and those that our protocols render: by cases, by properties and by
//! recorded sessions.

mod anthropic_normalized;
mod anthropic_properties;
mod anthropic_render;
mod anthropic_thinking;
mod any_json;
mod blank_results;
mod cache;
mod cases;
mod custom_tools;
mod damage;
mod damaged;
mod details;
mod every_dialect;
mod exceptions;
mod found;
mod gemini_converse_properties;
mod hosted;
mod names_and_ids;
mod normalized;
mod openai_responses_properties;
mod openai_responses_ties;
mod properties;
mod rules;
mod sample_chats;
mod server;
mod unique_ids;

use plimsoll_wire::openai_chat::Dialect;
use serde_json::{Value, json};

fn named(name: &str) -> Dialect {
    Dialect::named(name).unwrap()
}

/// A message of the user, on the protocols that write it alike.
fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}
