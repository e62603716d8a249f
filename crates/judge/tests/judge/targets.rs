//! All targets of a request: every dialect, profile and kind of model.

use plimsoll_judge::canonical::Target;
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
    let names = openai_responses::ResponsesProfile::NAMES.iter();
    let profiles = names.filter_map(|name| openai_responses::ResponsesProfile::named(name));
    profiles.map(Target::Responses).collect()
}

pub(crate) fn claudes() -> Vec<Target> {
    let profiles = MODELS
        .iter()
        .map(|name| anthropic::MessagesProfile::of_model(name));
    profiles.map(Target::Messages).collect()
}
