//! [`Api`]: the server side of a protocol: how requests are refused, counted and answered.
//!
//! `request_handler.rs` decides which of these happens. The validation rules are those of the module `rules`.

use std::borrow::Cow;
use std::fmt::{Debug, Display};

use crate::rules::Fault;
use plimsoll_context::{TokenCounter, Tokens};
use serde_json::{Value, json};

use crate::answer::HttpAnswer;
use crate::cache::{CachedTokens, Caching};
use crate::encode::{AnswerPart, sse};
use crate::frames::{ApiFacts, Frames, Values};
use crate::mock::Mock;
use crate::pieces::RequestPiece;
use crate::turn::Turn;

use crate::rules::table::Words;
pub(crate) use crate::rules::table::{entries as list, text};

/// A function that returns a header of a request by its lower-case name.
pub(crate) type Header<'h> = &'h dyn Fn(&str) -> Option<String>;

/// The server side of a protocol.
pub(crate) trait Api: Debug + Send + Sync {
    /// Returns the constant facts about the protocol.
    fn facts(&self) -> &'static ApiFacts {
        &self.frames().facts
    }

    /// Returns the kind of request at a path, or `None` for an unknown path.
    fn request_kind(&self, path: &str) -> Option<RequestKind> {
        let ApiFacts {
            replies, counts, ..
        } = self.facts();
        if replies.iter().any(|end| path.ends_with(end)) {
            Some(RequestKind::Reply)
        } else {
            let end = counts.as_ref()?;
            path.ends_with(end).then_some(RequestKind::Count)
        }
    }

    /// Returns a request together with the settings in its path, if the API has any there.
    fn with_path<'r>(&self, _path: &str, request: &'r Value) -> Cow<'r, Value> {
        Cow::Borrowed(request)
    }

    /// Returns the refusal of a request with wrong headers, or `None` if they are accepted.
    fn turned_away(&self, _header: Header<'_>, _request: &Value) -> Option<HttpAnswer> {
        None
    }

    /// Returns the first rule that a request breaks, or `None` if it is valid.
    fn fault(&self, header: Header<'_>, request: &Value, kind: RequestKind) -> Option<Fault>;

    /// Returns the status and the body of the refusal for a broken rule.
    fn refusal(&self, fault: &Fault) -> (u16, Value);

    /// Splits a request into pieces, in the order of a prompt.
    fn pieces(&self, request: &Value, counter: &dyn TokenCounter) -> Vec<RequestPiece>;

    /// Returns the requested output size, if it counts towards the window.
    fn output(&self, request: &Value) -> Option<Tokens>;

    /// Returns the number of tokens that count towards the limit per minute.
    fn rated(&self, request: &Value, sent: Tokens) -> Tokens {
        sent + self.output(request).unwrap_or_default()
    }

    /// Returns the kind of prompt caching.
    fn caching(&self, _request: &Value) -> Caching {
        Caching::Prefix
    }

    /// Returns the sentences of the server.
    fn words(&self) -> &'static Words;

    /// Returns an error in the API's format.
    fn error(&self, status: u16, kind: &str, code: Option<&str>, message: &str) -> HttpAnswer;

    /// Returns a failure that is unrelated to the request.
    fn failure(&self, status: u16, message: Option<&str>) -> HttpAnswer {
        let (kind, code, words) = self.words().failure(status);
        self.error(status, kind, code, message.unwrap_or(words))
    }

    /// Returns the failure with this name, with these values in its words.
    fn named(&self, name: &str, values: &[(&str, &dyn Display)]) -> HttpAnswer {
        match self.words().named(name, values) {
            Some((status, kind, code, words)) => self.error(status, kind, code, &words),
            None => self.failure(500, Some(name)),
        }
    }

    /// Returns the refusal of a request that does not fit the window.
    fn too_long(&self, size: Size) -> HttpAnswer {
        let Size {
            used,
            output,
            window,
        } = size;
        let name = if used > window {
            "too-long"
        } else {
            "too-long+output"
        };
        self.named(
            name,
            &[("used", &used), ("output", &output), ("window", &window)],
        )
    }

    /// Returns the refusal of a request that exceeds the token limit per minute.
    fn too_many(&self, request: &Value, requested: Tokens, limit: Tokens) -> HttpAnswer {
        let model = text(request, "model");
        let values: [(&str, &dyn Display); 3] = [
            ("model", &model),
            ("requested", &requested),
            ("limit", &limit),
        ];
        self.named("too-many", &values)
    }

    /// Returns the answer for an unknown path.
    fn nowhere(&self, method: &str, path: &str) -> HttpAnswer {
        self.named("nowhere", &[("method", &method), ("path", &path)])
    }

    /// Returns the form of the answers.
    fn frames(&self) -> &'static Frames;

    /// Returns the parts of a turn.
    fn parts(&self, turn: &Turn, reply: &PendingReply<'_>) -> Vec<AnswerPart>;

    /// Returns further values of a complete answer with these parts, such as its stop reason.
    fn ended(&self, turn: &Turn, reply: &PendingReply<'_>, output: &[Value]) -> Value;

    /// Returns the events of a stream. `events` are those before its end.
    fn stream(&self, mut events: Vec<Value>, _: &Values<'_>, ended: &Values<'_>) -> Vec<Value> {
        events.extend(self.frames().events("end", ended));
        events
    }

    /// Formats the event with this number, from 0.
    fn event(&self, event: Value, _number: usize) -> String {
        sse(&event)
    }

    /// Returns the template of the event that ends a stream with a failure.
    fn failed_frame(&self, _status: u16, _error: &Value) -> &'static str {
        "failed"
    }

    /// Returns the maximum output of a model, if the API publishes it.
    fn max_output(&self, _id: &str) -> Option<u64> {
        None
    }

    /// Returns the answer to a request about the server itself, such as its models, or `None` for
    /// an unknown path.
    fn about(&self, path: &str, mock: &Mock) -> Option<HttpAnswer> {
        let frames = self.frames();
        let window = Values::new(&Value::Null, json!({ "window": mock.window }));
        if mock.window.is_some() && frames.has(path) {
            return Some(HttpAnswer::new(200, frames.one(path, &window)));
        }
        let (base, id) = path.split_once("/models")?;
        if !["", "/v1", "/v1beta"].contains(&base) {
            return None;
        }
        let model = |id: &str| {
            let values = json!({"id": id, "max_output": self.max_output(id)});
            frames.one("model", &window.with(values))
        };
        let body = if id.is_empty() {
            let ids = &mock.models;
            let models: Vec<Value> = ids.iter().map(|id| model(id)).collect();
            let values = json!({"models": models, "first": ids.first(), "last": ids.last()});
            frames.one("models", &window.with(values))
        } else {
            model(id.strip_prefix('/')?)
        };
        Some(HttpAnswer::new(200, body))
    }
}

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A request for a reply.
    Reply,
    /// A request for a token count.
    Count,
}

/// The size of a request, and the available window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) used: Tokens,
    /// The requested output, in addition to `used`.
    pub(crate) output: Tokens,
    pub(crate) window: Tokens,
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct PendingReply<'r> {
    pub(crate) request: &'r Value,
    /// The number of the request, from 1.
    pub(crate) number: u64,
    pub(crate) used: ReportedUsage,
}

/// The reported usage of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReportedUsage {
    /// All input, cached or not.
    pub(crate) input: Tokens,
    pub(crate) cached: CachedTokens,
    /// All output, including reasoning.
    pub(crate) output: Tokens,
    pub(crate) reasoning: Tokens,
}

impl<'r> PendingReply<'r> {
    pub(crate) fn streams(&self) -> bool {
        self.request.get("stream") == Some(&Value::Bool(true))
    }

    /// Returns the values that are known before the answer.
    pub(crate) fn values(&self) -> Values<'r> {
        let ReportedUsage { input, cached, .. } = self.used;
        let named = json!({
            "number": self.number,
            "model": text(self.request, "model"),
            "input": input,
            "uncached": input.minus(cached.read).minus(cached.written()),
            "read": cached.read,
            "written": cached.written(),
            "five_minutes": cached.five_minutes,
            "hour": cached.hour,
        });
        Values::new(self.request, named)
    }
}

/// Adds keys to an object, in place of those that it has.
pub(crate) fn with(mut object: Value, keys: Value) -> Value {
    if let (Value::Object(object), Value::Object(keys)) = (&mut object, keys) {
        object.extend(keys);
    }
    object
}
