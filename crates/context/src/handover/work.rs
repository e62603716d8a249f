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
use super::state::{Failure, WorkState};
use super::statements::{Statement, open_question, statements};
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
/// The prefixes of texts of the host.
const NOTICE: &str = "notice: ";
const HOST: &str = "host: ";
/// The beginning of a line that `git rm` prints for each file.
const GIT_REMOVED: &str = "rm '";

/// A possible line of the handover.
#[derive(Debug, Clone)]
pub(crate) struct WorkLine {
    /// The position in the transcript.
    pub(crate) order: usize,
    pub(crate) kind: LineKind,
    pub(crate) text: String,
    /// The number of occurrences.
    times: u32,
    /// The tokens of the line, once they are counted.
    pub(crate) cost: Option<u64>,
    pub(crate) is_kept: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// A line of a former summary.
    Former,
    /// A result or a decision, stated by the agent or made by the user.
    Statement,
    /// A call and its outcome.
    Call,
    /// A text of the host, or a call that only looks at something.
    Aside,
}

impl WorkLine {
    /// Returns the line as an item.
    pub(crate) fn item(&self) -> SectionItem {
        SectionItem::note(match self.times {
            0 | 1 => self.text.clone(),
            times => format!("{} (×{times})", self.text),
        })
    }
}

/// The possible content of a handover besides the user's words.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) lines: Vec<WorkLine>,
    pub(crate) files: FileList,
    pub(crate) names: Names,
    pub(crate) rules: Vec<String>,
    pub(crate) state: WorkState,
    /// The position of the end.
    end: usize,
}

impl Work {
    /// Reads `texts` and returns the work and the user's words.
    pub(crate) fn of(texts: &[Text<'_>]) -> (Self, UserWords) {
        let is_agent = |text: &Text<'_>| matches!(text, Text::Agent(_));
        let mut reader = WorkReader {
            last_agent: texts.iter().rposition(is_agent),
            ..WorkReader::default()
        };
        for (n, text) in texts.iter().enumerate() {
            reader.read(n, text);
        }
        reader.finish()
    }
}

#[derive(Default)]
struct WorkReader {
    work: Work,
    words: UserWords,
    /// The last text of the agent.
    last_agent: Option<usize>,
    /// The calls without a result, by the number of their text.
    open: HashMap<usize, TranscriptCall>,
    /// The last position at which a call succeeded, by its key.
    succeeded: HashMap<String, usize>,
    /// The index of the line of each listed call, by its signature.
    listed: HashMap<String, usize>,
    /// The keys of failed calls, by their line.
    failed: Vec<(usize, String)>,
    /// The index of the last passing state.
    passing: Option<usize>,
    /// Lines that are there once: texts of the host without digits, rules, statements.
    seen: HashSet<String>,
}

impl WorkReader {
    fn read(&mut self, n: usize, text: &Text<'_>) {
        match text {
            Text::Person { words, is_answer } => {
                self.work.state.ask(None);
                let order = self.next();
                self.words.add(order, words, *is_answer);
            }
            Text::Host(text) => self.host(HOST, text, HOST_MAX),
            Text::Notice(text) => self.host(NOTICE, text, LINE_MAX),
            Text::Agent(text) => self.agent(n, text),
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
                self.line(LineKind::Statement, text.clone());
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
    fn line(&mut self, kind: LineKind, text: String) -> usize {
        let order = self.next();
        self.work.lines.push(WorkLine {
            order,
            kind,
            text,
            times: 1,
            cost: None,
            is_kept: false,
        });
        self.work.lines.len() - 1
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
        let mut words = first.split_whitespace();
        if let Some(source) = words.find_map(rules::source) {
            self.rules(rules::of_file(source, text));
        }
        let line = one_line(text, max);
        if line.is_empty() {
            return;
        }
        let masked: String = line.chars().filter(|c| !c.is_ascii_digit()).collect();
        if self.seen.insert(masked) {
            self.line(LineKind::Aside, format!("{prefix}{line}"));
        }
    }

    fn agent(&mut self, n: usize, text: &str) {
        let at = self.next();
        self.work.names.mention(text, at);
        self.rules(rules::of_agent(text));
        for statement in statements(text, self.last_agent == Some(n)) {
            let (Statement::Result(text) | Statement::Passing(text)) = statement;
            let text = one_line(&text.replace("**", ""), LINE_MAX);
            if !self.seen.insert(text.clone()) {
                continue;
            }
            let line = self.line(LineKind::Statement, text);
            // Of passing states, the last one is true.
            let is_passing = matches!(statement, Statement::Passing(_));
            if is_passing && let Some(before) = self.passing.replace(line) {
                self.drop_line(before);
            }
        }
        self.work.state.ask(open_question(text).as_deref());
    }

    fn drop_line(&mut self, line: usize) {
        if let Some(line) = self.work.lines.get_mut(line) {
            line.text.clear();
        }
    }

    fn result(&mut self, call: TranscriptCall, text: &str, is_error: bool) {
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
            self.work.state.failed = Some(Failure {
                signature: call.signature.clone(),
                key: call.key().to_owned(),
                line: line.clone(),
            });
        }
        // The section of files covers reads and changes.
        if is_failed || call.kind != CallKind::File {
            self.call(&call, outcome);
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
            if call.text.contains("git rm") {
                let removed = text
                    .lines()
                    .filter_map(|line| line.strip_prefix(GIT_REMOVED));
                for path in removed.filter_map(|line| line.strip_suffix('\'')) {
                    self.work.files.note(Act::Removed, path, at);
                }
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

    /// Adds the line of a call. A repeated call has one line, at its last occurrence.
    fn call(&mut self, call: &TranscriptCall, outcome: Outcome) {
        let (text, is_failed) = match outcome {
            Outcome::Failed(line) => (format!("{}{ARROW}{FAILED}{line}", call.signature), true),
            Outcome::Done(result) if result.is_empty() => (call.signature.clone(), false),
            Outcome::Done(result) => (format!("{}{ARROW}{result}", call.signature), false),
        };
        let kind = if call.is_reader() {
            LineKind::Aside
        } else {
            LineKind::Call
        };
        let line = self.line(kind, text);
        if is_failed {
            self.failed.push((line, call.key().to_owned()));
        }
        self.repeated(&call.signature, line);
    }

    /// Drops the former line of a repeated call, and counts it.
    fn repeated(&mut self, signature: &str, line: usize) {
        let Some(former) = self.listed.insert(signature.to_owned(), line) else {
            return;
        };
        let times = self.work.lines.get(former).map_or(0, |line| line.times);
        if let Some(line) = self.work.lines.get_mut(line) {
            line.times = line.times.saturating_add(times);
        }
        self.drop_line(former);
    }

    /// Restores the items of an earlier handover.
    fn handover(&mut self, items: &[(Section, SectionItem)]) {
        // The newest file is listed first.
        let files = items.iter().rev();
        for (_, item) in files.filter(|(section, _)| *section == Section::Files) {
            let (head, names) = item.text.split_once(": ").unwrap_or((&item.text, ""));
            let head = head
                .strip_suffix(')')
                .and_then(|head| head.rsplit_once(" ("));
            if let Some((path, done)) = head {
                let at = self.next();
                self.work.files.carry(path, done, at);
                let file = self.work.files.index(path);
                self.work.names.read(names, at, file);
            }
        }
        for (section, item) in items {
            let at = self.next();
            if self.words.add_item(at, item) {
                continue;
            }
            match section {
                Section::Former => {
                    self.line(LineKind::Former, item.text.clone());
                }
                Section::Transcript => self.former_line(&item.text),
                Section::State => self.work.state.carry(&item.text),
                Section::Rules => self.rules(vec![item.text.clone()]),
                Section::Files => {}
            }
        }
    }

    fn former_line(&mut self, text: &str) {
        let counted = text
            .strip_suffix(')')
            .and_then(|text| text.rsplit_once(" (×"));
        let counted = counted.and_then(|(text, times)| Some((text, times.parse().ok()?)));
        let (text, times) = counted.unwrap_or((text, 1));
        let is_host = text.starts_with(HOST) || text.starts_with(NOTICE);
        let (signature, outcome) = text.rsplit_once(ARROW).unwrap_or((text, ""));
        let is_failed = outcome.starts_with(FAILED);
        let call = TranscriptCall::new("", signature);
        let kind = if is_host || call.is_reader() && !outcome.is_empty() {
            LineKind::Aside
        } else if !outcome.is_empty() {
            LineKind::Call
        } else {
            LineKind::Statement
        };
        if is_host {
            self.seen
                .insert(text.chars().filter(|c| !c.is_ascii_digit()).collect());
        }
        if kind == LineKind::Statement {
            self.seen.insert(text.to_owned());
        }
        let line = self.line(kind, text.to_owned());
        if let Some(line) = self.work.lines.get_mut(line) {
            line.times = times;
        }
        if is_failed {
            self.failed.push((line, call.key().to_owned()));
        }
        self.repeated(signature, line);
    }

    /// Reads a summary by another program, of which the newest replaces the former ones.
    fn foreign(&mut self, text: &str) {
        let lines = self.work.lines.iter_mut();
        for line in lines.filter(|line| line.kind == LineKind::Former) {
            line.text.clear();
        }
        let mut is_fenced = false;
        for line in text.lines() {
            let line = line.trim();
            is_fenced ^= line.starts_with("```");
            let bare = line.trim_start_matches(['-', '*', '•', ' ']);
            let letters = bare.chars().filter(|c| c.is_alphanumeric()).count();
            let is_row = line.starts_with(['<', '|', '#', '`']) || line.ends_with(':');
            if !is_fenced && !is_row && letters >= LETTERS_MIN {
                let line = one_line(&bare.replace("**", ""), LINE_MAX);
                self.line(LineKind::Former, line);
            }
        }
    }

    fn finish(mut self) -> (Work, UserWords) {
        // A failure that was settled later is not told.
        for (line, key) in std::mem::take(&mut self.failed) {
            let order = self.work.lines.get(line).map_or(0, |line| line.order);
            if self.succeeded.get(&key).is_some_and(|at| *at > order) {
                self.drop_line(line);
            }
        }
        self.work.lines.retain(|line| !line.text.is_empty());
        (self.work, self.words)
    }
}
