//! All targets of a request: every dialect, profile and kind of model.

use plimsoll_wire::Target;
use plimsoll_wire::{anthropic, openai_responses};

use crate::every_dialect::dialects;

/// One model of each kind.
const MODELS: [&str; 7] = [
    "claude-3-5-haiku-latest",
    "claude-sonnet-4-5",
    "claude-opus-4-6",
    "claude-opus-4-8",
    "claude-opus-5-5",
    "gopher",
    "compatible",
];

pub(crate) fn chats() -> Vec<Target> {
    dialects().into_iter().map(Target::Chat).collect()
}

pub(crate) fn responses() -> Vec<Target> {
    let profiles = [
        openai_responses::ResponsesProfile::openai(),
        openai_responses::ResponsesProfile::plain(),
        openai_responses::ResponsesProfile::compatible(),
    ];
    profiles.map(Target::Responses).into()
}

pub(crate) fn claudes() -> Vec<Target> {
    let profiles = MODELS
        .iter()
        .map(|name| anthropic::MessagesProfile::of_model(name));
    profiles.map(Target::Messages).collect()
}
