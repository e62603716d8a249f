//! What a span holds that could be told: one pass over its messages. Not the choice among it.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::gap::Gap;
use crate::message::{File, Image, Message, Part, Source};

use super::calls::{self, Act, Call, Deeds, Open};
use super::cues;
use super::layout::{self, Section};
use super::names::{Names, Who};
use super::pieces::{one_line, pieces};
use super::said::{Said, Standing};

/// Longest line of what the agent or a former summary said, in bytes.
const LINE_MAX: usize = 320;
/// A sentence of fewer characters decides nothing.
const SENTENCE_MIN: usize = 12;
/// Least age at which a sentence of the agent counts half as much as a new one, in messages.
const HALF: f64 = 24.0;

/// One text of a span, as it is read.
pub(super) enum Text<'m> {
    User(Cow<'m, str>),
    Agent(&'m str),
    Thinking(&'m str),
    Call {
        id: &'m str,
        call: Call,
    },
    Result {
        id: &'m str,
        text: Cow<'m, str>,
        is_error: bool,
    },
    Notice(&'m str),
    /// What an extract held that is now among the messages.
    Extract(Vec<(Section, String)>),
    /// A summary that somebody else wrote.
    Foreign(&'m str),
}

/// A line that could be told.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) worth: f64,
    /// How often it came, where it is told once.
    pub(super) times: u32,
}

/// Everything that could be told.
pub(super) struct Notes<'t> {
    pub(super) foreign: Vec<Line>,
    pub(super) decisions: Vec<Line>,
    pub(super) errors: Vec<Line>,
    pub(super) calls: Vec<Line>,
    pub(super) files: HashMap<String, Deeds>,
    pub(super) names: Names<'t>,
}

/// The texts of `messages`, each with the number of its message. System messages are no part: they
/// never leave a view.
pub(super) fn texts<'m>(messages: &[&'m Message]) -> Vec<(usize, Text<'m>)> {
    let mut texts = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match message {
            Message::System { .. } => {}
            Message::User { parts } => texts.push((at, Text::User(readable(parts)))),
            Message::Assistant { parts } => {
                for part in parts {
                    let text = match part {
                        Part::Text { text } => Text::Agent(text),
                        Part::Thinking(thinking) => Text::Thinking(&thinking.text),
                        Part::ToolCall(call) => Text::Call {
                            id: &call.id.0,
                            call: Call::of(&call.name, &call.arguments),
                        },
                        Part::Image(_) | Part::File(_) | Part::Opaque(_) => continue,
                    };
                    texts.push((at, text));
                }
            }
            Message::ToolResult(result) => texts.push((
                at,
                Text::Result {
                    id: &result.call.0,
                    text: readable(&result.parts),
                    is_error: result.is_error,
                },
            )),
            Message::Notice { .. } if Gap::of(message).is_some() => {}
            Message::Notice { text } => texts.push((at, Text::Notice(text))),
            Message::Summary { text } => {
                let (_, text) = Gap::split_summary(text);
                texts.push((
                    at,
                    layout::read(text).map_or(Text::Foreign(text), Text::Extract),
                ));
            }
        }
    }
    texts
}

impl<'t> Notes<'t> {
    /// With what the user said.
    pub(super) fn of(texts: &'t [(usize, Text<'_>)]) -> (Self, Said) {
        let end = texts.last().map_or(0, |(at, _)| at + 1);
        let mut reader = Reader {
            end,
            said: Vec::new(),
            open: Open::new(),
            calls: Vec::new(),
            call_of: HashMap::new(),
            error_of: HashMap::new(),
            last_said: texts
                .iter()
                .rev()
                .find(|(_, text)| matches!(text, Text::Agent(_)))
                .map(|(at, _)| *at),
            notes: Self {
                foreign: Vec::new(),
                decisions: Vec::new(),
                errors: Vec::new(),
                calls: Vec::new(),
                files: HashMap::new(),
                names: Names::default(),
            },
        };
        for (at, text) in texts {
            reader.read(*at, text);
        }
        reader.finish()
    }
}

struct Reader<'t> {
    /// How many messages there are.
    end: usize,
    said: Vec<(String, Standing)>,
    open: Open,
    calls: Vec<Asked>,
    /// Where in `calls` a signature is.
    call_of: HashMap<String, usize>,
    /// Where in the errors one like it is.
    error_of: HashMap<String, usize>,
    /// The last message in which the agent said something.
    last_said: Option<usize>,
    notes: Notes<'t>,
}

/// A call that is told on a line of its own.
struct Asked {
    signature: String,
    outcome: Option<String>,
    file: Option<(Act, String)>,
    home: Option<u32>,
    at: usize,
    times: u32,
    is_former: bool,
}

impl<'t> Reader<'t> {
    fn read(&mut self, at: usize, text: &'t Text<'_>) {
        let age = self.age(at);
        match text {
            Text::User(text) => {
                self.notes.names.read(text, Who::User, age, None);
                self.said.push((text.to_string(), Standing::New));
            }
            Text::Agent(text) => {
                self.notes.names.read(text, Who::Agent, age, None);
                self.decisions(at, text);
            }
            Text::Thinking(text) => self.notes.names.read(text, Who::Thinking, age, None),
            Text::Call { id, call } => self.call(at, id, call),
            Text::Result { id, text, is_error } => self.result(at, id, text, *is_error),
            Text::Notice(text) => {
                let line = format!("notice: {}", one_line(text, LINE_MAX));
                self.error(at, line);
            }
            Text::Extract(items) => {
                for (section, item) in items {
                    self.carry(at, *section, item);
                }
            }
            Text::Foreign(text) => {
                self.notes.names.read(text, Who::Agent, age, None);
                self.foreign(text);
            }
        }
    }

    /// Messages from `at` to the end, at least one.
    fn age(&self, at: usize) -> u32 {
        u32::try_from(self.end - at.min(self.end))
            .unwrap_or(u32::MAX)
            .max(1)
    }

    fn recency(&self, at: usize) -> f64 {
        HALF / (HALF + f64::from(self.age(at)))
    }

    fn decisions(&mut self, at: usize, text: &str) {
        let is_last = self.last_said == Some(at);
        let mut fenced = false;
        for piece in pieces(text) {
            let piece = text.get(piece).unwrap_or_default().trim();
            if piece.starts_with("```") {
                fenced = !fenced;
                continue;
            }
            let piece = piece.trim_start_matches(['-', '*', '•', ' ']);
            if fenced || piece.chars().count() < SENTENCE_MIN {
                continue;
            }
            let cue = cues::decision(piece);
            let last = if is_last { 4.0 } else { 1.0 };
            self.notes.decisions.push(Line {
                text: one_line(piece, LINE_MAX),
                worth: cue * last * self.recency(at),
                times: 1,
            });
        }
    }

    fn foreign(&mut self, text: &str) {
        let mut fenced = false;
        for line in text.lines() {
            let line = line.trim();
            if line.starts_with("```") {
                fenced = !fenced;
                continue;
            }
            let bare = line.trim_start_matches(['-', '*', '•', ' ']);
            if bare.chars().filter(|c| c.is_alphanumeric()).count() < SENTENCE_MIN {
                continue;
            }
            let mut names = 0.0;
            super::names::each(line, &mut |_, _| names += 1.0);
            let prose = if fenced || cues::is_machine(line) || line.starts_with('#') {
                0.3
            } else {
                0.5 + cues::decision(line)
            };
            self.notes.foreign.push(Line {
                text: one_line(bare, LINE_MAX),
                worth: prose + 0.3 * names,
                times: 1,
            });
        }
    }

    fn call(&mut self, at: usize, id: &str, call: &'t Call) {
        let age = self.age(at);
        let home = call
            .file
            .as_ref()
            .map(|(_, path)| self.notes.names.home(path));
        self.notes.names.read(&call.text, Who::Call, age, home);
        if let Some((act, path)) = &call.file {
            self.notes
                .files
                .entry(path.clone())
                .or_default()
                .note(*act, at);
        }
        let n = self.asked(&call.signature, at);
        if let Some(asked) = self.calls.get_mut(n) {
            asked.file.clone_from(&call.file);
            asked.home = home;
        }
        self.open.insert(id.to_owned(), n);
    }

    /// The call of this signature, now asked once more.
    fn asked(&mut self, signature: &str, at: usize) -> usize {
        if let Some(n) = self.call_of.get(signature) {
            if let Some(asked) = self.calls.get_mut(*n) {
                asked.times = asked.times.saturating_add(1);
                asked.at = at;
                asked.is_former = false;
            }
            return *n;
        }
        let n = self.calls.len();
        self.calls.push(Asked {
            signature: signature.to_owned(),
            outcome: None,
            file: None,
            home: None,
            at,
            times: 1,
            is_former: false,
        });
        self.call_of.insert(signature.to_owned(), n);
        n
    }

    fn result(&mut self, at: usize, id: &str, text: &'t str, is_error: bool) {
        let asked = self.open.remove(id).and_then(|n| self.calls.get_mut(n));
        let home = asked.as_ref().and_then(|asked| asked.home);
        let mut failed = None;
        if let Some(asked) = asked {
            // What a file holds is no outcome, and an error told in it is none that was met.
            let is_content = asked.file.is_some() && !is_error;
            if !is_content {
                asked.outcome = Some(calls::outcome(text, is_error));
                failed = calls::error(text, is_error)
                    .map(|line| format!("{}: {line}", one_line(&asked.signature, 80)));
            }
        } else if is_error {
            failed = calls::error(text, is_error);
        }
        if let Some(failed) = failed {
            self.error(at, failed);
        }
        self.notes.names.read(text, Who::Tool, self.age(at), home);
    }

    fn error(&mut self, at: usize, text: String) {
        let worth = self.recency(at);
        let key = calls::masked(&text);
        if let Some(line) = self
            .error_of
            .get(&key)
            .and_then(|n| self.notes.errors.get_mut(*n))
        {
            line.times = line.times.saturating_add(1);
            line.worth = worth;
            line.text = text;
            return;
        }
        self.error_of.insert(key, self.notes.errors.len());
        self.notes.errors.push(Line {
            text,
            worth,
            times: 1,
        });
    }

    /// Takes over an item of a former extract.
    fn carry(&mut self, at: usize, section: Section, item: &'t str) {
        let age = self.age(at);
        let worth = 0.7 * self.recency(at);
        let line = |text: &str| Line {
            text: one_line(text, LINE_MAX),
            worth,
            times: 1,
        };
        match section {
            Section::Rules | Section::Said => {
                self.notes.names.read(item, Who::User, age, None);
                let standing = match section {
                    Section::Rules => Standing::Rule,
                    _ => Standing::New,
                };
                self.said.push((item.to_owned(), standing));
            }
            Section::Former => {
                self.notes.names.read(item, Who::Agent, age, None);
                self.foreign(item);
            }
            Section::Decisions => {
                self.notes.names.read(item, Who::Agent, age, None);
                self.notes.decisions.push(line(item));
            }
            Section::Errors => {
                self.notes.names.read(item, Who::Tool, age, None);
                let (text, times) = counted(item);
                self.error(at, text.to_owned());
                if let Some(line) = self.notes.errors.last_mut() {
                    line.times = times;
                }
            }
            Section::Calls => {
                self.notes.names.read(item, Who::Call, age, None);
                let (text, times) = counted(item);
                let (signature, outcome) = text.rsplit_once(ARROW).unwrap_or((text, ""));
                let n = self.asked(signature, at);
                if let Some(asked) = self.calls.get_mut(n) {
                    asked.times = times;
                    asked.is_former = true;
                    asked.outcome = (!outcome.is_empty()).then(|| outcome.to_owned());
                }
            }
            Section::Files => {
                let (head, names) = item.split_once(": ").unwrap_or((item, ""));
                let (path, deeds) = match head.strip_suffix(')').and_then(|h| h.rsplit_once(" (")) {
                    Some((path, deeds)) => (path, Deeds::parse(deeds, at)),
                    None => (head, None),
                };
                if let Some(deeds) = deeds {
                    self.notes.files.insert(path.to_owned(), deeds);
                }
                let home = self.notes.names.home(path);
                self.notes.names.read(path, Who::Call, age, None);
                self.notes.names.read(names, Who::Call, age, Some(home));
            }
            Section::Names => self.notes.names.read(item, Who::Call, age, None),
        }
    }

    fn finish(mut self) -> (Notes<'t>, Said) {
        let said = Said::of(std::mem::take(&mut self.said));
        let mut asked = std::mem::take(&mut self.calls);
        // The files say it already, but for what went wrong.
        asked.retain(|call| call.file.is_none());
        asked.sort_by_key(|call| call.at);
        self.notes.calls = asked
            .iter()
            .map(|call| {
                let text = match &call.outcome {
                    Some(outcome) => format!("{}{ARROW}{outcome}", call.signature),
                    None => call.signature.clone(),
                };
                Line {
                    worth: self.recency(call.at) * if call.is_former { 0.7 } else { 1.0 },
                    text,
                    times: call.times,
                }
            })
            .collect();
        (self.notes, said)
    }
}

impl Line {
    /// As it is written.
    pub(super) fn words(&self) -> String {
        if self.times > 1 {
            format!("{} (×{})", self.text, self.times)
        } else {
            self.text.clone()
        }
    }
}

/// Between a call and its outcome.
const ARROW: &str = " → ";

/// Reads [`Line::words`].
fn counted(text: &str) -> (&str, u32) {
    let split = text
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once(" (×"));
    match split.and_then(|(text, times)| Some((text, times.parse().ok()?))) {
        Some(counted) => counted,
        None => (text, 1),
    }
}

/// The text of parts, with a note for each that is no text.
fn readable(parts: &[Part]) -> Cow<'_, str> {
    if let [Part::Text { text }] = parts {
        return Cow::Borrowed(text);
    }
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.clone()),
        Part::Image(image) => Some(image_note(image)),
        Part::File(file) => Some(file_note(file)),
        Part::Thinking(_) | Part::ToolCall(_) | Part::Opaque(_) => None,
    });
    Cow::Owned(texts.collect::<Vec<_>>().join("\n"))
}

fn image_note(image: &Image) -> String {
    let size = image
        .size
        .map(|(width, height)| format!(" of {width} × {height}"));
    match &image.source {
        Source::Url { url } => format!("[image {}]", one_line(url, 120)),
        Source::Data { .. } => format!("[image{}]", size.unwrap_or_default()),
    }
}

fn file_note(file: &File) -> String {
    match (&file.name, &file.source) {
        (Some(name), _) => format!("[file {}]", one_line(name, 120)),
        (None, Source::Url { url }) => format!("[file {}]", one_line(url, 120)),
        (None, Source::Data { .. }) => "[file]".to_owned(),
    }
}
