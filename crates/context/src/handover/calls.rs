//! Tool calls: a one-line signature, and the files that the call reads, changes or removes.

use serde_json::Value;

use super::sentences::one_line;
use super::shell;
use super::words::{is_in, list};

/// The maximum length of a signature, in bytes.
pub(crate) const SIGNATURE_MAX: usize = 300;
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

/// The words for actions, in lists and in the summary.
const WORDS: [(Act, &str); 6] = [
    (Act::Read, "read"),
    (Act::Written, "written"),
    (Act::Edited, "edited"),
    (Act::Removed, "removed"),
    (Act::PerhapsRemoved, "perhaps removed"),
    (Act::PerhapsUndone, "perhaps undone"),
];

impl Act {
    pub(crate) fn word(self) -> &'static str {
        let found = WORDS.iter().find(|(act, _)| *act == self);
        found.map_or("", |(_, word)| word)
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let found = WORDS.iter().find(|(_, known)| *known == word);
        found.map(|(act, _)| *act)
    }
}

/// The kind of tool that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CallKind {
    Command,
    /// A tool that searches or lists.
    Search,
    /// A tool that reads or changes files.
    File,
    #[default]
    Other,
}

/// One tool call.
#[derive(Debug, Default)]
pub(crate) struct TranscriptCall {
    pub(crate) name: String,
    pub(crate) signature: String,
    pub(crate) kind: CallKind,
    /// Whether the call only shows something.
    pub(crate) is_reader: bool,
    /// The words of a build, a check or a test, with its variables and without options. Empty for
    /// other calls.
    pub(crate) test: Vec<String>,
    /// The folder of the test. Empty if it is not known.
    pub(crate) test_folder: String,
    /// The files that the call concerns, with its action on each of them.
    pub(crate) files: Vec<(Act, String)>,
    pub(crate) arguments: Value,
}

impl TranscriptCall {
    /// Reads a call; one without a name is a shell command.
    pub(crate) fn new(name: &str, arguments: &str) -> Self {
        let value = serde_json::from_str::<Value>(arguments).unwrap_or_default();
        let tool = tool(name, &value);
        let command = match name {
            "" => Some(arguments.to_owned()),
            _ if tool == "runs" => command_of(&value),
            _ => None,
        };
        let mut call = match command {
            Some(command) => shell::read(&command, text(&value, "folders").unwrap_or_default()),
            None => Self::of_tool(name, tool, arguments, &value),
        };
        call.files.truncate(FILES_MAX);
        Self {
            name: name.to_owned(),
            arguments: value,
            ..call
        }
    }

    fn of_tool(name: &str, tool: &str, arguments: &str, value: &Value) -> Self {
        let path = text(value, "paths").filter(|path| !path.contains('\n'));
        let files = match Act::from_word(tool).zip(path) {
            Some((act, path)) => vec![(act, one_line(path, SIGNATURE_MAX))],
            None if value.is_null() => patched(arguments),
            None => {
                let fields = value.as_object().into_iter().flatten();
                let texts = fields.filter_map(|(_, value)| value.as_str());
                texts.flat_map(patched).collect()
            }
        };
        let kind = match tool {
            "searches" => CallKind::Search,
            _ if files.is_empty() => CallKind::Other,
            _ => CallKind::File,
        };
        let reads = files.iter().all(|(act, _)| *act == Act::Read);
        Self {
            signature: match path.filter(|_| kind == CallKind::File) {
                Some(path) => one_line(&format!("{name} {path}"), SIGNATURE_MAX),
                None => signature(name, value, arguments),
            },
            kind,
            is_reader: kind == CallKind::Search || kind == CallKind::File && reads,
            files,
            ..Self::default()
        }
    }

    /// Returns `true` if the call builds, checks or tests.
    pub(crate) fn is_test(&self) -> bool {
        !self.test.is_empty()
    }
}

/// Returns the first text among the arguments that are listed.
fn text<'v>(arguments: &'v Value, keys: &str) -> Option<&'v str> {
    let mut fields = arguments.as_object()?.iter();
    fields.find_map(|(key, value)| {
        let text = value.as_str().filter(|text| !text.trim().is_empty());
        text.filter(|_| is_in(keys, key))
    })
}

/// Returns the command of a shell tool.
fn command_of(value: &Value) -> Option<String> {
    match list("commands").find_map(|key| value.get(key))? {
        Value::String(text) => Some(text.clone()),
        // ["bash", "-lc", "cargo test"]
        Value::Array(list) => {
            let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            Some(match words.as_slice() {
                [_, "-c" | "-lc", script] => (*script).to_owned(),
                words => words.join(" "),
            })
        }
        _ => None,
    }
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
pub(crate) fn patched(text: &str) -> Vec<(Act, String)> {
    let mut files: Vec<(Act, String)> = Vec::new();
    let lines = text.lines().filter(|line| line.starts_with("*** "));
    for line in lines.take(FILES_MAX) {
        let found = list("patches").find_map(|row| {
            let (start, effects) = row.split_once('|')?;
            Some((line.strip_prefix(start)?, effects.split_once('|')?))
        });
        let Some((path, (act, before))) = found else {
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

/// Returns the name of a call and its arguments that are no content, as one line.
fn signature(name: &str, value: &Value, arguments: &str) -> String {
    let Value::Object(map) = value else {
        return one_line(&format!("{name} {arguments}"), SIGNATURE_MAX);
    };
    let mut shown = name.to_owned();
    for (key, value) in map {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => continue,
        };
        if is_in("plain_arguments", key) || is_in("paths", key) {
            shown.push_str(&format!(" {}", one_line(&text, SIGNATURE_MAX)));
        } else if !text.is_empty() && text.len() <= CONTENT {
            shown.push_str(&format!(" {key}={text}"));
        }
    }
    one_line(&shown, SIGNATURE_MAX)
}
