//! [`ResponsesEvents`]: the events of a streamed response, and whole ones. The order of parts is that
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
use crate::open_reply::OpenReply;
use crate::raw::{RawObject, parse};

/// A reply while it arrives.
pub type ResponsesStreamState = decoder::StreamState<ResponsesEvents, ItemState>;

/// Reads the events of a reply.
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

impl ReplyEvents<ItemState> for ResponsesEvents {
    const DONE_ENDS: bool = true;

    fn event(&mut self, data: &str, reply: &mut OpenReply<ItemState>) -> Result<(), WireError> {
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
                self.head(&response, reply);
                refuse_error(&response, raw)
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => match event.given("response") {
                Some(raw) => self.ended(&parse(raw)?, raw, reply),
                None if kind == "response.failed" => refused(),
                None => {
                    reply.end();
                    Ok(())
                }
            },
            "response.output_item.added" => arrived(&event, false, reply),
            "response.output_item.done" => arrived(&event, true, reply),
            _ => piece(&kind, &event, reply),
        }
    }

    fn whole(&mut self, body: &str, reply: &mut OpenReply<ItemState>) -> Result<(), WireError> {
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
        self.ended(&response, body, reply)
    }

    fn parts(&self, reply: &OpenReply<ItemState>, _: StopReason) -> Vec<Part> {
        let mut items: Vec<&OpenItem> = reply.blocks().iter().collect();
        items.sort_by_key(|open| open.state.index);
        let mut parts: Vec<Part> = items.into_iter().flat_map(OpenItem::parts).collect();
        unique_ids(&mut parts, &self.response);
        parts
    }
}

impl ResponsesEvents {
    fn head(&mut self, response: &RawObject<'_>, reply: &mut OpenReply<ItemState>) {
        let some = |key| Some(response.text(key)).filter(|text| !text.is_empty());
        self.response = some("id").unwrap_or(std::mem::take(&mut self.response));
        reply.model = some("model").or(reply.model.take());
    }

    /// Takes the last event, which repeats the whole response.
    fn ended(
        &mut self,
        response: &RawObject<'_>,
        raw: &str,
        reply: &mut OpenReply<ItemState>,
    ) -> Result<(), WireError> {
        self.head(response, reply);
        let reported: Option<Value> = response.given("usage").map(parse).transpose()?;
        reply.used(reported.as_ref().and_then(usage));
        refuse_error(response, raw)?;
        output(response.given("output"), reply)?;
        reply.stopped(stop(response).unwrap_or(StopReason::Stop));
        reply.end();
        Ok(())
    }
}

/// Merges the whole output with the items that arrived before. Items of one type stand in the order in
/// which they arrived, unless their ids tell otherwise.
fn output(output: Option<&str>, reply: &mut OpenReply<ItemState>) -> Result<(), WireError> {
    let output: Vec<&RawValue> = output.map_or_else(|| Ok(Vec::new()), parse)?;
    for (index, raw) in (0..).zip(output) {
        let raw = raw.get();
        let item: Value = object(raw, || format!("output[{index}]"))?;
        let kind = items::kind(&item);
        let is_free = |open: &OpenItem| !open.state.is_final && open.is(kind);
        let mut blocks = reply.blocks().iter();
        let same = blocks.position(|open| is_free(open) && open.is_same(&item) == Some(true));
        let at = match same.or_else(|| reply.blocks().iter().position(is_free)) {
            Some(at) => at,
            None => open(None, kind, reply)?,
        };
        if let Some(block) = reply.block_mut(at) {
            block.state.is_final = true;
            block.state.index = Some(index);
        }
        whole(at, item, raw, reply)?;
    }
    Ok(())
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

/// Takes an item that begins, or one that is whole.
fn arrived(
    event: &RawObject<'_>,
    is_whole: bool,
    reply: &mut OpenReply<ItemState>,
) -> Result<(), WireError> {
    let Some(raw) = event.given("item") else {
        return Ok(());
    };
    let item: Value = object(raw, || "item".to_owned())?;
    let index = event.number("output_index");
    let at = match item::of_item(reply.blocks(), index, &item, is_whole) {
        Some(at) => at,
        None => open(index, items::kind(&item), reply)?,
    };
    if is_whole {
        return whole(at, item, raw, reply);
    }
    if let Some(block) = reply
        .block_mut(at)
        .filter(|block| block.state.raw.is_none())
    {
        block.take_item(item);
        item::tell_call(at, reply);
    }
    Ok(())
}

/// Takes a whole item, which replaces the pieces and a shorter version. Some servers send the encrypted
/// content only in the last event.
fn whole(
    at: usize,
    item: Value,
    raw: &str,
    reply: &mut OpenReply<ItemState>,
) -> Result<(), WireError> {
    let Some(block) = reply.block_mut(at) else {
        return Ok(());
    };
    let state = &mut block.state;
    if state
        .raw
        .as_ref()
        .is_some_and(|known| known.len() >= raw.len())
    {
        return Ok(());
    }
    let new = raw.len().saturating_sub(state.bytes);
    state.bytes += new;
    state.raw = Some(raw.to_owned());
    block.take_item(item);
    reply.charge(new)?;
    item::tell_call(at, reply);
    item::tell_rest(at, reply);
    Ok(())
}

/// Takes a piece of an item. Unknown pieces are ignored, because the whole item repeats them.
fn piece(
    kind: &str,
    event: &RawObject<'_>,
    reply: &mut OpenReply<ItemState>,
) -> Result<(), WireError> {
    let (of, part) = match kind {
        "response.output_text.delta" | "response.refusal.delta" => ("message", "content_index"),
        "response.reasoning_summary_text.delta" => ("reasoning", "summary_index"),
        "response.reasoning_text.delta" => ("reasoning", "content_index"),
        "response.function_call_arguments.delta" => ("function_call", ""),
        "response.custom_tool_call_input.delta" => ("custom_tool_call", ""),
        _ => return Ok(()),
    };
    let (index, id) = (event.number("output_index"), event.text("item_id"));
    let known = item::of_piece(reply.blocks(), index, of, &id);
    let more = event.text("delta");
    if more.is_empty() {
        return Ok(());
    }
    let at = match known {
        Some(at) => at,
        None => open(index, of, reply)?,
    };
    reply.charge(more.len())?;
    if let Some(block) = reply
        .block_mut(at)
        .filter(|block| block.state.raw.is_none())
    {
        block.state.bytes += more.len();
        if block.state.piece_id.is_empty() {
            block.state.piece_id = id;
        }
        let part = event.number(part).unwrap_or_default();
        let before = std::mem::replace(&mut block.state.part, part);
        // Each part of reasoning is a paragraph.
        let begins = part != before && of == "reasoning" && !block.text().is_empty();
        let more = if begins { format!("\n\n{more}") } else { more };
        reply.push(at, &more);
    }
    Ok(())
}

/// Begins an item and returns its place.
fn open(
    index: Option<u64>,
    kind: &str,
    reply: &mut OpenReply<ItemState>,
) -> Result<usize, WireError> {
    let (content, mut state) = ItemState::of(kind);
    state.index = index;
    reply.open(content, state)
}
