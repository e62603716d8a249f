//! Shell commands: the files that they write, move and remove, and the test that they run. The forms
//! are data, in `words/commands.txt`.

use super::calls::{Act, CallKind, SIGNATURE_MAX, TranscriptCall, patched};
use super::names::has_extension;
use super::sentences::one_line;
use super::words::{any_in, is_in, list};

/// The maximum number of lines of a here-document whose end is searched.
const BODY_MAX: usize = 4_000;
/// The number of words behind a program that may name a test.
const WORDS_MAX: usize = 3;
/// The folder of relative paths if it cannot be known.
const UNKNOWN: &str = "?";

/// Reads a command that runs in `folder`.
pub(crate) fn read(command: &str, folder: &str) -> TranscriptCall {
    let shell = without_bodies(command);
    let mut call = TranscriptCall {
        signature: one_line(shown(&shell), SIGNATURE_MAX),
        kind: CallKind::Command,
        is_reader: true,
        ..TranscriptCall::default()
    };
    let known = |folder: Option<String>| folder.unwrap_or_else(|| UNKNOWN.to_owned());
    let mut current = folder.to_owned();
    let mut is_certain = true;
    for stage in stages(&shell).into_iter().map(Stage::of) {
        let (program, to) = (stage.word(0), stage.word(1));
        let folder = match &stage.folder {
            Some(other) => known(in_folder(&current, other)),
            None => current.clone(),
        };
        if matches!(program, "cd" | "pushd") && to != "." {
            current = known(in_folder(&folder, to));
        }
        is_certain &= !is_in("conditions", program);
        let acts = stage.acts();
        let reads = acts.is_empty() && stage.is_listed("readers");
        let is_aside = program.is_empty() || stage.is_listed("aside_programs");
        call.is_reader &= reads || is_aside;
        for (act, path) in acts {
            let is_perhaps = act == Act::Removed && !is_certain;
            let act = if is_perhaps { Act::PerhapsRemoved } else { act };
            let path = in_folder(&folder, path).filter(|path| !path.starts_with("/dev/"));
            let file = path.map(|path| (act, one_line(&path, SIGNATURE_MAX)));
            call.files.extend(file);
        }
        if stage.tests() && !reads && !is_aside {
            call.test = [stage.variables, stage.words].concat();
            call.test_folder = folder;
        }
    }
    call.files.extend(patched(command));
    call
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
                ">" => stage.output = words.next().map(|path| (Act::Written, path)),
                ">>" => stage.output = words.next().map(|path| (Act::Edited, path)),
                // `python -m pytest` runs pytest.
                "-m" if stage.words.len() == 1 && stage.word(0).starts_with("python") => {
                    stage.words.clear();
                }
                _ if word.starts_with('#') => break,
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
                _ if is_first && is_in("wrappers", &word) => {}
                _ if is_first && word.starts_with(char::is_numeric) => {}
                _ if is_first => {
                    let program = word.rsplit('/').next();
                    stage.words.extend(program.map(str::to_owned));
                }
                _ => stage.words.push(word),
            }
        }
        stage
    }

    fn word(&self, n: usize) -> &str {
        self.words.get(n).map_or("", String::as_str)
    }

    /// Returns the actions on files.
    fn acts(&self) -> Vec<(Act, &str)> {
        let output = self.output.iter().map(|(act, path)| (*act, path.as_str()));
        let mut acts: Vec<(Act, &str)> = output.collect();
        let Some((effects, words)) = list("effects").find_map(|row| self.effects(row)) else {
            return acts;
        };
        let mut effects = effects.split('|').map(Act::from_word);
        let [before, last, all] = [(); 3].map(|()| effects.next().flatten());
        acts.extend(all.map(|act| (act, ".")));
        if let Some((to, from)) = words.split_last() {
            acts.extend(
                from.iter()
                    .filter_map(|path| Some((before?, path.as_str()))),
            );
            // `mv a.rs src` names a folder.
            let last = last.filter(|act| *act != Act::Written || has_extension(to));
            acts.extend(last.map(|act| (act, to.as_str())));
        }
        acts
    }

    /// Returns the effects of a line of the list and the arguments, if the program is that of the line.
    fn effects(&self, row: &'static str) -> Option<(&'static str, &[String])> {
        let (form, effects) = row.split_once('|')?;
        let parts = form.split(' ');
        let (options, names): (Vec<&str>, Vec<&str>) =
            parts.partition(|part| part.starts_with('-'));
        let (program, arguments) = self.words.split_at_checked(names.len())?;
        let is_met = program == names && options.iter().all(|option| self.has(option));
        is_met.then_some((effects, arguments))
    }

    /// Checks for an option. `-rf` contains `-r`.
    fn has(&self, option: &str) -> bool {
        let letter = option.strip_prefix('-').filter(|rest| rest.len() == 1);
        self.options.iter().any(|one| match letter {
            Some(letter) => !one.starts_with("--") && one.contains(letter),
            None => one == option,
        })
    }

    /// Checks whether the program, or the program with its first word, is in a list.
    fn is_listed(&self, name: &str) -> bool {
        let program = self.word(0);
        is_in(name, program) || is_in(name, &format!("{program} {}", self.word(1)))
    }

    /// Returns `true` for a build, a check or a test: by the program, by one of the words behind it that
    /// is no file, or by the script that an interpreter runs, such as `tests/test_lexer.py`.
    fn tests(&self) -> bool {
        let program = self.word(0);
        let is_interpreter = is_in("interpreters", program);
        let mut words = self.words.iter().skip(1).take(WORDS_MAX);
        let is_test = is_test_word(program)
            || words.any(|word| {
                let name = word.rsplit('/').next().unwrap_or(word);
                let is_file = word.contains('/') || has_extension(name);
                (!is_file || is_interpreter && has_extension(name)) && is_test_word(name)
            });
        let asks_only = self.options.iter().any(|word| is_in("asks_only", word));
        is_test && !asks_only && program != "git"
    }
}

fn is_test_word(word: &str) -> bool {
    let low = word.to_lowercase();
    low.split(['-', '_', ':', '.'])
        .any(|part| is_in("tests", part))
}

/// Returns a path relative to a folder, or `None` if it depends on variables or commands.
fn in_folder(folder: &str, path: &str) -> Option<String> {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    let is_path = !path.is_empty() && !any_in("no_paths", path);
    is_path.then(|| match path {
        _ if folder.is_empty() || path.starts_with(['/', '~']) => path.to_owned(),
        "." => folder.to_owned(),
        _ => format!("{folder}/{path}"),
    })
}

/// Returns a command without the bodies of here-documents, which are content.
fn without_bodies(command: &str) -> String {
    let command = command.replace("\\\n", " ");
    let mut shell: Vec<String> = Vec::new();
    let mut lines = command.lines();
    while let Some(line) = lines.next() {
        let (before, behind) = line.split_once("<<").unwrap_or((line, ""));
        let behind = behind.trim_start_matches(['-', ' ']);
        let end = behind.find([' ', ')', ';', '&', '|', '>']);
        let (word, rest) = behind.split_at(end.unwrap_or(behind.len()));
        let end = word.trim_matches(['\'', '"']);
        let mut ahead = lines.clone();
        let mut body = ahead.by_ref().take(BODY_MAX);
        if !end.is_empty() && body.any(|line| line.trim() == end) {
            shell.push(format!("{}{rest}", before.trim_end()));
            lines = ahead;
        } else {
            shell.push(line.to_owned());
        }
    }
    shell.join("\n")
}

/// Returns the part of a command that a signature shows: without the text of a commit, a leading change
/// to an absolute folder, which agents repeat, and a trailing redirection.
fn shown(shell: &str) -> &str {
    let command = shell.split("\"$(cat").next().unwrap_or_default().trim();
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
    let mut stages: Vec<Vec<String>> = Vec::new();
    let mut stage: Vec<String> = Vec::new();
    let (mut word, mut is_word) = (String::new(), false);
    let (mut quote, mut is_piped) = (None, false);
    let mut before = ' ';
    for c in shell.chars().chain(['\n']) {
        let is_escaped = before == '\\' && quote != Some('\'');
        let ends = c.is_whitespace() || matches!(c, ';' | '|') || c == '&' && before != '>';
        match quote {
            _ if is_escaped => word.push(c),
            _ if c == '\\' => {}
            Some(open) if open == c => quote = None,
            Some(_) => word.push(c),
            None if c == '\'' || c == '"' => (quote, is_word) = (Some(c), true),
            None if ends => {
                let word = std::mem::take(&mut word);
                stage.extend((is_word || !word.is_empty()).then_some(word));
                is_word = false;
                if !matches!(c, ' ' | '\t') {
                    let whole = std::mem::take(&mut stage);
                    stages.extend((!is_piped).then_some(whole));
                    is_piped = c == '|';
                }
            }
            None => word.push(c),
        }
        before = if is_escaped { ' ' } else { c };
    }
    stages
}
