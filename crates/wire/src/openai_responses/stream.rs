//! [`ResponsesStreamState`]: the events of a streamed response, and whole ones. The order of parts is that
//! of the output items.

mod item;

use item::{ItemState, OpenItem};

use plimsoll_context::{Part, Reply, StopReason};
use serde_json::Value;
use serde_json::value::RawValue;

use super::items;
use super::reply::{refuse_error, status, stop, unique_ids};
use super::usage::usage;
use crate::decoder::{self, ReplyEvents, StreamDecoder};
use crate::error::WireError;
use crate::raw::{RawObject, parse};

/// A reply while it arrives.
pub type ResponsesStreamState = decoder::StreamState<ResponsesEvents, ItemState>;

/// The state of a reply besides its items.
#[derive(Debug, Clone, Default)]
pub struct ResponsesEvents {
    response: String,
}

/// Reads a whole response.
///
/// # Errors
///
/// [`WireError::Provider`] if it is an error or reports a failure, whatever its status was, and
/// [`WireError::NotJson`], [`WireError::Expected`], [`WireError::TooLarge`] or
/// [`WireError::TooManyParts`].
pub fn read_reply(body: &str) -> Result<Reply, WireError> {
    ResponsesStreamState::new().read_whole(body)
}

impl ReplyEvents for ResponsesStreamState {
    const DONE_ENDS: bool = true;

    fn event(&mut self, data: &str) -> Result<(), WireError> {
        let event: RawObject<'_> = parse(data)?;
        let refused = || Err(WireError::Provider { body: data.into() });
        let kind = event.text("type");
        match kind.as_str() {
            "error" => refused(),
            "" if event.given("error").is_some() => refused(),
            "response.created" | "response.in_progress" | "response.queued" => {
                let Some(raw) = event.given("response") else {
                    return Ok(());
                };
                let response = parse(raw)?;
                self.head(&response);
                refuse_error(&response, raw)
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => match event.given("response") {
                Some(raw) => self.ended(&parse(raw)?, raw),
                None if kind == "response.failed" => refused(),
                None => {
                    self.reply.end();
                    Ok(())
                }
            },
            "response.output_item.added" => self.arrived(&event, false),
            "response.output_item.done" => self.arrived(&event, true),
            _ => self.piece(&kind, &event),
        }
    }

    fn whole(&mut self, body: &str) -> Result<(), WireError> {
        let value: &RawValue = parse(body)?;
        let response: RawObject<'_> = object(value.get(), || "the response".to_owned())?;
        if response.text("type") == "error" {
            return Err(WireError::Provider { body: body.into() });
        }
        refuse_error(&response, body)?;
        if response.given("output").is_none() {
            return Err(WireError::expected("output", "an array of items", None));
        }
        if stop(&response).is_none() {
            return Err(WireError::Expected {
                place: "status".into(),
                expected: "a response that has ended".into(),
                got: format!("{:?}", status(&response)),
            });
        }
        self.ended(&response, body)
    }

    fn parts(&self, _: StopReason) -> Vec<Part> {
        let mut items: Vec<&OpenItem> = self.reply.blocks().iter().collect();
        items.sort_by_key(|open| open.state.index);
        let mut parts: Vec<Part> = items.into_iter().flat_map(OpenItem::parts).collect();
        unique_ids(&mut parts, &self.events.response);
        parts
    }
}

impl ResponsesStreamState {
    fn head(&mut self, response: &RawObject<'_>) {
        let some = |key| Some(response.text(key)).filter(|text| !text.is_empty());
        if let Some(id) = some("id") {
            self.events.response = id;
        }
        self.reply.model = some("model").or(self.reply.model.take());
    }

    /// Takes the last event, which repeats the whole response.
    fn ended(&mut self, response: &RawObject<'_>, raw: &str) -> Result<(), WireError> {
        self.head(response);
        let reported: Option<Value> = response.given("usage").map(parse).transpose()?;
        self.reply.used(reported.as_ref().and_then(usage));
        refuse_error(response, raw)?;
        let output: Vec<&RawValue> = parse(response.given("output").unwrap_or("[]"))?;
        for (index, raw) in (0..).zip(output) {
            self.output_item(index, raw.get())?;
        }
        self.reply
            .stopped(stop(response).unwrap_or(StopReason::Stop));
        self.reply.end();
        Ok(())
    }

    /// Merges an item of the whole output with one that arrived before. Items of one type stand in the
    /// order in which they arrived, unless their ids tell otherwise.
    fn output_item(&mut self, index: u64, raw: &str) -> Result<(), WireError> {
        let item: Value = object(raw, || format!("output[{index}]"))?;
        let kind = items::kind(&item);
        let is_free = |open: &OpenItem| !open.state.is_final && open.is(kind);
        let blocks = self.reply.blocks();
        let same = |open: &OpenItem| is_free(open) && open.is_same(&item) == Some(true);
        let same = blocks.iter().position(same);
        let at = match same.or_else(|| blocks.iter().position(is_free)) {
            Some(at) => at,
            None => self.open(None, kind)?,
        };
        if let Some(block) = self.reply.block_mut(at) {
            block.state.is_final = true;
            block.state.index = Some(index);
        }
        self.whole_item(at, item, raw)
    }

    /// Takes an item that begins, or one that is whole.
    fn arrived(&mut self, event: &RawObject<'_>, is_whole: bool) -> Result<(), WireError> {
        let Some(raw) = event.given("item") else {
            return Ok(());
        };
        let item: Value = object(raw, || "item".to_owned())?;
        let index = event.number("output_index");
        let at = match item::of_item(self.reply.blocks(), index, &item, is_whole) {
            Some(at) => at,
            None => self.open(index, items::kind(&item))?,
        };
        if is_whole {
            return self.whole_item(at, item, raw);
        }
        let block = self.reply.block_mut(at);
        if let Some(block) = block.filter(|block| block.state.raw.is_none()) {
            block.take_item(item);
            self.tell_call(at);
        }
        Ok(())
    }

    /// Takes a whole item, which replaces the pieces and a shorter version. Some servers send the encrypted
    /// content only in the last event.
    fn whole_item(&mut self, at: usize, item: Value, raw: &str) -> Result<(), WireError> {
        let is_new = |open: &&mut OpenItem| {
            let known = open.state.raw.as_ref();
            known.is_none_or(|known| known.len() < raw.len())
        };
        let Some(block) = self.reply.block_mut(at).filter(is_new) else {
            return Ok(());
        };
        let new = raw.len().saturating_sub(block.state.bytes);
        block.state.bytes += new;
        block.state.raw = Some(raw.to_owned());
        block.take_item(item);
        self.reply.charge(new)?;
        self.tell_call(at);
        self.tell_rest(at);
        Ok(())
    }

    /// Takes a piece of an item. Unknown pieces are ignored, because the whole item repeats them.
    fn piece(&mut self, kind: &str, event: &RawObject<'_>) -> Result<(), WireError> {
        let (of, part) = match kind {
            "response.output_text.delta" | "response.refusal.delta" => ("message", "content_index"),
            "response.reasoning_summary_text.delta" => ("reasoning", "summary_index"),
            "response.reasoning_text.delta" => ("reasoning", "content_index"),
            "response.function_call_arguments.delta" => ("function_call", ""),
            "response.custom_tool_call_input.delta" => ("custom_tool_call", ""),
            _ => return Ok(()),
        };
        let more = event.text("delta");
        if more.is_empty() {
            return Ok(());
        }
        let (index, id) = (event.number("output_index"), event.text("item_id"));
        let at = match item::of_piece(self.reply.blocks(), index, of, &id) {
            Some(at) => at,
            None => self.open(index, of)?,
        };
        self.reply.charge(more.len())?;
        let block = self.reply.block_mut(at);
        if let Some(block) = block.filter(|block| block.state.raw.is_none()) {
            block.state.bytes += more.len();
            if block.state.piece_id.is_empty() {
                block.state.piece_id = id;
            }
            let part = event.number(part).unwrap_or_default();
            let before = std::mem::replace(&mut block.state.part, part);
            // Each part of reasoning is a paragraph.
            let begins = part != before && of == "reasoning" && !block.text().is_empty();
            let more = if begins { format!("\n\n{more}") } else { more };
            self.reply.push(at, &more);
        }
        Ok(())
    }

    /// Begins an item and returns its place.
    fn open(&mut self, index: Option<u64>, kind: &str) -> Result<usize, WireError> {
        let (content, mut state) = ItemState::of(kind);
        state.index = index;
        self.reply.open(content, state)
    }

    /// Reports that a tool call has begun, once its name is known.
    fn tell_call(&mut self, at: usize) {
        let call = self.reply.blocks().get(at).and_then(OpenItem::call);
        if call.is_some_and(|call| !call.name.is_empty()) {
            self.reply.tell_call(at);
        }
    }

    /// Reports the text of a whole item that its pieces did not contain. Does nothing when the same item
    /// arrives again.
    fn tell_rest(&mut self, at: usize) {
        let Some(block) = self.reply.blocks().get(at) else {
            return;
        };
        match block.whole_text() {
            Some(text) => self.reply.settle(at, text),
            None => {
                let parts = block.parts();
                self.reply.tell_hosted(at, &parts);
            }
        }
    }
}

fn object<'r, T>(raw: &'r str, place: impl FnOnce() -> String) -> Result<T, WireError>
where
    T: serde::Deserialize<'r>,
{
    if raw.starts_with('{') {
        return parse(raw);
    }
    let other: Value = parse(raw)?;
    Err(WireError::expected(place(), "an object", Some(&other)))
}
