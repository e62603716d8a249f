//! Decides about thinking blocks for whole tool loops: a loop that begins with a signed thinking block
//! keeps all of its thinking or loses all of it (V4, AM10). Changes no message.
//!
//! Beside each block, a transcript keeps the model that wrote it and the prefix that the model had read.
//! Both are compared before the block is sent back.

use plimsoll_context::{Message, Opaque, Part, Reply};
use serde::Serialize;
use serde_json::Value;

use super::pause;
use super::pause::At;
use super::write::{says, sent};
use super::{MessagesProfile, ORIGIN, ThinkingStyle};
use crate::object::Object;
use crate::prompt_texts;
use crate::raw::RawObject;
use crate::request::{LeftOut, RenderInput};
use crate::tools::EncodedTools;

/// The number of digits that identify a prefix: 128 bits, to rule out collisions in a session.
const DIGITS: usize = 32;

/// The prefix of one request, for the thinking in the reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefix {
    /// The requested model.
    model: String,
    /// The hash of the prefix, if the model's thinking is bound to it.
    hash: Option<String>,
}

impl Prefix {
    /// Returns the reply to the request with this prefix. Its thinking blocks store what they are bound
    /// to.
    #[must_use]
    pub fn bind(&self, mut reply: Reply) -> Reply {
        for part in &mut reply.parts {
            if let Part::Thinking(thinking) = part
                && let Some(opaque) = &mut thinking.opaque
                && opaque.origin == ORIGIN
            {
                let object = Object::new().text("model", &self.model);
                let object = object.optional("prefix", self.hash.as_deref());
                opaque.data = object.raw("block", &opaque.data).end();
            }
        }
        reply
    }
}

/// A thinking block, with its model and prefix if they are known.
#[derive(Debug)]
pub(super) struct LocatedThinking<'a> {
    pub(super) block: &'a str,
    model: Option<String>,
    hash: Option<String>,
}

impl<'a> LocatedThinking<'a> {
    /// Parses a block. Returns `None` for another provider's data, and for data that is not a block.
    pub(super) fn of(opaque: &'a Opaque) -> Option<Self> {
        let object: RawObject<'a> = super::write::own(opaque)?;
        let some = |key| Some(object.text(key)).filter(|text| !text.is_empty());
        match object.get("block") {
            Some(block) => Some(Self {
                block,
                model: some("model"),
                hash: some("prefix"),
            }),
            // The bare block, from a request of another client.
            None => object.get("type").map(|_| Self {
                block: opaque.data.trim(),
                model: None,
                hash: None,
            }),
        }
    }

    /// Returns `true` if the block is signed. A block without a signature is not a provider's.
    fn is_signed(&self) -> bool {
        let block: Value = serde_json::from_str(self.block).unwrap_or_default();
        let text = |key| block.get(key).and_then(Value::as_str);
        match text("type") {
            Some("thinking") => {
                text("thinking").is_some() && text("signature").is_some_and(|text| !text.is_empty())
            }
            Some("redacted_thinking") => text("data").is_some(),
            _ => false,
        }
    }
}

/// A running hash of the request. Does nothing if the model's thinking is not bound to its prefix.
#[derive(Debug, Clone)]
pub(super) struct Trace(Option<blake3::Hasher>);

impl Trace {
    /// Returns the prefix before the messages.
    pub(super) fn new(
        input: &RenderInput<'_>,
        tools: &EncodedTools,
        profile: &MessagesProfile,
    ) -> Self {
        let mut trace = Self(profile.binds_prefix.then(blake3::Hasher::new));
        trace.take(&input.system);
        trace.take(&tools.list);
        if !input.hosted_tools.is_empty() {
            trace.take(&input.hosted_tools);
        }
        trace
    }

    /// Adds a message, with or without its thinking.
    fn message(&mut self, message: &Message, with_thinking: bool) {
        let Message::Assistant { parts } = message else {
            return self.take(message);
        };
        if self.0.is_none() {
            return;
        }
        let is_sent = |part: &&Part| with_thinking || !is_thinking(part);
        let parts: Vec<&Part> = parts.iter().filter(is_sent).collect();
        self.take(&("assistant", parts));
    }

    /// Returns the prefix of the whole request, to which the thinking of its reply is bound. `context`
    /// follows the messages in this request only.
    pub(super) fn prefix(
        &self,
        model: &str,
        context: Option<&str>,
        messages: &[&Message],
    ) -> Prefix {
        let mut trace = self.clone();
        match (context, messages.last()) {
            (Some(context), _) => trace.take(&("context", context)),
            // The answer to a final assistant message is also part of this request only.
            (None, Some(Message::Assistant { .. })) if !pause::is_paused(messages) => {
                trace.take(&("context", prompt_texts::GO_ON));
            }
            _ => {}
        }
        Prefix {
            model: model.to_owned(),
            hash: trace.hash(),
        }
    }

    /// Returns the hash, or `None` if nothing is bound to the prefix.
    fn hash(&self) -> Option<String> {
        let hash = self.0.as_ref()?.finalize().to_hex();
        hash.as_str().get(..DIGITS).map(str::to_owned)
    }

    fn take(&mut self, value: &impl Serialize) {
        if let Some(hasher) = &mut self.0 {
            // Plain data can always be serialized. Many short updates would be slower.
            let mut json = serde_json::to_vec(value).unwrap_or_default();
            json.push(b'\n');
            hasher.update(&json);
        }
    }
}

/// Judges the tool loops of a transcript, and adds its messages to the prefix. Returns for each message the
/// reason why its thinking is left out, and `None` if it is sent.
pub(super) fn judge(
    model: &str,
    trace: &mut Trace,
    messages: &[&Message],
    profile: &MessagesProfile,
) -> Vec<Option<LeftOut>> {
    let mut without = Vec::with_capacity(messages.len());
    while let Some(rest) = messages
        .get(without.len()..)
        .filter(|rest| !rest.is_empty())
    {
        let (of_loop, later) = rest.split_at(loop_length(rest));
        let before = trace.clone();
        let mut unknown = false;
        let mut fault = None;
        for message in of_loop {
            let judged = judge_message(model, trace, message, profile);
            unknown |= judged == Ok(true);
            fault = fault.or(judged.err());
            trace.message(message, true);
        }
        // Only the newest loop is certain not to have been edited.
        let fault = fault.or((unknown && !later.is_empty()).then_some(LeftOut::UnknownPrefix));
        if fault.is_some() {
            *trace = before;
            of_loop
                .iter()
                .for_each(|message| trace.message(message, false));
        }
        without.extend(of_loop.iter().map(|_| fault));
    }
    without
}

/// Returns the number of messages in the first loop. A loop begins with a user message, a summary or a system
/// message, and ends before the next one that follows an answer.
fn loop_length(messages: &[&Message]) -> usize {
    let answer = messages.iter().position(|message| !asks(message));
    let answer = answer.unwrap_or(messages.len());
    let next = messages
        .iter()
        .skip(answer)
        .position(|message| asks(message));
    next.map_or(messages.len(), |next| answer + next)
}

/// Returns whether the prefix of a message's thinking is unknown.
///
/// # Errors
///
/// The reason why a loop loses its thinking because of the message.
fn judge_message(
    model: &str,
    trace: &Trace,
    message: &Message,
    profile: &MessagesProfile,
) -> Result<bool, LeftOut> {
    let mut is_unknown = false;
    let Message::Assistant { parts } = message else {
        return Ok(is_unknown);
    };
    for part in parts {
        let Part::Thinking(thinking) = part else {
            continue;
        };
        let bound = thinking.opaque.as_ref().and_then(LocatedThinking::of);
        let bound = bound.filter(LocatedThinking::is_signed);
        let bound = bound.ok_or(LeftOut::ForeignThinking)?;
        let is_other = bound.model.is_some_and(|bound| bound != model);
        if profile.thinking == ThinkingStyle::None || is_other {
            return Err(LeftOut::OtherModel);
        }
        match (bound.hash, trace.hash()) {
            (Some(then), Some(now)) if then != now => return Err(LeftOut::OtherPrefix),
            (None, Some(_)) => is_unknown = true,
            _ => {}
        }
    }
    Ok(is_unknown)
}

/// Checks whether the tool loop at the end of a request began without thinking: at the first assistant turn
/// since the last user turn without results. A turn consists of neighbours of one role. `without` are the
/// reasons for leaving out the thinking of messages, and `unpaired` the blocks that are left out.
pub(super) fn loop_lacks_thinking(
    messages: &[&Message],
    without: &[Option<LeftOut>],
    unpaired: &[(At, &Opaque)],
) -> bool {
    let is_answer = |message: &Message| matches!(message, Message::Assistant { .. });
    let is_sent = |message: &Message, part: &Part, without: &Option<LeftOut>| match part {
        Part::Text { text } => says(text),
        Part::Thinking(_) => without.is_none(),
        Part::Opaque(opaque) => sent(opaque, is_answer(message), unpaired).is_ok(),
        _ => true,
    };
    let speaks = |message: &Message, without: &Option<LeftOut>| match message {
        Message::Notice { text } => says(text),
        Message::Summary { .. } | Message::ToolResult(_) => true,
        Message::System { parts } | Message::User { parts } | Message::Assistant { parts } => {
            parts.iter().any(|part| is_sent(message, part, without))
        }
    };
    let sent = messages.iter().zip(without);
    let sent = sent.filter(|(message, without)| speaks(message, without));
    let sent: Vec<_> = sent.collect();
    let turns = sent.chunk_by(|(one, _), (other, _)| is_answer(one) == is_answer(other));
    // A paused turn is continued, so it belongs to the loop.
    let mut in_loop = pause::is_paused(messages);
    let mut lacks = false;
    for turn in turns.collect::<Vec<_>>().into_iter().rev() {
        if turn.iter().any(|(message, _)| !is_answer(message)) {
            let mut messages = turn.iter().map(|(message, _)| message);
            in_loop |= messages.any(|message| matches!(message, Message::ToolResult(_)));
            continue;
        }
        if !std::mem::take(&mut in_loop) {
            break;
        }
        let mut parts = turn.iter().flat_map(|(message, without)| {
            let parts = message.parts().iter();
            parts.filter(|part| is_sent(message, part, without))
        });
        lacks = !parts.next().is_some_and(is_thinking);
    }
    lacks
}

/// Returns `true` if a message begins a loop.
pub(crate) fn asks(message: &Message) -> bool {
    matches!(
        message,
        Message::User { .. } | Message::Summary { .. } | Message::System { .. }
    )
}

pub(super) fn is_thinking(part: &Part) -> bool {
    matches!(part, Part::Thinking(_))
}
