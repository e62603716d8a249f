//! Repairs messages that were read from damaged requests so that writers can be tested with them:
//! every call has one result, directly after it. The product repairs requests (`plimsoll_foreign`).

use std::collections::{HashMap, HashSet, VecDeque};

use plimsoll_context::{CallId, Message, Part};

/// A repaired transcript, and the list of repairs.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairedTranscript {
    /// The messages, each with its position in the input; `None` for an added message.
    pub messages: Vec<(Option<usize>, Message)>,
    /// The repairs, in input order. Empty if the transcript was intact.
    pub repairs: Vec<Repair>,
}

/// One repair. Positions count from 0 in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// A call without a result was closed with an error result.
    ClosedCall {
        /// The position of the assistant's message.
        at: usize,
        /// The call.
        call: CallId,
    },
    /// A result was dropped because it answered no call, or one that already had its result.
    DroppedResult {
        /// The position of the result.
        at: usize,
        /// The call that the result names.
        call: CallId,
    },
    /// A result was moved to its place after the call.
    MovedResult {
        /// The position of the result.
        at: usize,
        /// The call.
        call: CallId,
    },
    /// A call was dropped because an earlier call of the same message has the same id.
    DroppedCall {
        /// The position of the assistant's message.
        at: usize,
        /// The call.
        call: CallId,
    },
    /// A message without content was dropped.
    DroppedEmpty {
        /// The position of the message.
        at: usize,
    },
}

/// The text of the result that closes a call without one.
const CLOSED_CALL: &str = "aborted: this call has no result";

/// Repairs a transcript. Idempotent; an intact transcript is returned unchanged.
#[must_use]
pub fn repair(messages: Vec<Message>) -> RepairedTranscript {
    let mut repairs = Vec::new();
    let mut results = results_by_call(&messages);
    let mut claimed: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut answered = HashSet::new();
    let mut calls_after = next_declaration(&messages);
    for (at, message) in messages.iter().enumerate() {
        let mut seen = HashSet::new();
        for call in message.calls() {
            if !seen.insert(&call.id) {
                continue;
            }
            let before = calls_after.get_mut(&call.id).and_then(|places| {
                places.pop_front();
                places.front().copied()
            });
            let found = results.get_mut(&call.id).and_then(|places| {
                while places.front().is_some_and(|place| *place < at) {
                    places.pop_front();
                }
                let place = *places.front()?;
                (before.is_none_or(|before| place < before))
                    .then(|| places.pop_front())
                    .flatten()
            });
            if let Some(place) = found {
                claimed.entry(at).or_default().push(place);
                answered.insert(place);
            }
        }
    }
    let mut whole: Vec<(Option<usize>, Message)> = Vec::with_capacity(messages.len());
    let mut slots: Vec<Option<Message>> = messages.into_iter().map(Some).collect();
    for at in 0..slots.len() {
        let Some(message) = slots.get_mut(at).and_then(Option::take) else {
            continue;
        };
        match message {
            Message::ToolResult(ref result) => {
                if !answered.contains(&at) {
                    repairs.push(Repair::DroppedResult {
                        at,
                        call: result.call.clone(),
                    });
                }
            }
            Message::Assistant { .. } => {
                let message = drop_repeated_calls(message, at, &mut repairs);
                if says_nothing(&message) {
                    repairs.push(Repair::DroppedEmpty { at });
                    continue;
                }
                let ids: Vec<CallId> = message.calls().map(|call| call.id.clone()).collect();
                whole.push((Some(at), message));
                let mut places = claimed
                    .remove(&at)
                    .unwrap_or_default()
                    .into_iter()
                    .peekable();
                let mut expected = at + 1;
                for id in ids {
                    let mine = places.next_if(|place| names(slots.get(*place), &id));
                    let result =
                        mine.and_then(|place| Some((place, slots.get_mut(place)?.take()?)));
                    let Some((place, result)) = result else {
                        repairs.push(Repair::ClosedCall {
                            at,
                            call: id.clone(),
                        });
                        whole.push((None, Message::error_result(id, CLOSED_CALL)));
                        continue;
                    };
                    if place != expected {
                        repairs.push(Repair::MovedResult {
                            at: place,
                            call: id,
                        });
                    }
                    expected = place + 1;
                    whole.push((Some(place), result));
                }
            }
            other if says_nothing(&other) => repairs.push(Repair::DroppedEmpty { at }),
            other => whole.push((Some(at), other)),
        }
    }
    RepairedTranscript {
        messages: whole,
        repairs,
    }
}

type Places = HashMap<CallId, VecDeque<usize>>;

fn results_by_call(messages: &[Message]) -> Places {
    let mut places = Places::new();
    for (at, message) in messages.iter().enumerate() {
        if let Message::ToolResult(result) = message {
            places.entry(result.call.clone()).or_default().push_back(at);
        }
    }
    places
}

/// Returns for each id the messages that declare a call with it, since ids may be reused.
fn next_declaration(messages: &[Message]) -> Places {
    let mut places = Places::new();
    for (at, message) in messages.iter().enumerate() {
        for call in message.calls() {
            let places = places.entry(call.id.clone()).or_default();
            if places.back() != Some(&at) {
                places.push_back(at);
            }
        }
    }
    places
}

fn names(slot: Option<&Option<Message>>, id: &CallId) -> bool {
    matches!(slot, Some(Some(Message::ToolResult(result))) if result.call == *id)
}

fn drop_repeated_calls(message: Message, at: usize, repairs: &mut Vec<Repair>) -> Message {
    let Message::Assistant { mut parts } = message else {
        return message;
    };
    let mut seen = HashSet::new();
    parts.retain(|part| match part {
        Part::ToolCall(call) if !seen.insert(call.id.clone()) => {
            repairs.push(Repair::DroppedCall {
                at,
                call: call.id.clone(),
            });
            false
        }
        _ => true,
    });
    Message::Assistant { parts }
}

/// Returns `true` if a message has no content that a provider would accept. A system message may be
/// empty.
fn says_nothing(message: &Message) -> bool {
    match message {
        Message::System { .. } | Message::ToolResult(_) => false,
        Message::Notice { text } | Message::Summary { text } => text.trim().is_empty(),
        Message::User { parts } | Message::Assistant { parts } => {
            parts.iter().all(|part| match part {
                Part::Text { text } => text.trim().is_empty(),
                // Providers do not accept reasoning without an answer or a call.
                Part::Thinking(_) => true,
                _ => false,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_context::ToolCall;

    fn calls(ids: &[&str]) -> Message {
        let call = |id: &&str| {
            Part::ToolCall(ToolCall {
                id: CallId((*id).into()),
                name: "t".into(),
                arguments: "{}".into(),
                opaque: None,
            })
        };
        Message::Assistant {
            parts: ids.iter().map(call).collect(),
        }
    }

    fn result(id: &str) -> Message {
        Message::result(CallId(id.into()), format!("r{id}"))
    }

    fn shape(messages: &[Message]) -> Vec<String> {
        let one = |message: &Message| match message {
            Message::User { .. } => "u".to_owned(),
            Message::Assistant { .. } => {
                format!(
                    "a{}",
                    message
                        .calls()
                        .map(|call| call.id.0.as_str())
                        .collect::<String>()
                )
            }
            Message::ToolResult(result) if message.text() == CLOSED_CALL => {
                format!("x{}", result.call)
            }
            Message::ToolResult(result) => format!("r{}", result.call),
            _ => "?".to_owned(),
        };
        messages.iter().map(one).collect()
    }

    #[test]
    fn damage_is_mended_and_whole_transcripts_stay() {
        let u = || Message::user("hi");
        let table: Vec<(Vec<Message>, &str, usize)> = vec![
            (
                vec![u(), calls(&["1", "2"]), result("1"), result("2")],
                "u a12 r1 r2",
                0,
            ),
            (
                vec![u(), calls(&["1", "2"]), result("2"), result("1")],
                "u a12 r1 r2",
                2,
            ),
            (vec![u(), calls(&["1", "2"]), result("2")], "u a12 x1 r2", 1),
            (
                vec![result("0"), u(), calls(&["1"]), result("1"), result("1")],
                "u a1 r1",
                2,
            ),
            (vec![calls(&["1"]), u(), result("1")], "a1 r1 u", 1),
            // A reused id is paired with the result after its second call.
            (
                vec![calls(&["1"]), result("1"), calls(&["1"]), result("1")],
                "a1 r1 a1 r1",
                0,
            ),
            (
                vec![calls(&["1"]), calls(&["1"]), result("1")],
                "a1 x1 a1 r1",
                1,
            ),
            (
                vec![calls(&["1", "1"]), result("1"), result("1")],
                "a1 r1",
                2,
            ),
            // A result after the second call cannot belong to the first one.
            (
                vec![calls(&["1"]), calls(&["1"]), result("1"), result("1")],
                "a1 x1 a1 r1",
                2,
            ),
            // Messages between the results are moved after the whole batch, regardless of its
            // order.
            (
                vec![
                    u(),
                    calls(&["1", "2", "3"]),
                    result("3"),
                    u(),
                    result("1"),
                    u(),
                ],
                "u a123 r1 x2 r3 u u",
                3,
            ),
            // A result before its call belongs to another call.
            (vec![result("1"), calls(&["1"])], "a1 x1", 2),
            (vec![u(), calls(&[])], "u", 1),
            (vec![Message::assistant(" \n"), u()], "u", 1),
        ];
        for (messages, expected, repairs) in table {
            let input = shape(&messages);
            let repaired = repair(messages);
            let messages: Vec<Message> = repaired
                .messages
                .into_iter()
                .map(|(_, message)| message)
                .collect();
            assert_eq!(shape(&messages).join(" "), expected, "{input:?}");
            assert_eq!(
                repaired.repairs.len(),
                repairs,
                "{input:?}: {:?}",
                repaired.repairs
            );
            let again = repair(messages.clone());
            assert_eq!(again.repairs, [], "{input:?}");
            assert_eq!(
                again
                    .messages
                    .into_iter()
                    .map(|(_, m)| m)
                    .collect::<Vec<_>>(),
                messages
            );
        }
    }
}
