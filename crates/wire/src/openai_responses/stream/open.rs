//! One output item while it arrives: what it says so far, and what of that is told.

use plimsoll_context::{Delta, Part, Thinking, ToolCall};

use super::{Open, Pieces};
use crate::hosted;
use crate::openai_responses::items;
use crate::openai_responses::reply::{output_parts, tool_call, with_beside};

/// What stands between the parts of a summary of reasoning.
pub(super) const PARAGRAPH: &str = "\n\n";

impl Pieces {
    pub(super) fn of(kind: &str) -> Self {
        match kind {
            "message" => Self::Said(Vec::new()),
            "reasoning" => Self::Thought(Vec::new()),
            "function_call" | "custom_tool_call" => Self::Call {
                told: false,
                arguments: String::new(),
            },
            _ => Self::Hidden { told: false },
        }
    }
}

impl Open {
    pub(super) fn of(kind: &str) -> Self {
        Self {
            place: None,
            named: None,
            pieces: Pieces::of(kind),
            item: serde_json::json!({ "type": kind }),
            raw: None,
        }
    }

    /// What the item says so far.
    pub(super) fn parts(&self) -> Vec<Part> {
        if let Some(raw) = &self.raw {
            return output_parts(&self.item, raw);
        }
        match &self.pieces {
            Pieces::Said(texts) => {
                let texts = texts.iter().map(|(_, text)| Part::text(text.clone()));
                with_beside(&self.item, texts.collect())
            }
            Pieces::Thought(texts) => {
                let texts: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
                let text = texts.join(PARAGRAPH);
                // Cut in the middle, it is of no use to the provider.
                let thinking = Thinking { text, opaque: None };
                (!thinking.text.is_empty())
                    .then_some(Part::Thinking(thinking))
                    .into_iter()
                    .collect()
            }
            Pieces::Call { arguments, .. } => {
                let call = self.call();
                vec![Part::ToolCall(ToolCall {
                    arguments: arguments.clone(),
                    ..call
                })]
            }
            Pieces::Hidden { .. } => Vec::new(),
        }
    }

    pub(super) fn call(&self) -> ToolCall {
        let custom = items::kind(&self.item) == "custom_tool_call";
        tool_call(&self.item, if custom { "input" } else { "arguments" })
    }

    /// Takes a piece of text and tells it.
    pub(super) fn take(&mut self, place: u64, more: &str, deltas: &mut Vec<Delta>) {
        let call = self.call().id;
        let more = more.to_owned();
        match &mut self.pieces {
            Pieces::Said(texts) => {
                append(texts, place, &more);
                deltas.push(Delta::Text { text: more });
            }
            Pieces::Thought(texts) => {
                // A summary's parts are paragraphs.
                let new = !texts.is_empty() && texts.iter().all(|(known, _)| *known != place);
                append(texts, place, &more);
                let text = if new {
                    format!("{PARAGRAPH}{more}")
                } else {
                    more
                };
                deltas.push(Delta::Thinking { text });
            }
            Pieces::Call { arguments, .. } => {
                arguments.push_str(&more);
                if !more.is_empty() {
                    deltas.push(Delta::CallArguments { call, text: more });
                }
            }
            Pieces::Hidden { .. } => {}
        }
    }

    /// Tells that a tool call has begun, once its name is known.
    pub(super) fn tell_call(&mut self, deltas: &mut Vec<Delta>) {
        let call = self.call();
        if let Pieces::Call { told, .. } = &mut self.pieces
            && !*told
            && !call.name.is_empty()
        {
            *told = true;
            let name = call.name;
            deltas.push(Delta::CallStarted {
                call: call.id,
                name,
            });
        }
    }

    /// Tells what of a whole item has not come in pieces. The same item once more tells nothing.
    pub(super) fn tell_rest(&mut self, deltas: &mut Vec<Delta>) {
        let parts = match &self.raw {
            Some(raw) => output_parts(&self.item, raw),
            None => return,
        };
        let call = self.call().id;
        // What was told otherwise cannot be taken back.
        let rest = |all: &str, told: &str| {
            let rest = all.strip_prefix(told).filter(|rest| !rest.is_empty());
            rest.map(str::to_owned)
        };
        let new = match &mut self.pieces {
            Pieces::Said(texts) => {
                let all: String = parts.iter().filter_map(Part::as_text).collect();
                let new = rest(&all, &joined(texts, "")).map(|text| Delta::Text { text });
                *texts = vec![(0, all)];
                new
            }
            Pieces::Thought(texts) => {
                let all = items::reasoning_text(&self.item);
                let new = rest(&all, &joined(texts, PARAGRAPH));
                *texts = vec![(0, all)];
                new.map(|text| Delta::Thinking { text })
            }
            Pieces::Call { arguments, .. } => {
                let mut calls = parts.into_iter().filter_map(|part| match part {
                    Part::ToolCall(call) => Some(call.arguments),
                    _ => None,
                });
                let all = calls.next().unwrap_or_default();
                let new = rest(&all, arguments);
                *arguments = all;
                new.map(|text| Delta::CallArguments { call, text })
            }
            Pieces::Hidden { told } => {
                if !std::mem::replace(told, true) {
                    let opaque = parts.iter().filter_map(|part| match part {
                        Part::Opaque(opaque) => Some(opaque),
                        _ => None,
                    });
                    deltas.extend(opaque.flat_map(hosted::told));
                }
                None
            }
        };
        deltas.extend(new);
    }
}

fn append(texts: &mut Vec<(u64, String)>, place: u64, more: &str) {
    let at = texts.partition_point(|(known, _)| *known < place);
    match texts.get_mut(at) {
        Some((known, text)) if *known == place => text.push_str(more),
        _ => texts.insert(at, (place, more.to_owned())),
    }
}

pub(super) fn joined(texts: &[(u64, String)], between: &str) -> String {
    let texts: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
    texts.join(between)
}
