//! Shell commands: the program, and the files that they write, move and remove.

use super::calls::{Act, SIGNATURE_MAX};
use super::names::has_extension;
use super::sentences::one_line;
use super::words::{any_in, is_in};

/// The maximum number of here-documents of a command whose ends are searched.
const BODIES_MAX: usize = 16;
/// The number of words of a program that may name a test.
const WORDS_MAX: usize = 4;

/// The folder of relative paths if it cannot be known.
const UNKNOWN: &str = "?";

/// A shell command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShellCommand {
    /// The command without its preparation and the bodies of here-documents.
    pub(crate) shown: String,
    /// Whether the command only shows files, logs or matches.
    pub(crate) is_reader: bool,
    /// The words of a build, a check or a test, without options. Empty if the command is none.
    pub(crate) test: Vec<String>,
    /// The folder that it changes to. Empty if it does not.
    pub(crate) folder: String,
}

impl ShellCommand {
    /// Reads a command, with its actions on files.
    pub(crate) fn read(command: &str) -> (Self, Vec<(Act, String)>) {
        let shell = without_bodies(command);
        let mut actions = FileActions::default();
        let mut is_reader = true;
        let (mut test, mut folder) = (Vec::new(), String::new());
        for stage in stages(&shell) {
            let words = program(&stage);
            let Some(program) = words.first().copied() else {
                continue;
            };
            let second = words.get(1).copied().unwrap_or_default();
            actions.read(&stage, program, second);
            if program == "cd" {
                second.clone_into(&mut folder);
            }
            if is_in("aside_programs", program) {
                continue;
            }
            let has = |option: &str| stage.iter().any(|word| word.starts_with(option));
            let reads = is_in("readers", program)
                || (program == "git" && is_in("git_readers", second))
                || (program == "sed" && !has("-i"));
            is_reader &= reads;
            let is_test = words.iter().take(WORDS_MAX).any(|word| is_test_word(word))
                || is_in("interpreters", program) && words.iter().any(|word| is_test_file(word));
            let asks_only = stage.iter().any(|word| is_in("asks_only", word));
            if is_test && !reads && !asks_only && program != "git" {
                test = words.into_iter().map(str::to_owned).collect();
            }
        }
        // The text of a commit is content.
        let shown = shell.split("\"$(cat").next().unwrap_or_default();
        let shown = without_preparation(if shown.is_empty() { &shell } else { shown });
        let command = Self {
            shown: shown.to_owned(),
            is_reader,
            test,
            folder,
        };
        (command, actions.files)
    }
}

/// Returns a command without the bodies of here-documents, which are content.
fn without_bodies(command: &str) -> String {
    let command = command.replace("\\\n", " ");
    let mut shell: Vec<String> = Vec::new();
    let mut lines = command.lines();
    let mut bodies = 0;
    while let Some(line) = lines.next() {
        let parts = line.split_once("<<").filter(|_| bodies < BODIES_MAX);
        let Some((before, behind)) = parts else {
            shell.push(line.to_owned());
            continue;
        };
        bodies += 1;
        let behind = behind.trim_start_matches(['-', ' ']);
        let end = behind.find([' ', ')', ';', '&', '|', '>']);
        let (word, rest) = behind.split_at(end.unwrap_or(behind.len()));
        let end = word.trim_matches(['\'', '"']);
        let mut ahead = lines.clone();
        if ahead.any(|line| line.trim() == end) {
            shell.push(format!("{}{rest}", before.trim_end()));
            lines = ahead;
        } else {
            shell.push(line.to_owned());
        }
    }
    shell.join("\n")
}

/// Returns a command without a leading change to an absolute directory, which agents repeat, and a trailing
/// redirection.
fn without_preparation(command: &str) -> &str {
    let command = command.trim();
    let behind = command
        .strip_prefix("cd ")
        .filter(|rest| rest.trim_start_matches(['"', '\'']).starts_with(['/', '~']))
        .and_then(|rest| rest.split_once("&&"));
    let command = behind.map_or(command, |(_, rest)| rest.trim());
    command.strip_suffix("2>&1").unwrap_or(command).trim()
}

/// Splits a command into its stages, each as words without quotes. Omits the stages behind a pipe,
/// which read, and those behind `||`, which may not run.
fn stages(shell: &str) -> Vec<Vec<String>> {
    let mut stages: Vec<Vec<String>> = vec![Vec::new()];
    let (mut word, mut is_word) = (String::new(), false);
    let (mut quote, mut is_piped) = (None, false);
    let mut before = ' ';
    for c in shell.chars().chain(['\n']) {
        let is_escaped = before == '\\' && quote != Some('\'');
        match quote {
            _ if is_escaped => word.push(c),
            _ if c == '\\' => {}
            Some(open) if open == c => quote = None,
            Some(_) => word.push(c),
            None if c == '\'' || c == '"' => (quote, is_word) = (Some(c), true),
            None if c.is_whitespace() || matches!(c, ';' | '|') || c == '&' && before != '>' => {
                let whole = std::mem::take(&mut word);
                if (is_word || !whole.is_empty()) && !is_piped {
                    stages
                        .last_mut()
                        .into_iter()
                        .for_each(|stage| stage.push(whole.clone()));
                }
                is_word = false;
                if !matches!(c, ' ' | '\t') {
                    is_piped = c == '|';
                    stages.push(Vec::new());
                }
            }
            None => word.push(c),
        }
        before = if is_escaped { ' ' } else { c };
    }
    stages
}

/// Returns the program of a stage and its plain words, without variables, options and the directory
/// of the program.
fn program(stage: &[String]) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    let mut is_folder = false;
    for word in stage.iter().map(String::as_str) {
        // `git -C quay rm` and `make -C quay test` are about another folder.
        if std::mem::replace(&mut is_folder, word == "-C") {
            continue;
        }
        // `python -m pytest` runs pytest.
        if word == "-m" && words.iter().all(|word| word.starts_with("python")) {
            words.clear();
        }
        let is_wrapper = words.is_empty()
            && (is_in("wrappers", word)
                || word.contains('=')
                || word.chars().all(|c| c.is_ascii_digit() || c == 's'));
        if is_wrapper || word.starts_with(['-', '<', '$', '(']) || word.contains('>') {
            continue;
        }
        words.push(match words.first() {
            None => word.rsplit('/').next().unwrap_or(word),
            Some(_) => word,
        });
    }
    words
}

fn is_test_word(word: &str) -> bool {
    let low = word.to_lowercase();
    low.split(['-', '_', ':', '.'])
        .any(|part| is_in("tests", part))
}

/// Returns `true` for a file such as `tests/test_lexer.py` or `lexer.test.ts`.
fn is_test_file(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    has_extension(name) && is_test_word(name)
}

/// Returns a path relative to a folder, or `None` if it depends on variables or commands.
fn in_folder(folder: &str, path: &str) -> Option<String> {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    let path = match path {
        "." if folder.is_empty() => path.to_owned(),
        "." => folder.to_owned(),
        _ if folder.is_empty() || path.starts_with(['/', '~']) => path.to_owned(),
        _ => format!("{folder}/{path}"),
    };
    (!path.is_empty() && !any_in("no_paths", &path)).then_some(path)
}

/// Collects the actions of a command on files.
#[derive(Default)]
struct FileActions {
    /// The folder to which the command has changed.
    folder: String,
    files: Vec<(Act, String)>,
}

impl FileActions {
    /// Adds the actions of a stage.
    fn read(&mut self, stage: &[String], program: &str, second: &str) {
        let words = || stage.iter().map(String::as_str);
        // The subcommand of git stands behind its options.
        let command = if program == "git" { second } else { program };
        let behind = words().skip_while(|word| word.rsplit('/').next() != Some(command));
        let behind = behind.skip(1).take_while(|word| !word.contains(['>', '<']));
        let (options, plain): (Vec<&str>, Vec<&str>) =
            behind.partition(|word| word.starts_with('-'));
        let is_set = |long: &str, letters: &[char]| {
            let mut options = options.iter();
            options.any(|one| *one == long || !one.starts_with("--") && one.contains(letters))
        };
        let other = words().skip_while(|word| *word != "-C").nth(1);
        let folder = other
            .filter(|_| program == "git")
            .unwrap_or(&self.folder)
            .to_owned();
        let mut add = |act, path: &str| {
            let path = in_folder(&folder, path);
            let path = path.filter(|path| !path.starts_with("/dev/"));
            let file = path.map(|path| (act, one_line(&path, SIGNATURE_MAX)));
            self.files.extend(file);
        };
        // A branch of a condition may not have run.
        let is_branch = matches!(words().next(), Some("then" | "else"));
        let asks = program != "git" && is_set("--interactive", &['i', 'I']);
        // `mv -n` keeps a target that exists.
        let keeps = program == "mv" && is_set("--no-clobber", &['n']);
        let removed = if is_branch || asks || keeps {
            Act::PerhapsRemoved
        } else {
            Act::Removed
        };
        match (program, second) {
            ("cd" | "pushd", _) => {
                let to = *plain.first().unwrap_or(&"~");
                if to != "." {
                    let to = in_folder(&self.folder, to);
                    self.folder = to.unwrap_or_else(|| UNKNOWN.to_owned());
                }
            }
            // These change no file.
            ("git", "rm" | "mv")
                if is_set("--dry-run", &['n']) || options.contains(&"--cached") => {}
            ("rm" | "unlink", _) | ("git", "rm") => {
                plain.iter().for_each(|path| add(removed, path))
            }
            ("mv", _) | ("git", "mv") => {
                let Some((to, from)) = plain.split_last() else {
                    return;
                };
                from.iter().for_each(|path| add(removed, path));
                if from.len() == 1 && to.contains('.') && removed == Act::Removed {
                    add(Act::Written, to);
                }
            }
            ("git", "restore" | "checkout") if !is_set("--staged", &['S']) => {
                let paths = plain.iter().filter(|word| word.contains(['.', '/']));
                paths.for_each(|path| add(Act::Restored, path));
            }
            ("sed", _) if words().any(|word| word.starts_with("-i")) => {
                let path = plain.last().filter(|word| word.contains(['.', '/']));
                path.into_iter().for_each(|path| add(Act::Edited, path));
            }
            ("cat" | "tee" | "echo" | "printf", _) => {
                let mut words = words();
                let act = match words.find(|word| word.contains('>') || *word == "tee") {
                    Some(">" | "tee") => Act::Written,
                    Some(">>") => Act::Edited,
                    _ => return,
                };
                let path = words.find(|word| !word.starts_with('-'));
                path.into_iter().for_each(|path| add(act, path));
            }
            _ => {}
        }
    }
}
