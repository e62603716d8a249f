//! Reads the entries of a transcript: determines the speaker of each text, and the call of each
//! result.

use foldhash::HashMap;
use std::borrow::Cow;

use crate::TranscriptEntry;
use crate::calls::TranscriptCall;
use crate::format::{self, Section, SectionItem};
use crate::replies::{Reply, reply};
use crate::sentence_kinds;
use crate::sentences::one_line;
use crate::speaker::{MessageSource, brings_a_body, speech};

/// The maximum length of a user's text between two commands of an agent without tools, in bytes.
const BRIEF: usize = 1_000;
/// The maximum length of the name of a refused call that is repeated, in bytes.
const REFUSED_MAX: usize = 120;

/// One text of the transcript.
#[derive(Debug)]
pub(crate) enum Text<'a> {
    /// The user's words, from a message or a tool result.
    Person {
        words: Cow<'a, str>,
        source: WordsOrigin,
    },
    Agent(&'a str),
    Thinking(&'a str),
    Call(TranscriptCall),
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

/// The origin of the user's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordsOrigin {
    /// A message.
    Message,
    /// The answer to a tool call.
    Reply,
}

/// Reads `entries`. Each text has the number of its entry.
pub(crate) fn texts<'a>(entries: &[TranscriptEntry<'a>]) -> Vec<(usize, Text<'a>)> {
    let mut texts: Vec<(usize, Text<'a>)> = Vec::new();
    let mut open: HashMap<&str, usize> = HashMap::default();
    // A command within the agent's text, and its entry. It counts as a call if its output follows.
    let mut in_text: Option<(usize, &str)> = None;
    // Whether the agent has no tools, and its commands are all answered in the user's role.
    let mut is_text_only = false;
    for (at, entry) in entries.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| entries.get(before));
        match *entry {
            // The host adds the body of a command in the next message.
            TranscriptEntry::User(_) if matches!(before, Some(TranscriptEntry::User(text)) if brings_a_body(text)) =>
                {}
            TranscriptEntry::User(text) => {
                let command = in_text.take();
                let is_output = is_text_only && command.is_some() && is_output(text);
                match speech(text) {
                    MessageSource::Output(text, is_error) => {
                        push_output(at, command, text, is_error, &mut texts);
                        is_text_only |= command.is_some();
                    }
                    _ if is_output => push_output(at, command, text, false, &mut texts),
                    MessageSource::Person(words) => texts.push((
                        at,
                        Text::Person {
                            words,
                            source: WordsOrigin::Message,
                        },
                    )),
                    MessageSource::Summary(text) => texts.push((at, Text::Foreign(text))),
                    MessageSource::Host => {}
                }
            }
            TranscriptEntry::Assistant(text) => {
                texts.push((at, Text::Agent(text)));
                in_text = fenced_command(text)
                    .map(|command| (at, command))
                    .or(in_text);
            }
            TranscriptEntry::Thinking(text) => texts.push((at, Text::Thinking(text))),
            TranscriptEntry::ToolCall {
                id,
                name,
                arguments,
            } => {
                open.insert(id, texts.len());
                texts.push((at, Text::Call(TranscriptCall::new(name, arguments))));
            }
            TranscriptEntry::ToolResult { id, text, is_error } => {
                read_result(at, open.remove(id), text, is_error, &mut texts);
            }
            TranscriptEntry::Notice(text) => texts.push((at, Text::Notice(text))),
            TranscriptEntry::Summary(text) => texts.push((
                at,
                format::read(text).map_or(Text::Foreign(text), Text::Handover),
            )),
        }
    }
    texts
}

/// Records the output of a command within the agent's text.
fn push_output<'a>(
    at: usize,
    command: Option<(usize, &'a str)>,
    text: &'a str,
    is_error: bool,
    texts: &mut Vec<(usize, Text<'a>)>,
) {
    let call = command.map(|(of, command)| {
        texts.push((of, Text::Call(TranscriptCall::command("bash", command))));
        texts.len() - 1
    });
    texts.push((
        at,
        Text::Result {
            call,
            text,
            is_error,
        },
    ));
}

fn read_result<'a>(
    at: usize,
    call: Option<usize>,
    text: &'a str,
    is_error: bool,
    texts: &mut Vec<(usize, Text<'a>)>,
) {
    let called = call.and_then(|n| match texts.get(n) {
        Some((_, Text::Call(call))) => Some(call),
        _ => None,
    });
    let reply = called.and_then(|called| reply(&called.name, &called.arguments, text, is_error));
    let signature = called.map_or("a call", |called| called.signature.as_str());
    let person = |words: String| {
        let text = Text::Person {
            words: Cow::Owned(words),
            source: WordsOrigin::Reply,
        };
        (at, text)
    };
    match reply {
        Some(Reply::Answers(answers)) => texts.extend(answers.into_iter().map(person)),
        Some(Reply::Refused(reason)) => {
            let call = one_line(signature, REFUSED_MAX);
            if reason.is_empty() {
                texts.push((at, Text::Decided(format!("the user refused: {call}"))));
            } else {
                texts.push(person(format!("(refused: {call}) {reason}")));
            }
        }
        Some(Reply::Plan(Some(changed))) => {
            texts.push(person(format!("(changed the plan) {changed}")));
        }
        Some(Reply::Plan(None)) => {
            texts.push((at, Text::Decided("the user approved the plan".to_owned())));
        }
        None => texts.push((
            at,
            Text::Result {
                call,
                text,
                is_error,
            },
        )),
    }
}

/// Returns `true` if a message is long or looks like program output. Otherwise it may be the user's
/// words between two commands.
fn is_output(text: &str) -> bool {
    let first = text.trim().lines().next().unwrap_or_default();
    text.len() > BRIEF || first.starts_with("diff --git") || sentence_kinds::is_machine(first)
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
    let mut shells = blocks
        .iter()
        .filter(|(language, _)| matches!(*language, "bash" | "sh" | "shell"));
    let command = match (shells.next(), shells.next(), blocks.as_slice()) {
        (Some((_, command)), None, _) | (None, None, [("", command)]) => *command,
        _ => return None,
    };
    (!command.is_empty()).then_some(command)
}
