//! Shell commands: the files that they write, move and remove, and the test that they run. The forms
//! are data, in `words/commands.txt`.

use super::calls::{Act, SIGNATURE_MAX};
use super::names::has_extension;
use super::sentences::one_line;
use super::words::{any_in, is_in, list};

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
    /// The words of a build, a check or a test, with its variables and without options. Empty if the
    /// command is none.
    pub(crate) test: Vec<String>,
    /// The folder of the test. Empty if it is not known.
    pub(crate) folder: String,
    /// The actions on files.
    pub(crate) files: Vec<(Act, String)>,
}

impl ShellCommand {
    /// Reads a command that runs in `folder`.
    pub(crate) fn read(command: &str, folder: &str) -> Self {
        let shell = without_bodies(command);
        // The text of a commit is content.
        let shown = shell.split("\"$(cat").next().unwrap_or_default();
        let shown = without_preparation(if shown.is_empty() { &shell } else { shown });
        let mut command = Self {
            shown: shown.to_owned(),
            is_reader: true,
            test: Vec::new(),
            folder: String::new(),
            files: Vec::new(),
        };
        let mut current = folder.to_owned();
        let mut is_certain = true;
        for stage in stages(&shell).into_iter().map(Stage::of) {
            let Some(program) = stage.words.first().map(String::as_str) else {
                continue;
            };
            let folder = match &stage.folder {
                Some(other) => in_folder(&current, other),
                None => Some(current.clone()),
            };
            let folder = folder.unwrap_or_else(|| UNKNOWN.to_owned());
            let to = stage.words.get(1).map_or("~", String::as_str);
            if matches!(program, "cd" | "pushd") && to != "." {
                current = in_folder(&folder, to).unwrap_or_else(|| UNKNOWN.to_owned());
            }
            is_certain &= !is_in("conditions", program);
            command.add(&stage, folder, is_certain);
        }
        command
    }

    /// Adds a program that runs in `folder`, in any case if `is_certain`.
    fn add(&mut self, stage: &Stage, folder: String, is_certain: bool) {
        let acts = stage.acts();
        let reads = stage.reads() && acts.is_empty();
        for (act, path) in acts {
            let is_perhaps = act == Act::Removed && !is_certain;
            let act = if is_perhaps { Act::PerhapsRemoved } else { act };
            let path = in_folder(&folder, path).filter(|path| !path.starts_with("/dev/"));
            let file = path.map(|path| (act, one_line(&path, SIGNATURE_MAX)));
            self.files.extend(file);
        }
        if !stage.is_aside() {
            self.is_reader &= reads;
        }
        if stage.tests() && !reads {
            let words = stage.variables.iter().chain(&stage.words);
            (self.test, self.folder) = (words.cloned().collect(), folder);
        }
    }
}

/// One program with its arguments.
#[derive(Default)]
struct Stage {
    /// The program without its folder, and its arguments without options.
    words: Vec<String>,
    options: Vec<String>,
    /// The variables that make another test of a test.
    variables: Vec<String>,
    /// The folder of `-C`.
    folder: Option<String>,
    /// The file that the output goes to.
    output: Option<(Act, String)>,
}

impl Stage {
    fn of(words: Vec<String>) -> Self {
        let mut stage = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let is_first = stage.words.is_empty();
            match word.as_str() {
                "-C" => stage.folder = words.next(),
                ">" | ">>" => {
                    let acts = [Act::Written, Act::Edited];
                    stage.output = acts.get(word.len() - 1).copied().zip(words.next());
                }
                // `python -m pytest` runs pytest.
                "-m" if stage.words.iter().all(|word| word.starts_with("python")) => {
                    stage.words.clear();
                }
                // `2>&1`, `<a` and `$(`.
                _ if word.starts_with(['<', '$', '(']) || word.contains('>') => {}
                _ if word.starts_with('-') => stage.options.push(word),
                _ if is_first && word.contains('=') => {
                    let name = word.split('=').next().unwrap_or_default();
                    if !is_in("plain_variables", name) {
                        stage.variables.push(word);
                    }
                }
                // `timeout 60 make` runs make.
                _ if is_first
                    && (is_in("wrappers", &word) || word.starts_with(char::is_numeric)) => {}
                _ if is_first => {
                    let name = word.trim_start_matches('(').rsplit('/').next();
                    stage.words.extend(name.map(str::to_owned));
                }
                _ => stage.words.push(word),
            }
        }
        stage
    }

    /// Returns the actions on files.
    fn acts(&self) -> Vec<(Act, &str)> {
        let output = self.output.iter().map(|(act, path)| (*act, path.as_str()));
        let mut acts: Vec<(Act, &str)> = output.collect();
        let Some((effects, arguments)) = list("effects").find_map(|row| self.effects(row)) else {
            return acts;
        };
        let mut effects = effects.split('|').map(Act::from_word);
        let mut effect = || effects.next().flatten();
        if let (before, last, Some((to, from))) = (effect(), effect(), arguments.split_last()) {
            let before = before.into_iter();
            acts.extend(before.flat_map(|act| from.iter().map(move |path| (act, *path))));
            // `mv a.rs src` names a folder.
            let last = last.filter(|act| *act != Act::Written || has_extension(to));
            acts.extend(last.map(|act| (act, *to)));
        }
        acts.extend(effect().map(|act| (act, ".")));
        acts
    }

    /// Returns the effects of a line of the list and the arguments, if the program is that of the line.
    fn effects<'s>(&'s self, row: &'static str) -> Option<(&'static str, Vec<&'s str>)> {
        let (form, effects) = row.split_once('|')?;
        let mut words = self.words.iter().map(String::as_str);
        let mut parts = form.split(' ');
        let is_met = parts.all(|part| {
            words.clone().next() == Some(part) && words.next().is_some() || self.has(part)
        });
        is_met.then(|| (effects, words.collect()))
    }

    /// Checks for an option. `-rf` contains `-r`.
    fn has(&self, option: &str) -> bool {
        let letter = option.strip_prefix('-').filter(|rest| rest.len() == 1);
        let mut options = self.options.iter();
        options.any(|one| {
            one == option
                || letter.is_some_and(|letter| !one.starts_with("--") && one.contains(letter))
        })
    }

    /// Returns `true` if the program neither reads nor changes anything of interest.
    fn is_aside(&self) -> bool {
        let program = self.words.first();
        program.is_none_or(|program| is_in("aside_programs", program))
    }

    /// Returns `true` if the program only shows something.
    fn reads(&self) -> bool {
        let [program, second] = [0, 1].map(|n| self.words.get(n).map_or("", String::as_str));
        let is_listed = |row| row == program || row == format!("{program} {second}");
        self.output.is_none() && list("readers").any(is_listed)
    }

    /// Returns `true` for a build, a check or a test.
    fn tests(&self) -> bool {
        let program = self.words.first().map_or("", String::as_str);
        let mut words = self.words.iter();
        let is_test = words.clone().take(WORDS_MAX).any(|word| is_test_word(word))
            || is_in("interpreters", program) && words.any(|word| is_test_file(word));
        let asks_only = self.options.iter().any(|word| is_in("asks_only", word));
        is_test && !asks_only && program != "git"
    }
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
