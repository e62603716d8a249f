//! [`StreamState`]: the events of a streamed response put together into one reply. Knows nothing
//! of server-sent events: it is given the text of each `data:` field. The order of parts is that
//! of the output items.

mod open;
mod place;

use place::About;

use plimsoll_context::{Delta, Part, Reply, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::items;
use super::reply::{Response, read_reply, text, unique_ids, with_calls};
use super::usage::usage;
use crate::decoder::StreamDecoder;
use crate::error::WireError;
use crate::openai_chat::{MAX_PARTS, MAX_REPLY};
use crate::raw::parse;

/// The text that ends a stream at servers that know the older wire; this one ends with an event.
const DONE: &str = "[DONE]";

/// A reply while it arrives.
#[derive(Debug, Clone, Default)]
pub struct StreamState {
    response: String,
    model: Option<String>,
    items: Vec<Open>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    done: Done,
    bytes: usize,
}

/// Whether the end mark came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Done {
    #[default]
    NotYet,
    Marked,
}

/// One output item while it arrives.
#[derive(Debug, Clone)]
struct Open {
    /// Its place in the output, as the server said it.
    place: Option<u64>,
    /// The id that its first piece had, if it was there before the item.
    named: Option<String>,
    /// What has come of it in pieces.
    pieces: Pieces,
    /// The item as the server gave it last: first nearly empty, at its end whole.
    item: Value,
    /// The same, byte for byte, once it is whole.
    raw: Option<String>,
}

/// What has come of an item in pieces.
#[derive(Debug, Clone)]
enum Pieces {
    /// The parts of a message's content, by their place.
    Said(Vec<(u64, String)>),
    /// The parts of a summary of reasoning, or of reasoning itself, by their place.
    Thought(Vec<(u64, String)>),
    /// The name that was told, and the arguments.
    Call { told: bool, arguments: String },
    /// Nothing that anybody is told of.
    Hidden { told: bool },
}

/// One event.
#[derive(Debug, Default, Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default)]
    kind: Option<Value>,
    #[serde(default)]
    output_index: Option<Value>,
    #[serde(default)]
    item_id: Option<Value>,
    #[serde(default)]
    content_index: Option<Value>,
    #[serde(default)]
    summary_index: Option<Value>,
    #[serde(default)]
    delta: Option<Value>,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default)]
    input: Option<Value>,
    #[serde(default, borrow)]
    item: Option<&'a RawValue>,
    #[serde(default, borrow)]
    response: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    object: Option<Value>,
}

impl StreamDecoder for StreamState {
    fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError> {
        let data = data.trim();
        if data.is_empty() || self.done == Done::Marked {
            return Ok(Vec::new());
        }
        if data == DONE {
            self.done = Done::Marked;
            return Ok(Vec::new());
        }
        let event: Event<'_> = parse(data)?;
        let mut deltas = Vec::new();
        let failed = event.error.as_ref().is_some_and(|error| !error.is_null());
        let kind = text(event.kind.as_ref()).unwrap_or_default();
        match kind {
            "error" => return Err(WireError::Provider { body: data.into() }),
            "" if failed => return Err(WireError::Provider { body: data.into() }),
            // A whole response where a stream was asked for.
            "" if text(event.object.as_ref()) == Some("response") => {
                self.ended(data, &mut deltas)?;
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                self.begun(event.response)?;
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => match event.response {
                Some(response) => self.ended(response.get(), &mut deltas)?,
                None if kind == "response.failed" => {
                    return Err(WireError::Provider { body: data.into() });
                }
                None => self.done = Done::Marked,
            },
            "response.output_item.added" => self.added(&event, &mut deltas)?,
            "response.output_item.done" => self.finished(&event, &mut deltas)?,
            _ => self.piece(kind, &event, &mut deltas)?,
        }
        Ok(deltas)
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some() || self.done == Done::Marked
    }

    /// The last event contains the whole reply.
    fn is_complete(&self) -> bool {
        self.has_ended()
    }

    fn partial(&self) -> Reply {
        self.reply(self.stop.unwrap_or(StopReason::Other))
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn finish(&self) -> Result<Reply, WireError> {
        if !self.has_ended() {
            let partial = Box::new(self.partial());
            return Err(WireError::Cut { partial });
        }
        let mut reply = self.reply(self.stop.unwrap_or(StopReason::Stop));
        reply.stop = with_calls(reply.stop, &reply.parts);
        Ok(reply)
    }

    fn read_whole(&mut self, body: &str) -> Result<Reply, WireError> {
        read_reply(body)
    }
}

impl StreamState {
    /// Nothing has arrived yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn reply(&self, stop: StopReason) -> Reply {
        let mut parts: Vec<Part> = self.items.iter().flat_map(Open::parts).collect();
        unique_ids(&mut parts, &self.response);
        Reply {
            parts,
            stop,
            usage: self.usage,
            model: self.model.clone(),
        }
    }

    fn begun(&mut self, response: Option<&RawValue>) -> Result<(), WireError> {
        let Some(raw) = response else {
            return Ok(());
        };
        let response: Response<'_> = parse(raw.get())?;
        self.head(&response);
        response.refuse_error(raw.get())
    }

    fn head(&mut self, response: &Response<'_>) {
        if let Some(id) = text(response.id.as_ref()) {
            self.response = id.to_owned();
        }
        if let Some(model) = response.model() {
            self.model = Some(model);
        }
    }

    /// The response has ended, and its last event repeats all of it.
    fn ended(&mut self, raw: &str, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        let response: Response<'_> = parse(raw)?;
        self.head(&response);
        self.usage = response.usage.as_ref().and_then(usage).or(self.usage);
        response.refuse_error(raw)?;
        self.all(response.output.as_deref().unwrap_or_default(), deltas)?;
        self.stop = Some(response.stop().unwrap_or(StopReason::Stop));
        Ok(())
    }

    /// Takes the whole output: what it adds to what has come.
    fn all(&mut self, output: &[&RawValue], deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        // Before they are compared with each other.
        if output.len() > MAX_PARTS {
            return Err(WireError::TooManyParts { limit: MAX_PARTS });
        }
        let items: Result<Vec<Value>, _> = output
            .iter()
            .map(|raw| match serde_json::from_str(raw.get()) {
                Ok(item @ Value::Object(_)) => Ok(item),
                Ok(other) => Err(WireError::expected("item", "an object", Some(&other))),
                Err(error) => Err(WireError::not_json(&error)),
            })
            .collect();
        let items = items?;
        let mut known = place::of_output(&self.items, &items);
        // Where an item goes that has not come: after the one before it.
        let mut next = 0;
        for (index, (item, raw)) in items.into_iter().zip(output).enumerate() {
            let at = match known.get(index).copied().flatten() {
                Some(known) => known,
                None => {
                    self.items.insert(next, Open::of(items::kind(&item)));
                    let after = known.iter_mut().flatten().filter(|known| **known >= next);
                    after.for_each(|known| *known += 1);
                    next
                }
            };
            next = at + 1;
            // Some leave the encrypted content out of the item and put it here only.
            let poorer = |open: &Open| {
                open.raw.is_none()
                    || items::kind(&open.item) == "reasoning" && !items::is_encrypted(&open.item)
            };
            if self.items.get(at).is_some_and(poorer) {
                self.whole(at, item, raw, deltas)?;
            }
        }
        Ok(())
    }

    fn added(&mut self, event: &Event<'_>, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        let Some(raw) = event.item else {
            return Ok(());
        };
        let item: Value = parse(raw.get())?;
        let about = event.about(items::kind(&item), Some(&item));
        let at = match place::begun(&self.items, about) {
            Some(at) => at,
            None => self.open(about)?,
        };
        if let Some(open) = self.items.get_mut(at).filter(|open| open.raw.is_none()) {
            open.item = item;
            open.tell_call(deltas);
        }
        Ok(())
    }

    fn finished(&mut self, event: &Event<'_>, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        let Some(raw) = event.item else {
            return Ok(());
        };
        let item: Value = parse(raw.get())?;
        if !item.is_object() {
            return Err(WireError::expected("item", "an object", Some(&item)));
        }
        let about = event.about(items::kind(&item), Some(&item));
        let at = match place::of_whole(&self.items, about) {
            Some(at) => at,
            None => self.open(about)?,
        };
        self.whole(at, item, raw, deltas)
    }

    /// Takes an item that is whole: it has the last word.
    fn whole(
        &mut self,
        at: usize,
        item: Value,
        raw: &RawValue,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), WireError> {
        self.charge(raw.get().len())?;
        if let Some(open) = self.items.get_mut(at) {
            open.item = item;
            open.raw = Some(raw.get().to_owned());
            open.tell_call(deltas);
            open.tell_rest(deltas);
        }
        Ok(())
    }

    /// A piece of an item. What is not known says nothing that is not said again by its item.
    fn piece(
        &mut self,
        kind: &str,
        event: &Event<'_>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), WireError> {
        let (of, place) = match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                ("message", &event.content_index)
            }
            "response.reasoning_summary_text.delta" => ("reasoning", &event.summary_index),
            "response.reasoning_text.delta" => ("reasoning", &event.content_index),
            "response.function_call_arguments.delta" => ("function_call", &None),
            "response.custom_tool_call_input.delta" => ("custom_tool_call", &None),
            "response.function_call_arguments.done" | "response.custom_tool_call_input.done" => {
                return self.arguments_done(event, deltas);
            }
            _ => return Ok(()),
        };
        let Some(more) = text(event.delta.as_ref()).filter(|more| !more.is_empty()) else {
            return Ok(());
        };
        self.charge(more.len())?;
        let part = number(place.as_ref()).unwrap_or_default();
        let about = event.about(of, None);
        let at = match place::of_piece(&self.items, about) {
            Some(at) => at,
            None => self.open(about)?,
        };
        if let Some(open) = self.items.get_mut(at) {
            open.take(part, more, deltas);
        }
        Ok(())
    }

    /// Servers that send arguments in one piece send them here.
    fn arguments_done(
        &mut self,
        event: &Event<'_>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), WireError> {
        let all = text(event.arguments.as_ref()).or_else(|| text(event.input.as_ref()));
        let known = place::of_piece(&self.items, event.about("function_call", None));
        let open = known.and_then(|at| Some((at, self.items.get(at)?)));
        let (Some(all), Some((at, open))) = (all, open) else {
            return Ok(());
        };
        let Pieces::Call { arguments, .. } = &open.pieces else {
            return Ok(());
        };
        let rest = all.strip_prefix(arguments.as_str()).unwrap_or_default();
        let rest = rest.to_owned();
        self.charge(rest.len())?;
        if let Some(open) = self.items.get_mut(at) {
            open.take(0, &rest, deltas);
        }
        Ok(())
    }

    /// Begins an item that an event is about, and says where it stands.
    fn open(&mut self, about: About<'_>) -> Result<usize, WireError> {
        if self.items.len() >= MAX_PARTS {
            return Err(WireError::TooManyParts { limit: MAX_PARTS });
        }
        let (at, place) = place::new(&self.items, about.place);
        let mut open = Open::of(about.kind);
        open.place = place;
        open.named = about.id.map(str::to_owned);
        self.items.insert(at, open);
        Ok(at)
    }

    fn charge(&mut self, bytes: usize) -> Result<(), WireError> {
        self.bytes = self.bytes.saturating_add(bytes);
        // A piece is counted when it comes and again with its whole item.
        if self.bytes as u64 > MAX_REPLY.0.saturating_mul(2) {
            return Err(WireError::TooLarge { limit: MAX_REPLY });
        }
        Ok(())
    }
}

impl Event<'_> {
    /// What it says of the item that it is about.
    fn about<'e>(&'e self, kind: &'e str, item: Option<&'e Value>) -> About<'e> {
        let id = text(self.item_id.as_ref()).filter(|id| !id.is_empty());
        About {
            place: number(self.output_index.as_ref()),
            kind,
            id,
            item,
        }
    }
}

fn number(value: Option<&Value>) -> Option<u64> {
    value.and_then(Value::as_u64)
}
