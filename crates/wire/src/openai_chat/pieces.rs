//! The values in the chunks of a reply, and the tool calls that their pieces continue.
//!
//! Compatible servers differ in types, so a value of the wrong type counts as absent. They also leave out
//! indexes or ids, and repeat names. `stream.rs` builds the reply.

use plimsoll_context::ToolCall;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::parts::CUSTOM;
use crate::open_reply::OpenBlock;
use crate::tools::is_json_object;

/// The keys of an object.
pub(super) type Keys = Map<String, Value>;

/// A whole response, or one chunk of a streamed one.
#[derive(Debug, Deserialize)]
pub(super) struct Response {
    #[serde(flatten)]
    pub(super) keys: Keys,
}

/// A tool call of a reply, or a piece of one.
#[derive(Debug, Default)]
pub(super) struct CallPiece {
    /// The number of the call in its message.
    pub(super) index: Option<u64>,
    /// The id. In most streams, only the first piece has it.
    pub(super) id: Option<String>,
    pub(super) name: String,
    /// JSON text, or the text for a tool that takes free text.
    pub(super) arguments: String,
    /// All other keys, unchanged.
    pub(super) extra: Keys,
}

/// The index and the id of a call, as the server sent them.
#[derive(Debug, Clone, Default)]
pub struct CallState {
    pub(super) index: Option<u64>,
    pub(super) server_id: Option<String>,
}

impl CallPiece {
    /// Reads an entry of `tool_calls`.
    pub(super) fn of(call: &Keys) -> Self {
        let known = ["index", "id", "function", CUSTOM];
        let mut extra = call.clone();
        extra.retain(|key, _| !known.contains(&key.as_str()));
        extra.remove("type");
        let (name, arguments) = match (object(call, CUSTOM), object(call, "function")) {
            (Some(custom), _) => {
                extra.insert("type".into(), CUSTOM.into());
                (text(custom, "name"), text(custom, "input"))
            }
            (None, Some(function)) => (text(function, "name"), arguments(function)),
            (None, None) => (None, None),
        };
        Self {
            index: count(call.get("index")),
            id: text(call, "id").filter(|id| !id.is_empty()),
            name: name.unwrap_or_default(),
            arguments: arguments.unwrap_or_default(),
            extra,
        }
    }

    /// Checks whether a piece without an id begins another call, and does not continue this one: it names
    /// another tool, or it has arguments although those of the call are whole.
    fn is_behind(&self, call: &ToolCall) -> bool {
        let names_both = !self.name.is_empty() && !call.name.is_empty();
        let is_repeated = self.arguments.is_empty() || self.arguments == call.arguments;
        let is_another = self.name != call.name;
        names_both && (is_another || !is_repeated && is_json_object(&call.arguments))
    }
}

/// Returns the place of the call that a piece continues. `None` if it begins another call.
pub(super) fn find(blocks: &[OpenBlock<CallState>], piece: &CallPiece) -> Option<usize> {
    let last = |fits: &dyn Fn(&CallState) -> bool| {
        let fits = |block: &OpenBlock<CallState>| block.call().is_some() && fits(&block.state);
        blocks.iter().rposition(fits)
    };
    let is_at = |call: &CallState| piece.index.is_none() || call.index == piece.index;
    let Some(id) = &piece.id else {
        let at = last(&is_at)?;
        let call = blocks.get(at)?.call()?;
        return (!piece.is_behind(call)).then_some(at);
    };
    // If the call with this index has no id yet, the id is a late one. Otherwise it belongs to a new call,
    // even at servers that give all calls index 0.
    let late = |call: &CallState| {
        piece.index.is_some() && call.index == piece.index && call.server_id.is_none()
    };
    last(&|call| call.server_id.as_ref() == Some(id) && is_at(call)).or_else(|| last(&late))
}

/// Returns the arguments as JSON text. Some servers send the object itself.
fn arguments(function: &Keys) -> Option<String> {
    match function.get("arguments")? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Returns the objects of a list. A single object is a list of one, and anything else is empty.
pub(super) fn objects<'k>(keys: &'k Keys, key: &str) -> Vec<&'k Keys> {
    match keys.get(key) {
        Some(Value::Array(entries)) => entries.iter().filter_map(Value::as_object).collect(),
        Some(Value::Object(one)) => vec![one],
        _ => Vec::new(),
    }
}

/// Returns an object.
pub(super) fn object<'k>(keys: &'k Keys, key: &str) -> Option<&'k Keys> {
    keys.get(key)?.as_object()
}

/// Returns a text. A number becomes its text.
pub(super) fn text(keys: &Keys, key: &str) -> Option<String> {
    match keys.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns a count, which may be written as a text or with a decimal point.
pub(super) fn count(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::String(digits) => digits.trim().parse().ok(),
        value => value.as_u64().or_else(|| {
            let float = value.as_f64().filter(|float| *float >= 0.0)?;
            Some(float as u64)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_kept() {
        let read = |text: &str| {
            let piece = CallPiece::of(&serde_json::from_str(text).unwrap());
            let extra = Value::Object(piece.extra.clone()).to_string();
            (piece, extra)
        };
        let (call, extra) = read(
            r#"{"index":"3","id":7,"type":"function","x":[1],"y":{"z":null},
                "function":{"name":"f","arguments":{"a":1}}}"#,
        );
        assert_eq!((call.index, call.id.as_deref()), (Some(3), Some("7")));
        assert_eq!((&*call.name, &*call.arguments), ("f", r#"{"a":1}"#));
        assert_eq!(extra, r#"{"y":{"z":null},"x":[1]}"#);
        let (call, extra) = read(r#"{"id":"","custom":{"name":"g","input":"x"},"function":1}"#);
        assert_eq!((call.index, call.id), (None, None));
        assert_eq!((&*call.name, &*call.arguments), ("g", "x"));
        assert_eq!(extra, r#"{"type":"custom"}"#);
    }
}
