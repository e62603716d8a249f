//! Tool calls as a client shows them: a title, a kind, the affected files, and the changes. Nothing
//! is sent here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, Diff, ToolCall, ToolCallContent, ToolCallId, ToolCallLocation,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use plimsoll::context::head_tail;
use plimsoll::model::CallId;
use plimsoll::tokens::Bytes;
use plimsoll::tools::FileChange;
use serde_json::{Map, Value};

use crate::diff::Previews;
use crate::lock;
use crate::terminal::text::{clean, fenced};
use crate::tool_line;

/// Maximum size of a shown result or argument. The model reads all of it.
const MAX_TEXT: Bytes = Bytes(32 * 1024);
/// Maximum size of a shown change, before and after together, in bytes.
const MAX_CHANGE: usize = 2 * 1024 * 1024;
/// Names of arguments that contain a file or folder.
const PATHS: [&str; 7] = [
    "path",
    "file",
    "file_path",
    "filename",
    "dir",
    "directory",
    "folder",
];
/// Names of arguments that contain the first line.
const LINES: [&str; 4] = ["offset", "line", "start_line", "start"];
/// Names of the arguments of `edit` with the text before, and after.
const OLD: [&str; 4] = ["old", "old_string", "old_str", "old_text"];
const NEW: [&str; 4] = ["new", "new_string", "new_str", "new_text"];
/// Names of the argument of `write` with the text.
const CONTENT: [&str; 3] = ["content", "text", "contents"];

/// The calls of one session. Each gets an id that is unique in the session, because the model's own
/// ids are unique only within one message.
pub(super) struct Calls {
    root: PathBuf,
    previews: Arc<Previews>,
    state: Mutex<CallsState>,
}

#[derive(Default)]
struct CallsState {
    /// The number of the current message.
    message: u64,
    /// The number of questions about calls of sub-agents so far, and the calls that wait for an
    /// answer.
    asked: u64,
    others: Vec<ToolCallId>,
    /// The calls of the current message that have not ended.
    open: HashMap<CallId, OpenCall>,
}

#[derive(Default)]
struct OpenCall {
    has_diff: bool,
    /// Whether the client knows the arguments.
    is_described: bool,
    /// Lines about the sub-agents that the call has started.
    below: Vec<String>,
}

/// The description of a call.
pub(super) struct CallDescription {
    pub(super) title: String,
    pub(super) kind: ToolKind,
    pub(super) locations: Vec<ToolCallLocation>,
    pub(super) diff: Option<Diff>,
    pub(super) input: Option<Value>,
}

impl Calls {
    pub(super) fn new(root: PathBuf, previews: Arc<Previews>) -> Self {
        Self {
            root,
            previews,
            state: Mutex::default(),
        }
    }

    /// Begins a new message of the model. Returns the calls of the last message that never ended.
    pub(super) fn next_message(&self) -> Vec<ToolCallId> {
        let mut state = lock(&self.state);
        let left = state.take_open();
        state.message += 1;
        left
    }

    /// Ends all calls. Returns those that never ended.
    pub(super) fn end_all(&self) -> Vec<ToolCallId> {
        lock(&self.state).take_open()
    }

    /// Creates an id for a call of a sub-agent, while the user is asked about it.
    pub(super) fn open_other(&self, call: &CallId) -> ToolCallId {
        let mut state = lock(&self.state);
        state.asked += 1;
        let id = ToolCallId::new(format!("below-{}-{}", state.asked, call.0));
        state.others.push(id.clone());
        id
    }

    /// Removes a call of a sub-agent after the user's answer.
    pub(super) fn close_other(&self, id: &ToolCallId) {
        lock(&self.state).others.retain(|other| other != id);
    }

    /// Returns the client's id of a call, and whether the client knows it already.
    pub(super) fn open(&self, call: &CallId) -> (ToolCallId, bool) {
        let mut state = lock(&self.state);
        let id = state.name(call);
        let is_known = state.open.contains_key(call);
        state.open.entry(call.clone()).or_default();
        (id, is_known)
    }

    /// Removes a call that has ended. Returns the client's id, and whether its diff was shown.
    pub(super) fn close(&self, call: &CallId) -> (ToolCallId, bool) {
        let mut state = lock(&self.state);
        let id = state.name(call);
        let open = state.open.remove(call);
        (id, open.is_some_and(|open| open.has_diff))
    }

    /// Returns the message to the client about a call: a new call, or an update.
    pub(super) fn update_of(
        &self,
        call: &CallId,
        of: &CallDescription,
        status: ToolCallStatus,
    ) -> CallUpdate {
        let (id, is_known) = self.open(call);
        let mut state = lock(&self.state);
        let open = state.open.entry(call.clone()).or_default();
        let was_described = std::mem::replace(&mut open.is_described, of.input.is_some());
        open.has_diff |= of.diff.is_some();
        drop(state);
        match (is_known, was_described) {
            (true, true) => CallUpdate::More(with_status(id, status)),
            (true, false) => CallUpdate::More(of.update(id, status)),
            (false, _) => CallUpdate::New(of.call(id, status)),
        }
    }

    /// Adds a line about a sub-agent. Returns the id of its call, and all lines, the newest last.
    pub(super) fn below(&self, call: &CallId, line: String) -> (ToolCallId, String) {
        /// Maximum number of shown lines.
        const SHOWN: usize = 30;
        let mut state = lock(&self.state);
        let id = state.name(call);
        let open = state.open.entry(call.clone()).or_default();
        if open.below.len() == SHOWN {
            open.below.remove(0);
        }
        open.below.push(line);
        let text = open.below.join("\n");
        (id, text)
    }

    /// Describes a call before it runs.
    pub(super) fn describe(&self, name: &str, arguments: &str) -> CallDescription {
        let change = self.change(name, arguments);
        self.described(name, arguments, change)
    }

    /// Describes a call of the past. Its change is known only from its arguments.
    pub(super) fn describe_past(&self, name: &str, arguments: &str) -> CallDescription {
        let object = object(arguments);
        let diff = object.as_ref().and_then(|object| {
            let path = self.path(text(object, &PATHS)?);
            let diff = match name {
                "edit" => Diff::new(path, text(object, &NEW)?).old_text(text(object, &OLD)?),
                "write" => Diff::new(path, text(object, &CONTENT)?),
                _ => return None,
            };
            let size = diff.new_text.len() + diff.old_text.as_ref().map_or(0, String::len);
            (size <= MAX_CHANGE).then_some(diff)
        });
        CallDescription {
            diff,
            ..self.described(name, arguments, None)
        }
    }

    fn described(
        &self,
        name: &str,
        arguments: &str,
        change: Option<FileChange>,
    ) -> CallDescription {
        let argument = tool_line::argument(name, arguments);
        let object = object(arguments);
        let path = object.as_ref().and_then(|object| text(object, &PATHS));
        let line = object.as_ref().and_then(|object| number(object, &LINES));
        let line = line.or_else(|| changed_line(change.as_ref()?));
        let locations = path.filter(|path| !path.is_empty()).map(|path| {
            let location = ToolCallLocation::new(self.path(path));
            vec![location.line(line)]
        });
        let is_short = arguments.len() as u64 <= MAX_TEXT.0;
        CallDescription {
            title: clean(format!("{name} {argument}").trim_end()),
            kind: kind(name),
            locations: locations.unwrap_or_default(),
            diff: change.map(|change| {
                Diff::new(self.path(&change.path), change.after).old_text(change.before)
            }),
            input: object.filter(|_| is_short).map(Value::Object),
        }
    }

    fn change(&self, name: &str, arguments: &str) -> Option<FileChange> {
        let arguments = serde_json::from_str(arguments).ok()?;
        let change = self.previews.toolbox()?.preview(name, &arguments)?.ok()?;
        let size = change.after.len() + change.before.as_ref().map_or(0, String::len);
        (size <= MAX_CHANGE).then_some(change)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(Path::new(path))
    }
}

/// A message to the client about a call.
pub(super) enum CallUpdate {
    New(ToolCall),
    More(ToolCallUpdate),
}

impl CallsState {
    fn name(&self, call: &CallId) -> ToolCallId {
        ToolCallId::new(format!("{}-{}", self.message, call.0))
    }

    fn take_open(&mut self) -> Vec<ToolCallId> {
        let open = std::mem::take(&mut self.open);
        let others = std::mem::take(&mut self.others);
        let open = open.keys().map(|call| self.name(call));
        open.chain(others).collect()
    }
}

impl CallDescription {
    pub(super) fn call(&self, id: ToolCallId, status: ToolCallStatus) -> ToolCall {
        ToolCall::new(id, self.title.as_str())
            .kind(self.kind)
            .status(status)
            .content(self.content())
            .locations(self.locations.clone())
            .raw_input(self.input.clone())
    }

    pub(super) fn update(&self, id: ToolCallId, status: ToolCallStatus) -> ToolCallUpdate {
        let content = self.content();
        let content = (!content.is_empty()).then_some(content);
        let fields = ToolCallUpdateFields::new()
            .title(self.title.as_str())
            .kind(self.kind)
            .status(status)
            .content(content)
            .locations(self.locations.clone())
            .raw_input(self.input.clone());
        ToolCallUpdate::new(id, fields)
    }

    fn content(&self) -> Vec<ToolCallContent> {
        let diff = self.diff.iter().cloned();
        diff.map(ToolCallContent::Diff).collect()
    }
}

/// Creates the update for a call that has ended. Without a text, the client keeps the shown
/// content.
pub(super) fn ended(id: ToolCallId, is_error: bool, shown: Option<&str>) -> ToolCallUpdate {
    let mut update = with_status(
        id,
        if is_error {
            ToolCallStatus::Failed
        } else {
            ToolCallStatus::Completed
        },
    );
    if let Some(text) = shown.filter(|text| !text.trim().is_empty()) {
        update.fields.content = Some(vec![output(text)]);
    }
    update
}

fn with_status(id: ToolCallId, status: ToolCallStatus) -> ToolCallUpdate {
    ToolCallUpdate::new(id, ToolCallUpdateFields::new().status(status))
}

/// Creates the update with the progress of a running call.
pub(super) fn progress(id: ToolCallId, shown: &str) -> ToolCallUpdate {
    let fields = ToolCallUpdateFields::new().content(vec![output(shown)]);
    ToolCallUpdate::new(id, fields)
}

/// Creates content from a text of Plimsoll.
pub(super) fn words(text: impl Into<String>) -> ToolCallContent {
    let block = ContentBlock::from(text.into());
    ToolCallContent::Content(Content::new(block))
}

/// Creates content from the output of a tool, which is not Markdown.
pub(super) fn output(shown: &str) -> ToolCallContent {
    words(fenced(&clean(&short(shown))))
}

fn short(text: &str) -> String {
    head_tail(text, MAX_TEXT).unwrap_or_else(|| text.to_owned())
}

fn kind(tool: &str) -> ToolKind {
    match tool {
        "read" => ToolKind::Read,
        "write" | "edit" => ToolKind::Edit,
        "bash" => ToolKind::Execute,
        "list" | "glob" | "grep" | "recall" | "recall_search" | "get_tool_response" => {
            ToolKind::Search
        }
        _ => ToolKind::Other,
    }
}

/// Returns the first changed line, from 1.
fn changed_line(change: &FileChange) -> Option<u32> {
    let before = change.before.as_deref()?;
    let mut lines = before.lines().zip(change.after.lines());
    let same = lines.position(|(before, after)| before != after);
    let line = same.unwrap_or_else(|| before.lines().count());
    u32::try_from(line + 1).ok()
}

fn object(arguments: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

fn text<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names
        .iter()
        .find_map(|name| object.get(*name).and_then(Value::as_str))
}

fn number(object: &Map<String, Value>, names: &[&str]) -> Option<u32> {
    let number = names
        .iter()
        .find_map(|name| object.get(*name).and_then(Value::as_u64))?;
    u32::try_from(number).ok()
}
