//! Reads the entries of a transcript: determines the speaker of each text, and the call of each
//! result.

use std::borrow::Cow;

use foldhash::HashMap;

use super::TranscriptEntry;
use super::calls::signature_of;
use super::cues;
use super::format::{self, Section, SectionItem};
use super::replies::{Reply, reply};
use super::sentences::one_line;
use super::speaker::{MessageSource, brings_a_body, output, speech, summary_body};

/// The maximum length of a user's text between two commands of an agent without tools, in bytes.
const BRIEF: usize = 1_000;
/// The maximum length of the name of a refused call that is repeated, in bytes.
const REFUSED_MAX: usize = 120;
/// The tool whose body the host adds as a message of the user, and the beginning of its result then.
const SKILL_TOOL: &str = "Skill";
const SKILL_LAUNCHED: &str = "Launching skill";

/// One text of the transcript.
#[derive(Debug)]
pub(crate) enum Text<'a> {
    /// The user's words, from a message or, as an answer, from a tool result.
    Person {
        words: Cow<'a, str>,
        is_answer: bool,
    },
    /// Text of the host in the user's role.
    Host(&'a str),
    Agent(&'a str),
    /// A tool call. If `name` is empty, `arguments` is a command in the agent's text.
    Call {
        name: &'a str,
        arguments: &'a str,
    },
    Result {
        /// The index of the call among the texts.
        call: Option<usize>,
        text: &'a str,
        is_error: bool,
    },
    /// A decision of the user without words.
    Decided(String),
    Notice(&'a str),
    /// The items of an earlier handover.
    Handover(Vec<(Section, SectionItem)>),
    /// A summary by another program.
    Foreign(&'a str),
}

/// Reads the entries of a transcript.
pub(crate) fn texts<'a>(entries: &[TranscriptEntry<'a>]) -> Vec<Text<'a>> {
    let mut reader = EntryReader::default();
    for (at, entry) in entries.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| entries.get(before));
        reader.read(*entry, before);
    }
    reader.texts
}

#[derive(Default)]
struct EntryReader<'a> {
    texts: Vec<Text<'a>>,
    open: HashMap<&'a str, usize>,
    /// A command within the agent's text. It counts as a call if its output follows.
    in_text: Option<&'a str>,
    /// Whether the agent has no tools, and its commands are all answered in the user's role.
    is_text_only: bool,
    /// Whether the agent has called a tool.
    has_called: bool,
    /// The number of results whose bodies the host adds next.
    bodies: usize,
}

impl<'a> EntryReader<'a> {
    fn read(&mut self, entry: TranscriptEntry<'a>, before: Option<&TranscriptEntry<'_>>) {
        match entry {
            TranscriptEntry::User(text) => {
                // The host adds the body of a command or a skill in the next message.
                let is_body = self.bodies > 0
                    || matches!(before, Some(TranscriptEntry::User(text)) if brings_a_body(text));
                if is_body {
                    self.bodies = self.bodies.saturating_sub(1);
                    self.texts.push(Text::Host(text));
                } else {
                    self.user(text);
                }
            }
            TranscriptEntry::Assistant(text) => {
                self.bodies = 0;
                self.texts.push(Text::Agent(text));
                self.in_text = fenced_command(text).or(self.in_text);
            }
            TranscriptEntry::ToolCall {
                id,
                name,
                arguments,
            } => {
                self.has_called = true;
                self.open.insert(id, self.texts.len());
                self.texts.push(Text::Call { name, arguments });
            }
            TranscriptEntry::ToolResult { id, text, is_error } => self.result(id, text, is_error),
            TranscriptEntry::Notice(text) => self.texts.push(Text::Notice(text)),
            TranscriptEntry::Summary(text) => {
                let (words, model) = format::split_model_text(text).unwrap_or((text, ""));
                match format::read(words) {
                    Some(items) => self.texts.push(Text::Handover(items)),
                    None => self.texts.push(Text::Foreign(summary_body(words))),
                }
                if !model.is_empty() {
                    self.texts.push(Text::Foreign(model));
                }
            }
        }
    }

    fn user(&mut self, text: &'a str) {
        if let Some(command) = self.in_text.take() {
            let plain = (self.is_text_only && is_output(text)).then_some((text, false));
            if let Some((text, is_error)) = output(text).or(plain) {
                self.is_text_only = true;
                self.texts.push(Text::Call {
                    name: "",
                    arguments: command,
                });
                self.texts.push(Text::Result {
                    call: Some(self.texts.len() - 1),
                    text,
                    is_error,
                });
                return;
            }
        }
        // The output of an action in any form, of an agent that calls in its text.
        let is_output = !self.has_called && output(text).is_some();
        if is_output && self.texts.iter().any(|text| matches!(text, Text::Agent(_))) {
            self.texts.push(Text::Host(text));
            return;
        }
        self.texts.push(match speech(text) {
            MessageSource::Person(words) => Text::Person {
                words,
                is_answer: false,
            },
            MessageSource::Summary(text) => Text::Foreign(text),
            MessageSource::Host => Text::Host(text),
        });
    }

    fn result(&mut self, id: &str, text: &'a str, is_error: bool) {
        let call = self.open.remove(id);
        let (name, arguments) = match call.and_then(|n| self.texts.get(n)) {
            Some(Text::Call { name, arguments }) => (*name, *arguments),
            _ => ("", ""),
        };
        self.bodies += usize::from(name == SKILL_TOOL && text.starts_with(SKILL_LAUNCHED));
        let person = |words| Text::Person {
            words: Cow::Owned(words),
            is_answer: true,
        };
        let refused = || one_line(&signature_of(name, arguments), REFUSED_MAX);
        match reply(name, arguments, text, is_error) {
            Some(Reply::Answers(answers)) => self.texts.extend(answers.into_iter().map(person)),
            Some(Reply::Refused(reason)) if reason.is_empty() => {
                // In a form that anyone can word, a reason is not the user's.
                let reason = text.trim().rsplit_once('\n');
                let reason = reason.map_or_else(String::new, |(_, last)| format!("; {last}"));
                let decided = format!("the user refused: {}{reason}", refused());
                self.texts.push(Text::Decided(decided));
            }
            Some(Reply::Refused(reason)) => {
                self.texts
                    .push(person(format!("(refused: {}) {reason}", refused())));
            }
            Some(Reply::Plan(Some(changed))) => {
                self.texts
                    .push(person(format!("(changed the plan) {changed}")));
            }
            Some(Reply::Plan(None)) => {
                let decided = "the user approved the plan".to_owned();
                self.texts.push(Text::Decided(decided));
            }
            None => self.texts.push(Text::Result {
                call,
                text,
                is_error,
            }),
        }
    }
}

/// Returns `true` if a message is long or looks like program output. Otherwise it may be the user's
/// words between two commands.
fn is_output(text: &str) -> bool {
    let first = text.trim().lines().next().unwrap_or_default();
    text.len() > BRIEF || first.starts_with("diff --git") || cues::is_machine(first)
}

/// Returns the command of a text: its only fenced block of shell, or its only block if that names no
/// language.
fn fenced_command(text: &str) -> Option<&str> {
    let parts: Vec<&str> = text.split("```").collect();
    // Every second part is a block; one at the end is not closed.
    let closed = parts.len().saturating_sub(1);
    let blocks: Vec<(&str, &str)> = parts
        .iter()
        .take(closed)
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.split_once('\n'))
        .map(|(language, text)| (language.trim(), text.trim()))
        .collect();
    let mut shells = blocks.iter().filter(|(language, _)| {
        matches!(*language, "bash" | "sh" | "shell" | "mswea_bash_command")
    });
    let command = match (shells.next(), shells.next(), blocks.as_slice()) {
        (Some((_, command)), None, _) | (None, None, [("", command)]) => *command,
        _ => return None,
    };
    (!command.is_empty()).then_some(command)
}
