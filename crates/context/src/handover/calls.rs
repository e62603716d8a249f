//! Tool calls: a one-line signature, and the files that the call reads, changes or removes.

use serde_json::Value;

use super::sentences::one_line;
use super::shell::ShellCommand;
use super::words::{is_in, list};

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
    /// Restored, unless the changes were committed before.
    PerhapsRestored,
}

/// The words for actions: in lists and in the summary, and in front of a file.
const WORDS: [(Act, &str, &str); 7] = [
    (Act::Written, "written", "write"),
    (Act::Edited, "edited", "edit"),
    (Act::Read, "read", "read"),
    (Act::Removed, "removed", "remove"),
    (Act::PerhapsRemoved, "perhaps removed", "remove"),
    (Act::Restored, "changes undone", "restore"),
    (Act::PerhapsRestored, "perhaps undone", "restore"),
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
    /// The folder in which a command runs. Empty if it is not stated.
    pub(crate) folder: String,
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
        let text = |keys: &str| {
            let mut texts = fields().filter_map(|(key, value)| Some((key, value.as_str()?)));
            texts
                .find(|(key, _)| is_in(keys, key))
                .map(|(_, text)| text)
        };
        let tool = tool(name, &value);
        let command = match name {
            "" => Some(arguments.to_owned()),
            _ if tool == "runs" => command_of(&value),
            _ => None,
        };
        let folder = text("folders").unwrap_or_default();
        let (signature, kind, mut files);
        if let Some(command) = command {
            let shell = ShellCommand::read(&command, folder);
            files = [shell.files.clone(), patched(&command)].concat();
            signature = one_line(&shell.shown, SIGNATURE_MAX);
            kind = CallKind::Command(shell);
        } else {
            let path = text("paths").filter(|path| !path.trim().is_empty() && !path.contains('\n'));
            files = match Act::from_word(tool).zip(path) {
                Some((act, path)) => vec![(act, one_line(path, SIGNATURE_MAX))],
                None if value.is_null() => patched(arguments),
                None => fields()
                    .filter_map(|(_, value)| value.as_str())
                    .flat_map(patched)
                    .collect(),
            };
            signature = self::signature(name, &value, arguments, &files);
            kind = match tool {
                "searches" => CallKind::Search,
                _ if files.is_empty() => CallKind::Other,
                _ => CallKind::File,
            };
        }
        files.truncate(FILES_MAX);
        Self {
            name: name.to_owned(),
            signature,
            kind,
            folder: folder.to_owned(),
            files,
            arguments: value,
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

    /// Returns the folder of the test. Empty if it is not known.
    pub(crate) fn test_folder(&self) -> &str {
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
fn command_of(value: &Value) -> Option<String> {
    let command = match list("commands").find_map(|key| value.get(key))? {
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
    (!command.trim().is_empty()).then_some(command)
}

/// Returns what a tool does, by the words of its name and of the command of an editor.
fn tool(name: &str, arguments: &Value) -> &'static str {
    let command = arguments.get("command").and_then(Value::as_str);
    let command = command.filter(|command| !command.contains(' '));
    let mut words = String::new();
    for c in name
        .chars()
        .chain([' '])
        .chain(command.unwrap_or_default().chars())
    {
        let is_hump = c.is_uppercase() && words.ends_with(char::is_lowercase);
        words.extend(is_hump.then_some(' '));
        words.extend(
            c.to_lowercase()
                .map(|c| if c.is_alphanumeric() { c } else { ' ' }),
        );
    }
    let words: Vec<&str> = words.split(' ').collect();
    let does = list("tools").find_map(|row| {
        let (form, does) = row.split_once('|')?;
        form.split(' ')
            .all(|word| words.contains(&word))
            .then_some(does)
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
        let (_, verb) = act.words();
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
