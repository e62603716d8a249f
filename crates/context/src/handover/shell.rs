//! Shell commands: the files that they write, move and remove, and the tests that they run. The forms
//! are data, in `words/commands.txt`.
//!
//! No shell is simulated. The removal of a file by `rm PATH...` or `mv A B` is certain if that is the only
//! program of the command. Any other program or code that removes files may have removed those that its words name.

use std::sync::LazyLock;

use foldhash::HashMap;

use super::calls::{
    Act, NAMED, PERHAPS_REMOVED, REMOVED, SIGNATURE_MAX, TranscriptCall, WRITTEN, patched,
};
use super::files::FileAct;
use super::names::has_extension;
use super::sentences::one_line;
use super::state::TestRun;
use super::words::{any_in, is_in, list};

/// The maximum number of lines of a here-document whose end is searched.
const BODY_MAX: usize = 4_000;
/// The number of words behind a program that may name a test.
const WORDS_MAX: usize = 3;
/// The maximum number of names of a removal that are read. If there are more, all files may be meant.
const NAMES_MAX: usize = 200;
/// The signs of a variable or a command in a word, and with them those of a pattern.
const VARIABLE: [char; 2] = ['$', '`'];
const SIGNS: [char; 8] = ['$', '`', '*', '?', '[', '{', '&', '='];

/// A last argument that is written, unless it is a folder; and the prefix of an action that may mean all files.
const COPIED: &str = "copied";
const ALL: &str = "all ";

/// One program with its arguments, without quotes.
struct Stage {
    /// The sign before it: `|`, `!` for `||`, or any other; `>` before the file of an output.
    link: char,
    words: Vec<String>,
    /// The variables before the program that make another test of a test.
    variables: String,
    /// The folder in which it runs.
    folder: String,
}

/// Reads a command that runs in `folder`.
pub(crate) fn read(command: &str, folder: &str) -> TranscriptCall {
    let command = command.replace("\\\n", " ");
    let cd = command.trim().strip_prefix("cd ");
    let cd = cd.and_then(|rest| rest.split_once("&&"));
    // Agents repeat the folder before each command.
    let cd = cd.filter(|(to, _)| to.starts_with(['/', '~', '"']));
    let (to, shown) = cd.unwrap_or(("", &command));
    let mut call = TranscriptCall {
        signature: one_line(shown, SIGNATURE_MAX),
        folder: in_folder(folder, to.trim().trim_matches(['"', '\''])),
        is_command: true,
        is_reader: true,
        // A background command ends before its tests.
        tells: !command.trim_end().ends_with('&'),
        ..TranscriptCall::default()
    };
    let mut stages = stages(&with_code(&command));
    let mut later = stages.iter().skip(1);
    call.returns = call.tells && later.all(|stage| matches!(stage.link, '&' | '>'));
    let words = stages.iter().flat_map(|stage| stage.words.iter().cloned());
    let names = words.filter(|word| !word.contains(char::is_whitespace));
    call.files
        .push(FileAct::new(NAMED, names.take(NAMES_MAX).collect()));
    call.files.extend(removal_by_text(&stages, &call.folder));
    let others = stages.iter().filter(|stage| stage.link != '>');
    let others = others.filter(|stage| stage.words.first().is_some_and(|word| word != "cd"));
    let mut is_plain = others.count() == 1 && stages.iter().all(|stage| stage.link != '!');
    let mut current = folder.to_owned();
    for stage in &mut stages {
        let acts = stage.acts(&current, is_plain);
        match (stage.argument(0), stage.argument(1)) {
            ("popd", _) | ("cd" | "pushd", "" | "-") => {
                (current, is_plain) = (String::new(), false);
            }
            ("cd" | "pushd", to) => current = in_folder(&stage.folder, to),
            _ => {}
        }
        let is_shown = stage.link == '|' && stage.is_listed("shows_all");
        call.tells &= call.tests.is_empty() || is_shown || matches!(stage.link, '&' | '>');
        if !matches!(stage.link, '|' | '!' | '>') {
            let reads = acts.is_empty() && stage.is_listed("readers");
            let is_aside = stage.words.is_empty() || stage.is_listed("aside_programs");
            call.is_reader &= reads || is_aside;
            let test = stage.test().filter(|_| !reads && !is_aside);
            call.tests.extend(test);
        }
        call.files.extend(acts);
    }
    call.files.extend(patched(&command));
    call
}

impl Stage {
    /// Returns the actions of the program, or of one that it runs, on files. Removes the words before the
    /// program.
    fn acts(&mut self, folder: &str, is_plain: bool) -> Vec<FileAct> {
        let all = std::mem::take(&mut self.words);
        self.clean(&all, folder);
        let Some([form, act, last_act]) = effect(&self.words) else {
            // `sudo -u crane rm x`
            let runner = all.iter().rposition(|word| is_in("runners", word));
            let run = runner.and_then(|at| all.get(at + 1..)).unwrap_or_default();
            let mut run = (0..run.len()).filter_map(|at| effect(run.get(at..)?));
            let may_remove = run.any(|[_, act, _]| !act.is_empty());
            return Vec::from_iter(may_remove.then(|| self.end(PERHAPS_REMOVED, &all, false)));
        };
        let is_option = |word: &&String| word.starts_with('-');
        let mut options = self.words.iter().filter(is_option);
        let asks = act == REMOVED && options.any(|word| !is_in("removal_options", word));
        let of_form = form
            .split(' ')
            .filter(|word| !word.starts_with('-'))
            .count();
        let names = self.words.iter().filter(|word| !is_option(word));
        let mut names: Vec<&String> = names.skip(of_form).collect();
        let is_clear = is_plain && !asks && !names.iter().any(|name| name.contains(SIGNS));
        let has_last = !last_act.is_empty() && !asks && names.len() > usize::from(act == REMOVED);
        let last = has_last.then(|| names.pop()).flatten();
        let path = |name: &String| in_folder(&self.folder, name);
        let mut acts = Vec::from_iter(match act {
            "" => None,
            REMOVED if is_clear => Some(FileAct::new(act, names.into_iter().map(path).collect())),
            REMOVED => Some(self.end(PERHAPS_REMOVED, &names, false)),
            _ => Some(self.end(
                act.trim_start_matches(ALL),
                &self.words,
                act.starts_with(ALL),
            )),
        });
        let is_file = |name: &&String| {
            let may_be_folder = last_act == COPIED && !has_extension(name);
            !may_be_folder && !name.contains(SIGNS) && !name.starts_with("/dev/")
        };
        let act = if last_act == COPIED {
            WRITTEN
        } else {
            last_act
        };
        acts.extend(
            last.filter(is_file)
                .map(|name| FileAct::new(act, vec![path(name)])),
        );
        acts
    }

    /// Fills in the words without those before the program, its variables and its folder.
    fn clean(&mut self, all: &[String], folder: &str) {
        folder.clone_into(&mut self.folder);
        let mut all = all.iter().map(String::as_str);
        while let Some(word) = all.next() {
            // `timeout 60 make` runs make, and `python -m pytest` runs pytest.
            let is_option = word.starts_with(['-', '$']) || word.starts_with(char::is_numeric);
            let is_before = self.words.is_empty() && (is_option || is_in("wrappers", word));
            let name = word.split_once('=').filter(|_| self.words.is_empty());
            if word == "-C" {
                self.folder = in_folder(folder, all.next().unwrap_or_default());
            } else if let Some((name, _)) = name {
                let is_plain = is_in("plain_variables", name);
                let variable = (!is_plain).then(|| format!("{word} "));
                self.variables.extend(variable);
            } else if !is_before && !word.starts_with('<') {
                self.words.push(word.trim_start_matches("./").to_owned());
            }
        }
    }

    /// Returns the program (0) or an argument.
    fn argument(&self, n: usize) -> &str {
        let mut words = self.words.iter().filter(|word| !word.starts_with('-'));
        words.nth(n).map_or("", String::as_str)
    }

    /// Checks whether the program, or the program with its first word, is in a list.
    fn is_listed(&self, list: &str) -> bool {
        let program = match name(self.argument(0)) {
            // `bin/test` is no `test -f`.
            "test" => self.argument(0),
            name => name,
        };
        is_in(list, program) || is_in(list, &format!("{program} {}", self.argument(1)))
    }

    /// Returns an action on the files that words name.
    fn end(&self, act: Act, words: &[impl AsRef<str>], or_all: bool) -> FileAct {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        named_files(act, &words, or_all, [&self.folder, &self.folder])
    }

    /// Returns a build, a check or a test: it is known by the program, or by one of the words behind it that
    /// is no file.
    fn test(&self) -> Option<TestRun> {
        let words = self.words.iter().map(|word| word.trim_end_matches(":fix"));
        let words: Vec<&str> = words.filter(|word| !is_in("plain_options", word)).collect();
        let names = words.iter().enumerate();
        let mut names = names.filter(|(_, word)| !word.starts_with('-'));
        let (at, _) = names.by_ref().take(WORDS_MAX + 1).find(|(n, word)| {
            let is_file = *n > 0 && (word.contains('/') || has_extension(word));
            let low = name(word).to_lowercase();
            let mut parts = low.split(['-', '_', ':', '.']);
            !is_file && parts.any(|part| is_in("tests", part))
        })?;
        if self.argument(0) == "git" || words.iter().any(|word| is_in("asks_only", word)) {
            return None;
        }
        // `vitest run`
        let behind = words.iter().skip(at + 1);
        let commands = behind.take_while(|word| is_in("test_commands", word));
        let (test, words) = words.split_at(at + 1 + commands.count());
        let words = words.iter().flat_map(|word| word.split('='));
        let words = words.map(|word| word.trim_start_matches("./").trim_end_matches('/'));
        Some(TestRun {
            test: format!("{}{} {}", self.variables, self.folder, test.join(" ")),
            words: words.map(str::to_owned).collect(),
        })
    }
}

/// The effects of programs by the first word of their forms.
static EFFECTS: LazyLock<HashMap<&str, Vec<[&str; 3]>>> = LazyLock::new(|| {
    let mut effects: HashMap<&str, Vec<[&str; 3]>> = HashMap::default();
    for row in list("effects") {
        let mut parts = row.split('|');
        let row = [(); 3].map(|()| parts.next().unwrap_or_default());
        let program = row[0].split(' ').next().unwrap_or_default();
        effects.entry(program).or_default().push(row);
    }
    effects
});

/// Returns the form with which a command begins, and what the program does to its files and to the last one: it
/// has the program of the form and contains its other words.
fn effect(command: &[String]) -> Option<[&'static str; 3]> {
    let (program, words) = command.split_first()?;
    let rows = EFFECTS.get(name(program).to_ascii_lowercase().as_str())?;
    let has = |part: &str| words.iter().any(|word| word == part);
    let mut rows = rows.iter().copied();
    rows.find(|[form, ..]| form.split(' ').skip(1).all(has))
}

/// Returns the name of a program without its folder.
fn name(program: &str) -> &str {
    program.rsplit(['/', '\\']).next().unwrap_or(program)
}

/// Checks for a shell or another interpreter, of any version.
fn is_interpreter(word: &str) -> bool {
    let is_version = |c: char| c.is_ascii_digit() || c == '.';
    is_in("interpreters", name(word).trim_end_matches(is_version))
}

/// Returns the files that commands or code in the words of a command may have removed: in all texts if a
/// program runs them, else in those with a `$`. `folder` is where all files are.
fn removal_by_text(stages: &[Stage], folder: &str) -> Option<FileAct> {
    let words = || stages.iter().flat_map(|stage| &stage.words);
    let runs_code = words().any(|word| is_interpreter(word));
    let texts = words().filter(|word| word.contains([' ', '\n', '(']));
    let texts = texts.filter(|word| runs_code || word.contains(VARIABLE));
    let text = texts.fold(String::new(), |text, word| text + "\n" + word);
    let is_of_path = |c: char| c.is_alphanumeric() || "_./-*?[]{}~\\:".contains(c);
    let names: Vec<&str> = text.split(|c| !is_of_path(c)).collect();
    let is_removal = |name: &&str| is_in("removing_words", &name.to_lowercase());
    let code = text.to_lowercase();
    let removes = names.iter().any(is_removal) || any_in("removing_code", &code);
    removes.then(|| named_files(PERHAPS_REMOVED, &names, true, ["", folder]))
}

/// Returns an action on the files that words may name, relative to `base`; on all files of `folder` if they come
/// from elsewhere.
fn named_files(act: Act, words: &[&str], or_all: bool, [base, folder]: [&str; 2]) -> FileAct {
    let is_told = |c: char| c.is_alphanumeric() || "*./~".contains(c);
    let names = words.iter().filter(|word| word.contains(is_told));
    let mut names: Vec<&&str> = names.take(NAMES_MAX).collect();
    // `find . -name '*.log'` means the pattern.
    let has_pattern = names.iter().any(|name| name.contains('*'));
    names.retain(|name| !has_pattern || **name != ".");
    let is_unknown = |word: &&str| word.contains(VARIABLE) || is_in("unknown_files", word);
    let are_known = (1..NAMES_MAX).contains(&names.len()) && !words.iter().any(is_unknown);
    let names = names.into_iter().filter(|_| are_known);
    let paths = names.map(|name| in_folder(base, name)).collect();
    FileAct {
        or_all_of: (or_all || !are_known).then(|| folder.to_owned()),
        ..FileAct::new(act, paths)
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

/// Returns a command without the bodies of here-documents. Those that a program runs are an argument of it.
fn with_code(command: &str) -> String {
    let mut shell = String::new();
    let mut lines = command.lines();
    while let Some(line) = lines.next() {
        let (before, behind) = line.split_once("<<").unwrap_or((line, ""));
        let behind = behind.trim_start_matches(['-', ' ']);
        let end = behind.find([' ', ')', ';', '&', '|', '>']);
        let (word, rest) = behind.split_at(end.unwrap_or(behind.len()));
        let end = word.trim_matches(['\'', '"', '\\']);
        let mut body = lines.clone().take(BODY_MAX);
        let length = body.position(|line| line.trim() == end);
        let Some(length) = length.filter(|_| !end.is_empty()) else {
            shell.extend([line, "\n"]);
            continue;
        };
        let body: Vec<&str> = lines.by_ref().take(length + 1).collect();
        shell.extend([before.trim_end(), rest]);
        if line.split(' ').any(is_interpreter) {
            let code = body.join("\n").replace('\'', "\"");
            shell.extend([" '", &code, "'"]);
        }
        shell.push('\n');
    }
    shell
}

/// Splits a command into its stages.
fn stages(shell: &str) -> Vec<Stage> {
    let stage = |link, words| Stage {
        link,
        words,
        variables: String::new(),
        folder: String::new(),
    };
    let mut stages: Vec<Stage> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut is_word) = (String::new(), false);
    let (mut link, mut quote, mut output) = (';', None, None);
    let mut chars = shell.chars().chain(['\n']).peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or('\n');
        let ends = c.is_whitespace() || ";|&>()`".contains(c);
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
                        Some(sign) => stages.push(stage('>', vec![sign, last])),
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
                } else if !c.is_whitespace() || c == '\n' && !words.is_empty() {
                    if !words.is_empty() {
                        stages.push(stage(link, std::mem::take(&mut words)));
                    }
                    link = if is_double { '!' } else { c };
                }
            }
        }
    }
    stages
}
