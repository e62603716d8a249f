//! [`Api`]: what a wire says for itself as a server: what it refuses and how, what a request weighs,
//! how a turn is said. Not when; that is `desk.rs`'s. The rules of a request are the `wire` crate's.

use std::fmt::Debug;

use plimsoll_context::{TokenCounter, Tokens};
use plimsoll_judge::Fault;
use serde_json::Value;

use crate::answer::{Answer, Said};
use crate::cache::{Cached, Caching};
use crate::pieces::Piece;
use crate::turn::Turn;

/// A header of a request by its name in lower case.
pub(crate) type Header<'h> = &'h dyn Fn(&str) -> Option<String>;

/// A wire as a server speaks it.
pub(crate) trait Api: Debug + Send + Sync {
    /// Its name, as `--protocol` has it.
    fn name(&self) -> &'static str;

    /// What is asked for at a path; nothing where there is nothing.
    fn asked(&self, path: &str) -> Option<Asked>;

    /// The refusal of a request for its headers.
    fn turned_away(&self, _header: Header<'_>, _request: &Value) -> Option<Answer> {
        None
    }

    /// The first rule that a request breaks.
    fn fault(&self, header: Header<'_>, request: &Value, asked: Asked) -> Option<Fault>;

    /// How a request is refused for it.
    fn refusal(&self, fault: &Fault) -> Answer;

    /// A request in pieces, as it would stand in a prompt.
    fn pieces(&self, request: &Value, counter: &dyn TokenCounter) -> Vec<Piece>;

    /// The output that a request asks for, where that counts for the window.
    fn output(&self, request: &Value) -> Option<Tokens>;

    /// What of a request counts for the tokens of a minute.
    fn rated(&self, request: &Value, sent: Tokens) -> Tokens {
        sent + self.output(request).unwrap_or_default()
    }

    /// How its prompts are cached.
    fn caching(&self, _request: &Value) -> Caching {
        Caching::Prefix
    }

    /// The refusal of a request that does not fit the window.
    fn too_long(&self, request: &Value, size: Size) -> Answer;

    /// The refusal of a request of more tokens than may be sent in a minute.
    fn too_many(&self, request: &Value, asked: Tokens, limit: Tokens) -> Answer;

    /// A failure that has nothing to do with the request.
    fn failure(&self, status: u16, message: Option<&str>) -> Answer;

    /// Whether the model itself stops where the window ends, and how that is said.
    fn window_stop(&self) -> Option<&'static str> {
        None
    }

    /// A turn, streamed if the request wants it so.
    fn say(&self, turn: &Turn, call: &Called<'_>) -> Said;

    /// How many events a stream begins with before anything is said.
    fn opening(&self) -> usize;

    /// The event that ends a stream with a failure, after so many others.
    fn broken(&self, failure: &Answer, call: &Called<'_>, after: usize) -> String;

    /// The answer to a question for a count.
    fn counted(&self, tokens: Tokens) -> Value;

    /// What a client may ask about the server itself.
    fn about(&self, path: &str, place: &Place<'_>) -> Option<Answer>;

    /// The header that names a request in its answer.
    fn names_request(&self) -> &'static str {
        "x-request-id"
    }

    /// There is nothing at this path.
    fn nowhere(&self, method: &str, path: &str) -> Answer;
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A reply.
    Reply,
    /// How many tokens the request has.
    Count,
}

/// What a request takes, and what there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) used: Tokens,
    /// What it asks for besides.
    pub(crate) output: Tokens,
    pub(crate) window: Tokens,
}

/// A request that is answered.
#[derive(Debug)]
pub(crate) struct Called<'r> {
    pub(crate) request: &'r Value,
    /// Which one it is, from 1.
    pub(crate) number: u64,
    pub(crate) used: Used,
}

/// What a request took, as it is reported.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    /// All of it, cached or not.
    pub(crate) input: Tokens,
    pub(crate) cached: Cached,
    /// All of it, reasoning too.
    pub(crate) output: Tokens,
    pub(crate) reasoning: Tokens,
}

/// What a server says of itself.
#[derive(Debug)]
pub(crate) struct Place<'m> {
    pub(crate) models: &'m [String],
    pub(crate) window: Option<Tokens>,
}

impl Called<'_> {
    pub(crate) fn streams(&self) -> bool {
        self.request.get("stream") == Some(&Value::Bool(true))
    }

    /// The model that was asked, as the request names it.
    pub(crate) fn model(&self) -> &str {
        text(self.request, "model")
    }
}

pub(crate) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// A text in two pieces.
pub(crate) fn halves(text: &str) -> impl Iterator<Item = &str> {
    let (one, other) = text
        .split_at_checked(text.floor_char_boundary(text.len() / 2))
        .unwrap_or((text, ""));
    [one, other].into_iter().filter(|half| !half.is_empty())
}

/// Counts as a turn says them, over the server's own.
pub(crate) fn counts(mut own: Value, turn: &Turn) -> Value {
    if let Some(counts) = own.as_object_mut() {
        for (key, value) in &turn.usage {
            counts.insert(key.clone(), value.clone());
        }
    }
    own
}
