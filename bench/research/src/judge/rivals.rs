//! The rivals of `extract`: the agent's own summary (from the recording), and a mechanical rule
//! that fits one paragraph. It is meant to be fair, not good.

use plimsoll_context::{Message, TokenCounter, Tokens};

/// Maximum length of a call's signature, in characters.
const SIGNATURE_MAX: usize = 300;

/// Collects the user's text and the signatures of tool calls, newest first, until the budget is
/// full. The last text is cut to fit. The output is in chronological order.
pub(super) fn mechanical(messages: &[&Message], max: Tokens, counter: &dyn TokenCounter) -> String {
    let mut lines = Vec::new();
    let mut left = max.0;
    'all: for message in messages.iter().rev() {
        let texts: Vec<String> = match message {
            Message::User { .. } => vec![format!("User: {}\n", message.text())],
            Message::Assistant { .. } => {
                let calls = message.calls().map(|call| {
                    let line = format!("{}({})", call.name, call.arguments);
                    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
                    let line: String = line.chars().take(SIGNATURE_MAX).collect();
                    line + "\n"
                });
                calls.collect::<Vec<_>>().into_iter().rev().collect()
            }
            _ => continue,
        };
        for text in texts {
            match left.checked_sub(counter.text(&text).0) {
                Some(after) => {
                    left = after;
                    lines.push(text);
                }
                None => {
                    lines.extend(plimsoll_context::head_tail_tokens(
                        &text,
                        Tokens(left),
                        counter,
                    ));
                    break 'all;
                }
            }
        }
    }
    lines.reverse();
    lines.concat()
}
