//! Which tool call a piece of a stream belongs to, and what is new in it: servers leave out
//! indexes or ids, repeat names, send arguments twice or accumulated. Not the reply; see
//! `stream.rs`.

use plimsoll_context::ToolCall;

use crate::open_reply::OpenBlock;

/// What tells which call a piece belongs to, and what of it is new.
#[derive(Debug, Clone, Default)]
pub struct CallState {
    index: Option<u64>,
    /// The id that the server gave, if it gave one.
    given: Option<String>,
    /// How far the arguments are.
    scan: Scan,
    form: PieceForm,
    /// The name was told again when the arguments were whole: what follows may be another call's.
    named_again: bool,
}

/// How the pieces of the arguments come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PieceForm {
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

/// The call that a piece belongs to.
pub(super) enum CallPlace {
    /// The call in the block at this place.
    Open(usize),
    /// A call that begins with it.
    New,
    /// A call that begins with it, of the tool that was named before.
    Again(String),
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
            call.given.as_deref() == Some(id) && (index.is_none() || call.index == index)
        };
        // An index whose call has no id yet gets it late; else the id is a new call's, even
        // at servers that give all calls index 0.
        let late =
            |call: &CallState| index.is_some() && call.index == index && call.given.is_none();
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
    /// Creates the state of a call of which nothing has come but these.
    pub(super) fn new(index: Option<u64>, given: Option<String>) -> Self {
        Self {
            index,
            given,
            ..Self::default()
        }
    }

    /// Returns what of the arguments in a piece is new, in place of an empty object that came first.
    pub(super) fn new_arguments(&mut self, call: &mut ToolCall, more: &str) -> String {
        let new = if self.is_all(call, more) {
            more.get(call.arguments.len()..).unwrap_or_default()
        } else {
            if call.arguments.trim() == "{}" && more.trim_start().starts_with('{') {
                call.arguments.clear();
                self.scan = Scan::default();
            } else if !call.arguments.is_empty() && !more.is_empty() {
                self.form = PieceForm::New;
            }
            more
        };
        self.scan.take(new);
        new.to_owned()
    }

    /// Whether a piece is all that was there, once more or with what is new: inside JSON that begins
    /// with a brace, a continuation rarely looks like that. One that would close more than was open
    /// is a continuation, and so are all of a stream that had one.
    fn is_all(&mut self, call: &ToolCall, more: &str) -> bool {
        let said = call.arguments.as_str();
        let same = said.starts_with('{') && more.starts_with(said);
        if !same {
            return false;
        }
        let mut whole = self.scan;
        whole.take(more.get(said.len()..).unwrap_or_default());
        if self.scan.is_over() {
            return !whole.beyond || self.form != PieceForm::New;
        }
        let all = self.form != PieceForm::New && !whole.beyond;
        if all && more.len() > said.len() {
            self.form = PieceForm::All;
        }
        all
    }

    /// Remembers that the call was named once more.
    pub(super) fn told_of(&mut self, call: &ToolCall, name: &str, arguments: &str) {
        self.named_again |=
            !name.is_empty() && name == call.name && arguments.is_empty() && self.scan.is_over();
    }

    /// Whether these arguments are those of another call, of the same tool, whose name came alone.
    fn goes_on_as_another(&self, call: &ToolCall, name: &str, arguments: &str) -> bool {
        self.named_again
            && (name.is_empty() || name == call.name)
            && !arguments.trim().is_empty()
            && arguments != call.arguments
    }

    /// Whether a piece without an id, with this name and these arguments, is another call's.
    fn is_over(&self, call: &ToolCall, name: &str, arguments: &str) -> bool {
        if name.is_empty() || call.name.is_empty() {
            return false;
        }
        if name == call.name {
            // The same call once more word for word is a repetition, not a second call.
            return self.scan.is_over() && !arguments.is_empty() && arguments != call.arguments;
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
