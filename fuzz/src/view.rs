//! What has to hold of a view that was read from anywhere: repaired, every server accepts it.

use plimsoll_context::{Message, Part};
use plimsoll_foreign::{Chat, Reasoning, repair as repair_chat};
use plimsoll_mock::rules::{Fault, SHAPE};
use plimsoll_testkit::repair;
use plimsoll_wire::openai_chat::{Dialect, EchoReasoning, Template, ToolStyle};
use plimsoll_wire::openai_responses::ResponsesProfile;
use plimsoll_wire::{Document, Target, WireError};
use serde_json::{Value, json};

/// One model of each kind.
pub const MODELS: [&str; 8] = [
    "claude-3-5-haiku-latest",
    "claude-sonnet-4-5",
    "claude-opus-4-6",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-opus-5-5",
    "claude-fable-5-1",
    "gopher",
];

/// Every dialect, with every template.
pub fn chat_dialects() -> Vec<Dialect> {
    let named = Dialect::names().filter_map(Dialect::named);
    let mut dialects: Vec<Dialect> = named.collect();
    for template in [
        Template::Gemma,
        Template::Mistral,
        Template::Qwen,
        Template::Llama31,
    ] {
        dialects.push(Dialect::openai().with_template(template));
        dialects.push(
            Dialect::named("mistral")
                .unwrap_or_default()
                .with_template(template),
        );
    }
    dialects.push(Dialect {
        echo_reasoning: EchoReasoning::Always,
        ..Dialect::openai()
    });
    dialects.push(Dialect {
        tools: ToolStyle::JsonSchema,
        ..Dialect::compatible()
    });
    dialects
}

/// Every profile of Responses.
pub fn responses_profiles() -> Vec<ResponsesProfile> {
    vec![
        ResponsesProfile::openai(),
        ResponsesProfile::plain(),
        ResponsesProfile::compatible(),
    ]
}

/// What is done with blocks that a provider keeps to itself and that are passed through untouched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opaques {
    /// The canonicaliser takes out what would be refused.
    Kept,
    /// They go, so that closing and dropping of calls has to be enough.
    Dropped,
}

/// What `read` makes of a history that was repaired for a server. It names no model, as one that is imported.
pub fn mended(
    text: &str,
    target: &Target,
    read: impl Fn(&str) -> Result<Document, WireError>,
) -> Option<Document> {
    let mut chat = Chat::read(text, target.protocol()).ok()?;
    chat.remove_key("model");
    repair_chat(&mut chat, target, Reasoning::Keep);
    let mended = chat.write();
    Some(read(&mended).unwrap_or_else(|error| panic!("{error}\n{mended}")))
}

/// The transcript as it is sent after it was read: every call with one result, and somebody to answer.
pub fn repaired(messages: Vec<Message>, opaques: Opaques) -> Vec<Message> {
    let whole = match opaques {
        Opaques::Kept => repair(messages).messages,
        Opaques::Dropped => repair(without_opaques(messages)).messages,
    };
    let mut whole: Vec<Message> = whole.into_iter().map(|(_, message)| message).collect();
    whole.push(Message::user("Go on."));
    whole
}

fn without_opaques(mut messages: Vec<Message>) -> Vec<Message> {
    for message in &mut messages {
        let parts = match message {
            Message::System { parts } | Message::User { parts } | Message::Assistant { parts } => {
                parts
            }
            Message::ToolResult(result) => &mut result.parts,
            Message::Notice { .. } | Message::Summary { .. } => continue,
        };
        parts.retain(|part| !matches!(part, Part::Opaque(_)));
    }
    messages
}

/// A text that was read, as the request that it is: of a bare list, the list is `key`.
/// `None` for one with numbers that no machine holds.
pub fn request(text: &str, key: &str) -> Option<Value> {
    Some(match serde_json::from_str(text).ok()? {
        Value::Array(list) => json!({"model": "m", "max_tokens": 1, key: list}),
        other => other,
    })
}

/// The faults that are ours: what is passed through untouched is as misshapen as it came.
pub fn ours(faults: Vec<Fault>, before: &[Fault]) -> Vec<Fault> {
    let known: Vec<String> = before.iter().map(wording).collect();
    let passed = |fault: &Fault| fault.rule == SHAPE && known.contains(&wording(fault));
    faults.into_iter().filter(|fault| !passed(fault)).collect()
}

/// The words of a fault, wherever in the request it is.
fn wording(fault: &Fault) -> String {
    fault
        .words
        .chars()
        .filter(|c| !c.is_ascii_digit())
        .collect()
}

/// Faults for a person to read.
pub fn shown(faults: &[Fault]) -> String {
    let lines = faults
        .iter()
        .map(|fault| format!("{:?} {}: {}", fault.rule, fault.place, fault.words));
    lines.collect::<Vec<_>>().join("\n")
}
