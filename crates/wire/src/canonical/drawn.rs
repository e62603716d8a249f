//! [`Drawn`]: a transcript as its wire renders it, in pieces: what each message of the request
//! says, and as which texts. The rules of form are the wire's; none is repeated here.

use plimsoll_context::Message;
use serde_json::value::RawValue;

use super::target::Target;
use crate::error::WireError;
use crate::raw::RawObject;
use crate::{anthropic, openai_chat, openai_responses};

/// A rendered transcript.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    /// The messages of the request.
    pub(super) turns: Vec<Turn>,
    /// The system prompt, where it stands beside them.
    pub(super) system: Option<String>,
    /// What the request does not hold as the transcript does, and of which message.
    pub(super) notes: Vec<(usize, &'static str)>,
}

/// One message of the request, or the items of one.
#[derive(Debug)]
pub(super) struct Turn {
    /// Its texts.
    pub(super) raws: Vec<String>,
    /// The messages that it says, each once; none where it only makes room between others.
    pub(super) from: Vec<usize>,
}

impl Drawn {
    /// Renders a transcript whose system prompt, if any, comes first.
    pub(super) fn of(
        messages: &[Message],
        target: &Target,
        model: &str,
    ) -> Result<Self, WireError> {
        match target {
            Target::Chat(dialect) => {
                // Turns that are JSON are a model's, not a protocol's.
                let dialect = openai_chat::Dialect {
                    tools: openai_chat::ToolStyle::Native,
                    ..dialect.clone()
                };
                let input = openai_chat::RenderInput::default();
                let rendered = openai_chat::render(&input, messages, &dialect)?;
                let notes = rendered.notes.iter();
                let mut drawn = Self::of_body(&rendered.body, "messages", rendered.from)?;
                drawn.notes = notes
                    .filter_map(|note| Some((note.message?, chat(note.what))))
                    .collect();
                Ok(drawn)
            }
            Target::Responses(profile) => {
                let input = openai_responses::RenderInput::default();
                let rendered = openai_responses::render(&input, messages, profile)?;
                let notes = rendered.notes.iter();
                let from = rendered
                    .from
                    .iter()
                    .map(|from| from.iter().copied().collect());
                let mut drawn = Self::of_body(&rendered.body, "input", from.collect())?;
                drawn.join_items();
                drawn.notes = notes
                    .filter_map(|note| Some((note.message?, responses(note.what))))
                    .collect();
                Ok(drawn)
            }
            Target::Messages(profile) => {
                let input = anthropic::RenderInput {
                    model,
                    ..anthropic::RenderInput::default()
                };
                // Whether the request asks for thinking, its judge sees.
                let profile = anthropic::Profile {
                    unasked_thinking: anthropic::UnaskedThinking::Accepted,
                    ..profile.clone()
                };
                let rendered = anthropic::render(&input, messages, &profile)?;
                let notes = rendered.notes.iter();
                let mut drawn = Self::of_body(&rendered.body, "messages", rendered.from)?;
                drawn.notes = notes
                    .filter_map(|note| Some((note.message?, claude(note.what))))
                    .collect();
                Ok(drawn)
            }
        }
    }

    /// What the request does not hold of a message as the transcript does.
    pub(super) fn notes_of(&self, index: usize) -> impl Iterator<Item = &'static str> {
        // They come in message order.
        let from = self.notes.partition_point(|(of, _)| *of < index);
        let notes = self.notes.iter().skip(from);
        let notes = notes.take_while(move |(of, _)| *of == index);
        notes.map(|(_, note)| *note)
    }

    fn of_body(body: &[u8], key: &str, from: Vec<Vec<usize>>) -> Result<Self, WireError> {
        let body: RawObject<'_> =
            serde_json::from_slice(body).map_err(|error| WireError::not_json(&error))?;
        let list = body.get(key).unwrap_or("[]");
        let raws: Vec<&RawValue> =
            serde_json::from_str(list).map_err(|error| WireError::not_json(&error))?;
        let mut from = from.into_iter();
        let turn = |raw: &RawValue| {
            let mut whose: Vec<usize> = Vec::new();
            for index in from.next().unwrap_or_default() {
                if !whose.contains(&index) {
                    whose.push(index);
                }
            }
            Turn {
                raws: vec![raw.get().to_owned()],
                from: whose,
            }
        };
        Ok(Self {
            turns: raws.into_iter().map(turn).collect(),
            system: body.get("system").map(str::to_owned),
            notes: Vec::new(),
        })
    }

    /// Items of one message become one turn.
    fn join_items(&mut self) {
        let mut joined: Vec<Turn> = Vec::with_capacity(self.turns.len());
        for mut turn in std::mem::take(&mut self.turns) {
            match joined.last_mut() {
                Some(last) if last.from == turn.from && !turn.from.is_empty() => {
                    last.raws.append(&mut turn.raws);
                }
                _ => joined.push(turn),
            }
        }
        self.turns = joined;
    }
}

fn chat(what: openai_chat::LeftOut) -> &'static str {
    use openai_chat::LeftOut as Left;
    match what {
        Left::SilentAssistant => "left it out: it says nothing that this provider reads",
        Left::Attachment => "put a note in the place of an image or a file",
        Left::ForeignBlock => "left out a block of another provider",
        Left::BrokenArguments => "put arguments that are no JSON object into one",
        Left::Name => "put `_` for what a tool's name may not have",
        Left::RepeatedTool => "left out a tool with the name of another",
        Left::Temperature | Left::Effort => "left out a setting",
    }
}

fn responses(what: openai_responses::LeftOut) -> &'static str {
    use openai_responses::LeftOut as Left;
    match what {
        Left::SilentAssistant => "left it out: it says nothing that this provider reads",
        Left::Attachment => "put a note in the place of an image or a file",
        Left::ForeignBlock => "left out a block of another provider",
        Left::Reasoning => "left out reasoning that this provider cannot read",
        Left::LoneReasoning => "left out reasoning of which nothing came",
        Left::Name => "put `_` for what a tool's name may not have",
        Left::RepeatedTool => "left out a tool with the name of another",
        Left::Temperature | Left::Effort => "left out a setting",
    }
}

fn claude(what: anthropic::LeftOut) -> &'static str {
    use anthropic::LeftOut as Left;
    match what {
        Left::SilentAssistant => "left it out: it says nothing that this provider reads",
        Left::Attachment => "put a note in the place of an image or a file",
        Left::ForeignBlock => "left out a block of another provider",
        Left::Citations => "left out citations whose text was changed",
        Left::ForeignThinking => "left out thinking that this provider did not sign",
        Left::OtherModel => "left out thinking of another model",
        Left::OtherPrefix | Left::UnknownPrefix => {
            "left out thinking that may be bound to what is no longer there"
        }
        Left::UnaskedThinking => "left out thinking: the model is not asked to think on",
        Left::LastThinking => "left out thinking at the end of a message",
        Left::ServerCall => {
            "left out a call of the provider's own tools, or its result: one has lost the other"
        }
        Left::BrokenArguments => "put arguments that are no JSON object into one",
        Left::ToolName => "put `_` for what a tool's name may not have",
        Left::RepeatedTool => "left out a tool with the name of another",
        Left::ThinkingOff
        | Left::ToolForced
        | Left::TemperatureOff
        | Left::TemperatureCapped
        | Left::StopBlank
        | Left::ThinkingOn
        | Left::OutputCapped => "left out a setting",
    }
}
