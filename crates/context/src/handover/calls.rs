//! Tool calls: a one-line signature, and the files that the call reads, changes or removes.

use serde_json::Value;

use super::sentences::one_line;
use super::shell::ShellCommand;
use super::words::{is_in, list};

/// The maximum length of a signature, in bytes.
pub(crate) const SIGNATURE_MAX: usize = 200;
/// The length above which an argument counts as content and is left out of signatures, in bytes.
const CONTENT: usize = 1_000;
/// The maximum number of recorded files of one call.
const FILES_MAX: usize = 64;

/// The action of a call on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Read,
    Written,
    Edited,
    Removed,
    /// Removed, unless the command failed or asked first.
    PerhapsRemoved,
    /// The changes were undone, unless they were committed before.
    PerhapsUndone,
}

/// The words for actions: in lists and in the summary, and in front of a file.
const WORDS: [(Act, &str, &str); 6] = [
    (Act::Written, "written", "write"),
    (Act::Edited, "edited", "edit"),
    (Act::Read, "read", "read"),
    (Act::Removed, "removed", "remove"),
    (Act::PerhapsRemoved, "perhaps removed", "remove"),
    (Act::PerhapsUndone, "perhaps undone", "restore"),
];

impl Act {
    fn words(self) -> (&'static str, &'static str) {
        let found = WORDS.iter().find(|(act, ..)| *act == self);
        found.map_or(("", ""), |(_, word, verb)| (word, verb))
    }

    pub(crate) fn word(self) -> &'static str {
        self.words().0
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let found = WORDS.iter().find(|(_, known, _)| *known == word);
        found.map(|(act, ..)| *act)
    }
}

/// The kind of tool that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    Command,
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
    /// Whether the call only shows something.
    pub(crate) is_reader: bool,
    /// The words of a build, a check or a test, without options. Empty for other calls.
    pub(crate) test: Vec<String>,
    /// The folder in which a command runs, or that of its test. Empty if it is not known.
    pub(crate) folder: String,
    pub(crate) test_folder: String,
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
        let value = serde_json::from_str::<Value>(arguments).unwrap_or_default();
        let fields = || value.as_object().into_iter().flatten();
        let texts = || fields().filter_map(|(key, value)| Some((key, value.as_str()?)));
        let text = |keys: &str| texts().find(|(key, _)| is_in(keys, key));
        let tool = tool(name, &value);
        let command = match name {
            "" => Some(arguments.to_owned()),
            _ if tool == "runs" => command_of(&value),
            _ => None,
        };
        let folder = text("folders").map_or("", |(_, folder)| folder).to_owned();
        let mut call = if let Some(command) = command {
            let shell = ShellCommand::read(&command, &folder);
            Self {
                name: name.to_owned(),
                signature: one_line(&shell.shown, SIGNATURE_MAX),
                kind: CallKind::Command,
                is_reader: shell.is_reader,
                test: shell.test,
                folder,
                test_folder: shell.folder,
                files: [shell.files, patched(&command)].concat(),
                arguments: value,
            }
        } else {
            let path = text("paths").map_or("", |(_, path)| path.trim());
            let is_path = !path.is_empty() && !path.contains('\n');
            let files = match Act::from_word(tool).filter(|_| is_path) {
                Some(act) => vec![(act, one_line(path, SIGNATURE_MAX))],
                None if value.is_null() => patched(arguments),
                None => texts().flat_map(|(_, text)| patched(text)).collect(),
            };
            let kind = match tool {
                "searches" => CallKind::Search,
                _ if files.is_empty() => CallKind::Other,
                _ => CallKind::File,
            };
            let reads = files.iter().all(|(act, _)| *act == Act::Read);
            Self {
                name: name.to_owned(),
                signature: signature(name, &value, arguments, &files),
                kind,
                is_reader: kind == CallKind::Search || kind == CallKind::File && reads,
                test: Vec::new(),
                folder,
                test_folder: String::new(),
                files,
                arguments: value,
            }
        };
        call.files.truncate(FILES_MAX);
        call
    }

    /// Returns `true` if the call builds, checks or tests.
    pub(crate) fn is_test(&self) -> bool {
        !self.test.is_empty()
    }
}

/// Returns the command of a shell tool.
fn command_of(value: &Value) -> Option<String> {
    let command = match list("commands").find_map(|key| value.get(key))? {
        Value::String(text) => text.clone(),
        // ["bash", "-lc", "cargo test"]
        Value::Array(list) => {
            let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                [_, "-c" | "-lc", script] => (*script).to_owned(),
                words => words.join(" "),
            }
        }
        _ => return None,
    };
    (!command.trim().is_empty()).then_some(command)
}

/// Returns what a tool does, by the words of its name and of the command of an editor.
fn tool(name: &str, arguments: &Value) -> &'static str {
    let command = arguments.get("command").and_then(Value::as_str);
    let command = command.filter(|command| !command.contains(' '));
    let mut words = String::new();
    for c in format!("{name} {}", command.unwrap_or_default()).chars() {
        if c.is_uppercase() && words.ends_with(char::is_lowercase) {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    let words: Vec<&str> = words.split(|c: char| !c.is_alphanumeric()).collect();
    let does = list("tools").find_map(|row| {
        let (form, does) = row.split_once('|')?;
        let mut form = form.split(' ');
        form.all(|word| words.contains(&word)).then_some(does)
    });
    does.unwrap_or_default()
}

/// Returns the files that a patch names.
fn patched(text: &str) -> Vec<(Act, String)> {
    let mut files: Vec<(Act, String)> = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("*** ")) {
        let found = list("patches").find_map(|row| {
            let (start, effects) = row.split_once('|')?;
            Some((line.strip_prefix(start)?, effects.split_once('|')?))
        });
        let Some((path, (act, before))) = found.filter(|_| files.len() < FILES_MAX) else {
            continue;
        };
        // A file that is moved is named in the line before.
        if let (Some(act), Some(moved)) = (Act::from_word(before), files.last_mut()) {
            moved.0 = act;
        }
        let path = one_line(path.trim(), SIGNATURE_MAX);
        files.extend(Act::from_word(act).map(|act| (act, path)));
    }
    files
}

/// Returns the call as one line: the action on its only file, or the name and the arguments that are
/// no content.
fn signature(name: &str, value: &Value, arguments: &str, files: &[(Act, String)]) -> String {
    let Value::Object(map) = value else {
        return one_line(&format!("{name} {arguments}"), SIGNATURE_MAX);
    };
    if let [(act, path)] = files
        && map.values().any(|value| value.as_str() == Some(path))
    {
        let (_, verb) = act.words();
        return one_line(&format!("{verb} {path}"), SIGNATURE_MAX);
    }
    let mut shown = name.to_owned();
    for (key, value) in map {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => continue,
        };
        let is_plain = is_in("plain_arguments", key);
        if is_plain || is_in("paths", key) {
            shown.push_str(&format!(" {}", one_line(&text, SIGNATURE_MAX)));
        } else if !text.is_empty() && text.len() <= CONTENT {
            shown.push_str(&format!(" {key}={text}"));
        }
    }
    one_line(&shown, SIGNATURE_MAX)
}
