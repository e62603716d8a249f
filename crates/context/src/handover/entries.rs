//! Reads the entries of a transcript: determines the speaker of each text, and the call of each
//! result.

use std::borrow::Cow;

use foldhash::HashMap;

use super::MessageTexts;
use super::format::{self, Section, SectionItem};
use super::replies::replies;
use super::speaker::{brings_a_body, is_output, speech, summary_body};
use super::words::is_in;
use crate::message::{Message, Part};
use crate::removal_marker::Gap;

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
    /// Text of the host in the user's role, or of Plimsoll.
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
    /// The items of an earlier handover.
    Handover(Vec<(Section, SectionItem)>),
    /// A summary by another program.
    Foreign(&'a str),
}

/// Reads the messages of a transcript.
pub(crate) fn texts<'a>(messages: &'a [MessageTexts<'a>]) -> Vec<Text<'a>> {
    let mut reader = EntryReader::default();
    for (message, texts) in messages {
        reader.read(message, texts);
    }
    reader.texts
}

/// The author of a text in a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextAuthor {
    /// A person typed it: a message, an answer, or the reason of a refusal.
    User,
    /// The program around the agent.
    Host,
    /// The model.
    Agent,
    /// The model, as a tool call.
    Call,
    /// A tool.
    Tool {
        /// Whether the result is marked as an error.
        failed: bool,
    },
}

/// Returns the texts of a transcript with their authors, without former summaries.
pub(crate) fn authored(messages: &[MessageTexts<'_>]) -> Vec<(TextAuthor, String)> {
    let texts = texts(messages).into_iter();
    let authored = texts.filter_map(|text| match text {
        Text::Person { words, .. } => Some((TextAuthor::User, words.into_owned())),
        Text::Host(text) => Some((TextAuthor::Host, text.to_owned())),
        Text::Agent(text) => Some((TextAuthor::Agent, text.to_owned())),
        Text::Call { name, arguments } => Some((TextAuthor::Call, format!("→ {name} {arguments}"))),
        Text::Result { text, is_error, .. } => {
            Some((TextAuthor::Tool { failed: is_error }, text.to_owned()))
        }
        Text::Handover(_) | Text::Foreign(_) => None,
    });
    authored.collect()
}

#[derive(Default)]
struct EntryReader<'a> {
    texts: Vec<Text<'a>>,
    open: HashMap<&'a str, usize>,
    /// A command within the agent's text. It counts as a call if its output follows.
    in_text: Option<&'a str>,
    /// Whether the agent has spoken, has written code in its text, and has called a tool.
    has_spoken: bool,
    has_coded: bool,
    has_called: bool,
    /// The number of results whose bodies the host adds next.
    bodies: usize,
    /// Whether the text before brings a body.
    is_body_next: bool,
    /// Whether the rest of the message is a body.
    is_in_body: bool,
}

impl<'a> EntryReader<'a> {
    fn read(&mut self, message: &'a Message, texts: &'a [Cow<'a, str>]) {
        let is_user = matches!(message, Message::User { .. } | Message::Summary { .. });
        self.is_body_next &= is_user;
        self.is_in_body = false;
        match message {
            // System messages are never removed from a view.
            Message::System { .. } => {}
            // Hosts add texts of their own beside those of the user.
            Message::User { .. } => texts.iter().for_each(|text| self.user(text)),
            Message::Assistant { parts } => parts.iter().for_each(|part| self.part(part)),
            Message::ToolResult(result) => {
                let text = texts.first().map_or("", |text| text);
                self.result(&result.call.0, text, result.is_error);
            }
            Message::Notice { .. } if Gap::of(message).is_some() => {}
            Message::Notice { text } => self.texts.push(Text::Host(text)),
            // A file may contain one.
            Message::Summary { text } if self.is_body() => self.texts.push(Text::Host(text)),
            Message::Summary { text } => {
                let text = Gap::split_summary(text).1;
                let (words, model) = format::split_model_text(text).unwrap_or((text, ""));
                self.texts.push(match format::read(words) {
                    Some(items) => Text::Handover(items),
                    None => Text::Foreign(summary_body(words)),
                });
                if !model.is_empty() {
                    self.texts.push(Text::Foreign(model));
                }
            }
        }
    }

    fn part(&mut self, part: &'a Part) {
        match part {
            Part::Text { text } => {
                self.bodies = 0;
                self.has_spoken = true;
                self.texts.push(Text::Agent(text));
                self.in_text = fenced_command(text).or(self.in_text);
                self.has_coded |= text.contains("```");
            }
            Part::ToolCall(call) => {
                self.has_called = true;
                self.open.insert(&call.id.0, self.texts.len());
                self.texts.push(Text::Call {
                    name: &call.name,
                    arguments: &call.arguments,
                });
            }
            Part::Thinking(_) | Part::Image(_) | Part::File(_) | Part::Opaque(_) => {}
        }
    }

    /// Returns `true` if the next text is the body of a command, a skill, a result or a file, which the
    /// host adds.
    fn is_body(&mut self) -> bool {
        // All further texts of the message belong to it.
        self.is_in_body |= std::mem::take(&mut self.is_body_next) || self.bodies > 0;
        self.bodies = self.bodies.saturating_sub(1);
        self.is_in_body
    }

    fn user(&mut self, text: &'a str) {
        let in_text = self.in_text.take();
        if self.is_body() {
            self.texts.push(Text::Host(text));
            return;
        }
        self.is_body_next = brings_a_body(text);
        let acts_in_text = in_text.is_some() || self.has_spoken && !self.has_called;
        if acts_in_text && is_output(text, self.has_coded) {
            // An agent without tools acts in its text, and reads the output in the user's role.
            let call = in_text.map(|arguments| {
                let name = "";
                self.texts.push(Text::Call { name, arguments });
                self.texts.len() - 1
            });
            self.result_of(call, text, false);
        } else {
            self.texts.push(speech(text));
        }
    }

    fn result(&mut self, id: &str, text: &'a str, is_error: bool) {
        let call = self.open.remove(id);
        let (name, arguments) = match call.and_then(|n| self.texts.get(n)) {
            Some(Text::Call { name, arguments }) => (*name, *arguments),
            _ => ("", ""),
        };
        self.bodies += usize::from(name == SKILL_TOOL && text.starts_with(SKILL_LAUNCHED));
        let replies = replies(name, arguments, text, is_error);
        if replies.is_empty() {
            self.result_of(call, text, is_error);
        }
        let replies = replies.into_iter().map(|words| Text::Person {
            words: Cow::Owned(words),
            is_answer: true,
        });
        self.texts.extend(replies);
    }

    fn result_of(&mut self, call: Option<usize>, text: &'a str, is_error: bool) {
        self.texts.push(Text::Result {
            call,
            text,
            is_error,
        });
    }
}

/// Returns the command of a text: its only fenced block, if that is of a shell or names no language.
fn fenced_command(text: &str) -> Option<&str> {
    let mut parts = text.split("```").skip(1);
    let (block, _, None) = (parts.next()?, parts.next()?, parts.next()) else {
        return None;
    };
    let (language, command) = block.split_once('\n')?;
    let command = command.trim();
    (is_in("fences", language.trim()) && !command.is_empty()).then_some(command)
}
