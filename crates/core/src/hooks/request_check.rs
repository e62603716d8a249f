//! Checks the messages of a request that a hook has rewritten.

use std::collections::HashSet;
use std::sync::Arc;

use plimsoll_agent::Messages;
use plimsoll_context::{CallId, Message};

/// Checks whether a provider accepts these messages, as far as that can be known here.
pub(super) fn check(messages: &Messages) -> Result<(), String> {
    check_pairs(messages)?;
    match messages.last().map(AsRef::as_ref) {
        None => Err("left nothing to send".to_owned()),
        Some(Message::Assistant { .. }) => Err("left an answer at the end".to_owned()),
        Some(_) => Ok(()),
    }
}

/// Checks that each call has its result directly after its message, and each result its call.
pub(crate) fn check_pairs<'a>(
    messages: impl IntoIterator<Item = &'a Arc<Message>>,
) -> Result<(), String> {
    let mut open: HashSet<&CallId> = HashSet::new();
    let all_answered = |open: &HashSet<&CallId>| match open.iter().next() {
        Some(call) => Err(format!("left call `{call}` without its result")),
        None => Ok(()),
    };
    for (at, message) in messages.into_iter().enumerate() {
        if let Message::ToolResult(result) = message.as_ref() {
            if !open.remove(&result.call) {
                return Err(format!(
                    "left a result at {at} that answers no call before it"
                ));
            }
            continue;
        }
        all_answered(&open)?;
        for call in message.calls() {
            if !open.insert(&call.id) {
                return Err(format!("left two calls `{}` in one message", call.id));
            }
        }
    }
    all_answered(&open)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_context::{Part, ToolCall, ToolResult};

    use super::*;

    fn messages(script: &str) -> Messages {
        let message = |word: &str| {
            let (kind, ids) = word.split_once(':').unwrap_or((word, ""));
            let id = |id: &str| CallId(id.to_owned());
            Arc::new(match kind {
                "u" => Message::user("hi"),
                "a" => Message::Assistant {
                    parts: vec![Part::text("so")],
                },
                "n" => Message::Notice { text: "hm".into() },
                "c" => Message::Assistant {
                    parts: ids
                        .split(',')
                        .map(|one| {
                            Part::ToolCall(ToolCall {
                                id: id(one),
                                name: "look".into(),
                                arguments: "{}".into(),
                                opaque: None,
                            })
                        })
                        .collect(),
                },
                _ => Message::ToolResult(ToolResult {
                    call: id(ids),
                    parts: vec![Part::text("")],
                    is_error: false,
                }),
            })
        };
        script.split_whitespace().map(message).collect()
    }

    #[test]
    fn what_providers_take() {
        for (script, fault) in [
            ("u", None),
            ("u a u", None),
            ("u c:1,2 r:2 r:1", None),
            ("u c:1 r:1 c:1 r:1 n", None),
            ("n", None),
            ("", Some("nothing to send")),
            ("u a", Some("an answer at the end")),
            ("u c:1", Some("`1` without its result")),
            ("u c:1,2 r:1 u", Some("`2` without its result")),
            ("u c:1 u r:1", Some("`1` without its result")),
            ("u r:1", Some("a result at 1")),
            ("u c:1 r:1 r:1", Some("a result at 3")),
            ("u c:1 r:2", Some("a result at 2")),
            ("u c:1,1 r:1", Some("two calls")),
        ] {
            let got = check(&messages(script));
            match fault {
                None => assert_eq!(got, Ok(()), "{script}"),
                Some(fault) => assert!(got.unwrap_err().contains(fault), "{script}"),
            }
        }
    }
}
