//! Tool calls: a one-line signature, and the files that the call reads, changes or removes.

use serde_json::Value;

use super::sentences::one_line;
use super::shell::ShellCommand;
use super::words::{any_in, is_in};

/// The maximum length of a signature, in bytes.
pub(crate) const SIGNATURE_MAX: usize = 200;
/// The maximum length of an argument in a signature, in bytes.
const ARGUMENT_MAX: usize = 140;
/// The length above which an argument counts as content and is left out of signatures, in bytes.
const CONTENT: usize = 1_000;
/// The maximum number of recorded files of one patch.
const FILES_MAX: usize = 64;
/// The maximum number of elements of a list that is shown.
const LIST_MAX: usize = 8;
/// The line of a patch that gives the file before it another name.
const MOVE: &str = "*** Move to: ";
/// The lines of a patch that name a file.
const PATCH_LINES: [(&str, Act); 4] = [
    ("*** Update File: ", Act::Edited),
    ("*** Add File: ", Act::Written),
    (MOVE, Act::Written),
    ("*** Delete File: ", Act::Removed),
];

/// The action of a call on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Read,
    Written,
    Edited,
    Removed,
    /// Removed, unless the command failed or asked first.
    PerhapsRemoved,
    /// The changes were undone.
    Restored,
}

/// The kind of tool that is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallKind {
    Command(ShellCommand),
    /// A tool that searches or lists.
    Search,
    /// A tool that reads or changes files.
    File,
    Other,
}

/// One tool call.
#[derive(Debug)]
pub(crate) struct TranscriptCall {
    pub(crate) name: String,
    pub(crate) signature: String,
    pub(crate) kind: CallKind,
    /// The files that the call concerns, with its action on each of them.
    pub(crate) files: Vec<(Act, String)>,
    pub(crate) arguments: Value,
}

/// Returns the signature of a call.
pub(crate) fn signature_of(name: &str, arguments: &str) -> String {
    TranscriptCall::new(name, arguments).signature
}

impl TranscriptCall {
    /// Reads a call; one without a name is a shell command.
    pub(crate) fn new(name: &str, arguments: &str) -> Self {
        if name.is_empty() {
            return Self::command(name, arguments);
        }
        let value = serde_json::from_str::<Value>(arguments).unwrap_or(Value::Null);
        if let Some(command) = command_of(name, &value) {
            return Self {
                arguments: value,
                ..Self::command(name, &command)
            };
        }
        let fields = || value.as_object().into_iter().flatten();
        let texts = || fields().filter_map(|(key, value)| Some((key, value.as_str()?)));
        let path = texts().find(|(key, _)| is_in("paths", key));
        let path = path.filter(|(_, path)| !path.trim().is_empty() && !path.contains('\n'));
        let act = act_of(name, &value);
        let files = match (act, path) {
            (Some(act), Some((_, path))) => vec![(act, one_line(path, SIGNATURE_MAX))],
            _ if value.is_null() => patched(arguments),
            _ => texts().flat_map(|(_, text)| patched(text)).collect(),
        };
        let kind = if is_search(name) {
            CallKind::Search
        } else if files.is_empty() {
            CallKind::Other
        } else {
            CallKind::File
        };
        Self {
            name: name.to_owned(),
            signature: signature(name, &value, arguments, &files),
            kind,
            files,
            arguments: value,
        }
    }

    fn command(name: &str, command: &str) -> Self {
        let (shell, mut files) = ShellCommand::read(command);
        files.extend(patched(command));
        files.truncate(FILES_MAX);
        Self {
            name: name.to_owned(),
            signature: one_line(&shell.shown, SIGNATURE_MAX),
            kind: CallKind::Command(shell),
            files,
            arguments: Value::Null,
        }
    }

    /// Returns `true` if the call builds, checks or tests.
    pub(crate) fn is_test(&self) -> bool {
        !self.test().is_empty()
    }

    /// Returns the words of a build, a check or a test, without options. Empty for other calls.
    pub(crate) fn test(&self) -> &[String] {
        match &self.kind {
            CallKind::Command(command) => &command.test,
            CallKind::Search | CallKind::File | CallKind::Other => &[],
        }
    }

    /// Returns the folder that the call changes to. Empty if it does not.
    pub(crate) fn folder(&self) -> &str {
        match &self.kind {
            CallKind::Command(command) => &command.folder,
            CallKind::Search | CallKind::File | CallKind::Other => "",
        }
    }

    /// Returns `true` if the call only shows something.
    pub(crate) fn is_reader(&self) -> bool {
        match &self.kind {
            CallKind::Command(command) => command.is_reader,
            CallKind::Search => true,
            CallKind::File => self.files.iter().all(|(act, _)| *act == Act::Read),
            CallKind::Other => false,
        }
    }
}

/// Returns the command of a shell tool.
fn command_of(name: &str, value: &Value) -> Option<String> {
    let keys = ["command", "cmd", "script", "input"];
    let command = match keys.iter().find_map(|key| value.get(key))? {
        Value::String(text) => text.clone(),
        // ["bash", "-lc", "cargo test"]
        Value::Array(list) => {
            let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                [_, flag, script] if flag.starts_with('-') && flag.ends_with('c') => {
                    (*script).to_owned()
                }
                words => words.join(" "),
            }
        }
        _ => return None,
    };
    let is_shell = any_in("shells", &name.to_lowercase());
    (is_shell && !command.trim().is_empty()).then_some(command)
}

/// Returns the action of a tool on the file that it names.
fn act_of(tool: &str, arguments: &Value) -> Option<Act> {
    let command = arguments.get("command").and_then(Value::as_str);
    let tool = tool.to_lowercase();
    // An editor with several commands has a single word here.
    let words = match command.filter(|command| !command.contains(' ')) {
        Some(command) => format!("{tool} {command}"),
        None => tool,
    };
    if words.ends_with(" view") {
        Some(Act::Read)
    } else if any_in("searches", &words) || any_in("shells", &words) {
        None
    } else if is_in("removers", &words) {
        Some(Act::Removed)
    } else if words.ends_with(" create") || any_in("creates", &words) {
        Some(Act::Written)
    } else if any_in("edits", &words) {
        Some(Act::Edited)
    } else {
        any_in("reads", &words).then_some(Act::Read)
    }
}

fn is_search(tool: &str) -> bool {
    let tool = tool.to_lowercase();
    let mut parts = tool.split(['_', '-']);
    parts.any(|part| is_in("searches", part)) || tool.contains("search") || tool.contains("find_")
}

/// Returns the files that a patch names.
fn patched(text: &str) -> Vec<(Act, String)> {
    let mut files: Vec<(Act, String)> = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("*** ")) {
        let mut found = PATCH_LINES.iter();
        let found = found.find_map(|(start, act)| Some((act, line.strip_prefix(start)?)));
        let Some((act, path)) = found.filter(|_| files.len() < FILES_MAX) else {
            continue;
        };
        if line.starts_with(MOVE) {
            files
                .last_mut()
                .into_iter()
                .for_each(|(act, _)| *act = Act::Removed);
        }
        files.push((*act, one_line(path.trim(), SIGNATURE_MAX)));
    }
    files
}

/// Returns the call as one line.
fn signature(name: &str, value: &Value, arguments: &str, files: &[(Act, String)]) -> String {
    let mut shown = vec![one_line(name, SIGNATURE_MAX)];
    let Value::Object(map) = value else {
        shown.push(one_line(arguments, ARGUMENT_MAX));
        return one_line(&shown.join(" "), SIGNATURE_MAX);
    };
    if let [(act, path)] = files
        && map.values().any(|value| value.as_str() == Some(path))
    {
        let verb = match act {
            Act::Read => "read",
            Act::Written => "write",
            Act::Edited | Act::Restored => "edit",
            Act::Removed | Act::PerhapsRemoved => "remove",
        };
        return one_line(&format!("{verb} {path}"), SIGNATURE_MAX);
    }
    for (key, value) in map {
        let Some(text) = scalar(value) else {
            continue;
        };
        let is_plain = is_in("plain_arguments", key);
        if text.is_empty() || (text.len() > CONTENT && !is_plain) {
            continue;
        }
        let text = one_line(&text, ARGUMENT_MAX);
        if is_plain || is_in("paths", key) {
            shown.push(text);
        } else {
            shown.push(format!("{}={text}", one_line(key, 40)));
        }
    }
    one_line(&shown.join(" "), SIGNATURE_MAX)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => truth.then(|| truth.to_string()),
        Value::Array(list) if list.len() <= LIST_MAX => {
            let all: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            all.map(|all| all.join(" "))
        }
        _ => None,
    }
}
