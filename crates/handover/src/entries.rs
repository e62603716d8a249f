//! The entries of a transcript, read: who says what, and which call a result belongs to.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::Entry;
use crate::calls::Call;
use crate::cues;
use crate::format::{self, Item, Section};
use crate::replies::{Reply, reply};
use crate::sentences::one_line;
use crate::speaker::{Speech, brings_a_body, speech};

/// A person's words between two commands of an agent without tools are no longer than this.
const BRIEF: usize = 1_000;
/// Longest name of a refused call that is repeated, in bytes.
const REFUSED_MAX: usize = 120;

/// One text of the transcript.
#[derive(Debug)]
pub(crate) enum Text<'a> {
    /// A person's words, wherever they arrived.
    Person {
        words: Cow<'a, str>,
        source: Source,
    },
    Agent(&'a str),
    Thinking(&'a str),
    Call(Call),
    Result {
        /// The place of the call among the texts.
        call: Option<usize>,
        text: &'a str,
        is_error: bool,
    },
    /// What the user decided without words.
    Decided(String),
    Notice(&'a str),
    /// The items of an earlier handover.
    Handover(Vec<(Section, Item)>),
    /// A summary that somebody else wrote.
    Foreign(&'a str),
}

/// Where a person's words arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// In a message.
    Message,
    /// In answer to a tool call.
    Reply,
}

/// Reads `entries`; each text has the number of its entry.
pub(crate) fn texts<'a>(entries: &[Entry<'a>]) -> Vec<(usize, Text<'a>)> {
    let mut texts: Vec<(usize, Text<'a>)> = Vec::new();
    let mut open: HashMap<&str, usize> = HashMap::new();
    // A command that stood in the agent's text, whose output is the next message.
    let mut in_text: Option<usize> = None;
    // An agent without tools, whose commands are all answered in the user's role.
    let mut is_text_only = false;
    for (at, entry) in entries.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| entries.get(before));
        match *entry {
            // The host puts the body of a command behind it.
            Entry::User(_) if matches!(before, Some(Entry::User(before)) if brings_a_body(before)) =>
                {}
            Entry::User(text) => {
                let command = in_text.take();
                if is_text_only && command.is_some() && is_output(text) {
                    texts.push((at, observed(command, text)));
                    continue;
                }
                read_user(at, text, command, &mut texts);
                let is_answer =
                    matches!(texts.last(), Some((of, Text::Result { .. })) if *of == at);
                is_text_only |= is_answer && command.is_some();
            }
            Entry::Assistant(text) => {
                texts.push((at, Text::Agent(text)));
                if let Some(command) = fenced_command(text) {
                    in_text = Some(texts.len());
                    texts.push((at, Text::Call(Call::command("bash", command))));
                }
            }
            Entry::Thinking(text) => texts.push((at, Text::Thinking(text))),
            Entry::ToolCall {
                id,
                name,
                arguments,
            } => {
                open.insert(id, texts.len());
                texts.push((at, Text::Call(Call::new(name, arguments))));
            }
            Entry::ToolResult { id, text, is_error } => {
                read_result(at, open.remove(id), text, is_error, &mut texts);
            }
            Entry::Notice(text) => texts.push((at, Text::Notice(text))),
            Entry::Summary(text) => texts.push((
                at,
                format::read(text).map_or(Text::Foreign(text), Text::Handover),
            )),
        }
    }
    drop_unanswered(&mut texts);
    texts
}

/// A command in the text of an agent without tools is a call only if its output was sent back.
fn drop_unanswered(texts: &mut Vec<(usize, Text<'_>)>) {
    let answered: Vec<usize> = texts
        .iter()
        .filter_map(|(_, text)| match text {
            Text::Result { call, .. } => *call,
            _ => None,
        })
        .collect();
    for (n, (_, text)) in texts.iter_mut().enumerate() {
        let is_in_text =
            matches!(text, Text::Call(call) if call.arguments.is_null() && call.name == "bash");
        if is_in_text && answered.binary_search(&n).is_err() && !answered.contains(&n) {
            *text = Text::Agent("");
        }
    }
}

fn read_user<'a>(
    at: usize,
    text: &'a str,
    command: Option<usize>,
    texts: &mut Vec<(usize, Text<'a>)>,
) {
    match speech(text) {
        Speech::Person(words) => texts.push((
            at,
            Text::Person {
                words,
                source: Source::Message,
            },
        )),
        Speech::Output(text, is_error) => texts.push((
            at,
            Text::Result {
                call: command,
                text,
                is_error,
            },
        )),
        Speech::Summary(text) => texts.push((at, Text::Foreign(text))),
        Speech::Host => {}
    }
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
    let said = called.and_then(|called| reply(&called.name, &called.arguments, text, is_error));
    let signature = called.map_or("a call", |called| called.signature.as_str());
    let person = |words: String| {
        let text = Text::Person {
            words: Cow::Owned(words),
            source: Source::Reply,
        };
        (at, text)
    };
    match said {
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

/// Returns `true` if a message is long or looks like a program's: a person may say something between two
/// commands.
fn is_output(text: &str) -> bool {
    let first = text.trim().lines().next().unwrap_or_default();
    text.len() > BRIEF || first.starts_with("diff --git") || cues::is_machine(first)
}

/// Returns a message as the output of a command, whatever its form.
fn observed<'a>(call: Option<usize>, text: &'a str) -> Text<'a> {
    match speech(text) {
        Speech::Output(text, is_error) => Text::Result {
            call,
            text,
            is_error,
        },
        _ => Text::Result {
            call,
            text,
            is_error: false,
        },
    }
}

/// Returns the command of a text that holds exactly one fenced block of shell.
fn fenced_command(text: &str) -> Option<&str> {
    let mut blocks = text.split("```");
    let (_, block, behind) = (blocks.next()?, blocks.next()?, blocks.next()?);
    if blocks.next().is_some() {
        return None;
    }
    let _ = behind;
    let (language, command) = block.split_once('\n')?;
    matches!(language.trim(), "bash" | "sh" | "shell" | "")
        .then(|| command.trim())
        .filter(|command| !command.is_empty())
}
