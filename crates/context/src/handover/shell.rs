//! Shell commands: the program, and the files that they write, move and remove.

use super::calls::{Act, SIGNATURE_MAX};
use super::names::has_extension;
use super::sentences::one_line;
use super::words::is_in;

/// The maximum number of here-documents of a command whose ends are searched.
const BODIES_MAX: usize = 16;
/// The number of words of a program that are examined.
const WORDS_MAX: usize = 4;
/// Options with which a program runs no test.
const ASKS_ONLY: [&str; 3] = ["--help", "--list", "--collect-only"];

/// A shell command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShellCommand {
    /// The command without its preparation and the bodies of here-documents.
    pub(crate) shown: String,
    /// The program that runs, of several the first one that does not only show something.
    pub(crate) program: String,
    /// Whether the command only shows files, logs or matches.
    pub(crate) is_reader: bool,
    /// Whether the command builds, checks or tests.
    pub(crate) is_test: bool,
}

impl ShellCommand {
    /// Reads a command, with its actions on files.
    pub(crate) fn read(command: &str) -> (Self, Vec<(Act, String)>) {
        let shell = without_bodies(command);
        let mut files = Vec::new();
        let mut name = String::new();
        let (mut is_reader, mut is_test) = (true, false);
        for part in shell.split(['\n', ';', '&']) {
            let stage = part.split('|').next().unwrap_or_default();
            let words = program(stage);
            let Some(program) = words.first().copied() else {
                continue;
            };
            let second = words.get(1).copied().unwrap_or_default();
            actions(stage, program, second, &mut files);
            if is_in("aside_programs", program) {
                continue;
            }
            let reads = is_in("readers", program)
                || (program == "git" && is_in("git_readers", second))
                || (program == "sed" && !stage.contains("-i"));
            let runs_file = is_in("interpreters", program);
            let asks_only = ASKS_ONLY.iter().any(|option| stage.contains(option));
            is_test |= !reads
                && !asks_only
                && (words.iter().any(|word| is_test_word(word))
                    || runs_file && stage.split_whitespace().any(is_test_file));
            if name.is_empty() || is_reader && !reads {
                program.clone_into(&mut name);
            }
            is_reader &= reads;
        }
        // The text of a commit is content.
        let shown = shell.split("\"$(cat").next().unwrap_or_default();
        let shown = without_preparation(if shown.is_empty() { &shell } else { shown });
        let command = Self {
            shown: shown.to_owned(),
            program: name,
            is_reader,
            is_test,
        };
        (command, files)
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
    let mut is_folder = false;
    for word in stage.split_whitespace() {
        // `git -C quay rm` and `make -C quay test` are about another folder.
        if std::mem::replace(&mut is_folder, word == "-C") {
            continue;
        }
        let is_wrapper = words.is_empty()
            && (is_in("wrappers", word)
                || word.contains('=')
                || word.chars().all(|c| c.is_ascii_digit() || c == 's'));
        if is_wrapper || word.starts_with(['-', '>', '<', '"', '\'', '$', '(']) {
            continue;
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
        if words.is_empty() {
            words.push(word.rsplit('/').next().unwrap_or(word));
        } else if words.len() < WORDS_MAX && word.chars().all(is_plain) {
            words.push(word);
        }
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

/// Adds the actions of a stage on files.
fn actions(stage: &str, program: &str, second: &str, files: &mut Vec<(Act, String)>) {
    let words = || stage.split_whitespace();
    let folder = words().skip_while(|word| *word != "-C").nth(1);
    let folder = folder.filter(|_| program == "git");
    let mut add = |act, path: &str| {
        let path = path.trim_matches(['"', '\'']).trim_start_matches("./");
        let path = path.trim_end_matches('/');
        let path = match folder {
            Some(folder) if path == "." => folder.to_owned(),
            Some(folder) if !path.starts_with('/') => format!("{folder}/{path}"),
            _ => path.to_owned(),
        };
        if !path.is_empty() && !path.contains(['$', '(', '{', '=']) {
            files.push((act, one_line(&path, SIGNATURE_MAX)));
        }
    };
    // The subcommand of git stands behind its options.
    let command = if program == "git" { second } else { program };
    let behind = words().skip_while(|word| word.rsplit('/').next() != Some(command));
    let behind = behind.skip(1).take_while(|word| !word.contains(['>', '<']));
    let (options, plain): (Vec<&str>, Vec<&str>) = behind.partition(|word| word.starts_with('-'));
    let is_set = |long: &str, letters: [char; 2]| {
        let mut options = options.iter();
        options.any(|one| *one == long || !one.starts_with("--") && one.contains(letters))
    };
    let removed =
        if is_conditional(stage) || program != "git" && is_set("--interactive", ['i', 'I']) {
            Act::PerhapsRemoved
        } else {
            Act::Removed
        };
    match (program, second) {
        // These change no file.
        ("git", "rm" | "mv")
            if is_set("--dry-run", ['n', 'n']) || options.contains(&"--cached") => {}
        ("rm" | "unlink", _) | ("git", "rm") => plain.iter().for_each(|path| add(removed, path)),
        ("mv", _) | ("git", "mv") => {
            let Some((to, from)) = plain.split_last() else {
                return;
            };
            // `-n` keeps a target that exists.
            let is_kept = is_set("--no-clobber", ['n', 'n']);
            let removed = if is_kept {
                Act::PerhapsRemoved
            } else {
                removed
            };
            from.iter().for_each(|path| add(removed, path));
            if from.len() == 1 && to.contains('.') && removed == Act::Removed {
                add(Act::Written, to);
            }
        }
        ("git", "restore") if !options.contains(&"--staged") => {
            plain.iter().for_each(|path| add(Act::Restored, path));
        }
        ("git", "checkout") if options.contains(&"--") => {
            let paths = words().skip_while(|word| *word != "--").skip(1);
            paths.for_each(|path| add(Act::Restored, path));
        }
        ("sed", _) if stage.contains("-i") => {
            let last = plain.last();
            let path = last.filter(|word| word.contains(['.', '/']) && !word.contains(['\'', '"']));
            path.into_iter().for_each(|path| add(Act::Edited, path));
        }
        ("cat" | "tee" | "echo" | "printf", _) => {
            let mut words = words();
            let act = match words.find(|word| word.starts_with('>') || *word == "tee") {
                Some(">" | "tee") => Act::Written,
                Some(">>") => Act::Edited,
                _ => return,
            };
            let path = words.find(|word| !word.starts_with('-'));
            let path =
                path.filter(|path| !path.starts_with(['&', '"']) && !path.starts_with("/dev/"));
            path.into_iter().for_each(|path| add(act, path));
        }
        _ => {}
    }
}

/// Returns `true` if the stage is a branch of a condition, which may not have run.
fn is_conditional(stage: &str) -> bool {
    matches!(stage.split_whitespace().next(), Some("then" | "else"))
}
