//! Tool calls as a client shows them: a title, a kind, the affected files, and the changes.

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, Diff, SessionUpdate, ToolCall, ToolCallContent, ToolCallId,
    ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use plimsoll::context::head_tail;
use plimsoll::model::CallId;
use plimsoll::tokens::Bytes;
use plimsoll::tools::FileChange;
use serde_json::Value;

use super::updates::{Updates, UpdatesState};
use crate::lock;
use crate::terminal::text::{clean, fenced};
use crate::tool_line;

/// Maximum size of a shown result or argument. The model reads all of it.
const MAX_TEXT: Bytes = Bytes(32 * 1024);
/// Maximum size of a shown change, before and after together, in bytes.
const MAX_CHANGE: usize = 512 * 1024;

/// Each call gets an id that is unique in the session, because the model's own ids are unique only
/// within one message.
impl Updates {
    /// Begins a new message of the model. Ends the calls of the last message that never ended.
    pub(super) fn next_message(&self, why: &str) {
        let mut state = lock(&self.state);
        for call in std::mem::take(&mut state.open).into_keys() {
            self.end_call(state.id(&call), true, why);
        }
        state.message += 1;
    }

    /// Returns the client's id of a call, which is open from now on.
    pub(super) fn open(&self, call: &CallId) -> ToolCallId {
        let mut state = lock(&self.state);
        state.open.entry(call.clone()).or_default();
        state.id(call)
    }

    /// Ends a call. Without a text, the client keeps the shown content. The result of a successful
    /// change is its diff.
    pub(super) fn close(&self, call: &CallId, is_error: bool, text: &str) {
        let mut state = lock(&self.state);
        let has_diff = state.open.remove(call).unwrap_or(false);
        let text = if has_diff && !is_error { "" } else { text };
        self.end_call(state.id(call), is_error, text);
    }

    fn end_call(&self, id: ToolCallId, is_error: bool, text: &str) {
        let status = if is_error {
            ToolCallStatus::Failed
        } else {
            ToolCallStatus::Completed
        };
        let content = (!text.trim().is_empty()).then(|| vec![output(text)]);
        let fields = ToolCallUpdateFields::new().status(status).content(content);
        let update = ToolCallUpdate::new(id, fields);
        self.outbox.send(SessionUpdate::ToolCallUpdate(update));
    }

    /// Shows a call, or how it goes on.
    pub(super) fn show(&self, call: &CallId, of: ToolCallUpdateFields, status: ToolCallStatus) {
        let mut state = lock(&self.state);
        let is_known = state.open.contains_key(call);
        *state.open.entry(call.clone()).or_default() |= of.content.is_some();
        let update = ToolCallUpdate::new(state.id(call), of.status(status));
        self.outbox.send(match ToolCall::try_from(update.clone()) {
            Ok(call) if !is_known => SessionUpdate::ToolCall(call),
            _ => SessionUpdate::ToolCallUpdate(update),
        });
    }

    /// Shows the progress of a running call.
    pub(super) fn progress(&self, call: &CallId, shown: &str) {
        let fields = ToolCallUpdateFields::new().content(vec![output(shown)]);
        let update = ToolCallUpdate::new(self.open(call), fields);
        self.outbox.send(SessionUpdate::ToolCallUpdate(update));
    }

    /// Describes a call before it runs.
    pub(super) fn describe(&self, name: &str, arguments: &str) -> ToolCallUpdateFields {
        self.described(name, arguments, self.previews.change(name, arguments))
    }

    /// Describes a call of the past. Its change is known only from its arguments.
    pub(super) fn describe_past(&self, name: &str, arguments: &str) -> ToolCallUpdateFields {
        let json: Value = serde_json::from_str(arguments).unwrap_or_default();
        let text = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
        let (before, after) = match name {
            "edit" => (text("old"), text("new")),
            "write" => (None, text("content")),
            _ => (None, None),
        };
        let change = text("path").zip(after).map(|(path, after)| FileChange {
            path,
            before,
            after,
        });
        let mut of = self.described(name, arguments, change);
        // The numbers of the lines are those of the text in the arguments.
        for location in of.locations.iter_mut().flatten() {
            location.line = None;
        }
        of
    }

    fn described(
        &self,
        name: &str,
        arguments: &str,
        change: Option<FileChange>,
    ) -> ToolCallUpdateFields {
        let size = |change: &FileChange| {
            change.after.len() + change.before.as_ref().map_or(0, String::len)
        };
        let change = change.filter(|change| size(change) <= MAX_CHANGE);
        let argument = tool_line::argument(name, arguments);
        let input = serde_json::from_str(arguments)
            .ok()
            .filter(Value::is_object);
        let field = |names: [&str; 3]| {
            let input = input.as_ref()?;
            names.into_iter().find_map(|name| input.get(name))
        };
        let path = field(["path", "file_path", "file"]).and_then(Value::as_str);
        let line = field(["offset", "line", "start_line"]).and_then(Value::as_u64);
        let line = line.and_then(|line| u32::try_from(line).ok());
        let line = line.or_else(|| changed_line(change.as_ref()?));
        let locations = path.filter(|path| !path.is_empty()).map(|path| {
            let location = ToolCallLocation::new(self.root.join(path));
            location.line(line)
        });
        let diff = change.map(|change| {
            Diff::new(self.root.join(&change.path), change.after).old_text(change.before)
        });
        ToolCallUpdateFields::new()
            .title(clean(format!("{name} {argument}").trim_end()))
            .kind(kind(name))
            .content(diff.map(|diff| vec![ToolCallContent::Diff(diff)]))
            .locations(locations.into_iter().collect::<Vec<_>>())
            .raw_input(input.filter(|_| arguments.len() as u64 <= MAX_TEXT.0))
    }
}

impl UpdatesState {
    fn id(&self, call: &CallId) -> ToolCallId {
        ToolCallId::new(format!("{}-{}", self.message, call.0))
    }
}

/// Creates content from a text of Plimsoll.
pub(super) fn words(text: impl Into<String>) -> ToolCallContent {
    let block = ContentBlock::from(text.into());
    ToolCallContent::Content(Content::new(block))
}

/// Creates content from the output of a tool, which is not Markdown.
pub(super) fn output(text: &str) -> ToolCallContent {
    let short = head_tail(text, MAX_TEXT);
    words(fenced(&clean(short.as_deref().unwrap_or(text))))
}

fn kind(tool: &str) -> ToolKind {
    match tool {
        "read" => ToolKind::Read,
        "write" | "edit" => ToolKind::Edit,
        "bash" => ToolKind::Execute,
        "web_search" | "web_fetch" => ToolKind::Fetch,
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
