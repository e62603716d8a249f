//! Collects the possible content of a handover in one pass over the texts. `select.rs` chooses from
//! it.

use foldhash::{HashMap, HashSet};

use crate::calls::{Act, CallKind, TranscriptCall};
use crate::entries::Text;
use crate::file_actions::FileActions;
use crate::format::{Section, SectionItem};
use crate::listed_calls::{ListedCalls, ToldCall};
use crate::names::{self, Name, Names, TextAuthor};
use crate::outcome::{Outcome, outcome};
use crate::sentence_kinds;
use crate::sentences::{one_line, sentences};
use crate::state::{Failure, WorkState};
use crate::user_words::{SaidText, UserWords};

/// The maximum length of a line from the agent's text or a former summary, in bytes.
const LINE_MAX: usize = 320;
/// The minimum number of letters in a line of a former summary.
const LETTERS_MIN: usize = 12;
/// The age at which a line is worth half as much as a new one, in entries.
const HALF: f64 = 24.0;
/// The maximum number of sentences of one message of the agent that are examined.
const SENTENCES_MAX: usize = 400;
/// The worth of a command that only shows something.
const READER: f64 = 0.15;
/// The factor for the worth of a summary that was followed by another one.
const SUPERSEDED: f64 = 0.3;
/// The prefix of a line of changed files.
const CHANGED: &str = "changed ";
/// The prefix of a notice of the host.
const NOTICE: &str = "notice: ";

/// A possible line of the handover.
#[derive(Debug, Clone)]
pub(crate) struct StoryLine {
    /// The position in the transcript.
    pub(crate) order: usize,
    pub(crate) kind: LineKind,
    pub(crate) text: String,
    pub(crate) worth: f64,
    /// The number of occurrences, if they are combined in one line.
    pub(crate) times: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// A line of a former summary.
    Former,
    /// A finding, a decision or a result of the agent.
    Finding,
    /// A call and its outcome.
    Call,
}

/// The possible content of a handover besides the user's words.
pub(crate) struct Story<'t> {
    pub(crate) lines: Vec<StoryLine>,
    pub(crate) files: HashMap<String, FileActions>,
    pub(crate) names: Names<'t>,
    pub(crate) state: WorkState,
    /// See [`names::returns`].
    returns: f64,
}

impl<'t> Story<'t> {
    /// Reads `texts` and returns the story and the user's words.
    pub(crate) fn of(texts: &'t [(usize, Text<'_>)]) -> (Self, UserWords) {
        let mut reader = StoryReader {
            texts,
            end: texts.last().map_or(0, |(at, _)| at + 1),
            noted: 0,
            is_before_call: false,
            last_agent: last(texts, |text| matches!(text, Text::Agent(_))),
            last_foreign: last(texts, |text| matches!(text, Text::Foreign(_))),
            user_texts: Vec::new(),
            calls: ListedCalls::default(),
            notices: HashSet::default(),
            changed: Vec::new(),
            story: Self {
                lines: Vec::new(),
                files: HashMap::default(),
                names: Names::default(),
                state: WorkState::default(),
                returns: 0.0,
            },
        };
        for (n, (at, text)) in texts.iter().enumerate() {
            let next = texts.get(n + 1).map(|(_, text)| text);
            reader.is_before_call = matches!(next, Some(Text::Call(_)));
            reader.read(*at, text);
        }
        reader.finish()
    }
}

fn last(texts: &[(usize, Text<'_>)], is: impl Fn(&Text<'_>) -> bool) -> Option<usize> {
    let found = texts.iter().rev().find(|(_, text)| is(text));
    found.map(|(at, _)| *at)
}

struct StoryReader<'t, 'm> {
    texts: &'t [(usize, Text<'m>)],
    /// The number of entries.
    end: usize,
    /// The number of recorded items so far; it gives each item its position.
    noted: usize,
    /// Whether a call follows the current text.
    is_before_call: bool,
    /// The last entry with text of the agent.
    last_agent: Option<usize>,
    last_foreign: Option<usize>,
    user_texts: Vec<SaidText>,
    calls: ListedCalls,
    notices: HashSet<String>,
    /// Files that were changed since the user's last message.
    changed: Vec<String>,
    story: Story<'t>,
}

impl<'t> StoryReader<'t, '_> {
    fn read(&mut self, at: usize, text: &'t Text<'_>) {
        let age = self.age(at);
        match text {
            Text::Person { words, source } => {
                self.story.names.read(words, TextAuthor::User, age, None);
                self.flush_changed(at);
                self.story.state.ask(None);
                self.noted += 1;
                self.user_texts
                    .push(SaidText::of_person(self.noted, words, *source));
            }
            Text::Agent(text) => {
                self.story.names.read(text, TextAuthor::Agent, age, None);
                self.findings(at, text);
            }
            Text::Thinking(text) => self.story.names.read(text, TextAuthor::Thinking, age, None),
            Text::Call(call) => self.call(at, call),
            Text::Result {
                call,
                text,
                is_error,
            } => self.result(at, *call, text, *is_error),
            Text::Decided(text) => self.line(at, LineKind::Finding, text.clone(), 1.0),
            Text::Notice(text) => {
                let line = one_line(text, LINE_MAX);
                let masked = line.chars().filter(|c| !c.is_ascii_digit()).collect();
                if self.notices.insert(masked) {
                    self.line(at, LineKind::Finding, format!("{NOTICE}{line}"), 0.3);
                }
            }
            Text::Handover(items) => {
                for (section, item) in items {
                    self.carry(at, *section, item);
                }
                self.flush_changed(at);
            }
            Text::Foreign(text) => {
                self.story.names.read(text, TextAuthor::Agent, age, None);
                let is_last = self.last_foreign == Some(at);
                self.foreign(text, if is_last { 1.0 } else { SUPERSEDED });
            }
        }
    }

    /// Returns the number of entries from `at` to the end, at least one.
    fn age(&self, at: usize) -> u32 {
        u32::try_from(self.end - at.min(self.end))
            .unwrap_or(u32::MAX)
            .max(1)
    }

    fn recency(&self, at: usize) -> f64 {
        HALF / (HALF + f64::from(self.age(at)))
    }

    fn line(&mut self, at: usize, kind: LineKind, text: String, worth: f64) {
        let worth = worth * self.recency(at);
        self.noted += 1;
        self.story.lines.push(StoryLine {
            order: self.noted,
            kind,
            text,
            worth,
            times: 1,
        });
    }

    fn findings(&mut self, at: usize, text: &str) {
        let is_last = self.last_agent == Some(at);
        let mut fenced = false;
        let mut last = "";
        let places = sentences(text);
        let lead = places.len().checked_sub(1).filter(|_| self.is_before_call);
        // The last sentence in the newest line.
        let mut line_end: Option<usize> = None;
        for (n, place) in places.into_iter().enumerate().take(SENTENCES_MAX) {
            let sentence = text.get(place).unwrap_or_default().trim();
            if sentence.starts_with("```") {
                fenced = !fenced;
                continue;
            }
            if fenced || sentence.is_empty() {
                continue;
            }
            last = sentence;
            let sentence = sentence.trim_start_matches(['-', '*', '•', ' ']);
            let sentence = sentence
                .strip_prefix("THOUGHT:")
                .unwrap_or(sentence)
                .trim_start();
            if let Some(worth) = sentence_kinds::statement(sentence) {
                // The last sentence before a call announces it, unless it reports a finding.
                if lead == Some(n) && worth < sentence_kinds::FOUND {
                    continue;
                }
                let worth = if is_last { 2.0 * worth } else { worth };
                let text = one_line(&without_emphasis(sentence), LINE_MAX);
                if !sentence_kinds::leans(&text) {
                    self.line(at, LineKind::Finding, text, worth);
                    line_end = Some(n);
                } else if line_end.is_some_and(|end| end + 1 == n)
                    && let Some(line) = self.story.lines.last_mut()
                    && line.text.len() + text.len() < LINE_MAX
                {
                    // A sentence that depends on the previous one is appended to its line, or
                    // omitted.
                    line.text.push(' ');
                    line.text.push_str(&text);
                    line_end = Some(n);
                }
            }
        }
        self.story
            .state
            .ask(last.ends_with(['?', '？']).then_some(last));
    }

    fn foreign(&mut self, text: &str, share: f64) {
        let mut fenced = false;
        for line in text.lines() {
            let line = line.trim();
            if line.starts_with("```") {
                fenced = !fenced;
                continue;
            }
            let bare = line.trim_start_matches(['-', '*', '•', ' ']);
            let letters = bare.chars().filter(|c| c.is_alphanumeric()).count();
            if letters < LETTERS_MIN || line.starts_with(['<', '|']) || line.ends_with(':') {
                continue;
            }
            let mut found = 0.0;
            names::each(line, &mut |_, _| found += 1.0);
            let prose = if fenced || sentence_kinds::is_machine(line) || line.starts_with('#') {
                0.3
            } else {
                0.5 + sentence_kinds::statement(bare).unwrap_or(0.35)
            };
            let worth = share * (prose + 0.3 * found);
            self.noted += 1;
            self.story.lines.push(StoryLine {
                order: self.noted,
                kind: LineKind::Former,
                text: one_line(&without_emphasis(bare), LINE_MAX),
                worth,
                times: 1,
            });
        }
    }

    fn call(&mut self, at: usize, call: &'t TranscriptCall) {
        let age = self.age(at);
        let home = call
            .files
            .first()
            .map(|(_, path)| self.story.names.home(path));
        self.story
            .names
            .read(&call.text, TextAuthor::Call, age, home);
        self.story.state.call(call);
        self.story.state.ask(None);
    }

    fn result(&mut self, at: usize, call: Option<usize>, text: &'t str, is_error: bool) {
        let call = call.and_then(|n| match self.texts.get(n) {
            Some((_, Text::Call(call))) => Some(call),
            _ => None,
        });
        let home = call.and_then(|call| call.files.first());
        let home = home.map(|(_, path)| self.story.names.home(path));
        self.story
            .names
            .read(text, TextAuthor::Tool, self.age(at), home);
        let Some(call) = call else { return };
        let outcome = outcome(Some(call), text, is_error);
        let key = call.key();
        if call.is_test() {
            self.story.state.tested();
        }
        if !matches!(outcome, Outcome::Failed(_)) {
            for (act, path) in &call.files {
                self.story
                    .files
                    .entry(path.clone())
                    .or_default()
                    .note(*act, at);
                if *act != Act::Read {
                    self.story.state.change(path);
                    self.changed.retain(|changed| changed != path);
                    self.changed.push(path.clone());
                }
            }
            self.story.state.succeeded(&key, call.is_test());
            self.calls.succeeded(key.clone(), at);
        }
        let is_failed = matches!(outcome, Outcome::Failed(_));
        if let Outcome::Failed(line) = &outcome {
            let is_search = matches!(&call.kind, CallKind::Search)
                || matches!(&call.kind, CallKind::Command(command) if command.is_reader);
            if !is_search {
                self.story.state.failed = Some(Failure {
                    signature: call.signature.clone(),
                    key: key.clone(),
                    is_test: call.is_test(),
                    line: line.clone(),
                });
            }
        }
        // The section of files covers reads and changes.
        let is_listed = match &call.kind {
            CallKind::File => true,
            CallKind::Command(command) => command.is_reader && !call.files.is_empty(),
            CallKind::Search | CallKind::Other => false,
        };
        // That `git status` printed 13 lines is nothing to go on from.
        let is_glance = matches!(&call.kind, CallKind::Command(command) if command.is_reader)
            && matches!(outcome, Outcome::Lines(_));
        if is_listed && !is_failed || is_glance || is_bookkeeping(&call.name) {
            return;
        }
        let worth = match &call.kind {
            CallKind::Search => READER,
            CallKind::Command(command) if command.is_reader => READER,
            CallKind::Command(command) if command.is_test => 1.0,
            CallKind::Command(_) | CallKind::Other | CallKind::File => 0.6,
        };
        self.noted += 1;
        self.calls.tell(ToldCall {
            signature: call.signature.clone(),
            time_limit: call.time_limit.clone(),
            key,
            outcome,
            worth,
            at,
            order: self.noted,
            times: 1,
        });
    }

    /// Adds a line with the files that were changed since the user's last message.
    fn flush_changed(&mut self, at: usize) {
        if self.changed.is_empty() {
            return;
        }
        let names: Vec<&str> = self
            .changed
            .iter()
            .map(|path| path.rsplit('/').next().unwrap_or(path))
            .collect();
        let text = one_line(&format!("{CHANGED}{}", names.join(", ")), LINE_MAX);
        self.changed.clear();
        self.line(at.saturating_sub(1), LineKind::Call, text, 0.5);
    }

    /// Restores an item of an earlier handover.
    fn carry(&mut self, at: usize, section: Section, item: &'t SectionItem) {
        let age = self.age(at);
        let text = item.text.as_str();
        if let Some(user_text) = SaidText::of_item(self.noted + 1, item) {
            self.story.names.read(text, TextAuthor::User, age, None);
            self.noted += 1;
            self.user_texts.push(user_text);
            return;
        }
        match section {
            Section::Former => {
                self.story.names.read(text, TextAuthor::Agent, age, None);
                self.foreign(text, 1.0);
            }
            Section::Transcript => {
                let (line, times) = counted(text);
                match ToldCall::parse(line, times, at) {
                    Some(mut call) => {
                        self.story.names.read(text, TextAuthor::Call, age, None);
                        self.noted += 1;
                        call.order = self.noted;
                        self.calls.tell(call);
                    }
                    None => {
                        self.story.names.read(text, TextAuthor::Agent, age, None);
                        let kind = if line.starts_with(CHANGED) {
                            LineKind::Call
                        } else {
                            LineKind::Finding
                        };
                        if let Some(notice) = line.strip_prefix(NOTICE) {
                            self.notices
                                .insert(notice.chars().filter(|c| !c.is_ascii_digit()).collect());
                        }
                        self.line(at, kind, line.to_owned(), 0.7);
                    }
                }
            }
            Section::State => {
                self.story.names.read(text, TextAuthor::Call, age, None);
                self.story.state.carry(text);
            }
            Section::Files => {
                let (head, names) = text.split_once(": ").unwrap_or((text, ""));
                let (path, deeds) = match head.strip_suffix(')').and_then(|h| h.rsplit_once(" (")) {
                    Some((path, deeds)) => (path, FileActions::parse(deeds, at)),
                    None => (head, None),
                };
                if let Some(deeds) = deeds {
                    self.story.files.insert(path.to_owned(), deeds);
                }
                let home = self.story.names.home(path);
                self.story.names.read(path, TextAuthor::Call, age, None);
                self.story
                    .names
                    .read(names, TextAuthor::Call, age, Some(home));
            }
            Section::Names => self.story.names.read(text, TextAuthor::Call, age, None),
        }
    }

    fn finish(mut self) -> (Story<'t>, UserWords) {
        self.flush_changed(self.end);
        let user_words = UserWords::of(std::mem::take(&mut self.user_texts));
        let calls = std::mem::take(&mut self.calls);
        self.story.lines.extend(calls.lines(|at| self.recency(at)));
        self.story.names.unite(&mut self.story.files);
        self.story.returns = names::returns(self.story.files.values());
        (self.story, user_words)
    }
}

impl Story<'_> {
    /// Returns the likelihood that the agent uses a name again, from 0 to 1.
    pub(crate) fn likely(&self, word: &str, name: &Name) -> f64 {
        name.likely(word, self.files.get(word), self.returns)
    }
}

/// Returns `true` for tools that manage the agent's lists or thoughts: the state contains their
/// result.
fn is_bookkeeping(tool: &str) -> bool {
    let tool = tool.to_lowercase();
    [
        "todo",
        "taskcreate",
        "taskupdate",
        "tasklist",
        "update_plan",
        "think",
        "toolsearch",
    ]
    .iter()
    .any(|name| tool.contains(name))
}

/// Removes Markdown emphasis from a sentence.
fn without_emphasis(text: &str) -> String {
    text.replace("**", "")
}

impl StoryLine {
    /// Returns the worth of the line in proportion to its length.
    pub(crate) fn density(&self) -> f64 {
        self.worth / (8.0 + self.text.len() as f64).powf(0.6)
    }

    /// Returns the line as it is written.
    pub(crate) fn words(&self) -> String {
        if self.times > 1 {
            format!("{} (×{})", self.text, self.times)
        } else {
            self.text.clone()
        }
    }
}

/// Parses the format of [`StoryLine::words`].
fn counted(text: &str) -> (&str, u32) {
    let split = text
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once(" (×"));
    match split.and_then(|(text, times)| Some((text, times.parse().ok()?))) {
        Some(counted) => counted,
        None => (text, 1),
    }
}
