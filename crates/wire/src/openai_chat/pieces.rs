//! Which tool call a piece of a stream belongs to, and what is new in it: servers leave out
//! indexes or ids, repeat names, send arguments twice or accumulated. Not the reply; see
//! `stream.rs`.

use serde_json::{Map, Value};

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
}

/// Where a piece belongs.
pub(super) enum Found {
    /// To the call at this place.
    Open(usize),
    /// To a call that begins with it.
    New,
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

    /// Takes arguments and says what of them is new.
    pub(super) fn take_arguments(&mut self, more: &str) -> String {
        // A piece that begins with all that was there is the accumulated text, or all of it
        // once more: inside JSON that begins with a brace, a continuation cannot look like that.
        let accumulated = self.arguments.starts_with('{')
            && more.len() >= self.arguments.len()
            && more.starts_with(&self.arguments);
        if accumulated {
            let new = more.get(self.arguments.len()..).unwrap_or_default();
            self.arguments.push_str(new);
            return new.to_owned();
        }
        // An empty object first and the real one later.
        if self.arguments.trim() == "{}" && more.trim_start().starts_with('{') {
            self.arguments.clear();
        }
        self.arguments.push_str(more);
        more.to_owned()
    }

    /// Whether a piece without an id, with this name and these arguments, is another call's.
    fn is_over(&self, name: &str, arguments: &str) -> bool {
        if name.is_empty() || self.name.is_empty() {
            return false;
        }
        let complete = serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok();
        if name == self.name {
            // The same call once more word for word is a repetition, not a second call.
            return complete && !arguments.is_empty() && arguments != self.arguments;
        }
        true
    }
}
