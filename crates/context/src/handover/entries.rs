//! Reads the entries of a transcript: determines the speaker of each text, and the call of each
//! result.

use std::borrow::Cow;

use foldhash::HashMap;

use super::format::{self, Kind};
use super::parts::MessageTexts;
use super::replies::replies;
use super::speaker::{between_elements, brings_a_body, is_output, speech, summary_body};
use super::words::{any_in, is_in};
use crate::message::{Message, Part};
use crate::removal_marker::Gap;

/// The tool whose body the host adds as a message of the user, and the beginning of its result then.
const SKILL_TOOL: &str = "Skill";
const SKILL_LAUNCHED: &str = "Launching skill";

/// Stands for the output of a command that is not among the messages. It is one of the forms `not_ended`.
const FOLLOWS: &str = "its output follows";

/// A tool and its arguments. Without a name, it is a command in the agent's text.
pub(crate) type NamedCall<'a> = (&'a str, &'a str);

/// One text of the transcript.
#[derive(Debug)]
pub(crate) enum Text<'a> {
    /// The user's words, typed in a message or, as an answer, from a tool result.
    Person(Kind, Cow<'a, str>),
    /// Text of the host in the user's role, or of Plimsoll.
    Host(&'a str),
    Agent(&'a str),
    Call(NamedCall<'a>),
    /// A call with its result, and whether this is marked as an error.
    Result(NamedCall<'a>, &'a str, bool),
    /// The items of an earlier handover.
    Handover(Vec<(Kind, String)>),
    /// A summary by another program.
    Foreign(&'a str),
}

impl Text<'_> {
    /// Returns the words of the user in the text.
    pub(crate) fn typed(&self) -> Vec<&str> {
        match self {
            Text::Person(_, words) => vec![words.trim()],
            Text::Handover(items) => {
                let users = items.iter().filter(|(kind, _)| kind.is_user());
                users.map(|(_, text)| text.as_str()).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Reads the messages of a transcript.
pub(crate) fn texts<'a>(messages: &'a [MessageTexts<'a>]) -> Vec<Text<'a>> {
    let mut reader = EntryReader::default();
    for (message, texts) in messages {
        reader.read(message, texts);
    }
    if let Some((Message::Assistant { .. }, _)) = messages.last() {
        reader.finish();
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
    let authored = texts.filter_map(|text| {
        let (author, text) = match text {
            Text::Person(_, words) => (TextAuthor::User, words),
            Text::Host(text) => (TextAuthor::Host, text.into()),
            Text::Agent(text) => (TextAuthor::Agent, text.into()),
            Text::Call((name, text)) => (TextAuthor::Call, format!("→ {name} {text}").into()),
            Text::Result(_, text, failed) => (TextAuthor::Tool { failed }, text.into()),
            Text::Handover(_) | Text::Foreign(_) => return None,
        };
        Some((author, text.into_owned()))
    });
    authored.collect()
}

#[derive(Default)]
struct EntryReader<'a> {
    texts: Vec<Text<'a>>,
    /// The calls without a result, by their ids.
    open: HashMap<&'a str, NamedCall<'a>>,
    /// Whether the agent has called a tool. If not, it may act in its text.
    has_called: bool,
    /// The command in the agent's last text, or nothing.
    in_text: Option<&'a str>,
    /// The number of texts that are bodies, which a host adds: of skills and commands, and of results
    /// and files.
    bodies: usize,
    /// Whether the rest of the message is a body.
    is_in_body: bool,
}

impl<'a> EntryReader<'a> {
    fn read(&mut self, message: &'a Message, texts: &'a [Cow<'a, str>]) {
        self.is_in_body = false;
        match message {
            // System messages are never removed from a view.
            Message::System { .. } => {}
            // Hosts add texts of their own beside those of the user.
            Message::User { .. } => texts.iter().for_each(|text| self.user(text)),
            Message::Assistant { parts } => {
                self.bodies = 0;
                parts.iter().for_each(|part| self.part(part));
            }
            Message::ToolResult(result) => {
                let text = texts.first().map_or("", |text| text);
                let call = self.open.remove(result.call.0.as_str());
                self.result(call.unwrap_or_default(), text, result.is_error);
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

    /// Tells the command of the agent's last text, whose output stays in the view.
    fn finish(&mut self) {
        let command = self.in_text.filter(|command| !command.is_empty());
        if let Some(command) = command.filter(|_| !self.has_called) {
            self.texts.push(Text::Call(("", command)));
            self.texts.push(Text::Result(("", command), FOLLOWS, false));
        }
    }

    fn part(&mut self, part: &'a Part) {
        match part {
            Part::Text { text } => {
                self.texts.push(Text::Agent(text));
                let acts = any_in("acting_texts", text);
                self.in_text = acts.then(|| fenced_command(text).unwrap_or_default());
            }
            Part::ToolCall(call) => {
                self.has_called = true;
                let named = (call.name.as_str(), call.arguments.as_str());
                self.open.insert(&call.id.0, named);
                self.texts.push(Text::Call(named));
            }
            Part::Thinking(_) | Part::Image(_) | Part::File(_) | Part::Opaque(_) => {}
        }
    }

    /// Returns `true` if the next text is a body. All further texts of the message belong to it.
    fn is_body(&mut self) -> bool {
        self.is_in_body |= self.bodies > 0;
        self.bodies = self.bodies.saturating_sub(1);
        self.is_in_body
    }

    fn user(&mut self, text: &'a str) {
        if self.is_body() {
            self.texts.push(Text::Host(text));
            return;
        }
        self.bodies = usize::from(brings_a_body(text));
        // An agent without tools acts in its text, and reads the output in the user's role.
        let acts = |command: &&str| !command.is_empty() || !self.has_called;
        let command = self.in_text.filter(acts);
        let Some(command) = command.filter(|command| is_output(text, !command.is_empty())) else {
            let speech = speech(text);
            if let Text::Person(..) = speech {
                self.texts.extend(between_elements(text).map(Text::Host));
            }
            self.texts.push(speech);
            return;
        };
        let call = ("", command);
        self.texts
            .extend((!command.is_empty()).then_some(Text::Call(call)));
        self.result(call, text, false);
    }

    fn result(&mut self, call: NamedCall<'a>, text: &'a str, is_error: bool) {
        let (name, arguments) = call;
        self.bodies += usize::from(name == SKILL_TOOL && text.starts_with(SKILL_LAUNCHED));
        let replies = replies(name, arguments, text, is_error);
        if replies.is_empty() {
            self.texts.push(Text::Result(call, text, is_error));
        }
        let replies = replies.into_iter().map(Cow::Owned);
        let replies = replies.map(|words| Text::Person(Kind::Answer, words));
        self.texts.extend(replies);
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
