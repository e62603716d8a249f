//! Collects the possible content of a handover besides the user's words, in one pass over the
//! texts. `select.rs` chooses from it.

use foldhash::{HashMap, HashSet};

use super::calls::{Act, CallKind, TranscriptCall, is_in};
use super::entries::Text;
use super::files::FileList;
use super::format::{Section, SectionItem};
use super::names::Names;
use super::outcome::{Outcome, outcome};
use super::replies;
use super::rules;
use super::sentences::one_line;
use super::state::WorkState;
use super::statements::{open_question, statements};
use super::user_words::UserWords;

/// The maximum length of a line from the agent's text or a former summary, in bytes.
const LINE_MAX: usize = 320;
/// The maximum length of a line from a text of the host, in bytes.
const HOST_MAX: usize = 160;
/// The minimum number of letters in a line of a former summary.
const LETTERS_MIN: usize = 12;
/// The separator between a call and its outcome.
const ARROW: &str = " → ";
/// The prefix of the outcome of a failed call.
const FAILED: &str = "failed: ";
/// The separator between a line and the names in the result of its call.
pub(crate) const NAMES: &str = "; names: ";

/// A possible line of the handover.
#[derive(Debug, Clone)]
pub(crate) struct WorkLine<'t> {
    /// The position in the transcript.
    pub(crate) order: usize,
    pub(crate) text: String,
    /// Whether the line is of a summary by another program.
    pub(crate) is_former: bool,
    /// The text in which names for this line are searched.
    pub(crate) result: &'t str,
    /// The chosen names.
    pub(crate) names: Vec<String>,
    /// The number of occurrences.
    times: u32,
    /// The tokens of the line without names, once they are counted.
    pub(crate) cost: Option<u64>,
    pub(crate) is_kept: bool,
}

impl WorkLine<'_> {
    /// Discards the choice.
    pub(crate) fn reset(&mut self) {
        self.is_kept = false;
        self.names.clear();
    }

    /// Returns the line as an item.
    pub(crate) fn item(&self) -> SectionItem {
        let mut text = self.text.clone();
        if self.times > 1 {
            text.push_str(&format!(" (×{})", self.times));
        }
        if !self.names.is_empty() {
            text.push_str(NAMES);
            text.push_str(&self.names.join(", "));
        }
        SectionItem::note(text)
    }
}

/// The possible content of a handover besides the user's words.
#[derive(Default)]
pub(crate) struct Work<'t> {
    pub(crate) lines: Vec<WorkLine<'t>>,
    pub(crate) files: FileList,
    pub(crate) names: Names,
    pub(crate) rules: Vec<String>,
    pub(crate) state: WorkState,
    /// The position of the end.
    end: usize,
}

impl<'t> Work<'t> {
    /// Reads `texts` and returns the work and the user's words.
    pub(crate) fn of(texts: &'t [Text<'_>]) -> (Self, UserWords) {
        let is_agent = |text: &Text<'_>| matches!(text, Text::Agent(_));
        let last_agent = texts.iter().rposition(is_agent);
        let mut reader = WorkReader::default();
        for (n, text) in texts.iter().enumerate() {
            reader.read(n, text, last_agent == Some(n));
        }
        reader.finish()
    }
}

#[derive(Default)]
struct WorkReader<'t> {
    work: Work<'t>,
    words: UserWords,
    /// The calls without a result, by the number of their text.
    open: HashMap<usize, TranscriptCall>,
    /// The last position at which a call succeeded, by its key.
    succeeded: HashMap<String, usize>,
    /// The index of the line of each listed call, by its signature.
    listed: HashMap<String, usize>,
    /// The keys of failed calls, by their line.
    failed: Vec<(usize, String)>,
    /// Lines that are there once: texts of the host without digits, rules, statements.
    seen: HashSet<String>,
}

impl<'t> WorkReader<'t> {
    fn read(&mut self, n: usize, text: &'t Text<'_>, is_last_of_agent: bool) {
        match text {
            Text::Person { words, is_answer } => {
                self.work.state.ask(None);
                let order = self.next();
                self.words.add(order, words, *is_answer);
            }
            Text::Host(text) => self.host("host: ", text, HOST_MAX),
            Text::Notice(text) => self.host("notice: ", text, LINE_MAX),
            Text::Agent(text) => self.agent(text, is_last_of_agent),
            Text::Call { name, arguments } => {
                let call = TranscriptCall::new(name, arguments);
                let question = replies::is_question_tool(name).then(|| replies::asked(arguments));
                self.work.state.ask(question.flatten().as_deref());
                self.work.state.call(&call);
                self.open.insert(n, call);
            }
            Text::Result {
                call,
                text,
                is_error,
            } => {
                if let Some(call) = call.and_then(|n| self.open.remove(&n)) {
                    self.result(call, text, *is_error);
                }
            }
            Text::Decided(text) => {
                self.line(text.clone());
            }
            Text::Handover(items) => self.handover(items),
            Text::Foreign(text) => self.foreign(text),
        }
    }

    /// Returns the next position.
    fn next(&mut self) -> usize {
        self.work.end += 1;
        self.work.end
    }

    /// Adds a line, and returns its index.
    fn line(&mut self, text: String) -> usize {
        let order = self.next();
        self.work.lines.push(WorkLine {
            order,
            text,
            is_former: false,
            result: "",
            names: Vec::new(),
            times: 1,
            cost: None,
            is_kept: false,
        });
        self.work.lines.len() - 1
    }

    /// Adds a line unless it is there already.
    fn line_once(&mut self, text: String) {
        if self.seen.insert(text.clone()) {
            self.line(text);
        }
    }

    fn rules(&mut self, rules: Vec<String>) {
        for rule in rules {
            if self.seen.insert(rule.clone()) {
                self.work.rules.push(rule);
            }
        }
    }

    fn host(&mut self, prefix: &str, text: &str, max: usize) {
        let first = text.trim_start().lines().next().unwrap_or_default();
        if let Some(source) = first.split_whitespace().find_map(rules::source) {
            self.rules(rules::of_file(source, text));
        }
        let line = one_line(text, max);
        let masked: String = line.chars().filter(|c| !c.is_ascii_digit()).collect();
        if !line.is_empty() && self.seen.insert(masked) {
            self.line(format!("{prefix}{line}"));
        }
    }

    fn agent(&mut self, text: &str, is_last: bool) {
        let at = self.next();
        self.work.names.mention(text, at);
        self.rules(rules::of_agent(text));
        for statement in statements(text, is_last) {
            self.line_once(one_line(&statement.replace("**", ""), LINE_MAX));
        }
        self.work.state.ask(open_question(text).as_deref());
    }

    fn result(&mut self, call: TranscriptCall, text: &'t str, is_error: bool) {
        let at = self.next();
        let outcome = outcome(&call, text, is_error);
        let is_failed = matches!(outcome, Outcome::Failed(_));
        if call.is_test() {
            self.work.state.tested();
        }
        self.act(&call, text, is_failed, at);
        if is_in("bookkeeping", &call.name.to_lowercase()) {
            self.work.state.list(text);
            return;
        }
        if let (true, Outcome::Failed(line)) = (call.is_test(), &outcome) {
            self.work.state.fail(&call, line);
        }
        // The section of files covers reads and changes.
        if is_failed || call.kind != CallKind::File {
            self.call(&call, outcome, text);
        }
    }

    /// Records the actions of a call on files.
    fn act(&mut self, call: &TranscriptCall, text: &str, is_failed: bool, at: usize) {
        // A command that removes files may fail in a later step.
        let is_removed = |act: &Act| *act == Act::Removed && !text.contains("cannot remove");
        let mut first = None;
        for (act, path) in &call.files {
            if is_failed && !(matches!(call.kind, CallKind::Command(_)) && is_removed(act)) {
                continue;
            }
            let file = self.work.files.note(*act, path, at);
            first = first.or(file);
            match act {
                Act::Written | Act::Edited => self.work.state.change(path),
                Act::Removed | Act::Restored => self.work.state.forget(path),
                Act::Read => {}
            }
            if *act == Act::Read
                && let Some(source) = rules::source(path)
            {
                self.rules(rules::of_file(source, text));
            }
        }
        if !is_failed {
            self.succeeded.insert(call.key().to_owned(), at);
            if call.is_test() {
                self.work.state.succeeded(call.key());
            }
        }
        match first {
            Some(file) => {
                self.work.names.read(&call.text, at, file);
                if call.is_reader() {
                    self.work.names.seen(text, at, file);
                }
            }
            None => self.work.names.mention(&call.text, at),
        }
    }

    /// Adds the line of a call.
    fn call(&mut self, call: &TranscriptCall, outcome: Outcome, result: &'t str) {
        let outcome = match outcome {
            Outcome::Failed(line) => format!("{FAILED}{line}"),
            Outcome::Done(line) => line,
        };
        self.call_line(&call.signature, &outcome, result, 1);
    }

    /// Adds the line of a call. A repeated call has one line, at its last occurrence.
    fn call_line(&mut self, signature: &str, outcome: &str, result: &'t str, times: u32) {
        let text = match outcome {
            "" => signature.to_owned(),
            outcome => format!("{signature}{ARROW}{outcome}"),
        };
        let index = self.line(text);
        if outcome.starts_with(FAILED) {
            let key = TranscriptCall::new("", signature).key().to_owned();
            self.failed.push((index, key));
        }
        let former = self.listed.insert(signature.to_owned(), index);
        let former = former.and_then(|former| self.work.lines.get_mut(former));
        let before = former.map_or(0, |line| {
            line.text.clear();
            line.times
        });
        if let Some(line) = self.work.lines.get_mut(index) {
            line.times = times.saturating_add(before);
            line.result = result;
        }
    }

    /// Restores the items of an earlier handover.
    fn handover(&mut self, items: &'t [(Section, SectionItem)]) {
        // The newest file is listed first.
        let files = items.iter().rev();
        for (_, item) in files.filter(|(section, _)| *section == Section::Files) {
            let at = self.next();
            if let Some((file, names)) = self.work.files.carry(&item.text, at) {
                self.work.names.read(names, at, file);
            }
        }
        for (section, item) in items {
            let at = self.next();
            if self.words.add_item(at, item) {
                continue;
            }
            match section {
                Section::Former => self.former(item.text.clone()),
                Section::Transcript => self.transcript_line(&item.text),
                Section::State => self.work.state.carry(&item.text),
                Section::Rules => self.rules(vec![item.text.clone()]),
                Section::Files => {}
            }
        }
    }

    /// Restores a line that [`WorkLine::item`] wrote.
    fn transcript_line(&mut self, text: &'t str) {
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
        self.call_line(signature, outcome, names, times);
    }

    fn former(&mut self, text: String) {
        let line = self.line(text);
        if let Some(line) = self.work.lines.get_mut(line) {
            line.is_former = true;
        }
    }

    /// Reads a summary by another program, of which the newest replaces the former ones.
    fn foreign(&mut self, text: &str) {
        let lines = self.work.lines.iter_mut();
        lines
            .filter(|line| line.is_former)
            .for_each(|line| line.text.clear());
        let mut is_fenced = false;
        for line in text.lines() {
            let line = line.trim();
            is_fenced ^= line.starts_with("```");
            let bare = line.trim_start_matches(['-', '*', '•', ' ']);
            let letters = bare.chars().filter(|c| c.is_alphanumeric()).count();
            let is_row = line.starts_with(['<', '|', '#', '`']) || line.ends_with(':');
            if !is_fenced && !is_row && letters >= LETTERS_MIN {
                self.former(one_line(&bare.replace("**", ""), LINE_MAX));
            }
        }
    }

    fn finish(mut self) -> (Work<'t>, UserWords) {
        // A failure that was settled later is not told.
        for (index, key) in std::mem::take(&mut self.failed) {
            let Some(line) = self.work.lines.get_mut(index) else {
                continue;
            };
            if self.succeeded.get(&key).is_some_and(|at| *at > line.order) {
                line.text.clear();
            }
        }
        self.work.lines.retain(|line| !line.text.is_empty());
        (self.work, self.words)
    }
}
