//! Tool calls: a one-line signature, and the files that the call reads or changes.

use serde_json::Value;

use crate::sentences::{is_one_of, one_line};

/// The maximum length of a signature, in bytes.
const SIGNATURE_MAX: usize = 200;
/// The maximum length of a time limit, in bytes; a longer one is omitted.
const TIME_LIMIT_MAX: usize = 20;
/// The maximum length of an argument in a signature, in bytes.
const ARGUMENT_MAX: usize = 140;
/// The length above which an argument counts as content and is left out of signatures, in bytes.
const CONTENT: usize = 1_000;
/// The maximum nesting depth of arguments that are read.
const DEPTH: usize = 32;
/// The maximum number of recorded files of one patch.
const FILES_MAX: usize = 64;

/// The maximum number of here-documents of a command whose ends are searched.
const BODIES_MAX: usize = 16;

/// The action of a call on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    Read,
    Written,
    Edited,
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

/// A shell command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShellCommand {
    /// The program and its subcommand, such as `cargo test`: a later success of the same family
    /// settles a failure.
    pub(crate) family: String,
    /// Whether the command only shows files, logs or matches.
    pub(crate) is_reader: bool,
    /// Whether the command builds, checks or tests.
    pub(crate) is_test: bool,
}

/// One tool call.
#[derive(Debug)]
pub(crate) struct TranscriptCall {
    pub(crate) name: String,
    pub(crate) signature: String,
    /// The time limit of a command, as the agent set it.
    pub(crate) time_limit: Option<String>,
    pub(crate) kind: CallKind,
    /// The files that the call concerns, with its action on each of them.
    pub(crate) files: Vec<(Act, String)>,
    /// The texts in its arguments, without JSON escapes.
    pub(crate) text: String,
    pub(crate) arguments: Value,
}

impl TranscriptCall {
    pub(crate) fn new(name: &str, arguments: &str) -> Self {
        let value = serde_json::from_str::<Value>(arguments).unwrap_or(Value::Null);
        let command = command_of(name, &value);
        let mut texts = Vec::new();
        if value.is_null() {
            texts.push(arguments.to_owned());
        }
        leaves(&value, 0, &mut texts);
        let text = texts.join("\n");
        if let Some(command) = command {
            let call = Self::command(name, &command);
            return Self {
                time_limit: TIMEOUTS
                    .iter()
                    .find_map(|key| value.get(key))
                    .and_then(scalar)
                    .filter(|limit| limit.len() <= TIME_LIMIT_MAX),
                text,
                arguments: value.clone(),
                ..call
            };
        }
        let path = PATHS
            .split('|')
            .find_map(|key| value.get(key).and_then(Value::as_str));
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
            time_limit: None,
            kind,
            files,
            text,
            arguments: value,
        }
    }

    /// Creates a call of a shell tool with this name.
    pub(crate) fn command(name: &str, command: &str) -> Self {
        let mut files = written_by_shell(command);
        files.extend(patched(command));
        let shell = without_bodies(command);
        files.extend(read_by_shell(&shell));
        // The text of a commit is content.
        let shown = shell.split("\"$(cat").next().unwrap_or_default();
        let shown = without_preparation(if shown.is_empty() { &shell } else { shown });
        Self {
            name: name.to_owned(),
            signature: one_line(shown, SIGNATURE_MAX),
            time_limit: None,
            kind: CallKind::Command(ShellCommand::new(&shell)),
            files,
            text: command.to_owned(),
            arguments: Value::Null,
        }
    }
}

impl TranscriptCall {
    /// Returns `true` if the call builds, checks or tests.
    pub(crate) fn is_test(&self) -> bool {
        matches!(&self.kind, CallKind::Command(command) if command.is_test)
    }

    /// Returns `true` if the call changes a file.
    pub(crate) fn is_change(&self) -> bool {
        self.files.iter().any(|(act, _)| *act != Act::Read)
    }

    /// Returns the key by which a later success settles a failure of this call: the family of its
    /// command, its file, or its signature.
    pub(crate) fn key(&self) -> String {
        match (&self.kind, self.files.first()) {
            (CallKind::Command(command), _) if !command.family.is_empty() => command.family.clone(),
            (CallKind::File, Some((_, path))) => path.clone(),
            _ => self.signature.clone(),
        }
    }
}

impl ShellCommand {
    fn new(command: &str) -> Self {
        let mut family = String::new();
        let (mut is_reader, mut is_test) = (true, false);
        for part in command.split(['\n', ';', '&']) {
            let stage = part.split('|').next().unwrap_or_default();
            let words = program(stage);
            let Some(program) = words.first() else {
                continue;
            };
            if ASIDE_PROGRAMS.contains(program) {
                continue;
            }
            let second = words.get(1).copied().unwrap_or_default();
            let reads = READERS.contains(program)
                || (*program == "git" && is_one_of(GIT_READERS, second))
                || (*program == "sed" && !stage.contains("-i"));
            is_reader &= reads;
            is_test |= !reads && words.iter().any(|word| is_test_word(word));
            if family.is_empty() || !reads {
                family = words.iter().take(3).copied().collect::<Vec<_>>().join(" ");
            }
        }
        Self {
            family,
            is_reader,
            is_test,
        }
    }
}

/// Returns a command without the bodies of here-documents, which are content.
fn without_bodies(command: &str) -> String {
    let command = command.replace("\\\n", " ");
    let mut shell: Vec<String> = Vec::new();
    let mut lines = command.lines();
    let mut bodies = 0;
    while let Some(line) = lines.next() {
        bodies += usize::from(line.contains("<<"));
        let parts = line
            .split_once("<<")
            .filter(|_| bodies <= BODIES_MAX)
            .and_then(|(before, behind)| {
                let behind = behind.trim_start_matches(['-', ' ']);
                let (word, rest) = behind.split_at(
                    behind
                        .find([' ', ')', ';', '&', '|', '>'])
                        .unwrap_or(behind.len()),
                );
                let end = word.trim_matches(['\'', '"']);
                let mut ahead = lines.clone();
                ahead.find(|line| line.trim() == end)?;
                Some((format!("{}{rest}", before.trim_end()), ahead))
            });
        match parts {
            Some((line, behind)) => {
                shell.push(line);
                lines = behind;
            }
            None => shell.push(line.to_owned()),
        }
    }
    // A file that is only written is listed with the files.
    if shell
        .iter()
        .any(|line| !line.is_empty() && !line.starts_with("cat >"))
    {
        shell.retain(|line| !line.starts_with("cat >") || line.contains(['&', ';']));
    }
    shell.join("\n")
}

/// Returns a command without a leading change of directory and a trailing redirection.
fn without_preparation(command: &str) -> &str {
    let command = command.trim();
    let behind = command
        .strip_prefix("cd ")
        .and_then(|rest| rest.split_once("&&"));
    let command = behind.map_or(command, |(_, rest)| rest.trim());
    command.strip_suffix("2>&1").unwrap_or(command).trim()
}

/// Returns the program of a pipeline stage and its plain words, without variables, options and the
/// directory of the program.
fn program(stage: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for word in stage.split_whitespace() {
        let is_wrapper = words.is_empty()
            && (WRAPPERS.contains(&word)
                || word.contains('=')
                || word.chars().all(|c| c.is_ascii_digit() || c == 's'));
        if is_wrapper || word.starts_with('-') || word.starts_with(['>', '<', '"', '\'', '$', '('])
        {
            continue;
        }
        if words.is_empty() {
            words.push(word.rsplit('/').next().unwrap_or(word));
        } else if words.len() < 4
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
        {
            words.push(word);
        }
    }
    words
}

fn is_test_word(word: &str) -> bool {
    let low = word.to_lowercase();
    TESTS
        .split('|')
        .any(|test| low.split(['-', '_', ':', '.']).any(|part| part == test))
}

/// Returns the command of a shell tool.
fn command_of(name: &str, value: &Value) -> Option<String> {
    let low = name.to_lowercase();
    let is_shell = SHELLS.split('|').any(|shell| low.contains(shell));
    let found = ["command", "cmd", "script", "input"]
        .iter()
        .find_map(|key| value.get(key));
    let command = match found? {
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
    // An editor with several commands has a single word here.
    (is_shell && !command.trim().is_empty()).then_some(command)
}

/// Returns the action of a tool on the file that it names.
fn act_of(tool: &str, arguments: &Value) -> Option<Act> {
    let command = arguments.get("command").and_then(Value::as_str);
    let tool = tool.to_lowercase();
    let words = match command.filter(|command| !command.contains(' ')) {
        Some(command) => format!("{tool} {command}"),
        None => tool,
    };
    let has = |cues: &[&str]| cues.iter().any(|cue| words.contains(cue));
    if words.ends_with(" view") {
        Some(Act::Read)
    } else if has(&["grep", "glob", "search", "find", "list", "shell", "bash"]) {
        None
    } else if words.ends_with(" create") || has(&["write", "create", "save"]) {
        Some(Act::Written)
    } else if has(&[
        "edit",
        "patch",
        "replace",
        "insert",
        "modify",
        "update_file",
        "append",
    ]) {
        Some(Act::Edited)
    } else if has(&["read", "view", "open", "cat"]) {
        Some(Act::Read)
    } else {
        None
    }
}

fn is_search(tool: &str) -> bool {
    let tool = tool.to_lowercase();
    ["grep", "glob", "search", "find_file", "list", "ls"]
        .iter()
        .any(|word| {
            tool.split(['_', '-']).any(|part| part == *word)
                || (word.len() > 3 && tool.contains(word))
        })
}

/// Returns the files that a patch names.
fn patched(text: &str) -> Vec<(Act, String)> {
    if !text.contains("*** ") {
        return Vec::new();
    }
    let files = text.lines().filter_map(|line| {
        let edited = line.strip_prefix("*** Update File: ");
        let deleted = line.strip_prefix("*** Delete File: ");
        let added = line.strip_prefix("*** Add File: ");
        let edited = edited.or(deleted).map(|path| (Act::Edited, path));
        let (act, path) = edited.or(added.map(|path| (Act::Written, path)))?;
        Some((act, one_line(path.trim(), SIGNATURE_MAX)))
    });
    files.take(FILES_MAX).collect()
}

/// Returns the files that a command writes by a here-document or edits in place.
fn written_by_shell(command: &str) -> Vec<(Act, String)> {
    let mut files = Vec::new();
    let head = command.lines().next().unwrap_or_default();
    let is_path = |word: &str| {
        !word.is_empty() && !word.starts_with(['/', '&', '-'])
            || word.starts_with("/") && !word.starts_with("/dev/")
    };
    if command.contains("<<") {
        let words: Vec<&str> = head.split_whitespace().collect();
        for pair in words.windows(2) {
            if let [sign, path] = pair
                && matches!(*sign, ">" | ">>" | "tee")
                && is_path(path)
            {
                let act = if *sign == ">>" {
                    Act::Edited
                } else {
                    Act::Written
                };
                files.push((act, one_line(path, SIGNATURE_MAX)));
            }
        }
    }
    if let Some((_, behind)) = head.split_once("sed -i") {
        let end = behind.find(['&', ';', '|']).unwrap_or(behind.len());
        let last = behind
            .get(..end)
            .unwrap_or_default()
            .split_whitespace()
            .next_back();
        let path = last.filter(|word| word.contains(['.', '/']) && !word.contains(['\'', '"']));
        files.extend(path.map(|path| (Act::Edited, one_line(path, SIGNATURE_MAX))));
    }
    files
}

/// Returns the files that a command prints.
fn read_by_shell(command: &str) -> Vec<(Act, String)> {
    let body = command.split("<<").next().unwrap_or_default();
    let stages = body.split(['\n', ';', '&']).map(|part| {
        let stage = part.split('|').next().unwrap_or_default();
        stage.split_whitespace().collect::<Vec<_>>()
    });
    let mut files = Vec::new();
    for words in stages {
        let Some((program, arguments)) = words.split_first() else {
            continue;
        };
        let is_printed = PRINTERS.contains(program)
            && !arguments
                .iter()
                .any(|word| word.starts_with("-i") || word.contains('>'));
        let paths = arguments.iter().filter(|word| {
            is_printed
                && word.contains(['.', '/'])
                && !word.starts_with('-')
                && !word.contains(['\'', '"', '*', '$', '{', '(', ','])
        });
        files.extend(paths.map(|path| {
            (
                Act::Read,
                one_line(path.trim_start_matches("./"), SIGNATURE_MAX),
            )
        }));
    }
    files.truncate(FILES_MAX);
    files
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
            Act::Edited => "edit",
        };
        return one_line(&format!("{verb} {path}"), SIGNATURE_MAX);
    }
    let mut shown = vec![one_line(name, SIGNATURE_MAX)];
    if let Value::Object(map) = value {
        for (key, value) in map {
            let Some(text) = scalar(value) else {
                continue;
            };
            let is_plain = is_one_of(PLAIN, key);
            let is_told = map.contains_key("command") && ASIDE.contains(&key.as_str());
            if is_told || text.is_empty() || (text.len() > CONTENT && !is_plain) {
                continue;
            }
            let text = one_line(&text, ARGUMENT_MAX);
            if is_plain || is_one_of(PATHS, key) {
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

/// Collects the texts, numbers and booleans in `value`, which is `depth` levels deep.
pub(crate) fn leaves(value: &Value, depth: usize, out: &mut Vec<String>) {
    if depth > DEPTH {
        return;
    }
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Number(number) => out.push(number.to_string()),
        Value::Array(list) => list.iter().for_each(|one| leaves(one, depth + 1, out)),
        Value::Object(map) => map.values().for_each(|one| leaves(one, depth + 1, out)),
        Value::Bool(truth) => out.push(truth.to_string()),
        Value::Null => {}
    }
}

/// Words in the names of shell tools.
const SHELLS: &str = "bash|shell|exec|terminal|run_command|command";
/// Programs that are skipped to find the actual program.
const WRAPPERS: [&str; 11] = [
    "sudo", "time", "timeout", "env", "nohup", "npx", "exec", "then", "do", "!", "rtk",
];
/// Programs that prepare or accompany others.
const ASIDE_PROGRAMS: [&str; 11] = [
    "cd", "export", "source", "set", "sleep", "echo", "pwd", "true", ".", "printf", "1",
];
/// Programs that only show something.
const READERS: [&str; 31] = [
    "cat", "head", "tail", "less", "grep", "rg", "ag", "find", "fd", "ls", "tree", "wc", "stat",
    "file", "which", "whereis", "type", "jq", "sort", "uniq", "cut", "awk", "diff", "ps", "df",
    "du", "env", "nl", "test", "[", "history",
];
/// Programs that print the files that they are given.
const PRINTERS: [&str; 7] = ["cat", "head", "tail", "less", "nl", "sed", "bat"];
/// Subcommands of git that only show something.
const GIT_READERS: &str = "log|show|diff|grep|status|blame|branch|ls-files|rev-parse|remote";
/// Words in commands that build, check or test.
const TESTS: &str = "test|tests|runtests|pytest|jest|vitest|mocha|tox|nextest|check|build|clippy|tsc|lint|eslint|make|\
    gradle|gradlew|mvn|ruff|mypy|biome|unittest|rspec|ctest|typecheck|compile|vet";
/// Argument keys with a path as their value.
const PATHS: &str = "path|file_path|filepath|filePath|filename|file|notebook_path|target_file|absolute_path|\
    relative_path|file_name";
/// Argument keys that are irrelevant beside a command.
const ASIDE: &[&str] = &["description", "timeout", "timeout_ms"];
/// Argument keys with the time limit of a command.
const TIMEOUTS: [&str; 2] = ["timeout", "timeout_ms"];
/// Argument keys that are omitted, because their value is clear without them.
const PLAIN: &str = "command|cmd|query|pattern|url|prompt|description|subject|code|thought";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_families() {
        for (command, family, is_reader, is_test) in [
            (
                "cargo test -p a 2>&1 | tail -5",
                "cargo test a",
                false,
                true,
            ),
            (
                "cd /x && RUST_LOG=1 cargo build",
                "cargo build",
                false,
                true,
            ),
            ("git log --oneline -3", "git log", true, false),
            ("grep -rn 'error' src | head", "grep src", true, false),
            ("npm run lint", "npm run lint", false, true),
            ("python3 run.py", "python3", false, false),
        ] {
            let found = ShellCommand::new(command);
            assert_eq!(
                (found.family.as_str(), found.is_reader, found.is_test),
                (family, is_reader, is_test),
                "{command}"
            );
        }
    }

    #[test]
    fn commands_are_shown_without_bodies() {
        for (arguments, shown) in [
            (
                r#"{"command": "cat <<'EOF' > a.py\nx = 1 << 3\nEOF\npython3 a.py", "timeout": 60000}"#,
                "python3 a.py",
            ),
            (r#"{"command": "cat > a.py <<EOF\nx\nEOF"}"#, "cat > a.py"),
            (
                r#"{"command": "git commit -m \"$(cat <<'EOF'\nFix\nEOF\n)\""}"#,
                "git commit -m",
            ),
            (
                r#"{"command": "rm -f db && \\\npython3 -c 'print(1<<3)' 2>&1"}"#,
                "rm -f db && python3 -c 'print(1<<3)'",
            ),
        ] {
            assert_eq!(
                TranscriptCall::new("bash", arguments).signature,
                shown,
                "{arguments}"
            );
        }
    }

    #[test]
    fn files_are_known_by_the_call() {
        for (name, arguments, files) in [
            (
                "Edit",
                r#"{"file_path": "a.rs", "old_string": "x"}"#,
                &[(Act::Edited, "a.rs")][..],
            ),
            (
                "str_replace_editor",
                r#"{"command": "view", "path": "/a"}"#,
                &[(Act::Read, "/a")],
            ),
            (
                "str_replace_editor",
                r#"{"command": "create", "path": "/a"}"#,
                &[(Act::Written, "/a")],
            ),
            (
                "bash",
                r#"{"command": "cat > b.py <<'EOF'\nx\nEOF"}"#,
                &[(Act::Written, "b.py")],
            ),
            (
                "bash",
                r#"{"command": "cd /x && cat ./b.py | head; sed -n '1,9p' src/c.py"}"#,
                &[(Act::Read, "b.py"), (Act::Read, "src/c.py")],
            ),
            (
                "bash",
                r#"{"command": "sed -i 's/a/b/' src/c.py && ls"}"#,
                &[(Act::Edited, "src/c.py")],
            ),
            (
                "apply_patch",
                r#"{"input": "*** Begin Patch\n*** Update File: d.rs\n@@"}"#,
                &[(Act::Edited, "d.rs")],
            ),
            ("Grep", r#"{"pattern": "x", "path": "src"}"#, &[]),
        ] {
            let call = TranscriptCall::new(name, arguments);
            let found: Vec<(Act, &str)> = call
                .files
                .iter()
                .map(|(act, path)| (*act, path.as_str()))
                .collect();
            assert_eq!(found, files, "{arguments}");
        }
    }
}
