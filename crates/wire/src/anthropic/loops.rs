//! Which thinking goes back, decided for whole tool loops: a loop that a signed thinking block
//! opened keeps all of its thinking or loses all of it (V4, AM10). Changes no message.

use plimsoll_context::{Message, Part, ToolSpec};
use serde_json::Value;

use super::binding::{Bound, Prefix, Told, Trace};
use super::pause;
use super::profile::{Binding, Profile, ThinkingStyle};
use crate::frames;
use crate::request::{LeftOut, RenderInput};

/// What goes back of a transcript's thinking.
#[derive(Debug)]
pub(super) struct Verdict {
    /// For each message, why its thinking stays away; `None` where it goes back.
    pub(super) without: Vec<Option<LeftOut>>,
    /// What the request says, for the thinking of its reply.
    pub(super) prefix: Prefix,
}

/// Judges all loops in order.
pub(super) fn judge(
    input: &RenderInput<'_>,
    tools: &[&ToolSpec],
    messages: &[&Message],
    profile: &Profile,
) -> Verdict {
    let mut trace = Trace::new(input, tools, profile);
    let mut without = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while !rest.is_empty() {
        // A loop begins with what somebody asks and ends before the next who asks.
        let asked = rest.iter().take_while(|message| asks(message)).count();
        let done = rest.iter().skip(asked);
        let length = asked + done.take_while(|message| !asks(message)).count();
        let (this, more) = rest.split_at(length.min(rest.len()));
        rest = more;
        let age = if rest.is_empty() {
            Age::Newest
        } else {
            Age::Older
        };
        let before = trace.clone();
        let fault = fault(&mut trace, this, age, input.model, profile);
        if fault.is_some() {
            trace = before;
            for message in this {
                trace.message(message, Told::No);
            }
        }
        without.extend(this.iter().map(|_| fault));
    }
    match (input.context, messages.last()) {
        (Some(context), _) => trace.context(context),
        // What is said last in the assistant's place stands in this request only, too.
        (None, Some(Message::Assistant { .. })) if !pause::is_paused(messages) => {
            trace.context(frames::GO_ON);
        }
        _ => {}
    }
    Verdict {
        without,
        prefix: Prefix {
            model: input.model.to_owned(),
            hash: trace.hash(),
        },
    }
}

/// All loops lose their thinking, so that a longer transcript begins as this one; says whether there
/// was any.
pub(super) fn forget(without: &mut [Option<LeftOut>], messages: &[&Message]) -> bool {
    let mut any = false;
    for (message, without) in messages.iter().zip(without) {
        let mut parts = message.parts().iter();
        any |= without.is_none() && parts.any(|part| matches!(part, Part::Thinking(_)));
        *without = without.or(Some(LeftOut::UnaskedThinking));
    }
    any
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    Newest,
    Older,
}

/// Whether a message begins a loop.
fn asks(message: &Message) -> bool {
    matches!(
        message,
        Message::User { .. } | Message::Summary { .. } | Message::System { .. }
    )
}

/// Whether anybody signed a block: one without a signature is no provider's.
fn is_signed(block: &str) -> bool {
    let block: Value = serde_json::from_str(block).unwrap_or_default();
    let text = |key| block.get(key).and_then(Value::as_str);
    match text("type") {
        Some("thinking") => {
            text("thinking").is_some() && text("signature").is_some_and(|text| !text.is_empty())
        }
        Some("redacted_thinking") => text("data").is_some(),
        _ => false,
    }
}

/// Why a loop loses its thinking.
fn fault(
    trace: &mut Trace,
    messages: &[&Message],
    age: Age,
    model: &str,
    profile: &Profile,
) -> Option<LeftOut> {
    for message in messages {
        let parts = match message {
            Message::Assistant { parts } => parts.as_slice(),
            _ => &[],
        };
        for part in parts {
            let Part::Thinking(thinking) = part else {
                continue;
            };
            let Some(bound) = thinking.opaque.as_ref().and_then(Bound::of) else {
                return Some(LeftOut::ForeignThinking);
            };
            if !is_signed(bound.block) {
                return Some(LeftOut::ForeignThinking);
            }
            if profile.thinking == ThinkingStyle::None
                || bound.model.is_some_and(|bound| bound != model)
            {
                return Some(LeftOut::OtherModel);
            }
            if profile.binding == Binding::Own {
                continue;
            }
            match (bound.hash, trace.hash()) {
                (Some(then), Some(now)) if then != now => return Some(LeftOut::OtherPrefix),
                // Nobody has edited what is still under way, as far as we know.
                (None, _) if age == Age::Older => return Some(LeftOut::UnknownPrefix),
                _ => {}
            }
        }
        trace.message(message, Told::Yes);
    }
    None
}
