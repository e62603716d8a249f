//! Writing a history back: messages that nobody touched as the very bytes that were read, the others
//! as the items that they are now. Not rendering a request; `render.rs` does.

use plimsoll_context::Message;

use super::profile::{Profile, ReasoningItems};
use super::read::{Chat, Form};
use super::shape::Shaper;
use crate::error::WireError;
use crate::openai_chat::Slot;

impl Chat<'_> {
    /// Writes the history with other messages, in the shape in which it was read, all other keys
    /// kept as they were. An edited message is written anew, with the ids and the reasoning that it
    /// has. A slot whose index is beyond the history is left out.
    ///
    /// # Errors
    ///
    /// None in practice: only a value that is no JSON could fail.
    pub fn write<'m>(
        &self,
        slots: impl IntoIterator<Item = Slot<'m>>,
    ) -> Result<String, WireError> {
        // What was read is given back; whether it may be sent, its sender knows.
        let profile = Profile {
            reasoning: ReasoningItems::Plain,
            ..Profile::openai()
        };
        let slots: Vec<(Slot<'m>, &Message)> = slots
            .into_iter()
            .filter_map(|slot| {
                let message = match slot {
                    Slot::Original(index) => self.messages.get(index)?,
                    Slot::Edited(index, edited) => self.messages.get(index).map(|_| edited)?,
                    Slot::New(message) => message,
                };
                Some((slot, message))
            })
            .collect();
        // All of them, since what a result is depends on its call.
        let mut shaper = Shaper::new(&profile);
        for (_, message) in &slots {
            shaper.message(message);
        }
        let mut list = Vec::new();
        for ((slot, _), items) in slots.iter().zip(shaper.by_message()) {
            match slot {
                Slot::Original(index) => {
                    let originals = self.originals(*index).iter();
                    list.extend(originals.map(|raw| self.item(raw)));
                }
                Slot::Edited(..) | Slot::New(_) => {
                    for item in items {
                        let text = serde_json::to_string(&item);
                        list.push(text.map_err(|error| WireError::not_json(&error))?);
                    }
                }
            }
        }
        let list = format!("[{}]", list.join(","));
        Ok(match self.form {
            Form::Array => list,
            Form::Object => self.object.with(&[("input", Some(list))]),
        })
    }

    /// An original as an item: a bare text is what the user says.
    fn item(&self, raw: &str) -> String {
        match raw.starts_with('"') {
            true => format!("{{\"role\":\"user\",\"content\":{raw}}}"),
            false => raw.to_owned(),
        }
    }
}
