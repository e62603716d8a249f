//! Collects the possible content of a handover besides the user's words. `select.rs` chooses from
//! it.

use foldhash::{HashMap, HashSet};

use super::calls::{Act, CallKind, TranscriptCall};
use super::entries::Text;
use super::files::FileList;
use super::format::{Section, SectionItem};
use super::outcome::{Outcome, outcome};
use super::replies;
use super::rows::{NAMES, Row};
use super::rules;
use super::sentences::one_line;
use super::state::WorkState;
use super::statements::{open_question, statements};
use super::user_words::UserWords;
use super::words::is_in;

/// A position in the transcript: a text, and a line in it.
pub(crate) type Order = (usize, usize);

/// The maximum length of a line from the agent's text or a former summary, in bytes.
const LINE_MAX: usize = 320;
/// The maximum length of a line from a text of the host, in bytes.
const HOST_MAX: usize = 160;
/// The minimum number of letters in a line of a former summary.
const LETTERS_MIN: usize = 12;
/// The separator between a call and its outcome.
const ARROW: &str = " → ";

/// The possible content of a handover besides the user's words.
pub(crate) struct Work<'t> {
    /// The lines that may be kept, the oldest first.
    pub(crate) rows: Vec<Row<'t>>,
    /// Names that need no room: the keys of arguments.
    pub(crate) known: HashSet<String>,
}

impl<'t> Work<'t> {
    /// Reads `texts` and returns the work and the user's words. Of the agent's text, the newest
    /// `most` bytes of statements are found.
    pub(crate) fn of(texts: &'t [Text<'_>], most: usize) -> (Self, UserWords) {
        let mut reader = WorkReader::default();
        for (n, text) in texts.iter().enumerate() {
            reader.read(n, text);
        }
        reader.statements(texts, most);
        reader.finish(texts)
    }
}

#[derive(Default)]
struct WorkReader<'t> {
    rows: Vec<Row<'t>>,
    files: FileList<'t>,
    state: WorkState,
    words: UserWords,
    /// The position of the last build or test.
    tested: Order,
    /// The last text of a person or the agent: it may ask a question, or answer one.
    last: Option<usize>,
    /// The calls without a result, by the number of their text.
    open: HashMap<usize, (TranscriptCall, &'t str)>,
    /// The row of each listed call, by its signature.
    listed: HashMap<String, usize>,
    /// The number of rules.
    rules: usize,
    /// The keys of the calls' arguments.
    keys: HashSet<String>,
    /// Lines that are there once: texts of the host without digits, rules, statements.
    seen: HashSet<String>,
}

impl<'t> WorkReader<'t> {
    fn read(&mut self, n: usize, text: &'t Text<'_>) {
        let order = (n, 0);
        match text {
            Text::Person { words, is_answer } => {
                self.last = Some(n);
                self.words.add(order, words, *is_answer);
            }
            Text::Host(text) => self.host(order, "host: ", text, HOST_MAX),
            Text::Notice(text) => self.host(order, "notice: ", text, LINE_MAX),
            Text::Agent(text) => {
                self.last = Some(n);
                self.rules(rules::of_agent(text));
            }
            Text::Call { name, arguments } => {
                self.last = Some(n);
                let call = TranscriptCall::new(name, arguments);
                let keys = call.arguments.as_object().into_iter().flatten();
                self.keys.extend(keys.map(|(key, _)| key.clone()));
                self.open.insert(n, (call, arguments));
            }
            Text::Result {
                call,
                text,
                is_error,
            } => {
                if let Some((call, arguments)) = call.and_then(|n| self.open.remove(&n)) {
                    self.result(order, &call, [text, arguments], *is_error);
                }
            }
            Text::Decided(text) => self.rows.push(Row::line(order, text.clone())),
            Text::Handover(items) => {
                self.last = None;
                self.handover(n, items);
            }
            Text::Foreign(text) => self.foreign(n, text),
        }
    }

    fn rules(&mut self, rules: Vec<String>) {
        for rule in rules {
            if self.seen.insert(rule.clone()) {
                self.rules += 1;
                self.rows
                    .push(Row::ranked(Section::Rules, self.rules, rule));
            }
        }
    }

    fn host(&mut self, order: Order, prefix: &str, text: &str, max: usize) {
        let first = text.trim_start().lines().next().unwrap_or_default();
        if let Some(source) = first.split_whitespace().find_map(rules::source) {
            self.rules(rules::of_file(source, text));
        }
        let line = one_line(text, max);
        let masked: String = line.chars().filter(|c| !c.is_ascii_digit()).collect();
        if !line.is_empty() && self.seen.insert(masked) {
            self.rows.push(Row::line(order, format!("{prefix}{line}")));
        }
    }

    /// Adds the statements of the agent, the newest first. A repeated one stands at its last place.
    fn statements(&mut self, texts: &'t [Text<'_>], most: usize) {
        let mut left = most;
        let mut is_last = true;
        for (n, text) in texts.iter().enumerate().rev() {
            let Text::Agent(text) = text else {
                continue;
            };
            for (at, statement) in statements(text, is_last).into_iter().enumerate() {
                let line = one_line(&statement.replace("**", ""), LINE_MAX);
                left = left.saturating_sub(line.len());
                if self.seen.insert(line.clone()) {
                    self.rows.push(Row::line((n, at), line));
                }
            }
            is_last = false;
            if left == 0 {
                return;
            }
        }
    }

    /// Records a call with its result and its arguments.
    fn result(&mut self, at: Order, call: &TranscriptCall, texts: [&'t str; 2], is_error: bool) {
        let [result, _] = texts;
        let outcome = outcome(call, result, is_error);
        let is_failed = matches!(outcome, Outcome::Failed(_));
        self.act(at, call, texts, is_failed);
        if is_in("bookkeeping", &call.name.to_lowercase()) {
            self.state.call(call, result);
            return;
        }
        if call.is_test() {
            self.tested = at;
            match &outcome {
                Outcome::Failed(line) => self.state.fail(call, line),
                Outcome::Done(_) => self.state.succeeded(call),
            }
        }
        // The section of files covers reads and changes.
        if is_failed || call.kind != CallKind::File {
            let outcome = match outcome {
                Outcome::Failed(line) => format!("failed: {line}"),
                Outcome::Done(line) => line,
            };
            self.call(at, &call.signature, &outcome, 1, &texts);
        }
    }

    /// Records the actions of a call on files.
    fn act(&mut self, at: Order, call: &TranscriptCall, texts: [&'t str; 2], is_failed: bool) {
        let is_command = matches!(call.kind, CallKind::Command(_));
        let [result, arguments] = texts;
        for (act, path) in &call.files {
            let act = match act {
                // A command may have removed some files before it failed.
                Act::Removed if is_command && (is_failed || complains(result)) => {
                    Act::PerhapsRemoved
                }
                Act::PerhapsRemoved => Act::PerhapsRemoved,
                _ if is_failed => continue,
                act => *act,
            };
            if let Some(file) = self.files.note(act, path, at)
                && !is_command
            {
                if act == Act::Read {
                    file.add_source(result);
                }
                file.add_source(arguments);
            }
            if act == Act::Read
                && let Some(source) = rules::source(path)
            {
                self.rules(rules::of_file(source, result));
            }
        }
    }

    /// Adds the line of a call. A repeated call has one line, at its last occurrence.
    fn call(&mut self, at: Order, signature: &str, outcome: &str, times: u32, texts: &[&'t str]) {
        let mut row = Row::line(at, signature.to_owned());
        if !outcome.is_empty() {
            row.text = format!("{signature}{ARROW}{outcome}");
        }
        row.times = times;
        row.sources = texts.to_vec();
        let former = self.listed.insert(signature.to_owned(), self.rows.len());
        if let Some(former) = former.and_then(|former| self.rows.get_mut(former)) {
            former.text.clear();
            row.times = times.saturating_add(former.times);
        }
        self.rows.push(row);
    }

    /// Restores the items of an earlier handover.
    fn handover(&mut self, n: usize, items: &'t [(Section, SectionItem)]) {
        for (at, (section, item)) in items.iter().enumerate() {
            let order = (n, at + 1);
            if self.words.add_item(order, item) {
                continue;
            }
            match section {
                Section::Former => self.rows.push(Row::former(order, item.text.clone())),
                Section::Transcript => self.carry(order, &item.text),
                Section::State => {
                    let untested = self.state.carry(&item.text);
                    // The newest is listed first.
                    let paths = untested.into_iter().flat_map(|paths| paths.rsplit(", "));
                    for (newer, path) in paths.enumerate() {
                        self.files.carry_untested(path, (n, at + 1 + newer));
                    }
                }
                Section::Rules => self.rules(vec![item.text.clone()]),
                Section::Files => {
                    self.files.carry(&item.text, (n, items.len() - at));
                }
            }
        }
    }

    /// Restores a line that [`Row::item`] wrote.
    fn carry(&mut self, order: Order, text: &'t str) {
        let is_name = |name: &str| !name.contains(char::is_whitespace);
        let (text, names) = text
            .rsplit_once(NAMES)
            .filter(|(_, names)| names.split(", ").all(is_name))
            .unwrap_or((text, ""));
        let counted = text
            .strip_suffix(')')
            .and_then(|text| text.rsplit_once(" (×"));
        let counted = counted.and_then(|(text, times)| Some((text, times.parse().ok()?)));
        let (text, times) = counted.unwrap_or((text, 1));
        self.seen.insert(text.to_owned());
        self.seen
            .insert(text.chars().filter(|c| !c.is_ascii_digit()).collect());
        let (signature, outcome) = text.rsplit_once(ARROW).unwrap_or((text, ""));
        self.call(order, signature, outcome, times, &[names]);
    }

    /// Reads a summary by another program, of which the newest replaces the former ones.
    fn foreign(&mut self, n: usize, text: &str) {
        let former = self.rows.iter_mut();
        let former = former.filter(|row| row.section == Section::Former);
        former.for_each(|row| row.text.clear());
        let mut is_fenced = false;
        for (at, line) in text.lines().map(str::trim).enumerate() {
            is_fenced ^= line.starts_with("```");
            let bare = line.trim_start_matches(['-', '*', '•', ' ']);
            let letters = bare.chars().filter(|c| c.is_alphanumeric()).count();
            let is_row = line.starts_with(['<', '|', '#', '`']) || line.ends_with(':');
            if !is_fenced && !is_row && letters >= LETTERS_MIN {
                let line = one_line(&bare.replace("**", ""), LINE_MAX);
                self.rows.push(Row::former((n, at), line));
            }
        }
    }

    fn finish(mut self, texts: &[Text<'_>]) -> (Work<'t>, UserWords) {
        if let Some(last) = self.last.and_then(|last| texts.get(last)) {
            let question = match last {
                Text::Agent(text) => open_question(text),
                Text::Call { name, arguments } if replies::is_question_tool(name) => {
                    replies::asked(arguments)
                }
                _ => None,
            };
            self.state.ask(question.as_deref());
        }
        let state = self
            .state
            .items(&self.files.untested(self.tested))
            .into_iter();
        let state = state.enumerate();
        let state = state.map(|(n, item)| Row::ranked(Section::State, n, item));
        self.rows.extend(state);
        self.rows.retain(|row| !row.text.is_empty());
        self.rows.extend(self.files.all.into_iter().map(Row::file));
        self.rows.sort_by_key(|row| row.order);
        let work = Work {
            rows: self.rows,
            known: self.keys,
        };
        (work, self.words)
    }
}

/// Returns `true` if a program that removes files says that it did not, or asks first.
fn complains(result: &str) -> bool {
    result.lines().any(|line| {
        let speaker = line.split(':').next().unwrap_or_default();
        let program = speaker.rsplit('/').next().unwrap_or(speaker);
        line.len() > program.len() && is_in("complaining", program)
    })
}
