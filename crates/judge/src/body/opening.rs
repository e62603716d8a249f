//! Who opened the tool loop that is under way: while a model is told to think with a budget, the loop
//! begins with thinking (AM9). Keeps nothing; `cut.rs` does.

use plimsoll_context::{Message, Part};
use plimsoll_wire::anthropic::Chat;
use serde_json::Value;

/// The assistant's message that began the loop under way with thinking; `None` where none is under
/// way, it began without, or nobody is told to think.
pub(super) fn of(chat: &Chat<'_>, messages: &[Message]) -> Option<usize> {
    let thinking: Value = serde_json::from_str(chat.key("thinking")?).ok()?;
    if thinking.get("type")? != "enabled" {
        return None;
    }
    let mut began = None;
    let mut end = messages.len();
    loop {
        let (from, answers) = entry(chat, messages, end)?;
        let is_result = |message: &Message| matches!(message, Message::ToolResult(_));
        if !answers.iter().any(is_result) {
            break;
        }
        match entry(chat, messages, from) {
            Some((at, [Message::Assistant { parts }])) => {
                began = Some((at, parts));
                end = at;
            }
            _ => break,
        }
    }
    let (at, parts) = began?;
    matches!(parts.first(), Some(Part::Thinking(_))).then_some(at)
}

/// The messages that stand in the request's message before `end`, and where they begin.
fn entry<'m>(
    chat: &Chat<'_>,
    messages: &'m [Message],
    end: usize,
) -> Option<(usize, &'m [Message])> {
    let number = (*chat.from.get(end.checked_sub(1)?)?)?;
    let from = chat.from.partition_point(|from| *from < Some(number));
    Some((from, messages.get(from..end)?))
}
