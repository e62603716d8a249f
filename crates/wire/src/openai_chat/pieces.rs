//! The values in the chunks of a reply, and the tool calls that their pieces continue.
//!
//! Compatible servers differ in types, so a value of the wrong type counts as absent. They also leave out
//! indexes or ids, repeat names, and send arguments twice or accumulated. `stream.rs` builds the reply.

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

/// The state with which pieces are assigned to a call.
#[derive(Debug, Clone, Default)]
pub struct CallState {
    index: Option<u64>,
    /// The id that the server sent, if it sent one.
    server_id: Option<String>,
    /// The state of scanning the arguments.
    scan: JsonScan,
    /// The last piece of the arguments, and the one before it.
    last: String,
    previous: String,
    /// Whether the name was sent again after the arguments were complete. The next arguments may belong
    /// to another call.
    named_again: bool,
}

/// Finds the end of a JSON value in a text by its brackets. It keeps its state, so no text is scanned
/// twice.
#[derive(Debug, Clone, Copy, Default)]
struct JsonScan {
    depth: usize,
    quoted: bool,
    escaped: bool,
    begun: bool,
}

/// The call that a piece belongs to.
pub(super) enum CallPlace {
    /// The call in the block at this place.
    Open(usize),
    /// A call that begins with the piece.
    New,
    /// A call that begins with the piece, of the tool that was named before.
    Again(String),
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

    /// Reads the single call of the older form.
    pub(super) fn of_legacy(function: &Keys) -> Self {
        Self {
            index: Some(0),
            name: text(function, "name").unwrap_or_default(),
            arguments: arguments(function).unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// Finds the call that a piece continues.
pub(super) fn find(
    blocks: &[OpenBlock<CallState>],
    index: Option<u64>,
    id: Option<&str>,
    name: &str,
    arguments: &str,
) -> CallPlace {
    let last = |fits: &dyn Fn(&CallState) -> bool| {
        let fits = |block: &OpenBlock<CallState>| block.call().is_some() && fits(&block.state);
        blocks.iter().rposition(fits)
    };
    if let Some(id) = id {
        let same = |call: &CallState| {
            call.server_id.as_deref() == Some(id) && (index.is_none() || call.index == index)
        };
        // If the call with this index has no id yet, the id is a late one. Otherwise it belongs to a
        // new call, even at servers that give all calls index 0.
        let late =
            |call: &CallState| index.is_some() && call.index == index && call.server_id.is_none();
        let at = last(&same).or_else(|| last(&late));
        return at.map_or(CallPlace::New, CallPlace::Open);
    }
    let at = last(&|call| index.is_none() || call.index == index);
    let block = at.and_then(|at| Some((at, blocks.get(at)?)));
    match block.and_then(|(at, block)| Some((at, block.call()?, &block.state))) {
        Some((_, call, state)) if state.goes_on_as_another(call, name, arguments) => {
            CallPlace::Again(call.name.clone())
        }
        Some((at, call, state)) if !state.is_over(call, name, arguments) => CallPlace::Open(at),
        _ => CallPlace::New,
    }
}

impl CallState {
    /// Creates the state of a new call with only an index and an id.
    pub(super) fn new(index: Option<u64>, server_id: Option<String>) -> Self {
        Self {
            index,
            server_id,
            ..Self::default()
        }
    }

    /// Takes a piece of the arguments. It replaces an empty object that came first.
    pub(super) fn take(&mut self, call: &mut ToolCall, more: &str) {
        if call.arguments.trim() == "{}" && more.trim_start().starts_with('{') {
            call.arguments.clear();
            self.scan = JsonScan::default();
        }
        self.scan.take(more);
        if !more.is_empty() {
            self.previous = std::mem::replace(&mut self.last, more.to_owned());
        }
    }

    /// Returns the arguments of a whole call. Some servers repeat all earlier pieces in each or in the last
    /// one: the pieces are no object together, but the last one is.
    pub(super) fn settled(&self, call: ToolCall) -> ToolCall {
        let earlier = call.arguments.strip_suffix(&self.last).unwrap_or_default();
        let previous = self.previous.as_str();
        let repeats =
            self.last == earlier || previous.starts_with('{') && self.last.starts_with(previous);
        if repeats && is_json_object(&self.last) && !is_json_object(&call.arguments) {
            let arguments = self.last.clone();
            return ToolCall { arguments, ..call };
        }
        call
    }

    /// Remembers that the call was named again.
    pub(super) fn name_again(&mut self, call: &ToolCall, name: &str, arguments: &str) {
        self.named_again |=
            !name.is_empty() && name == call.name && arguments.is_empty() && self.scan.is_over();
    }

    /// Returns `true` if these arguments belong to another call of the same tool, after its name came
    /// alone.
    fn goes_on_as_another(&self, call: &ToolCall, name: &str, arguments: &str) -> bool {
        self.named_again
            && (name.is_empty() || name == call.name)
            && !arguments.trim().is_empty()
            && arguments != call.arguments
    }

    /// Returns `true` if a piece without an id, with this name and these arguments, belongs to another
    /// call.
    fn is_over(&self, call: &ToolCall, name: &str, arguments: &str) -> bool {
        if name.is_empty() || call.name.is_empty() {
            return false;
        }
        if name == call.name {
            // An exact repetition of the call is not a second call.
            return self.scan.is_over() && !arguments.is_empty() && arguments != call.arguments;
        }
        true
    }
}

impl JsonScan {
    fn take(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.quoted => self.escaped = true,
                b'"' => self.quoted = !self.quoted,
                _ if self.quoted => {}
                b'{' | b'[' => {
                    self.begun = true;
                    self.depth += 1;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Returns `true` if an object or a list is complete.
    fn is_over(self) -> bool {
        self.begun && self.depth == 0 && !self.quoted
    }
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
