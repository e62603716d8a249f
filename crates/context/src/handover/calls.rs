//! Tool calls: a one-line signature, and the files that the call reads, changes or removes. The kinds
//! of tools and arguments are data, in `words/tools.txt`.

use serde_json::Value;

use super::files::FileAct;
use super::sentences::one_line;
use super::shell;
use super::state::TestRun;
use super::words::{is_in, list};

/// The maximum length of a signature, in bytes.
pub(crate) const SIGNATURE_MAX: usize = 300;
/// The length above which an argument counts as content and is left out of signatures, in bytes.
const CONTENT: usize = 1_000;
/// The maximum number of recorded files of one call.
const FILES_MAX: usize = 200;

/// The action of a call on a file: its word in the lists and in the summary.
pub(crate) type Act = &'static str;

pub(crate) const READ: Act = "read";
pub(crate) const WRITTEN: Act = "written";
pub(crate) const EDITED: Act = "edited";
pub(crate) const REMOVED: Act = "removed";
/// Removed, unless the command failed or asked first.
pub(crate) const PERHAPS_REMOVED: Act = "perhaps removed";
/// The changes were undone, unless they were committed before.
pub(crate) const PERHAPS_UNDONE: Act = "perhaps undone";
/// Named by a command: it may exist again.
pub(crate) const NAMED: Act = "named";
/// Other actions of tools.
const RUNS: &str = "runs";
const SEARCHES: &str = "searches";
/// The word for the new place of a moved file, in lists.
pub(crate) const MOVED: &str = "moved";

/// One tool call.
#[derive(Debug, Default)]
pub(crate) struct TranscriptCall {
    pub(crate) name: String,
    pub(crate) signature: String,
    pub(crate) is_command: bool,
    /// Whether the call only shows something.
    pub(crate) is_reader: bool,
    /// The builds, checks and tests that a command runs.
    pub(crate) tests: Vec<TestRun>,
    /// Whether the tests have passed if the command has not failed: no other program's status stands for theirs.
    pub(crate) tells: bool,
    /// Whether an exit code of 0 means that no program of the command has failed.
    pub(crate) returns: bool,
    /// The folder in which the command of the signature runs. Empty if it is not known.
    pub(crate) folder: String,
    /// The files that the call concerns, with its action on each of them.
    pub(crate) files: Vec<FileAct>,
    pub(crate) arguments: Value,
}

impl TranscriptCall {
    /// Reads a call; one without a name is a shell command.
    pub(crate) fn new(name: &str, arguments: &str) -> Self {
        let value = serde_json::from_str::<Value>(arguments).unwrap_or_default();
        let does = what_does(name, &value);
        let command = match name {
            "" => Some(arguments.to_owned()),
            _ if does == RUNS => command_of(&value),
            _ => None,
        };
        let mut call = match command {
            Some(command) => shell::read(&command, text(&value, "folders").unwrap_or_default()),
            None => Self::of_tool(name, does, arguments, &value),
        };
        call.files.truncate(FILES_MAX);
        Self {
            name: name.to_owned(),
            arguments: value,
            ..call
        }
    }

    fn of_tool(name: &str, does: &'static str, arguments: &str, value: &Value) -> Self {
        let path = text(value, "paths").filter(|path| !path.contains('\n'));
        let files = match path {
            Some(path) if !matches!(does, "" | RUNS | SEARCHES) => {
                vec![act_on(does, path)]
            }
            _ if value.is_null() => patched(arguments),
            _ => {
                let fields = value.as_object().into_iter().flatten();
                let texts = fields.filter_map(|(_, value)| value.as_str());
                texts.flat_map(patched).collect()
            }
        };
        let is_read = |act: &FileAct| act.act == READ;
        let reads = !files.is_empty() && files.iter().all(is_read);
        Self {
            signature: match path.filter(|_| !files.is_empty()) {
                Some(path) => one_line(&format!("{name} {path}"), SIGNATURE_MAX),
                None => signature(name, value, arguments),
            },
            is_reader: reads || does == SEARCHES,
            files,
            ..Self::default()
        }
    }

    /// Returns the id of the command whose further output the call reads.
    pub(crate) fn continued(&self) -> Option<String> {
        let ids = list("command_ids").filter_map(|key| self.arguments.get(key));
        let mut ids = ids.filter(|_| is_in("continuations", &self.name.to_lowercase()));
        ids.next()
            .map(|id| id.to_string().trim_matches('"').to_owned())
    }

    /// Returns `true` for a tool that reads or changes files.
    pub(crate) fn is_of_files(&self) -> bool {
        !self.is_command && !self.files.is_empty()
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

/// Returns the kind of a tool, by its name and the command of an editor.
fn what_does(name: &str, arguments: &Value) -> &'static str {
    let command = arguments.get("command").and_then(Value::as_str);
    let command = command.filter(|command| !command.contains(' '));
    let name = format!("{name} {}", command.unwrap_or_default()).to_lowercase();
    let mut rows = list("tools").filter_map(|row| row.split_once('|'));
    let does = rows.find(|(form, _)| form.split(' ').all(|word| name.contains(word)));
    does.map_or("", |(_, does)| does)
}

/// Returns the files that a patch names.
pub(crate) fn patched(text: &str) -> Vec<FileAct> {
    let mut files: Vec<FileAct> = Vec::new();
    let lines = text.lines().filter(|line| line.starts_with("*** "));
    for line in lines.take(FILES_MAX) {
        let mut forms = list("patches").filter_map(|row| row.split_once('|'));
        let named = forms.find_map(|(start, act)| Some((act, line.strip_prefix(start)?)));
        let Some((act, path)) = named else {
            continue;
        };
        // The old place of a moved file stands in the line before.
        if act == MOVED
            && let Some(old) = files.last_mut()
        {
            old.act = REMOVED;
        }
        let act = if act == MOVED { WRITTEN } else { act };
        files.push(act_on(act, path));
    }
    files
}

/// Returns an action on one file.
fn act_on(act: Act, path: &str) -> FileAct {
    FileAct::new(act, vec![one_line(path, SIGNATURE_MAX)])
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
