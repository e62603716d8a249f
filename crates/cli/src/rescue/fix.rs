//! The repairs of a session that cannot continue: thinking, calls and results, empty messages, images.

use std::collections::BTreeSet;

use plimsoll::context::{Repair, repair};
use plimsoll::foreign::Body;
use plimsoll::logs::{Chat, Place};
use plimsoll::model::{Image, Source};
use plimsoll::{Message, Part};
use serde_json::Value;

use super::edit::{NewMessage, without_thinking};

/// Maximum size of all images of a session, in bytes of base64. Providers refuse requests with more
/// than 20 MB or 32 MB, and text needs its share.
const MAX_IMAGES: usize = 20_000_000;
/// Maximum size of one image that Anthropic accepts, in bytes of base64.
const MAX_IMAGE: usize = 5 * 1024 * 1024;
/// Replaces a removed image.
const NO_IMAGE: &str =
    "[An image stood here. It was removed because the session had too many bytes of images.]";

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FaultKind {
    OpenCall,
    WrongResult,
    Thinking,
    Empty,
}

impl FaultKind {
    /// Describes a number of faults.
    pub(super) fn counted(self, count: usize) -> String {
        let (one, many) = match self {
            Self::OpenCall => ("1 tool call has no result", "tool calls have no result"),
            Self::WrongResult => (
                "1 result answers no tool call",
                "results answer no tool call",
            ),
            Self::Thinking => (
                "1 thinking block has no signature",
                "thinking blocks have no signature",
            ),
            Self::Empty => ("1 message is empty", "messages are empty"),
        };
        match count {
            1 => one.to_owned(),
            count => format!("{count} {many}"),
        }
    }
}

/// One repair of a message.
#[derive(Debug)]
pub(super) struct Fix {
    pub(super) kind: FaultKind,
    /// The line of the log, or the number of the message in a document.
    pub(super) line: Option<usize>,
    /// The damage and the repair.
    pub(super) done: String,
}

/// The repaired messages.
#[derive(Debug)]
pub(super) struct Fixed {
    pub(super) messages: Vec<NewMessage>,
    pub(super) fixes: Vec<Fix>,
    pub(super) images_removed: usize,
}

/// Repairs calls and results, empty messages and images of a body. `line` returns the line of a message.
///
/// Returns `None` if nothing has to change.
pub(super) fn fix(
    body: &Body<'_>,
    messages: &[Message],
    line: impl Fn(usize) -> Option<usize>,
) -> Option<Fixed> {
    let mut messages: Vec<Message> = messages.to_vec();
    let mut changed: BTreeSet<usize> = BTreeSet::new();
    let images_removed = drop_images(&mut messages, &mut changed);
    let repaired = repair(messages.clone());
    // Providers pair results by their ids, so the order of the results of one answer is no fault.
    let faults = repaired
        .repairs
        .iter()
        .filter(|one| !is_within_batch(&messages, one));
    let faults: Vec<&Repair> = faults.collect();
    if faults.is_empty() && images_removed == 0 {
        return None;
    }
    let fixes = faults.iter().map(|one| Fix {
        kind: match one {
            Repair::ClosedCall { .. } => FaultKind::OpenCall,
            Repair::DroppedEmpty { .. } => FaultKind::Empty,
            Repair::DroppedResult { .. }
            | Repair::MovedResult { .. }
            | Repair::DroppedCall { .. } => FaultKind::WrongResult,
        },
        line: line(one.at()),
        done: one.done(),
    });
    let fixes = fixes.collect();
    let doubled = repaired
        .repairs
        .iter()
        .filter(|one| matches!(one, Repair::DroppedCall { .. }));
    changed.extend(doubled.map(Repair::at));
    let kept: Vec<(Option<usize>, Message)> = if faults.is_empty() {
        messages
            .into_iter()
            .enumerate()
            .map(|(at, message)| (Some(at), message))
            .collect()
    } else {
        repaired.messages
    };
    let new = kept.into_iter().map(|(origin, message)| match origin {
        Some(at) if changed.contains(&at) => (NewMessage::Changed(at, message.clone()), message),
        Some(at) => (NewMessage::Kept(at), message),
        None => (NewMessage::Added(message.clone()), message),
    });
    let mut new: Vec<(NewMessage, Message)> = new.collect();
    unbind(body, &mut new);
    Some(Fixed {
        messages: new.into_iter().map(|(new, _)| new).collect(),
        fixes,
        images_removed,
    })
}

/// Removes thinking that was cut off before its signature, or `all` thinking. Returns a repair for each that was cut off,
/// and whether any was removed.
pub(super) fn drop_thinking(chat: &mut Chat<'_>, all: bool) -> (Vec<Fix>, bool) {
    let mut fixes = Vec::new();
    let mut is_changed = false;
    for unit in &mut chat.units {
        let text = |key: &str| unit.value().get(key).and_then(Value::as_str);
        let kind = text("type").unwrap_or_default();
        let is_cut = kind == "thinking" && text("signature").unwrap_or_default().is_empty();
        let is_dropped = all && ["thinking", "redacted_thinking", "reasoning"].contains(&kind);
        if !is_cut && !is_dropped {
            continue;
        }
        fixes.extend(is_cut.then(|| Fix {
            kind: FaultKind::Thinking,
            line: unit.place.and_then(Place::entry),
            done: "its thinking has no signature; dropped it".to_owned(),
        }));
        unit.remove();
        is_changed = true;
    }
    (fixes, is_changed)
}

/// Drops the thinking that is bound to messages before it which changed.
fn unbind(body: &Body<'_>, messages: &mut [(NewMessage, Message)]) {
    let same = messages.iter().enumerate();
    let same =
        same.take_while(|(at, (new, _))| matches!(new, NewMessage::Kept(index) if index == at));
    let first = same.count();
    if first == messages.len() {
        return;
    }
    let bound = body.bound_to(first);
    for (new, message) in messages {
        if let (NewMessage::Kept(index), Message::Assistant { parts }) = (&*new, &*message)
            && bound.contains(index)
        {
            let parts = without_thinking(parts);
            *new = NewMessage::Changed(*index, Message::Assistant { parts });
        }
    }
}

/// Checks whether a result only moves among the results of its answer.
fn is_within_batch(messages: &[Message], one: &Repair) -> bool {
    let Repair::MovedResult { at, call } = one else {
        return false;
    };
    let before = messages.get(..*at).unwrap_or_default().iter().rev();
    let mut before = before.skip_while(|message| matches!(message, Message::ToolResult(_)));
    before
        .next()
        .is_some_and(|message| message.calls().any(|one| one.id == *call))
}

/// Replaces images that are too large, and the oldest ones if there are too many bytes of them. Returns their number.
fn drop_images(messages: &mut [Message], changed: &mut BTreeSet<usize>) -> usize {
    let mut left = MAX_IMAGES;
    let mut removed = 0;
    for (at, message) in messages.iter_mut().enumerate().rev() {
        let parts = match message {
            Message::System { parts } | Message::User { parts } | Message::Assistant { parts } => {
                parts
            }
            Message::ToolResult(result) => &mut result.parts,
            _ => continue,
        };
        for part in parts.iter_mut().rev() {
            let Part::Image(Image {
                source: Source::Data { base64, .. },
                ..
            }) = part
            else {
                continue;
            };
            let bytes = base64.len();
            if bytes <= MAX_IMAGE && bytes <= left {
                left -= bytes;
                continue;
            }
            *part = Part::text(NO_IMAGE);
            removed += 1;
            changed.insert(at);
        }
    }
    removed
}
