//! Shell commands: the files that they write, move and remove, and the tests that they run. The forms
//! are data, in `words/commands.txt`.
//!
//! No shell is simulated. A listed command does something certain to paths that are plain words. Any
//! other command with a word that removes files may have removed the files that its words name, or, if
//! they name none, any file.

use super::calls::{
    Act, EDITED, PERHAPS_REMOVED, REMOVED, SIGNATURE_MAX, TranscriptCall, WRITTEN, patched,
};
use super::names::has_extension;
use super::sentences::one_line;
use super::state::TestRun;
use super::words::{any_in, is_in, list};

/// The maximum number of lines of a here-document whose end is searched.
const BODY_MAX: usize = 4_000;
/// The number of words behind a program that may name a test.
const WORDS_MAX: usize = 3;
/// The maximum number of words of an unclear command that are compared with paths.
const UNCLEAR_MAX: usize = 200;

/// Reads a command that runs in `folder`.
pub(crate) fn read(command: &str, folder: &str) -> TranscriptCall {
    let shell = without_bodies(&command.replace("\\\n", " "));
    let (first_folder, shown) = shown(&shell);
    let mut call = TranscriptCall {
        signature: one_line(shown, SIGNATURE_MAX),
        folder: in_folder(folder, first_folder),
        is_command: true,
        is_reader: true,
        ..TranscriptCall::default()
    };
    let mut current = folder.to_owned();
    let (mut is_certain, mut pipeline) = (true, Vec::new());
    for (link, words) in stages(&shell) {
        if link != '|' {
            pipeline.clear();
        }
        pipeline.extend(words.iter().cloned());
        let removes = any_in("removing", &padded(&words));
        let stage = Stage::of(words);
        let (program, to) = (stage.word(0), stage.word(1));
        let folder = in_folder(&current, stage.folder.as_deref().unwrap_or_default());
        if matches!(program, "cd" | "pushd") {
            current = in_folder(&folder, to);
        }
        is_certain &= !is_in("conditions", program);
        // What stands behind `||` may not run.
        let is_sure = is_certain && link != '!';
        let acts = stage.acts(&folder, is_sure, if removes { &pipeline } else { &[] });
        let reads = acts.is_empty() && stage.is_listed("readers");
        let is_aside = program.is_empty() || stage.is_listed("aside_programs");
        if !matches!(link, '|' | '!') {
            call.is_reader &= reads || is_aside;
            let is_test = !reads && !is_aside && stage.tests();
            call.tests.extend(is_test.then(|| stage.test(&folder)));
        }
        call.files.extend(acts);
    }
    call.files.extend(patched(command));
    call
}

/// One program with its arguments.
#[derive(Default)]
struct Stage {
    /// The program without its folder, its arguments and its options.
    words: Vec<String>,
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
                ">" => stage.output = words.next().map(|path| (WRITTEN, path)),
                ">>" => stage.output = words.next().map(|path| (EDITED, path)),
                "-C" => stage.folder = words.next(),
                _ if word.starts_with('<') => {}
                _ if !is_first => stage.words.push(word),
                // `timeout 60 make` runs make, and `python -m pytest` runs pytest.
                _ if is_in("wrappers", &word) => {}
                _ if word.starts_with(['-', '$', '(']) || word.starts_with(char::is_numeric) => {}
                _ if word.contains('=') => {
                    let name = word.split('=').next().unwrap_or_default();
                    let is_plain = is_in("plain_variables", name);
                    stage.variables.extend((!is_plain).then_some(word));
                }
                _ => stage
                    .words
                    .extend(word.rsplit('/').next().map(str::to_owned)),
            }
        }
        stage
    }

    /// Returns the program and its arguments.
    fn arguments(&self) -> impl Iterator<Item = &str> {
        let words = self.words.iter().map(String::as_str);
        words.filter(|word| !word.starts_with('-'))
    }

    fn word(&self, n: usize) -> &str {
        self.arguments().nth(n).unwrap_or_default()
    }

    /// Returns the actions on files. `removing` are the words of the stage and of those that it reads from,
    /// if one removes files.
    fn acts(&self, folder: &str, is_certain: bool, removing: &[String]) -> Vec<(Act, String)> {
        let mut acts: Vec<(Act, String)> = Vec::new();
        let is_harmless = self.is_listed("speakers") && !removing.iter().any(|word| runs(word));
        let mut is_clear = is_harmless || removing.is_empty();
        if let Some((effects, words)) = list("effects").find_map(|row| self.effects(row)) {
            is_clear = true;
            let mut effects = effects.split('|');
            let [before, last, all] = [(); 3].map(|()| effects.next().unwrap_or_default());
            let words: Vec<String> = words.into_iter().flat_map(expanded).collect();
            for (n, word) in words.iter().enumerate() {
                let act = if n + 1 < words.len() { before } else { last };
                let is_pattern = word.contains(['*', '?', '[']);
                let is_change = matches!(act, WRITTEN | EDITED);
                // `mv a.rs src` names a folder.
                let is_folder = act == WRITTEN && !has_extension(word);
                match act {
                    "" => {}
                    _ if is_change && (is_folder || is_pattern) => {}
                    _ if any_in("no_paths", word) => is_clear &= is_change,
                    REMOVED if is_pattern || !is_certain => {
                        acts.push((PERHAPS_REMOVED, in_folder(folder, word)))
                    }
                    _ => acts.push((act, in_folder(folder, word))),
                }
            }
            acts.extend((!all.is_empty()).then(|| (all, unclear(folder, &words))));
        }
        if !is_clear {
            acts.extend(perhaps_removed(folder, removing));
        }
        let output = self.output.iter();
        let output =
            output.filter(|(_, path)| !any_in("no_paths", path) && !path.starts_with("/dev/"));
        acts.extend(output.map(|(act, path)| (*act, in_folder(folder, path))));
        acts
    }

    /// Returns the effects of a line of the list and the arguments, if the program is that of the line.
    fn effects(&self, row: &'static str) -> Option<(&'static str, Vec<&str>)> {
        let (form, effects) = row.split_once('|')?;
        let (options, names): (Vec<&str>, Vec<&str>) =
            form.split(' ').partition(|part| part.starts_with('-'));
        let arguments: Vec<&str> = self.arguments().collect();
        let arguments = arguments.strip_prefix(names.as_slice())?;
        let is_met = options.iter().all(|option| self.has(option));
        is_met.then(|| (effects, arguments.to_vec()))
    }

    /// Checks for an option. `-rf` contains `-r`.
    fn has(&self, option: &str) -> bool {
        let letter = option
            .strip_prefix('-')
            .filter(|rest| rest.len() == 1 && *rest != "-");
        let mut options = self.words.iter().filter(|word| word.starts_with('-'));
        options.any(|one| match letter {
            Some(letter) => !one.starts_with("--") && one.contains(letter),
            None => one.split('=').next() == Some(option),
        })
    }

    /// Checks whether the program, or the program with its first word, is in a list.
    fn is_listed(&self, name: &str) -> bool {
        let program = self.word(0);
        is_in(name, program) || is_in(name, &format!("{program} {}", self.word(1)))
    }

    /// Returns `true` for a build, a check or a test: by the program, or by one of the words behind it that
    /// is no file.
    fn tests(&self) -> bool {
        let program = self.word(0);
        let words = self.arguments().skip(1).take(WORDS_MAX);
        let mut words = words.filter(|word| !word.contains('/') && !has_extension(word));
        let is_test = is_test_word(program) || words.any(is_test_word);
        let asks_only = self.words.iter().any(|word| is_in("asks_only", word));
        is_test && !asks_only && program != "git"
    }

    /// Returns what the test runs. An option and its value are one word.
    fn test(&self, folder: &str) -> TestRun {
        let mut words: Vec<String> = Vec::new();
        let told = self
            .words
            .iter()
            .filter(|word| !is_in("plain_options", word));
        for word in told.map(|word| word.trim_start_matches("./").trim_end_matches('/')) {
            match words.last_mut() {
                Some(option)
                    if option.starts_with('-')
                        && !option.contains(' ')
                        && !word.starts_with('-') =>
                {
                    option.extend([' '].into_iter().chain(word.chars()));
                }
                _ if word.starts_with('-') => words.push(word.replace('=', " ")),
                _ => words.push(word.to_owned()),
            }
        }
        let place = [self.variables.as_slice(), &[folder.to_owned()]].concat();
        TestRun {
            place: place.join(" "),
            words,
        }
    }
}

fn is_test_word(word: &str) -> bool {
    let low = word.to_lowercase();
    low.split(['-', '_', ':', '.'])
        .any(|part| is_in("tests", part))
}

/// Checks for a command in a word.
fn runs(word: &str) -> bool {
    word.contains(['`', '$'])
}

/// Returns the names and numbers in words that may contain code.
fn parts(words: &[String]) -> impl Iterator<Item = &str> {
    let is_of_part = |c: char| c.is_alphanumeric() || "_./-*?[]{}~\\:".contains(c);
    words
        .iter()
        .flat_map(move |word| word.split(move |c| !is_of_part(c)))
}

/// Returns the parts of words in lower case, each between blanks.
fn padded(words: &[String]) -> String {
    let parts = parts(words).filter(|part| !part.is_empty());
    parts.fold(" ".to_owned(), |text, part| {
        text + &part.to_lowercase() + " "
    })
}

/// Returns the files that an unclear command may have removed.
fn perhaps_removed(folder: &str, pipeline: &[String]) -> Vec<(Act, String)> {
    let is_pattern = |word: &&String| word.contains(['*', '?', '[']);
    let mut program = pipeline.iter().skip_while(|word| is_in("wrappers", word));
    let is_search = program.next().is_some_and(|program| program == "find");
    let has_unknown = pipeline.iter().any(|word| runs(word));
    let is_fed = pipeline
        .iter()
        .any(|word| word == "xargs" || word == "parallel");
    if is_search && !has_unknown {
        // `find src -name '*.py'`: the patterns, or the folders before the options.
        let options = pipeline.iter().filter(|word| word.starts_with(['-', '!']));
        let excludes = options.clone().any(|option| is_in("excluding", option));
        let patterns: Vec<&String> = pipeline
            .iter()
            .filter(is_pattern)
            .filter(|_| !excludes)
            .collect();
        let folders = program.take_while(|word| !word.starts_with(['-', '(', '!']));
        let paths: Vec<&String> = if patterns.is_empty() {
            folders.collect()
        } else {
            patterns
        };
        return paths
            .into_iter()
            .map(|path| (PERHAPS_REMOVED, in_folder(folder, path)))
            .collect();
    }
    let is_listed = pipeline
        .first()
        .is_some_and(|program| is_in("listers", program));
    let is_told = !has_unknown && (!is_fed || is_listed);
    let words = parts(pipeline).filter(|part| is_told && !part.starts_with('-'));
    let words = words.filter(|part| part.contains(char::is_alphanumeric) || part.contains('*'));
    vec![(PERHAPS_REMOVED, unclear(folder, words.take(UNCLEAR_MAX)))]
}

/// Returns the path of an action on the files that words name, or, if they name none, on those of a folder.
fn unclear(folder: &str, words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut path = in_folder(folder, ".");
    for word in words {
        path.extend(["\n", &word.as_ref().replace('\n', " ")]);
    }
    if path.contains('\n') {
        path
    } else {
        path + "\n"
    }
}

/// Returns the words that a word in braces stands for: `src/{a,b}.rs`.
fn expanded(word: &str) -> Vec<String> {
    let split = word.split_once('{');
    let split = split.and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match split {
        Some((before, (inner, behind))) if inner.contains(',') => {
            let words = inner.split(',').map(|one| format!("{before}{one}{behind}"));
            words.flat_map(|word| expanded(&word)).collect()
        }
        _ => vec![word.to_owned()],
    }
}

/// Returns a path relative to a folder.
fn in_folder(folder: &str, path: &str) -> String {
    let path = one_line(path, SIGNATURE_MAX);
    let path = path.trim_start_matches("./").trim_end_matches('/');
    match path {
        "" => folder.to_owned(),
        "." if !folder.is_empty() => folder.to_owned(),
        _ if matches!(folder, "" | ".") || path.starts_with(['/', '~']) => path.to_owned(),
        _ => format!("{folder}/{path}"),
    }
}

/// Returns a command without the bodies of here-documents, which are content, unless a program runs them.
fn without_bodies(command: &str) -> String {
    let mut shell: Vec<String> = Vec::new();
    let mut lines = command.lines();
    while let Some(line) = lines.next() {
        let (before, behind) = line.split_once("<<").unwrap_or((line, ""));
        let behind = behind.trim_start_matches(['-', ' ']);
        let end = behind.find([' ', ')', ';', '&', '|', '>']);
        let (word, rest) = behind.split_at(end.unwrap_or(behind.len()));
        let end = word.trim_matches(['\'', '"', '\\']);
        let mut ahead = lines.clone();
        let body: Vec<&str> = ahead
            .by_ref()
            .take(BODY_MAX)
            .take_while(|line| line.trim() != end)
            .collect();
        if end.is_empty() || body.len() == lines.clone().take(BODY_MAX).count() {
            shell.push(line.to_owned());
            continue;
        }
        let is_code = before
            .split_whitespace()
            .any(|word| is_in("interpreters", word));
        let code = body.join("\n").replace('\'', "\"");
        let code = if is_code {
            format!(" '{code}'")
        } else {
            String::new()
        };
        shell.push(format!("{}{code}{rest}", before.trim_end()));
        lines = ahead;
    }
    shell.join("\n")
}

/// Splits a command into the folder to which it first changes, which agents repeat, and the part that a
/// signature shows.
fn shown(shell: &str) -> (&str, &str) {
    let command = shell.trim();
    let split = command
        .strip_prefix("cd ")
        .and_then(|rest| rest.split_once("&&"))
        .map(|(folder, rest)| (folder.trim().trim_matches(['"', '\'']), rest.trim()));
    let split = split.filter(|(folder, _)| folder.starts_with(['/', '~']));
    split.unwrap_or(("", command))
}

/// Splits a command into its stages, each as words without quotes, and with the sign before it: `|`, `!`
/// for `||`, or any other.
fn stages(shell: &str) -> Vec<(char, Vec<String>)> {
    let mut stages: Vec<(char, Vec<String>)> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut is_word) = (String::new(), false);
    let (mut link, mut quote) = (';', None);
    let mut chars = shell.chars().chain(['\n']).peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or('\n');
        let ends = c.is_whitespace() || matches!(c, ';' | '|' | '&' | '>');
        match quote {
            // Before a letter, it belongs to a path of Windows.
            _ if c == '\\' && quote != Some('\'') && !next.is_alphanumeric() => {
                word.extend(chars.next());
            }
            Some(open) if open == c => quote = None,
            Some(_) => word.push(c),
            None if c == '\'' || c == '"' => (quote, is_word) = (Some(c), true),
            None if c == '#' && word.is_empty() && !is_word => {
                while chars.next_if(|c| *c != '\n').is_some() {}
            }
            None if !ends || c == '&' && next == '>' => word.push(c),
            None => {
                let last = std::mem::take(&mut word);
                let is_sign = c == '>' && last.chars().all(|c| c.is_ascii_digit() || c == '&');
                words.extend((is_word || !last.is_empty() && !is_sign).then_some(last));
                is_word = false;
                let is_double = matches!(c, '>' | '|') && chars.next_if_eq(&c).is_some();
                match c {
                    ' ' | '\t' => {}
                    // `2>&1`
                    '>' if chars.next_if_eq(&'&').is_some() => {
                        while chars.next_if(char::is_ascii_digit).is_some() {}
                    }
                    '>' => words.push(if is_double { ">>" } else { ">" }.to_owned()),
                    _ if words.is_empty() => {}
                    _ => {
                        stages.push((link, std::mem::take(&mut words)));
                        link = if is_double { '!' } else { c };
                    }
                }
            }
        }
    }
    stages
}
