//! [`ResponsesEvents`]: the events of a streamed response, and whole ones. The order of parts is that
//! of the output items.

mod item;
mod place;

use item::{ItemState, OpenItem};
use place::EventItem;

use plimsoll_context::{Part, Reply, StopReason};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::items;
use super::reply::{Response, text, unique_ids};
use super::usage::usage;
use crate::decoder::{self, ReplyEvents, StreamDecoder};
use crate::error::WireError;
use crate::open_reply::{MAX_PARTS, MAX_REPLY, OpenReply};
use crate::raw::parse;

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

/// One event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResponsesEvent<'a> {
    #[serde(rename = "type")]
    kind: Option<Value>,
    output_index: Option<Value>,
    item_id: Option<Value>,
    content_index: Option<Value>,
    summary_index: Option<Value>,
    delta: Option<Value>,
    arguments: Option<Value>,
    input: Option<Value>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    error: Option<Value>,
    object: Option<Value>,
}

impl ReplyEvents<ItemState> for ResponsesEvents {
    const DONE_ENDS: bool = true;

    fn open() -> OpenReply<ItemState> {
        // A piece is counted on arrival and again with its whole item.
        OpenReply::counting_twice()
    }

    fn event(&mut self, data: &str, reply: &mut OpenReply<ItemState>) -> Result<(), WireError> {
        let event: ResponsesEvent<'_> = parse(data)?;
        let failed = event.error.as_ref().is_some_and(|error| !error.is_null());
        let kind = text(event.kind.as_ref()).unwrap_or_default();
        match kind {
            "error" => Err(WireError::Provider { body: data.into() }),
            "" if failed => Err(WireError::Provider { body: data.into() }),
            // A whole response in place of a stream.
            "" if text(event.object.as_ref()) == Some("response") => {
                self.ended(&parse(data)?, data, reply)
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                let Some(raw) = event.response else {
                    return Ok(());
                };
                let response: Response<'_> = parse(raw.get())?;
                self.head(&response, reply);
                response.refuse_error(raw.get())
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => match event.response {
                Some(raw) => self.ended(&parse(raw.get())?, raw.get(), reply),
                None if kind == "response.failed" => Err(WireError::Provider { body: data.into() }),
                None => {
                    reply.end();
                    Ok(())
                }
            },
            "response.output_item.added" => added(&event, reply),
            "response.output_item.done" => finished(&event, reply),
            _ => piece(kind, &event, reply),
        }
    }

    fn whole(&mut self, body: &str, reply: &mut OpenReply<ItemState>) -> Result<(), WireError> {
        if body.len() as u64 > MAX_REPLY.0.saturating_mul(2) {
            return Err(WireError::TooLarge { limit: MAX_REPLY });
        }
        let value: Value = parse(body)?;
        if !value.is_object() {
            let place = "the response";
            return Err(WireError::expected(place, "an object", Some(&value)));
        }
        if value.get("type").and_then(Value::as_str) == Some("error") {
            return Err(WireError::Provider { body: body.into() });
        }
        let response: Response<'_> = parse(body)?;
        response.refuse_error(body)?;
        if response.output.is_none() {
            return Err(WireError::expected("output", "an array of items", None));
        }
        if response.stop().is_none() {
            return Err(WireError::Expected {
                place: "status".into(),
                expected: "a response that has ended".into(),
                got: format!("{:?}", response.status()),
            });
        }
        reply.count_once();
        self.ended(&response, body, reply)
    }

    fn parts(&self, reply: &OpenReply<ItemState>, _: StopReason) -> Vec<Part> {
        let mut parts: Vec<Part> = reply.blocks().iter().flat_map(OpenItem::parts).collect();
        unique_ids(&mut parts, &self.response);
        parts
    }
}

impl ResponsesEvents {
    fn head(&mut self, response: &Response<'_>, reply: &mut OpenReply<ItemState>) {
        if let Some(id) = text(response.id.as_ref()) {
            self.response = id.to_owned();
        }
        reply.model = response.model().or(reply.model.take());
    }

    /// Takes the last event, which repeats the whole response.
    fn ended(
        &mut self,
        response: &Response<'_>,
        raw: &str,
        reply: &mut OpenReply<ItemState>,
    ) -> Result<(), WireError> {
        self.head(response, reply);
        reply.used(response.usage.as_ref().and_then(usage));
        response.refuse_error(raw)?;
        output(response.output.as_deref().unwrap_or_default(), reply)?;
        reply.stopped(response.stop().unwrap_or(StopReason::Stop));
        reply.end();
        Ok(())
    }
}

/// Merges the whole output with the pieces that arrived before.
fn output(output: &[&RawValue], reply: &mut OpenReply<ItemState>) -> Result<(), WireError> {
    // The limit applies before the items are compared.
    if output.len() > MAX_PARTS {
        return Err(WireError::TooManyParts { limit: MAX_PARTS });
    }
    let items = output.iter().enumerate();
    let items = items.map(|(index, raw)| object(raw, || format!("output[{index}]")));
    let items = items.collect::<Result<Vec<Value>, WireError>>()?;
    let mut known = place::of_output(reply.blocks(), &items);
    // The index for an item that has not arrived yet: after the one before it.
    let mut next = 0;
    for (index, (item, raw)) in items.into_iter().zip(output).enumerate() {
        let at = match known.get(index).copied().flatten() {
            Some(known) => known,
            None => {
                let (content, state) = ItemState::of(items::kind(&item));
                let next = reply.open(next, content, state)?;
                let after = known.iter_mut().flatten().filter(|known| **known >= next);
                after.for_each(|known| *known += 1);
                next
            }
        };
        next = at + 1;
        // Some servers send the encrypted content only here and not in the item.
        let is_poorer = |open: &OpenItem| {
            open.state.raw.is_none()
                || items::kind(&open.state.item) == "reasoning"
                    && !items::is_encrypted(&open.state.item)
        };
        if reply.blocks().get(at).is_some_and(is_poorer) {
            whole_item(at, item, raw, reply)?;
        }
    }
    Ok(())
}

fn object(raw: &RawValue, place: impl FnOnce() -> String) -> Result<Value, WireError> {
    match parse(raw.get())? {
        item @ Value::Object(_) => Ok(item),
        other => Err(WireError::expected(place(), "an object", Some(&other))),
    }
}

fn added(event: &ResponsesEvent<'_>, reply: &mut OpenReply<ItemState>) -> Result<(), WireError> {
    let Some(raw) = event.item else {
        return Ok(());
    };
    let item: Value = parse(raw.get())?;
    let about = event.about(items::kind(&item), Some(&item));
    let at = match place::begun(reply.blocks(), about) {
        Some(at) => at,
        None => open(about, reply)?,
    };
    let block = reply.block_mut(at);
    if let Some(block) = block.filter(|block| block.state.raw.is_none()) {
        block.take_item(item);
        item::tell_call(at, reply);
    }
    Ok(())
}

fn finished(event: &ResponsesEvent<'_>, reply: &mut OpenReply<ItemState>) -> Result<(), WireError> {
    let Some(raw) = event.item else {
        return Ok(());
    };
    let item = object(raw, || "item".to_owned())?;
    let about = event.about(items::kind(&item), Some(&item));
    let at = match place::of_whole(reply.blocks(), about) {
        Some(at) => at,
        None => open(about, reply)?,
    };
    whole_item(at, item, raw, reply)
}

/// Takes a whole item, which replaces the pieces.
fn whole_item(
    at: usize,
    item: Value,
    raw: &RawValue,
    reply: &mut OpenReply<ItemState>,
) -> Result<(), WireError> {
    reply.charge(raw.get().len())?;
    if let Some(block) = reply.block_mut(at) {
        block.state.raw = Some(raw.get().to_owned());
        block.take_item(item);
        item::tell_call(at, reply);
        item::tell_rest(at, reply);
    }
    Ok(())
}

/// Takes a piece of an item. Unknown pieces are ignored, because the whole item repeats them.
fn piece(
    kind: &str,
    event: &ResponsesEvent<'_>,
    reply: &mut OpenReply<ItemState>,
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
            return arguments_done(event, reply);
        }
        _ => return Ok(()),
    };
    let Some(more) = text(event.delta.as_ref()).filter(|more| !more.is_empty()) else {
        return Ok(());
    };
    reply.charge(more.len())?;
    let about = event.about(of, None);
    let at = match place::of_piece(reply.blocks(), about) {
        Some(at) => at,
        None => open(about, reply)?,
    };
    reply.push_part(at, number(place.as_ref()).unwrap_or_default(), more);
    Ok(())
}

/// Takes complete arguments. Some servers send arguments only here.
fn arguments_done(
    event: &ResponsesEvent<'_>,
    reply: &mut OpenReply<ItemState>,
) -> Result<(), WireError> {
    let all = text(event.arguments.as_ref()).or_else(|| text(event.input.as_ref()));
    let known = place::of_piece(reply.blocks(), event.about("function_call", None));
    let call = known.and_then(|at| Some((at, reply.blocks().get(at)?.call()?)));
    let (Some(all), Some((at, call))) = (all, call) else {
        return Ok(());
    };
    let rest = all.strip_prefix(call.arguments.as_str());
    reply.write(at, rest.unwrap_or_default())
}

/// Begins the item of an event, and returns its index.
fn open(about: EventItem<'_>, reply: &mut OpenReply<ItemState>) -> Result<usize, WireError> {
    let (at, place) = place::new(reply.blocks(), about.place);
    let (content, mut state) = ItemState::of(about.kind);
    state.place = place;
    state.named = about.id.map(str::to_owned);
    reply.open(at, content, state)
}

impl ResponsesEvent<'_> {
    /// Returns the event's data about its item.
    fn about<'e>(&'e self, kind: &'e str, item: Option<&'e Value>) -> EventItem<'e> {
        let id = text(self.item_id.as_ref()).filter(|id| !id.is_empty());
        EventItem {
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
