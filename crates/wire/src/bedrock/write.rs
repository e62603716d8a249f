//! The messages of a Converse request: the parts that only this protocol has, and how a turn is written.

use plimsoll_context::{Message, Part, Source, Thinking};
use serde::Deserialize;

use super::{ConverseProfile, Maker, ORIGIN};
use crate::anthropic::thinking::asks;
use crate::block_list::BlockWriter;
use crate::normalize::{Converted, Native};
use crate::object::Object;
use crate::raw;
use crate::request::LeftOut;
use crate::server_rules::ServerRules;
use crate::turns::{AnsweredCall, Block, Content, Role, TurnCall};

/// A breakpoint of the prompt cache.
pub(super) const CACHE_POINT: &str = r#"{"cachePoint":{"type":"default"}}"#;
/// The media types of images, as the API calls them.
const IMAGES: [(&str, &str); 4] = [
    ("image/jpeg", "jpeg"),
    ("image/png", "png"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
];
/// The media types of documents, as the API calls them.
const DOCUMENTS: [(&str, &str); 9] = [
    ("application/pdf", "pdf"),
    ("text/csv", "csv"),
    ("application/msword", "doc"),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "docx",
    ),
    ("application/vnd.ms-excel", "xls"),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xlsx",
    ),
    ("text/html", "html"),
    ("text/plain", "txt"),
    ("text/markdown", "md"),
];

impl ConverseProfile {
    /// Returns the requirements of the API for the messages of a request.
    pub(super) fn rules(&self) -> ServerRules {
        ServerRules {
            results_apart: !self.mixed_turn,
            user_after_result: self.mixed_turn,
            images: self.images,
            ..ServerRules::BLOCKS
        }
    }
}

/// The reasoning that a model signed, as a transcript keeps it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignedReasoning {
    model: String,
    signature: Option<String>,
    redacted_content: Option<String>,
}

/// Converts the parts of messages.
#[derive(Debug)]
pub(super) struct ConverseParts<'m> {
    /// The model whose reasoning is sent back. `None` if no reasoning is.
    pub(super) reasoning_of: Option<&'m str>,
    /// The number of documents in the request so far. Their names must differ within a turn.
    documents: usize,
}

impl<'m> ConverseParts<'m> {
    pub(super) fn new(reasoning_of: Option<&'m str>) -> Self {
        Self {
            reasoning_of,
            documents: 0,
        }
    }

    fn media(&mut self, source: &Source, name: Option<&str>) -> Option<String> {
        let Source::Data { media_type, base64 } = source else {
            return None;
        };
        let known = |kinds: &[(&str, &'static str)]| {
            let known = kinds.iter().find(|(kind, _)| kind == media_type);
            known.map(|(_, format)| *format)
        };
        let bytes = Object::new().text("bytes", base64).end();
        if let Some(format) = known(&IMAGES) {
            let image = Object::new().text("format", format).raw("source", &bytes);
            return Some(Object::new().raw("image", &image.end()).end());
        }
        let format = known(&DOCUMENTS)?;
        self.documents += 1;
        let document = Object::new()
            .text("format", format)
            .text("name", &document_name(name, self.documents))
            .raw("source", &bytes);
        Some(Object::new().raw("document", &document.end()).end())
    }

    fn reasoning(&self, thinking: &Thinking) -> Converted {
        let model = self.reasoning_of.ok_or(LeftOut::UnaskedThinking)?;
        let kept = signed_by(thinking, model).ok_or(LeftOut::ForeignThinking)?;
        let content = match (kept.redacted_content, kept.signature) {
            (Some(redacted), _) => Object::new().text("redactedContent", &redacted),
            (None, Some(signature)) => {
                let text = Object::new().text("text", &thinking.text);
                let text = text.text("signature", &signature).end();
                Object::new().raw("reasoningText", &text)
            }
            (None, None) => return Err(LeftOut::ForeignThinking),
        };
        let block = Object::new().raw("reasoningContent", &content.end());
        Ok(Some(Content::Thinking(block.end())))
    }
}

impl Native for ConverseParts<'_> {
    fn part(&mut self, part: &Part, _: Role, _: usize) -> Converted {
        let block = match part {
            Part::Image(image) => self.media(&image.source, None),
            Part::File(file) => self.media(&file.source, file.name.as_deref()),
            Part::Thinking(thinking) => return self.reasoning(thinking),
            _ => return Err(LeftOut::ForeignBlock),
        };
        Ok(Some(Content::Json(block.ok_or(LeftOut::Attachment)?)))
    }

    /// Moves reasoning to the beginning.
    fn arrange(&self, blocks: &mut Vec<Block>) {
        blocks.sort_by_key(|block| !matches!(block.content, Content::Thinking(_)));
    }
}

/// Writes for a model.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConverseWriter<'p>(pub(super) &'p ConverseProfile);

impl BlockWriter for ConverseWriter<'_> {
    fn call(&self, call: &TurnCall, _: bool) -> String {
        let call = Object::new()
            .text("toolUseId", &call.id)
            .text("name", &call.name)
            .raw("input", &call.arguments);
        Object::new().raw("toolUse", &call.end()).end()
    }

    fn result(&self, answer: &AnsweredCall, blocks: &[Block]) -> String {
        let text = self.text(&answer.text(blocks));
        let mut result = Object::new()
            .text("toolUseId", &answer.id)
            .list("content", [text.as_str()]);
        // Models of other makers refuse a status.
        if answer.is_error && matches!(self.0.maker, Maker::Anthropic(_) | Maker::Amazon) {
            result = result.text("status", "error");
        }
        Object::new().raw("toolResult", &result.end()).end()
    }

    /// A breakpoint is a separate block.
    fn breakpoint(&self, _: &str) -> String {
        format!(",{CACHE_POINT}")
    }
}

/// Returns `true` if there is no current tool loop, or if it began with reasoning of this model.
pub(super) fn began_with_reasoning(messages: &[&Message], model: &str) -> bool {
    let newest = messages.iter().rev().take_while(|message| !asks(message));
    let first = newest
        .filter(|message| matches!(message, Message::Assistant { .. }))
        .last();
    first.is_none_or(|first| match first.parts().first() {
        Some(Part::Thinking(thinking)) => signed_by(thinking, model).is_some(),
        _ => false,
    })
}

fn signed_by(thinking: &Thinking, model: &str) -> Option<SignedReasoning> {
    let kept: SignedReasoning = raw::own(thinking.opaque.as_ref()?, ORIGIN)?;
    (kept.model == model).then_some(kept)
}

/// Returns the name of a document: letters, digits, single spaces and some signs, unique in its request.
fn document_name(file: Option<&str>, number: usize) -> String {
    let file = file.unwrap_or_default();
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let legal = |c: char| c.is_ascii_alphanumeric() || " -()[]".contains(c);
    let name: String = { stem.chars() }
        .map(|c| if legal(c) { c } else { '-' })
        .collect();
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = if name.is_empty() { "document" } else { &name };
    match number {
        1 => name.to_owned(),
        number => format!("{name}-{number}"),
    }
}
