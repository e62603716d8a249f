//! Additional keys of an assistant message that are sent back unchanged: OpenRouter's
//! `reasoning_details`, which it requires with the calls of some models, and the id of audio that
//! OpenAI has stored. Readable reasoning is a separate part.

use plimsoll_context::{Opaque, Part};
use serde_json::{Map, Value};

use super::dialect::{Dialect, ErrorStyle};
use super::parts::ORIGIN;
use crate::raw;

/// The gateway that requires its details.
const GATEWAY: &str = "openrouter";
/// The key of the details.
pub(super) const DETAILS: &str = "reasoning_details";
/// The key of audio.
pub const AUDIO: &str = "audio";
/// The keys of a detail that grow from chunk to chunk.
const GROWS: [&str; 3] = ["text", "summary", "data"];

/// Adds the details of one chunk. A piece of the previous detail is merged with it.
pub(super) fn take(all: &mut Vec<Value>, more: Vec<Value>) {
    for detail in more.into_iter().filter(Value::is_object) {
        let same = |key: &str, last: &Value| last.get(key) == detail.get(key);
        let last = all.last_mut();
        let last = last.filter(|last| same("type", last) && same("index", last));
        let Some((Value::Object(last), Value::Object(piece))) = last
            .filter(|last| last.get("index").is_some())
            .map(|last| (last, &detail))
        else {
            all.push(detail);
            continue;
        };
        for (key, value) in piece {
            match (last.get_mut(key), value) {
                (Some(Value::String(text)), Value::String(more))
                    if GROWS.contains(&key.as_str()) =>
                {
                    text.push_str(more);
                }
                (_, Value::Null) => {}
                _ => {
                    last.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

/// Returns the readable text in the details of one chunk, for a server that sends it nowhere else.
pub(super) fn readable(details: &[Value]) -> String {
    let text = |detail: &Value| {
        let mut keys = ["text", "summary"].iter();
        keys.find_map(|key| detail.get(key)?.as_str().map(str::to_owned))
    };
    details.iter().filter_map(text).collect()
}

/// Returns the part for a key of an assistant message.
pub(super) fn part(key: &str, value: Value) -> Part {
    let mut keys = Map::new();
    keys.insert(key.to_owned(), value);
    Part::Opaque(raw::opaque(ORIGIN, Value::Object(keys).to_string()))
}

/// Returns the keys in such a part. `None` for any other part.
pub(crate) fn keys(opaque: &Opaque) -> Option<Map<String, Value>> {
    let keys: Map<String, Value> = raw::own(opaque, ORIGIN)?;
    let known = |key: &String| key == DETAILS || key == AUDIO;
    (!keys.is_empty() && keys.keys().all(known)).then_some(keys)
}

/// Returns the keys that the server of a dialect reads.
pub(super) fn read_by(dialect: &Dialect, mut keys: Map<String, Value>) -> Map<String, Value> {
    keys.retain(|key, _| match key.as_str() {
        DETAILS => dialect.name == GATEWAY,
        _ => dialect.voice == ErrorStyle::OpenAi,
    });
    keys
}
