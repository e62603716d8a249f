//! Which reasoning goes back behind Converse: only what the same model signed, and of Claude's
//! only while it thinks, which it may only where the tool loop under way began with thinking
//! (AM9). Gemini's signatures are in `signed.rs`.

use genai::chat::ContentPart;
use plimsoll_agent::{Request, ThinkingLevel};
use plimsoll_context::{Message, Part, Thinking};
use plimsoll_wire::anthropic::ThinkingStyle;
use serde::Deserialize;

use super::api::{Api, Converse, Maker};
use super::names::ORIGIN_BEDROCK;
use super::settings::budget_of;

/// Whether reasoning goes back, and a Claude may be asked for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replay {
    Given,
    LeftOut,
}

/// What a block keeps.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    model: String,
    signature: Option<String>,
    redacted_content: Option<String>,
}

/// Whether reasoning goes back in this request.
pub(super) fn replay(request: &Request, messages: &[&Message], api: &Api) -> Replay {
    let Some(converse) = api.converse() else {
        return Replay::LeftOut;
    };
    let Maker::Anthropic(profile) = &converse.maker else {
        return Replay::Given;
    };
    let level = request.sampling.thinking;
    let asked = level.is_some_and(|level| level != ThinkingLevel::Off);
    let by_budget = matches!(
        profile.thinking,
        ThinkingStyle::Budget | ThinkingStyle::Either | ThinkingStyle::Unknown
    );
    let budget = budget_of(request, profile);
    match asked && by_budget && budget.is_some() && began_well(messages, converse) {
        true => Replay::Given,
        false => Replay::LeftOut,
    }
}

/// A part of reasoning as the library takes it.
pub(super) fn parts(thinking: &Thinking, api: &Api, replay: Replay) -> Vec<ContentPart> {
    let kept = api.converse().and_then(|converse| kept(thinking, converse));
    match kept {
        Some(_) if replay == Replay::LeftOut => Vec::new(),
        Some(Kept {
            redacted_content: Some(redacted),
            ..
        }) => vec![ContentPart::ThoughtSignature(redacted)],
        Some(Kept {
            signature: Some(signature),
            ..
        }) => vec![
            ContentPart::ThoughtSignature(signature),
            ContentPart::ReasoningContent(thinking.text.clone()),
        ],
        _ => Vec::new(),
    }
}

/// Whether no tool loop is under way, or one that began with reasoning of this model.
fn began_well(messages: &[&Message], converse: &Converse) -> bool {
    let asks = |message: &&Message| {
        matches!(
            message,
            Message::User { .. } | Message::Summary { .. } | Message::System { .. }
        )
    };
    let from = messages.iter().rposition(asks);
    let under_way = messages.get(from.map_or(0, |at| at + 1)..);
    let mut turns = under_way.unwrap_or_default().iter();
    let first = turns.find(|message| matches!(message, Message::Assistant { .. }));
    first.is_none_or(|first| match first.parts().first() {
        Some(Part::Thinking(thinking)) => kept(thinking, converse).is_some(),
        _ => false,
    })
}

fn kept(thinking: &Thinking, converse: &Converse) -> Option<Kept> {
    let opaque = thinking.opaque.as_ref();
    let opaque = opaque.filter(|opaque| opaque.origin == ORIGIN_BEDROCK)?;
    let kept: Kept = serde_json::from_str(&opaque.data).ok()?;
    (kept.model == converse.id).then_some(kept)
}
