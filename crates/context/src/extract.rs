//! [`extract`]: a summary without a model, made only of what was said and done, word for word.
//! Not a judgement of what it means, and nothing that a model wrote for it.

use crate::counter::TokenCounter;
use crate::message::Message;
use crate::tokens::Tokens;

/// What the section of the user's words is called.
const SAID: &str = "## User said";
/// What the section of tool calls is called.
const CALLS: &str = "## Tool calls";
/// Longest signature of a tool call, in characters.
const CALL_MAX: usize = 160;

/// What stands for `messages` (those that leave the view, in order) where no model sums them up:
/// at most `max` tokens by `counter`. The same messages give the same bytes. `None` where nothing
/// is worth saying or `max` is too small.
#[must_use]
pub fn extract(messages: &[&Message], max: Tokens, counter: &dyn TokenCounter) -> Option<String> {
    let mut said = Vec::new();
    let mut calls = Vec::new();
    for message in messages {
        match message {
            Message::User { .. } => said.push(message.text()),
            Message::Summary { text } => said.push(text.clone()),
            Message::Assistant { .. } => calls.extend(message.calls().map(|call| {
                let line = format!("{} {}", call.name, call.arguments);
                let plain = line.split_whitespace().collect::<Vec<_>>().join(" ");
                plain.chars().take(CALL_MAX).collect::<String>()
            })),
            _ => {}
        }
    }
    let mut room = max.0;
    let mut out = String::new();
    for (heading, lines) in [(SAID, said), (CALLS, calls)] {
        let head = counter.text(heading).0 + 2;
        let Some(left) = room.checked_sub(head) else {
            continue;
        };
        let mut left = left;
        let mut kept = Vec::new();
        for line in lines.iter().rev().filter(|line| !line.trim().is_empty()) {
            let line = format!("- {}\n", line.trim());
            let Some(after) = left.checked_sub(counter.text(&line).0) else {
                continue;
            };
            left = after;
            kept.push(line);
        }
        if !kept.is_empty() {
            room = left;
            out.push_str(heading);
            out.push('\n');
            out.extend(kept.into_iter().rev());
        }
    }
    (!out.is_empty() && counter.text(&out) <= max).then_some(out)
}
