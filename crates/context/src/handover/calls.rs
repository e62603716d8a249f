//! Tool calls: a one-line signature, and the files that the call reads, changes or removes.

use std::sync::LazyLock;

use foldhash::{HashMap, HashSet};
use serde_json::Value;

use super::sentences::one_line;
use super::shell::ShellCommand;

/// The maximum length of a signature, in bytes.
pub(crate) const SIGNATURE_MAX: usize = 200;
/// The maximum length of an argument in a signature, in bytes.
const ARGUMENT_MAX: usize = 140;
/// The length above which an argument counts as content and is left out of signatures, in bytes.
const CONTENT: usize = 1_000;
/// The maximum nesting depth of arguments that are read.
const DEPTH: usize = 32;
/// The maximum number of recorded files of one patch.
const FILES_MAX: usize = 64;
/// The maximum number of elements of a list that is shown.
const LIST_MAX: usize = 8;

const TOOLS: &str = include_str!("words/tools.txt");

static LISTS: LazyLock<HashMap<&str, HashSet<&str>>> = LazyLock::new(|| {
    let mut lists: HashMap<&str, HashSet<&str>> = HashMap::default();
    let mut list = "";
    for line in super::speaker::entries(TOOLS) {
        let heading = line
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        match heading {
            Some(name) => list = name,
            None => lists.entry(list).or_default().extend(line.split(' ')),
        }
    }
    lists
});

/// Returns `true` if `word` is in this list of `words/tools.txt`.
pub(crate) fn is_in(list: &str, word: &str) -> bool {
    LISTS.get(list).is_some_and(|words| words.contains(word))
}

/// Returns `true` if `text` contains a word of the list.
fn contains_any(list: &str, text: &str) -> bool {
    let mut words = LISTS.get(list).into_iter().flatten();
    words.any(|word| text.contains(word))
}

/// The action of a call on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    Read,
    Written,
    Edited,
    Removed,
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
    /// The texts in its arguments, without JSON escapes.
    pub(crate) text: String,
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
        let mut texts = Vec::new();
        if value.is_null() {
            texts.push(arguments);
        }
        leaves(&value, 0, &mut texts);
        let text = texts.join("\n");
        let path = value
            .as_object()
            .and_then(|map| map.iter().find(|(key, _)| is_in("paths", key)))
            .and_then(|(_, value)| value.as_str());
        let act = act_of(name, &value);
        let mut files: Vec<(Act, String)> = path
            .filter(|path| !path.trim().is_empty() && !path.contains('\n'))
            .and_then(|path| Some((act?, one_line(path, SIGNATURE_MAX))))
            .into_iter()
            .collect();
        if files.is_empty() {
            files = patched(&text);
        }
        let kind = if is_search(name) {
            CallKind::Search
        } else if files.is_empty() {
            CallKind::Other
        } else {
            CallKind::File
        };
        Self {
            name: name.to_owned(),
            signature: signature(name, &value, arguments, act, &files),
            kind,
            files,
            text,
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
            text: command.to_owned(),
            arguments: Value::Null,
        }
    }

    /// Returns `true` if the call builds, checks or tests.
    pub(crate) fn is_test(&self) -> bool {
        matches!(&self.kind, CallKind::Command(command) if command.is_test)
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

    /// Returns the key by which a later success settles a failure of this call: the family of its
    /// command, its file, or its signature.
    pub(crate) fn key(&self) -> &str {
        match (&self.kind, self.files.first()) {
            (CallKind::Command(command), _) if !command.family.is_empty() => &command.family,
            (CallKind::File, Some((_, path))) => path,
            _ => &self.signature,
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
    let is_shell = contains_any("shells", &name.to_lowercase());
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
    } else if contains_any("searches", &words) || contains_any("shells", &words) {
        None
    } else if words.contains("delete") || words.contains("remove") {
        Some(Act::Removed)
    } else if words.ends_with(" create") || contains_any("creates", &words) {
        Some(Act::Written)
    } else if contains_any("edits", &words) {
        Some(Act::Edited)
    } else {
        contains_any("reads", &words).then_some(Act::Read)
    }
}

fn is_search(tool: &str) -> bool {
    let tool = tool.to_lowercase();
    let mut parts = tool.split(['_', '-']);
    parts.any(|part| is_in("searches", part)) || tool.contains("search") || tool.contains("find_")
}

/// Returns the files that a patch names.
fn patched(text: &str) -> Vec<(Act, String)> {
    if !text.contains("*** ") {
        return Vec::new();
    }
    let acts = [
        ("*** Update File: ", Act::Edited),
        ("*** Add File: ", Act::Written),
        ("*** Move to: ", Act::Written),
        ("*** Delete File: ", Act::Removed),
    ];
    let files = text.lines().filter_map(|line| {
        let mut found = acts.iter();
        found.find_map(|(start, act)| {
            let path = line.strip_prefix(start)?;
            Some((*act, one_line(path.trim(), SIGNATURE_MAX)))
        })
    });
    files.take(FILES_MAX).collect()
}

/// Returns the call as one line.
fn signature(
    name: &str,
    value: &Value,
    arguments: &str,
    act: Option<Act>,
    files: &[(Act, String)],
) -> String {
    if let (Some(act), [(_, path)]) = (act, files) {
        let verb = match act {
            Act::Read => "read",
            Act::Written => "write",
            Act::Edited | Act::Restored => "edit",
            Act::Removed => "remove",
        };
        return one_line(&format!("{verb} {path}"), SIGNATURE_MAX);
    }
    let mut shown = vec![one_line(name, SIGNATURE_MAX)];
    if let Value::Object(map) = value {
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
    } else {
        shown.push(one_line(arguments, ARGUMENT_MAX));
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

/// Collects the texts in `value`, which is `depth` levels deep.
fn leaves<'v>(value: &'v Value, depth: usize, out: &mut Vec<&'v str>) {
    if depth > DEPTH {
        return;
    }
    match value {
        Value::String(text) => out.push(text),
        Value::Array(list) => list.iter().for_each(|one| leaves(one, depth + 1, out)),
        Value::Object(map) => map.values().for_each(|one| leaves(one, depth + 1, out)),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}
