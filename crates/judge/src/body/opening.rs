//! Who opened the tool loop that is under way: while a model is told to think with a budget, the loop
//! begins with thinking (AM9). Keeps nothing; `cut.rs` does.

use plimsoll_context::{Message, Part};
use plimsoll_wire::Document;
use serde_json::Value;

/// The assistant's message that began the loop under way with thinking; `None` where none is under
/// way, it began without, or nobody is told to think.
pub(super) fn of(document: &Document<'_>, messages: &[Message]) -> Option<usize> {
    let thinking: Value = serde_json::from_str(document.key("thinking")?).ok()?;
    if thinking.get("type")? != "enabled" {
        return None;
    }
    let mut began = None;
    let mut end = messages.len();
    loop {
        let (from, answers) = entry(document, messages, end)?;
        let is_result = |message: &Message| matches!(message, Message::ToolResult(_));
        if !answers.iter().any(is_result) {
            break;
        }
        match entry(document, messages, from) {
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
    document: &Document<'_>,
    messages: &'m [Message],
    end: usize,
) -> Option<(usize, &'m [Message])> {
    let last = document.spans.get(end.checked_sub(1)?)?;
    let spans = document.spans.get(..end)?.iter().rev();
    let count = spans
        .take_while(|span| span.entries == last.entries)
        .count();
    let from = end - count;
    let messages = (!last.is_beside()).then_some(messages)?;
    Some((from, messages.get(from..end)?))
}
