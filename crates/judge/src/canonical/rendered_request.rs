//! [`RenderedRequest`]: a transcript as its protocol renders it, split into turns.

use std::ops::Range;

use plimsoll_context::Message;
use plimsoll_wire::__internals::{parse, with_list};
use plimsoll_wire::LeftOut;
use plimsoll_wire::WireError;
use serde_json::value::RawValue;

use super::{Form, Target};

/// A rendered transcript.
#[derive(Debug)]
pub(super) struct RenderedRequest {
    /// The rendered request.
    body: String,
    pub(super) turns: Vec<RenderedTurn>,
    /// The system prompt beside the list, if there is one.
    pub(super) system: Option<String>,
    /// The messages that differ from the transcript, each with a description of the difference.
    pub(super) notes: Vec<(usize, &'static str)>,
}

/// One message of the request, or the items of one.
#[derive(Debug)]
pub(super) struct RenderedTurn {
    /// The ranges of its entries in the body.
    entries: Vec<Range<usize>>,
    /// The messages that it contains, each once. Empty for a turn that was only inserted between
    /// others.
    pub(super) from: Vec<usize>,
}

impl RenderedRequest {
    /// Renders a transcript. A system prompt, if there is one, comes first.
    pub(super) fn of(
        messages: &[Message],
        target: &Target,
        model: &str,
    ) -> Result<Self, WireError> {
        let form = target.form();
        let rendered = form.render(messages, model)?;
        let notes = rendered.notes.iter();
        let notes = notes.filter_map(|note| Some((note.message?, described(note.what))));
        let notes = notes.collect();
        let body = String::from_utf8(rendered.body).map_err(|_| WireError::NotJson {
            reason: "a rendered request is not UTF-8".to_owned(),
        })?;
        let mut request = Self::of_body(body, form.list(), rendered.from)?;
        if form.has_items() {
            request.join_items();
        }
        request.notes = notes;
        Ok(request)
    }

    /// Describes how a message differs from the transcript.
    pub(super) fn notes_of(&self, index: usize) -> impl Iterator<Item = &'static str> {
        // They come in message order.
        let from = self.notes.partition_point(|(of, _)| *of < index);
        let notes = self.notes.iter().skip(from);
        let notes = notes.take_while(move |(of, _)| *of == index);
        notes.map(|(_, note)| *note)
    }

    /// Returns the entries of a turn.
    pub(super) fn raws(&self, turn: &RenderedTurn) -> Vec<String> {
        let entries = turn.entries.iter();
        let raws = entries.map(|entry| self.body.get(entry.clone()).unwrap_or_default());
        raws.map(str::to_owned).collect()
    }

    /// Drops the texts of all turns.
    pub(super) fn forget(&mut self) {
        self.body = String::new();
    }

    pub(super) fn is_forgotten(&self) -> bool {
        self.body.is_empty()
    }

    /// Takes the texts from the same transcript, rendered again.
    pub(super) fn remember(&mut self, again: Self) {
        self.body = again.body;
    }

    /// Finds the turns in a body: a list, or an object that has one under `key`.
    fn of_body(body: String, key: &str, from: Vec<Vec<usize>>) -> Result<Self, WireError> {
        let (object, list) = with_list(&body, key)?;
        let raws: Vec<&RawValue> = parse(list.unwrap_or("[]"))?;
        let mut from = from.into_iter();
        let turn = |raw: &RawValue| {
            let mut sources: Vec<usize> = Vec::new();
            for index in from.next().unwrap_or_default() {
                if !sources.contains(&index) {
                    sources.push(index);
                }
            }
            let start = (raw.get().as_ptr() as usize).saturating_sub(body.as_ptr() as usize);
            RenderedTurn {
                entries: std::iter::once(start..start + raw.get().len()).collect(),
                from: sources,
            }
        };
        Ok(Self {
            turns: raws.into_iter().map(turn).collect(),
            system: object.and_then(|object| object.get("system").map(str::to_owned)),
            notes: Vec::new(),
            body,
        })
    }

    /// Joins the items of one message to one turn.
    fn join_items(&mut self) {
        let mut joined: Vec<RenderedTurn> = Vec::with_capacity(self.turns.len());
        for mut turn in std::mem::take(&mut self.turns) {
            match joined.last_mut() {
                Some(last) if last.from == turn.from && !turn.from.is_empty() => {
                    last.entries.append(&mut turn.entries);
                }
                _ => joined.push(turn),
            }
        }
        self.turns = joined;
    }
}

/// Describes a note in a report of repairs.
fn described(what: LeftOut) -> &'static str {
    match what {
        LeftOut::SilentAssistant => "left it out: it says nothing that this provider reads",
        LeftOut::Attachment => "put a note in the place of an image or a file",
        LeftOut::ForeignBlock => "left out a block of another provider",
        LeftOut::Citations => "left out citations whose text was changed",
        LeftOut::ServerCall => {
            "left out a call of the provider's own tools, or its result: one has lost the other"
        }
        LeftOut::Reasoning => "left out reasoning that this provider cannot read",
        LeftOut::LoneReasoning => "left out reasoning of which nothing came",
        LeftOut::ForeignThinking => "left out thinking that this provider did not sign",
        LeftOut::OtherModel => "left out thinking of another model",
        LeftOut::OtherPrefix | LeftOut::UnknownPrefix => {
            "left out thinking that may be bound to what is no longer there"
        }
        LeftOut::UnaskedThinking => "left out thinking: the model is not asked to think on",
        LeftOut::LastThinking => "left out thinking at the end of a message",
        LeftOut::BrokenArguments => "put arguments that are no JSON object into one",
        LeftOut::Name => "put `_` for what a tool's name may not have",
        LeftOut::RepeatedTool => "left out a tool with the name of another",
        LeftOut::Temperature
        | LeftOut::TemperatureCapped
        | LeftOut::Effort
        | LeftOut::ThinkingOff
        | LeftOut::ThinkingOn
        | LeftOut::ToolForced
        | LeftOut::StopBlank
        | LeftOut::OutputCapped => "left out a setting",
    }
}
