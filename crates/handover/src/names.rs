//! Finds names in texts: paths, files, identifiers, hashes and numbers. Records the author, number
//! and age of their mentions, and estimates the likelihood that the agent uses them again.

use std::sync::LazyLock;

use foldhash::{HashMap, HashSet};

use crate::file_actions::FileActions;

/// The length up to which a line is read, in bytes: longer lines are repetitive or not text.
const LINE_MAX: usize = 4_000;
/// The maximum length of a name without a path; longer runs are base64, for example.
const WORD_MAX: usize = 64;
/// The length above which a run without blanks counts as data.
const LONG_RUN: usize = 1_000;
/// The maximum length of a path.
const PATH_MAX: usize = 200;

/// The author of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextAuthor {
    User,
    /// The agent, in its text.
    Agent,
    /// The agent, in the arguments of a tool call.
    Call,
    Thinking,
    Tool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum NameKind {
    Path,
    File,
    /// `snake_case`.
    Snake,
    /// `camelCase`.
    Camel,
    Hex,
    Number,
}

/// The mentions of one name. Ages are in messages from the end; `None` if there was no such
/// mention.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name {
    pub(crate) kind: NameKind,
    /// The number of mentions by the agent.
    agent_mentions: u32,
    agent_age: Option<u32>,
    text_age: Option<u32>,
    by_user: bool,
    /// The number of the file in which the name was last seen.
    pub(crate) home: Option<u32>,
}

/// All names in a range of messages.
#[derive(Default)]
pub(crate) struct Names<'t> {
    pub(crate) found: HashMap<&'t str, Name>,
    homes: Vec<String>,
    home_of: HashMap<String, u32>,
}

impl<'t> Names<'t> {
    /// Returns the number of a file.
    pub(crate) fn home(&mut self, path: &str) -> u32 {
        if let Some(home) = self.home_of.get(path) {
            return *home;
        }
        let home = u32::try_from(self.homes.len()).unwrap_or(u32::MAX);
        self.homes.push(path.to_owned());
        self.home_of.insert(path.to_owned(), home);
        home
    }

    /// Replaces relative paths of searches or commands (`src/a.rs`) by the path in `files` that
    /// they must refer to (`/lamp/src/a.rs`), if there is only one; in `files` too, unless the path
    /// is only a name.
    pub(crate) fn unite(&mut self, files: &mut HashMap<String, FileActions>) {
        let mut paths: Vec<String> = files.keys().cloned().collect();
        paths.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        let mut whole: HashMap<&str, Option<&str>> = HashMap::default();
        for path in &paths {
            let of = whole.get(path.as_str()).copied().flatten();
            if let Some(of) = of.filter(|_| path.contains('/'))
                && let Some(deeds) = files.remove(path)
            {
                files.entry(of.to_owned()).or_default().add(&deeds);
                continue;
            }
            for (at, _) in path.match_indices('/') {
                let end = path.get(at + 1..).unwrap_or_default();
                // Two files have this ending, so it is ambiguous.
                let of = whole.entry(end).or_insert(Some(path));
                *of = of.filter(|of| *of == path);
            }
            whole.insert(path, Some(path));
        }
        let mut united: Vec<u32> = Vec::new();
        for path in self.homes.clone() {
            let of = whole.get(path.as_str()).copied().flatten();
            united.push(self.home(of.unwrap_or(&path)));
        }
        for name in self.found.values_mut() {
            let of = name.home.and_then(|home| united.get(home as usize));
            name.home = of.copied();
        }
    }

    /// Returns the path with this number.
    pub(crate) fn path(&self, home: u32) -> Option<&str> {
        self.homes.get(home as usize).map(String::as_str)
    }

    /// Records the names of `text`, which `who` wrote `age` messages before the end. `home` is the
    /// file that the text comes from.
    pub(crate) fn read(&mut self, text: &'t str, who: TextAuthor, age: u32, home: Option<u32>) {
        for line in lines(text) {
            // `src/a.rs:12: …`, as printed by searches: the line comes from that file.
            let mut home = home;
            if who == TextAuthor::Tool
                && let Some(head) = place(line)
            {
                home = Some(self.home(head.trim_start_matches("./")));
            }
            each(line, &mut |word, kind| {
                let name = self.found.entry(word).or_insert(Name {
                    kind,
                    agent_mentions: 0,
                    agent_age: None,
                    text_age: None,
                    by_user: false,
                    home: None,
                });
                name.note(who, age);
                if home.is_some() {
                    name.home = home;
                }
            });
        }
    }
}

impl Name {
    fn note(&mut self, who: TextAuthor, age: u32) {
        match who {
            TextAuthor::User => self.by_user = true,
            TextAuthor::Agent | TextAuthor::Call => {
                self.agent_mentions = self.agent_mentions.saturating_add(1);
                self.agent_age = Some(age);
                if who == TextAuthor::Agent {
                    self.text_age = Some(age);
                }
            }
            TextAuthor::Thinking | TextAuthor::Tool => {}
        }
    }

    /// Returns the likelihood that the agent uses the name again, as a number without a unit.
    ///
    /// The odds come from a logistic fit over cuts in sessions of several agents, rounded to values
    /// that suit all of them. `deeds` are the actions on the file of this name, and `returns` is the
    /// result of [`returns`] for the session's files.
    pub(crate) fn likely(&self, word: &str, deeds: Option<&FileActions>, returns: f64) -> f64 {
        let recent = |age: Option<u32>| age.map_or(0.0, |age| 1.0 / (1.0 + f64::from(age).ln_1p()));
        let one_if = |holds: bool| if holds { 1.0 } else { 0.0 };
        let by_agent = 0.3 * f64::from(self.agent_mentions).ln_1p()
            + 4.0 * recent(self.agent_age)
            + 1.6 * recent(self.text_age);
        // A file that a tool was asked for is likely to be asked for again.
        let file = deeds.map_or(0.0, |deeds| 2.4 + returns * one_if(!deeds.is_again()));
        let odds = -4.7
            + by_agent
            + 1.2 * one_if(self.by_user)
            + file
            + 0.2 * (word.len().max(1) as f64).ln()
            - one_if(word.starts_with('/'));
        1.0 / (1.0 + (-odds).exp())
    }
}

/// Returns the change in log odds that the agent uses a file again that it has used once: 0 if half
/// of its files were used again, lower if it was fewer, as for an agent that reads 200 pages in
/// sequence.
pub(crate) fn returns<'d>(files: impl Iterator<Item = &'d FileActions>) -> f64 {
    let (mut all, mut again) = (0.0, 0.0);
    for deeds in files {
        all += 1.0;
        again += if deeds.is_again() { 1.0 } else { 0.0 };
    }
    // As if two files had been used before, one of them again.
    let share: f64 = (again + 1.0) / (all + 2.0);
    (share / 0.5).ln().min(0.0)
}

/// Classes of the characters in names, as bits.
mod class {
    pub(super) const LOWER: u8 = 1;
    pub(super) const UPPER: u8 = 2;
    /// Digits and `_`.
    pub(super) const DIGIT: u8 = 4;
    pub(super) const SLASH: u8 = 8;
    /// `.`, `-`, `~`, `@` and `+`.
    pub(super) const MARK: u8 = 16;
}

/// Returns the class of a character; 0 if it cannot occur in a name.
fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => class::LOWER,
        b'A'..=b'Z' => class::UPPER,
        b'0'..=b'9' | b'_' => class::DIGIT,
        b'/' => class::SLASH,
        b'.' | b'-' | b'~' | b'@' | b'+' => class::MARK,
        _ => 0,
    }
}

/// Calls `tell` with every name of `line`, in order.
pub(crate) fn each<'t>(line: &'t str, tell: &mut dyn FnMut(&'t str, NameKind)) {
    let mut rest = line;
    while let Some((run, is_plain, behind)) = next_run(rest) {
        rest = behind;
        // A plain word contains no name: neither a path, nor a number, nor `camelCase`.
        if !is_plain {
            names_of_run(line, run, tell);
        }
    }
}

/// Returns the next run of name characters, whether it is a plain word, and the rest of the line.
fn next_run(line: &str) -> Option<(&str, bool, &str)> {
    let start = line.bytes().position(|byte| class(byte) != 0)?;
    let from = line.get(start..)?;
    let (mut all, mut before, mut has_hump, mut len) = (0, 0, false, from.len());
    for (at, byte) in from.bytes().enumerate() {
        let byte_class = class(byte);
        if byte_class == 0 {
            len = at;
            break;
        }
        all |= byte_class;
        has_hump |= before == class::LOWER && byte_class == class::UPPER;
        before = byte_class;
    }
    let is_plain = len < 3 || (!has_hump && all & !(class::LOWER | class::UPPER) == 0);
    let (run, rest) = from.split_at_checked(len)?;
    Some((run, is_plain, rest))
}

fn names_of_run<'t>(line: &'t str, run: &'t str, tell: &mut dyn FnMut(&'t str, NameKind)) {
    let run = without_debris(line, run)
        .trim_start_matches(['-', '+'])
        .trim_end_matches(['.', '-', '+', '/', '@', '~']);
    if run.len() < 3 {
        return;
    }
    if !run.bytes().any(|byte| byte == b'/') {
        return within(run, tell);
    }
    let bare = run.strip_prefix('@').filter(|bare| has_ending(bare));
    let path = bare.unwrap_or(run);
    if is_path(path) {
        tell(path, NameKind::Path);
    } else if run.len() <= LONG_RUN {
        run.split('/').for_each(|part| within(part, tell));
    }
}

/// Removes the rest of an escape sequence from the beginning of a run: in `\nLet`, `\uD83D` and the
/// colour code `[31mTest`, only `Let`, nothing and `Test` are text.
fn without_debris<'t>(line: &'t str, run: &'t str) -> &'t str {
    let at = (run.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    let before = line.get(..at).and_then(|before| before.chars().next_back());
    let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match before {
        Some('\\') => {
            let code = run
                .strip_prefix('u')
                .and_then(|rest| rest.split_at_checked(4));
            let byte = run
                .strip_prefix('x')
                .and_then(|rest| rest.split_at_checked(2));
            match code.or(byte) {
                Some((digits, rest)) if is_hex(digits) => rest,
                _ => run.strip_prefix(['n', 't', 'r', 'b', 'f']).unwrap_or(run),
            }
        }
        Some('[' | ';') => {
            let digits = run.trim_start_matches(|c: char| c.is_ascii_digit());
            let is_colour = digits.len() < run.len() && run.len() - digits.len() <= 3;
            digits
                .strip_prefix('m')
                .filter(|_| is_colour)
                .unwrap_or(run)
        }
        _ => run,
    }
}

fn within<'t>(run: &'t str, tell: &mut dyn FnMut(&'t str, NameKind)) {
    let run = run.trim_matches(['@', '~', '+', '-']);
    if run.contains('.') && has_ending(run) && run.len() <= WORD_MAX {
        tell(run, NameKind::File);
        return;
    }
    for word in run.split(['.', '-', '@', '~', '+']) {
        if let Some(kind) = word_kind(word) {
            tell(word, kind);
        }
    }
}

fn word_kind(word: &str) -> Option<NameKind> {
    if word.len() < 3 || word.len() > WORD_MAX {
        return None;
    }
    let bytes = word.as_bytes();
    if bytes.iter().all(u8::is_ascii_digit) {
        return (word.len() <= 20).then_some(NameKind::Number);
    }
    let digits = bytes.iter().any(u8::is_ascii_digit);
    let is_hex = |b: &u8| b.is_ascii_digit() || matches!(b, b'a'..=b'f');
    if word.len() >= 7 && digits && bytes.iter().all(is_hex) {
        return Some(NameKind::Hex);
    }
    if word.trim_matches('_').contains('_') {
        return bytes
            .iter()
            .any(u8::is_ascii_alphabetic)
            .then_some(NameKind::Snake);
    }
    let hump =
        |pair: &[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    // Excludes `0xA0` and `AwEB`, which are digits of larger values.
    let letters = bytes.iter().filter(|b| b.is_ascii_lowercase()).count();
    let is_word = letters >= 3 && !bytes.first().is_some_and(u8::is_ascii_digit);
    (is_word && bytes.windows(2).any(hump)).then_some(NameKind::Camel)
}

fn is_path(run: &str) -> bool {
    if run.len() > PATH_MAX
        || run.contains("//")
        || !run.contains(|c: char| c.is_ascii_alphabetic())
    {
        return false;
    }
    let parts = run.split('/').filter(|part| !part.is_empty());
    let (mut count, mut fits) = (0, true);
    for part in parts {
        count += 1;
        fits &= part.len() <= WORD_MAX;
    }
    fits && count >= 2
}

/// Returns the beginning of each line, up to the length that is read.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
    let mut start = 0;
    ends.filter_map(move |end| {
        let line = text.get(start..end)?;
        start = end + 1;
        line.get(..line.floor_char_boundary(LINE_MAX))
    })
}

/// Returns the text before the first colon of a line if it can be a path printed by a search.
fn place(line: &str) -> Option<&str> {
    let near = line.as_bytes().get(..=PATH_MAX).unwrap_or(line.as_bytes());
    let head = line.get(..memchr::memchr(b':', near)?)?;
    let is_place =
        has_ending(head) && !head.contains(|c: char| c.is_whitespace() || c == '"' || c == '(');
    is_place.then_some(head)
}

/// Checks whether a name ends with a known file extension.
pub(crate) fn has_ending(run: &str) -> bool {
    let Some((stem, ending)) = run.rsplit_once('.') else {
        return false;
    };
    !stem.is_empty() && stem != "console" && ENDING_SET.contains(ending)
}

static ENDING_SET: LazyLock<HashSet<&str>> = LazyLock::new(|| ENDINGS.split('|').collect());
/// Extensions of files that agents work on. An explicit list, because `self.headers` is no file.
const ENDINGS: &str = "rs|py|pyi|ipynb|ts|tsx|js|jsx|mjs|cjs|json|jsonl|json5|toml|yaml|yml|md|mdx|txt|rst|\
    html|htm|css|scss|sass|less|sh|bash|zsh|fish|ps1|bat|go|mod|sum|java|kt|kts|c|h|cc|\
    cpp|cxx|hpp|hh|mm|cs|csproj|sln|rb|erb|php|sql|xml|svg|png|jpg|jpeg|gif|webp|ico|\
    pdf|csv|tsv|lock|cfg|ini|conf|env|log|pony|vue|svelte|swift|scala|lua|pm|exs|erl|hs|\
    clj|dart|jl|zig|nim|proto|graphql|gradle|mk|cmake|patch|diff|zip|gz|tar|db|sqlite|\
    tf|hcl|nix|snap|tmpl|tpl|j2|properties|plist|wasm";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        for (text, found) in [
            (
                "see `src/main.rs:12`.",
                &[("src/main.rs", NameKind::Path)][..],
            ),
            (
                "@packages/a/b.ts and @scope/name",
                &[
                    ("packages/a/b.ts", NameKind::Path),
                    ("@scope/name", NameKind::Path),
                ],
            ),
            (
                "self.max_size, fooBar()",
                &[("max_size", NameKind::Snake), ("fooBar", NameKind::Camel)],
            ),
            (
                "--flag 1e62beb80 8431 42",
                &[("1e62beb80", NameKind::Hex), ("8431", NameKind::Number)],
            ),
            ("在main.rs中", &[("main.rs", NameKind::File)]),
            ("plain words, e.g. none", &[]),
            (r"\nLetMe \uD83D\uDE00 x", &[("LetMe", NameKind::Camel)]),
            (
                "\u{1b}[31mtestOne\u{1b}[0;1mtest_two",
                &[("testOne", NameKind::Camel), ("test_two", NameKind::Snake)],
            ),
        ] {
            let mut names = Vec::new();
            each(text, &mut |word, kind| names.push((word, kind)));
            assert_eq!(names, found, "{text}");
        }
        let mut junk = 0;
        each(&"aB3xY9Qw".repeat(2_000), &mut |_, _| junk += 1);
        assert_eq!(junk, 0);
    }

    #[test]
    fn a_file_is_one_whichever_folder_it_is_named_from() {
        let mut names = Names::default();
        names.read("src/a.rs:1: let first_name", TextAuthor::Tool, 2, None);
        names.read("b.rs:1: let second_name", TextAuthor::Tool, 1, None);
        let files = [
            "/lamp/src/a.rs",
            "/lamp/src/b.rs",
            "/lamp/test/b.rs",
            "src/a.rs",
            "a.rs",
        ];
        let mut files = files
            .map(|path| (path.to_owned(), FileActions::default()))
            .into_iter()
            .collect();
        names.unite(&mut files);
        assert!(!files.contains_key("src/a.rs") && files.contains_key("a.rs"));
        let home = |word: &str| {
            names
                .found
                .get(word)
                .and_then(|name| names.path(name.home?))
        };
        assert_eq!(home("first_name"), Some("/lamp/src/a.rs"));
        assert_eq!(home("second_name"), Some("b.rs"));
    }

    #[test]
    fn what_the_agent_wrote_last_is_likelier() {
        let mut names = Names::default();
        names.read("old_name", TextAuthor::Call, 90, None);
        names.read("seen_name", TextAuthor::Tool, 3, None);
        names.read("new_name", TextAuthor::Call, 3, None);
        let likely = |word: &str| names.found.get(word).unwrap().likely(word, None, 0.0);
        assert!(likely("new_name") > likely("old_name"));
        assert!(likely("new_name") > likely("seen_name"));
    }
}
