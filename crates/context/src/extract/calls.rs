//! Tool calls: what was asked on one line, what came of it, and which files were read and changed.
//! Not their output; that is in the archive.

use std::collections::HashMap;

use serde_json::Value;

use super::cues::Signs;
use super::pieces::one_line;

/// Longest signature, in bytes.
const SIGNATURE_MAX: usize = 200;
/// Longest argument in it, in bytes.
const ARGUMENT_MAX: usize = 140;
/// A longer argument is content, which no signature repeats.
const CONTENT: usize = 1_000;
/// Longest outcome, in bytes.
const OUTCOME_MAX: usize = 100;
/// Longest error, in bytes.
const ERROR_MAX: usize = 240;
/// Lines at each end of a result in which an error is looked for.
const ENDS: usize = 12;
/// A longer line tells no error; it is data.
const ERROR_LINE_MAX: usize = 1_000;

/// What a tool does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Act {
    Read,
    Written,
    Edited,
}

/// One tool call.
pub(super) struct Call {
    pub(super) signature: String,
    /// The file that it is about, and what it does to it.
    pub(super) file: Option<(Act, String)>,
    /// What its arguments say, without JSON's escapes.
    pub(super) text: String,
}

/// How often each thing was done to a file, and when last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Deeds {
    pub(super) read: u32,
    pub(super) written: u32,
    pub(super) edited: u32,
    /// The number of the message in which it was last done.
    pub(super) last: usize,
}

impl Act {
    /// By the name of the tool.
    fn of(tool: &str, arguments: &Value) -> Option<Self> {
        // One tool with several commands.
        let command = arguments.get("command").and_then(Value::as_str);
        let tool = tool.to_lowercase();
        let words = match command.filter(|command| !command.contains(' ')) {
            Some(command) => format!("{tool} {command}"),
            None => tool,
        };
        let has = |cues: &[&str]| cues.iter().any(|cue| words.contains(cue));
        if has(&[
            "str_replace_editor view",
            "grep",
            "glob",
            "search",
            "find",
            "list",
            "shell",
            "bash",
        ]) {
            return words.ends_with(" view").then_some(Self::Read);
        }
        if words.ends_with(" create") || has(&["write", "create_file", "save"]) {
            Some(Self::Written)
        } else if words.ends_with(" view") {
            Some(Self::Read)
        } else if has(&[
            "edit",
            "patch",
            "replace",
            "insert",
            "modify",
            "update_file",
            "append",
        ]) {
            Some(Self::Edited)
        } else if has(&["read", "view", "open", "cat"]) {
            Some(Self::Read)
        } else {
            None
        }
    }
}

impl Call {
    pub(super) fn of(name: &str, arguments: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(arguments) else {
            return Self {
                signature: one_line(&format!("{name} {arguments}"), SIGNATURE_MAX),
                file: None,
                text: arguments.to_owned(),
            };
        };
        let path = PATHS
            .iter()
            .find_map(|key| value.get(key).and_then(Value::as_str));
        let file = path
            .filter(|path| !path.trim().is_empty() && !path.contains('\n'))
            .and_then(|path| Some((Act::of(name, &value)?, one_line(path, SIGNATURE_MAX))));
        let mut shown = vec![one_line(name, SIGNATURE_MAX)];
        if let Value::Object(map) = &value {
            for (key, value) in map {
                let Some(text) = scalar(value) else {
                    continue;
                };
                let is_told = map.contains_key("command") && ASIDE.contains(&key.as_str());
                if is_told
                    || text.is_empty()
                    || (text.len() > CONTENT && !PLAIN.contains(&key.as_str()))
                {
                    continue;
                }
                let text = one_line(&text, ARGUMENT_MAX);
                if PLAIN.contains(&key.as_str()) || PATHS.contains(&key.as_str()) {
                    shown.push(text);
                } else {
                    shown.push(format!("{}={text}", one_line(key, 40)));
                }
            }
        } else {
            shown.push(one_line(arguments, ARGUMENT_MAX));
        }
        let mut texts = Vec::new();
        leaves(&value, &mut texts);
        Self {
            signature: one_line(&shown.join(" "), SIGNATURE_MAX),
            file,
            text: texts.join("\n"),
        }
    }
}

impl Deeds {
    pub(super) fn note(&mut self, act: Act, at: usize) {
        let count = match act {
            Act::Read => &mut self.read,
            Act::Written => &mut self.written,
            Act::Edited => &mut self.edited,
        };
        *count = count.saturating_add(1);
        self.last = at;
    }

    /// As it is written: `read 2, edited 1`; empty where nothing was done.
    pub(super) fn words(&self) -> String {
        let all = [
            ("read", self.read),
            ("written", self.written),
            ("edited", self.edited),
        ];
        let done = all.iter().filter(|(_, count)| *count > 0);
        let done: Vec<String> = done
            .map(|(word, count)| format!("{word} {count}"))
            .collect();
        done.join(", ")
    }

    /// Reads [`Deeds::words`].
    pub(super) fn parse(words: &str, at: usize) -> Option<Self> {
        let mut deeds = Self {
            last: at,
            ..Self::default()
        };
        for deed in words.split(", ") {
            let (word, count) = deed.split_once(' ')?;
            let count = count.parse().ok()?;
            match word {
                "read" => deeds.read = count,
                "written" => deeds.written = count,
                "edited" => deeds.edited = count,
                _ => return None,
            }
        }
        Some(deeds)
    }
}

/// What came of a call, in few words.
pub(super) fn outcome(text: &str, is_error: bool) -> String {
    if is_error || error(text, is_error).is_some() {
        return "failed".to_owned();
    }
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return "ok".to_owned();
    }
    if trimmed.len() <= OUTCOME_MAX {
        return one_line(trimmed, OUTCOME_MAX);
    }
    let lines = trimmed.lines().count();
    // Tests and builds say last how it went.
    let last = trimmed.lines().next_back().unwrap_or_default();
    if last.len() <= OUTCOME_MAX && Signs::of(last).is_end() {
        return one_line(last, OUTCOME_MAX);
    }
    format!("{lines} lines")
}

/// The line of a result that tells the error, where there is one.
pub(super) fn error(text: &str, is_error: bool) -> Option<String> {
    let tells = |line: &&str| line.len() <= ERROR_LINE_MAX && Signs::of(line).is_error();
    let head = text.lines().take(ENDS).find(tells);
    let found = head.or_else(|| text.lines().rev().take(ENDS).find(tells));
    let found = found.or_else(|| {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.next().filter(|_| is_error)
    });
    found.map(|line| one_line(line, ERROR_MAX))
}

/// Numbers and ids out, so that the same error at another line is the same.
pub(super) fn masked(line: &str) -> String {
    line.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// The calls that still wait for their result, by id.
pub(super) type Open = HashMap<String, usize>;

/// Keys of a path.
const PATHS: &[&str] = &[
    "path",
    "file_path",
    "filepath",
    "filename",
    "file",
    "notebook_path",
    "target_file",
    "absolute_path",
    "relative_path",
    "file_name",
];
/// Keys that say nothing beside a command.
const ASIDE: &[&str] = &["description", "timeout", "timeout_ms"];
/// Keys that say nothing that the value does not.
const PLAIN: &[&str] = &[
    "command",
    "cmd",
    "query",
    "pattern",
    "url",
    "prompt",
    "description",
    "subject",
    "code",
    "thought",
];

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        // What is not asked for need not be told.
        Value::Bool(truth) => truth.then(|| truth.to_string()),
        Value::Array(list) if list.len() <= 8 => {
            let all: Option<Vec<String>> = list
                .iter()
                .map(|one| match one {
                    Value::String(text) if text.len() <= 80 => Some(text.clone()),
                    Value::Number(number) => Some(number.to_string()),
                    _ => None,
                })
                .collect();
            all.map(|all| all.join(" "))
        }
        _ => None,
    }
}

/// How deep arguments may be nested; deeper ones are not read.
const DEPTH: usize = 32;

fn leaves(value: &Value, out: &mut Vec<String>) {
    fn walk(value: &Value, depth: usize, out: &mut Vec<String>) {
        if depth > DEPTH {
            return;
        }
        match value {
            Value::String(text) => out.push(text.clone()),
            Value::Number(number) => out.push(number.to_string()),
            Value::Array(list) => list.iter().for_each(|one| walk(one, depth + 1, out)),
            Value::Object(map) => map.values().for_each(|one| walk(one, depth + 1, out)),
            Value::Bool(_) | Value::Null => {}
        }
    }
    walk(value, 0, out);
}
