//! Which tool call a piece of a stream belongs to, and what is new in it: servers leave out
//! indexes or ids, repeat names, send arguments twice or accumulated. Not the reply; see
//! `stream.rs`.

use serde_json::{Map, Value};

use super::parts::CUSTOM;

/// The tool calls of a reply while they arrive.
#[derive(Debug, Clone, Default)]
pub(super) struct CallPieces {
    calls: Vec<OpenCall>,
}

/// One tool call while it arrives.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenCall {
    /// Its id, unique in the reply.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) extra: Map<String, Value>,
    index: Option<u64>,
    /// The id that the server gave, if it gave one.
    given: Option<String>,
    /// How far the arguments are.
    scan: Scan,
    form: Form,
    /// The name was told again when the arguments were whole: what follows may be another call's.
    named_again: bool,
}

/// How the pieces of the arguments come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Unknown,
    /// Each is what is new.
    New,
    /// Each is all that there was, and more.
    All,
}

/// Where in a JSON value a text ends, as far as its brackets tell; so that nothing is read twice.
#[derive(Debug, Clone, Copy, Default)]
struct Scan {
    depth: usize,
    quoted: bool,
    escaped: bool,
    begun: bool,
    /// Something stands behind the end.
    beyond: bool,
}

/// Where a piece belongs.
pub(super) enum Found {
    /// To the call at this place.
    Open(usize),
    /// To a call that begins with it.
    New,
    /// To a call that begins with it, of the tool that was named before.
    Again(String),
}

impl CallPieces {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &OpenCall> {
        self.calls.iter()
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut OpenCall> {
        self.calls.get_mut(at)
    }

    /// Finds the call that a piece continues.
    pub(super) fn find(
        &self,
        index: Option<u64>,
        id: Option<&str>,
        name: &str,
        arguments: &str,
    ) -> Found {
        if let Some(id) = id {
            let same = |call: &OpenCall| {
                call.given.as_deref() == Some(id) && (index.is_none() || call.index == index)
            };
            if let Some(at) = self.calls.iter().rposition(same) {
                return Found::Open(at);
            }
            // An index whose call has no id yet gets it late; else the id is a new call's, even
            // at servers that give all calls index 0.
            let late =
                |call: &OpenCall| index.is_some() && call.index == index && call.given.is_none();
            return match self.calls.iter().rposition(late) {
                Some(at) => Found::Open(at),
                None => Found::New,
            };
        }
        let at = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None => self.calls.len().checked_sub(1),
        };
        match at.and_then(|at| self.calls.get(at).map(|call| (at, call))) {
            Some((_, call)) if call.goes_on_as_another(name, arguments) => {
                Found::Again(call.name.clone())
            }
            Some((at, call)) if !call.is_over(name, arguments) => Found::Open(at),
            _ => Found::New,
        }
    }

    /// Opens a call under an id, or under a longer one if that is taken.
    pub(super) fn open(
        &mut self,
        index: Option<u64>,
        given: Option<String>,
        mut id: String,
    ) -> usize {
        while self.calls.iter().any(|call| call.id == id) {
            id.push('_');
        }
        self.calls.push(OpenCall {
            id,
            index,
            given,
            ..OpenCall::default()
        });
        self.calls.len() - 1
    }
}

impl OpenCall {
    /// Takes a name and says whether the call has begun with it.
    pub(super) fn take_name(&mut self, name: &str) -> bool {
        if name.is_empty() || !self.name.is_empty() {
            return false;
        }
        self.name = name.to_owned();
        true
    }

    /// Whether the tool takes a text of any form.
    pub(super) fn is_text(&self) -> bool {
        self.extra.get("type").is_some_and(|kind| kind == CUSTOM)
    }

    /// Takes arguments and says what of them is new.
    pub(super) fn take_arguments(&mut self, more: &str) -> String {
        if self.is_text() {
            self.arguments.push_str(more);
            return more.to_owned();
        }
        if self.is_all(more) {
            let new = more.get(self.arguments.len()..).unwrap_or_default();
            self.push(new);
            return new.to_owned();
        }
        // An empty object first and the real one later.
        if self.arguments.trim() == "{}" && more.trim_start().starts_with('{') {
            self.arguments.clear();
            self.scan = Scan::default();
        } else if !self.arguments.is_empty() && !more.is_empty() {
            self.form = Form::New;
        }
        self.push(more);
        more.to_owned()
    }

    fn push(&mut self, more: &str) {
        self.scan.take(more);
        self.arguments.push_str(more);
    }

    /// Whether a piece is all that was there, once more or with what is new: inside JSON that begins
    /// with a brace, a continuation rarely looks like that. One that would close more than was open
    /// is a continuation, and so are all of a stream that had one.
    fn is_all(&mut self, more: &str) -> bool {
        let same = self.arguments.starts_with('{')
            && more.len() >= self.arguments.len()
            && more.starts_with(&self.arguments);
        if !same {
            return false;
        }
        let mut whole = self.scan;
        whole.take(more.get(self.arguments.len()..).unwrap_or_default());
        if self.scan.is_over() {
            return !whole.beyond || self.form != Form::New;
        }
        let all = self.form != Form::New && !whole.beyond;
        if all && more.len() > self.arguments.len() {
            self.form = Form::All;
        }
        all
    }

    /// Remembers that the call was named once more.
    pub(super) fn told_of(&mut self, name: &str, arguments: &str) {
        self.named_again |=
            !name.is_empty() && name == self.name && arguments.is_empty() && self.scan.is_over();
    }

    /// Whether these arguments are those of another call, of the same tool, whose name came alone.
    fn goes_on_as_another(&self, name: &str, arguments: &str) -> bool {
        self.named_again
            && (name.is_empty() || name == self.name)
            && !arguments.trim().is_empty()
            && arguments != self.arguments
    }

    /// Whether a piece without an id, with this name and these arguments, is another call's.
    fn is_over(&self, name: &str, arguments: &str) -> bool {
        if name.is_empty() || self.name.is_empty() {
            return false;
        }
        if name == self.name {
            // The same call once more word for word is a repetition, not a second call.
            return self.scan.is_over() && !arguments.is_empty() && arguments != self.arguments;
        }
        true
    }
}

impl Scan {
    fn take(&mut self, text: &str) {
        for byte in text.bytes() {
            self.beyond |= self.is_over() && !byte.is_ascii_whitespace();
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

    /// Whether an object or a list is whole.
    fn is_over(self) -> bool {
        self.begun && self.depth == 0 && !self.quoted
    }
}
