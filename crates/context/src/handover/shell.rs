//! Shell commands: the files that they write, move and remove, and the tests that they run. The forms
//! are data, in `words/commands.txt`.
//!
//! No shell is simulated. A listed command does something certain to paths that are plain words. Any
//! other command with a program or code that removes files may have removed the files that its words name
//! or, if the names come from elsewhere, any file.

use super::calls::{
    Act, EDITED, MOVED, PERHAPS_REMOVED, REMOVED, SIGNATURE_MAX, TranscriptCall, WRITTEN, patched,
};
use super::names::has_extension;
use super::sentences::one_line;
use super::state::TestRun;
use super::words::{any_in, is_in, list};

/// The maximum number of lines of a here-document whose end is searched.
const BODY_MAX: usize = 4_000;
/// The number of words behind a program that may name a test.
const WORDS_MAX: usize = 3;
/// The maximum number of words of an unclear command that are read.
const WORDS_READ: usize = 200;
/// The signs of a pattern.
const PATTERN: [char; 4] = ['*', '?', '[', '{'];
/// The signs of a variable or a command in a word.
const VARIABLE: [char; 2] = ['$', '`'];
/// The signs behind which a command begins.
const BEGINS: [char; 11] = [';', '|', '&', '(', ')', '{', '}', '`', '\'', '"', '\n'];

/// Reads a command that runs in `folder`.
pub(crate) fn read(command: &str, folder: &str) -> TranscriptCall {
    let command = command.replace("\\\n", " ");
    let shell = without_bodies(&command, false);
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
    for (link, words) in stages(&without_bodies(&command, true)) {
        if !matches!(link, '|' | '>') {
            pipeline.clear();
        }
        let at = pipeline.len();
        pipeline.extend(words.iter().cloned());
        let stage = Stage::of(words, &current);
        is_certain &= !is_in("conditions", stage.word(0));
        match (stage.word(0), stage.word(1)) {
            ("popd", _) | ("cd" | "pushd", "" | "-") => {
                (current, is_certain) = (folder.to_owned(), false);
            }
            ("cd" | "pushd", to) => current = in_folder(&stage.folder, to),
            _ => {}
        }
        // What stands behind `||` may not run.
        let acts = stage.acts(is_certain && link != '!');
        if !matches!(link, '|' | '!') {
            let reads = acts.is_none() && stage.is_listed("readers");
            let is_aside = stage.words.is_empty() || stage.is_listed("aside_programs");
            call.is_reader &= reads || is_aside;
            call.tests
                .extend(stage.test().filter(|_| !reads && !is_aside));
        }
        call.files.extend(acts.unwrap_or_else(|| {
            match removes(pipeline.get(at..).unwrap_or_default()) {
                true => perhaps_removed(&stage.folder, &pipeline),
                false => Vec::new(),
            }
        }));
    }
    call.files.extend(patched(&command));
    call
}

/// One program with its arguments.
struct Stage {
    /// The program without its folder, its arguments and its options.
    words: Vec<String>,
    /// The variables that make another test of a test, and the folder of the program.
    place: String,
    folder: String,
}

impl Stage {
    fn of(words: Vec<String>, folder: &str) -> Self {
        let mut stage = Self {
            words: Vec::new(),
            place: String::new(),
            folder: folder.to_owned(),
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-C" => stage.folder = in_folder(folder, &words.next().unwrap_or_default()),
                _ if word.starts_with('<') => {}
                _ if !stage.words.is_empty() => stage.words.push(word),
                // `timeout 60 make` runs make, and `python -m pytest` runs pytest.
                _ if is_in("wrappers", &word) || word.starts_with(['-', '$', '(']) => {}
                _ if word.starts_with(char::is_numeric) => {}
                _ if word.contains('=') => {
                    let name = word.split('=').next().unwrap_or_default();
                    let is_plain = is_in("plain_variables", name);
                    stage.place.extend((!is_plain).then_some(word + " "));
                }
                _ => {
                    let word = word.trim_start_matches("./");
                    let at = word.rfind(['/', '\\']).map_or(0, |at| at + 1);
                    let (place, program) = word.split_at(at);
                    stage.place.push_str(place);
                    stage.words.push(program.to_owned());
                }
            }
        }
        stage
    }

    /// Returns the program and its arguments.
    fn arguments(&self) -> Vec<&str> {
        let words = self.words.iter().map(String::as_str);
        words.filter(|word| !word.starts_with('-')).collect()
    }

    fn word(&self, n: usize) -> &str {
        self.arguments().get(n).copied().unwrap_or_default()
    }

    /// Returns the listed actions on files, or nothing if it is not certain which files are removed.
    fn acts(&self, is_certain: bool) -> Option<Vec<(Act, String)>> {
        let is_code = |word: &String| word.contains('`') || word.contains("$(");
        if self.words.iter().any(is_code) {
            return None;
        }
        let mut rows = list("effects").filter_map(|row| row.split_once('|'));
        let (effects, words) =
            rows.find_map(|(form, effects)| Some((effects, self.behind(form)?)))?;
        let mut effects = effects.split('|');
        let [before, last, all] = [(); 3].map(|()| effects.next().unwrap_or_default());
        let mut acts: Vec<(Act, String)> = Vec::new();
        for (n, word) in words.iter().enumerate() {
            let act = if n + 1 < words.len() { before } else { last };
            let act = match act {
                MOVED if before == REMOVED && word.contains(PATTERN) => PERHAPS_REMOVED,
                MOVED if has_extension(word) => WRITTEN,
                // `mv a.rs src` names a folder.
                "" | MOVED => continue,
                REMOVED if !is_certain || word.contains(PATTERN) => PERHAPS_REMOVED,
                act => act,
            };
            let is_path = !any_in("no_paths", word);
            // A path may contain `[`.
            let is_one = is_path && !word.contains(['*', '?', '{']) && !word.starts_with("/dev/");
            match act {
                WRITTEN | EDITED if !is_one => {}
                _ if is_path => acts.push((act, in_folder(&self.folder, word))),
                _ => return None,
            }
        }
        acts.extend((!all.is_empty()).then(|| (all, named_or_all(&self.folder, &words))));
        Some(acts)
    }

    /// Returns the arguments behind a form with which the program begins, if it has the options of the form.
    fn behind<'s>(&'s self, form: &str) -> Option<Vec<&'s str>> {
        let (options, names): (Vec<&str>, Vec<&str>) =
            form.split(' ').partition(|part| part.starts_with('-'));
        let arguments = self.arguments();
        let is_met = arguments.starts_with(&names) && options.iter().all(|option| self.has(option));
        is_met.then(|| arguments.into_iter().skip(names.len()).collect())
    }

    /// Checks for an option. `-rf` contains `-r`.
    fn has(&self, option: &str) -> bool {
        let mut options = self.words.iter().filter(|word| word.starts_with('-'));
        options.any(|one| match option.as_bytes() {
            [b'-', letter] if *letter != b'-' => {
                !one.starts_with("--") && one.as_bytes().contains(letter)
            }
            _ => one.split('=').next() == Some(option),
        })
    }

    /// Checks whether the program, or the program with its first word, is in a list.
    fn is_listed(&self, name: &str) -> bool {
        let program = self.word(0);
        is_in(name, program) || is_in(name, &format!("{program} {}", self.word(1)))
    }

    /// Returns a build, a check or a test: it is known by the program, or by one of the words behind it that
    /// is no file.
    fn test(&self) -> Option<TestRun> {
        let words = self.words.iter().map(String::as_str);
        let words: Vec<&str> = words.filter(|word| !is_in("plain_options", word)).collect();
        let names = words.iter().enumerate();
        let mut names = names.filter(|(_, word)| !word.starts_with('-'));
        let (at, _) = names.by_ref().take(WORDS_MAX + 1).find(|(n, word)| {
            let is_file = *n > 0 && (word.contains('/') || has_extension(word));
            let low = word.to_lowercase();
            let mut parts = low.split(['-', '_', ':', '.']);
            !is_file && parts.any(|part| is_in("tests", part))
        })?;
        // `vitest run`
        let commands = words.iter().skip(at + 1);
        let commands = commands.take_while(|word| is_in("test_commands", word));
        let (test, words) = words.split_at(at + 1 + commands.count());
        let mut option = "";
        let behind = words.iter().flat_map(|word| word.split('=')).map(|word| {
            let word = word.trim_start_matches("./").trim_end_matches('/');
            if word.starts_with('-') {
                option = word;
                return word.to_owned();
            }
            format!("{} {word}", std::mem::take(&mut option))
        });
        let asks_only = self.words.iter().any(|word| is_in("asks_only", word));
        let is_test = !asks_only && self.word(0) != "git";
        is_test.then(|| TestRun {
            test: format!("{}{} {}", self.place, self.folder, test.join(" ")),
            words: behind.collect(),
            is_bare: words.iter().all(|word| word.starts_with('-')),
        })
    }
}

/// Checks for a shell or another interpreter, of any version.
fn is_interpreter(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let is_version = |c: char| c.is_ascii_digit() || c == '.';
    is_in("interpreters", name.trim_end_matches(is_version))
}

/// Returns the commands in the words of a stage, each as words. A text that an interpreter runs contains
/// commands; another text contains them behind a `$`.
fn commands(words: &[String]) -> Vec<Vec<String>> {
    let runs_texts = words.iter().any(|word| is_interpreter(word));
    let script = words.iter().map(|word| {
        let is_text = word.contains(char::is_whitespace);
        let hidden = if is_text && !runs_texts {
            word.find(VARIABLE).unwrap_or(word.len())
        } else {
            0
        };
        let sign = if is_text { ";" } else { " " };
        format!("{sign}{}", word.get(hidden..).unwrap_or_default())
    });
    let script = script.collect::<String>().replace(BEGINS, " ; ");
    let words: Vec<&str> = script.split_whitespace().collect();
    let commands = words.split(|word| *word == ";" || is_in("runners", word));
    let commands = commands.map(|mut command| {
        // `sudo -u crane rm x`
        while let [option, rest @ ..] = command
            && option.starts_with('-')
        {
            let has_value = is_in("valued_options", option);
            command = rest.get(usize::from(has_value)..).unwrap_or_default();
        }
        command.iter().map(|word| (*word).to_owned()).collect()
    });
    commands.collect()
}

/// Checks whether a stage may remove files, by one of its commands or by code.
fn removes(words: &[String]) -> bool {
    let runs_code = words.iter().any(|word| is_interpreter(word));
    let has_code = runs_code && any_in("removing_code", &words.join(" ").to_lowercase());
    has_code
        || commands(words).into_iter().any(|words| {
            let mut stage = Stage::of(words, "");
            let program = stage.words.iter_mut().take(1);
            program.for_each(|program| program.make_ascii_lowercase());
            list("removing").any(|form| stage.behind(form).is_some())
        })
}

/// Returns the path of an action on the files that words name or, if they name none, on those of a folder.
fn named_or_all(folder: &str, words: &[&str]) -> String {
    format!("{}\n{}", in_folder(folder, "."), words.join("\n"))
}

/// Returns the files that an unclear command may have removed.
fn perhaps_removed(folder: &str, pipeline: &[String]) -> Vec<(Act, String)> {
    let is_of_part = |c: char| c.is_alphanumeric() || "_./-*?[]{}~\\:".contains(c);
    let is_told = |c: char| c.is_alphanumeric() || "*./~".contains(c);
    let parts = pipeline
        .iter()
        .flat_map(|word| word.split(|c| !is_of_part(c)));
    let parts = parts.filter(|part| part.contains(is_told));
    let mut parts: Vec<&str> = parts.take(WORDS_READ).collect();
    let is_long = parts.len() == WORDS_READ;
    // `find . -name '*.log'` means the pattern.
    let has_pattern = parts.iter().any(|part| part.contains('*'));
    parts.retain(|part| !has_pattern || *part != ".");
    let is_unknown = |word: &String| word.contains(VARIABLE) || is_in("unknown_files", word);
    let runs = |word: &String| is_interpreter(word) || is_in("runners", word);
    if pipeline.iter().any(is_unknown) || is_long {
        vec![(PERHAPS_REMOVED, named_or_all(folder, &[]))]
    } else if !has_pattern && pipeline.iter().any(runs) {
        vec![(PERHAPS_REMOVED, named_or_all(folder, &parts))]
    } else {
        let paths = parts.into_iter().map(|path| in_folder(folder, path));
        paths.map(|path| (PERHAPS_REMOVED, path)).collect()
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

/// Returns a command without the bodies of here-documents, which are content. If `with_code`, those that a
/// program runs are an argument of it.
fn without_bodies(command: &str, with_code: bool) -> String {
    let mut shell = String::new();
    let mut lines = command.lines();
    while let Some(line) = lines.next() {
        let (before, behind) = line.split_once("<<").unwrap_or((line, ""));
        let behind = behind.trim_start_matches(['-', ' ']);
        let end = behind.find([' ', ')', ';', '&', '|', '>']);
        let (word, rest) = behind.split_at(end.unwrap_or(behind.len()));
        let end = word.trim_matches(['\'', '"', '\\']);
        let length = lines
            .clone()
            .take(BODY_MAX)
            .position(|line| line.trim() == end);
        let Some(length) = length.filter(|_| !end.is_empty()) else {
            shell.extend([line, "\n"]);
            continue;
        };
        let body: Vec<&str> = lines.by_ref().take(length + 1).take(length).collect();
        shell.extend([before.trim_end(), rest]);
        if with_code && line.split(' ').any(is_interpreter) {
            shell.push_str(&format!(" '{}'", body.join("\n").replace('\'', "\"")));
        }
        shell.push('\n');
    }
    shell
}

/// Splits a command into the folder to which it first changes, which agents repeat, and the part that a
/// signature shows.
fn shown(shell: &str) -> (&str, &str) {
    let command = shell.trim();
    let rest = command.strip_prefix("cd ");
    let (folder, rest) = rest
        .and_then(|rest| rest.split_once("&&"))
        .unwrap_or_default();
    let folder = folder.trim().trim_matches(['"', '\'']);
    if folder.starts_with(['/', '~']) {
        (folder, rest.trim())
    } else {
        ("", command)
    }
}

/// Splits a command into its stages, each as words without quotes, and with the sign before it: `|`, `!`
/// for `||`, or any other. The file of an output is the word of a stage `>` or `>>`.
fn stages(shell: &str) -> Vec<(char, Vec<String>)> {
    let mut stages: Vec<(char, Vec<String>)> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut is_word) = (String::new(), false);
    let (mut link, mut quote, mut output) = (';', None, None);
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
                // `2>&1`
                let is_stream = c == '>' && last.chars().all(|c| c.is_ascii_digit() || c == '&');
                if std::mem::take(&mut is_word) || !last.is_empty() && !is_stream {
                    match output.take() {
                        Some(sign) => stages.push(('>', vec![sign, last])),
                        None => words.push(last),
                    }
                }
                let is_double = matches!(c, '>' | '|') && chars.next_if_eq(&c).is_some();
                if c == '>' {
                    output = Some(if is_double { ">>" } else { ">" }.to_owned());
                    while chars.next_if(|c| *c == '&').is_some() {
                        chars.next();
                        output = None;
                    }
                } else if !matches!(c, ' ' | '\t') && !words.is_empty() {
                    stages.push((link, std::mem::take(&mut words)));
                    link = if is_double { '!' } else { c };
                }
            }
        }
    }
    stages
}
