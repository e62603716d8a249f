//! Determines the author of a message in the user's role. Hosts put reminders, bodies of skills,
//! messages of other agents, command outputs and their own summaries there; only typed text is the
//! user's. The forms are data, in `words/`; a host that is not listed there is not known.

use std::borrow::Cow;

use super::words::{behind, list};

/// A message in the user's role, after analysis.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MessageSource<'a> {
    /// Text that the user typed.
    Person(Cow<'a, str>),
    /// The output of a command in the model's text, and whether the command failed.
    Output(&'a str, bool),
    /// A summary by the host.
    Summary(&'a str),
    /// Other text of the host.
    Host,
}

/// The number of headings of summaries that makes a text a summary.
const HEADINGS_MIN: usize = 3;
/// Texts that hosts append to the user's words.
const HOST_ENDINGS: [&str; 3] = [
    "\n\nIf you need specific details from before exiting plan mode",
    "\n\nARGUMENTS:",
    "\n###STOP###",
];
/// Texts that hosts append to summaries.
const SUMMARY_ENDINGS: [&str; 2] = [
    "\nIf you need specific details from before compaction",
    "\nPlease continue the conversation from where we left off",
];
/// The heading before a person's request, after the text that an editor added.
const REQUEST: &str = "## My request for Codex:";
/// The kind of an element that a host writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HostTag {
    Element,
    /// The text behind the element is the host's too.
    WithRest,
}

/// Analyses a message in the user's role.
pub(crate) fn speech(text: &str) -> MessageSource<'_> {
    let text = text.trim();
    if let Some(output) = output(text) {
        return output;
    }
    if is_summary(text) {
        return MessageSource::Summary(text);
    }
    if is_host(text) {
        return MessageSource::Host;
    }
    let typed = text.split_once(REQUEST).map_or(text, |(_, typed)| typed);
    let typed = task_of_template(typed).unwrap_or(typed);
    let words = if typed.contains('<') {
        Cow::Owned(without_host_elements(typed))
    } else {
        Cow::Borrowed(typed)
    };
    let words = match words {
        Cow::Borrowed(words) => Cow::Borrowed(without_ending(words.trim(), &HOST_ENDINGS)),
        Cow::Owned(words) => Cow::Owned(without_ending(words.trim(), &HOST_ENDINGS).to_owned()),
    };
    if words.is_empty() || is_host(&words) {
        MessageSource::Host
    } else {
        MessageSource::Person(words)
    }
}

/// Returns the words that a person typed in a text in the user's role. Returns `None` if a host
/// wrote all of it.
#[must_use]
pub fn typed_words(text: &str) -> Option<Cow<'_, str>> {
    match speech(text) {
        MessageSource::Person(words) => Some(words),
        MessageSource::Output(..) | MessageSource::Summary(_) | MessageSource::Host => None,
    }
}

/// Returns the task in a message that a program wrote around it.
fn task_of_template(text: &str) -> Option<&str> {
    list("task_templates").find_map(|line| {
        let parts: Vec<&str> = line.split('|').collect();
        let [opening, before, behind, rest] = parts.as_slice() else {
            return None;
        };
        let (_, task) = text.strip_prefix(opening)?.split_once(before)?;
        let (task, end) = task.rsplit_once(behind)?;
        end.trim_start().starts_with(rest).then_some(task)
    })
}

/// Returns a summary of a host without the host's own texts around it.
pub(crate) fn summary_body(text: &str) -> &str {
    let text = without_ending(text, &SUMMARY_ENDINGS);
    let is_opened = behind("summary_openings", text).is_some();
    match text.split_once('\n').filter(|_| is_opened) {
        Some((_, body)) => body,
        None => text,
    }
}

/// Removes the texts that hosts append.
fn without_ending<'a>(text: &'a str, endings: &[&str]) -> &'a str {
    let cut = endings.iter().filter_map(|ending| text.find(ending)).min();
    cut.and_then(|at| text.get(..at)).unwrap_or(text).trim_end()
}

/// Returns `true` if a message is a user's command whose body follows in the next message. A command
/// of the host itself begins with another element.
pub(crate) fn brings_a_body(text: &str) -> bool {
    text.trim_start().starts_with("<command-message>")
}

fn is_host(text: &str) -> bool {
    behind("host_openings", text).is_some()
}

fn is_summary(text: &str) -> bool {
    if behind("summary_openings", text).is_some() {
        return true;
    }
    let begins =
        text.starts_with('#') || text.starts_with("<summary>") || text.starts_with("<analysis>");
    let headings = list("summary_headings").filter(|heading| text.contains(heading));
    begins && headings.count() >= HEADINGS_MIN
}

/// Reads the output of a command that a host without tool calls sends in the user's role.
fn output(text: &str) -> Option<MessageSource<'_>> {
    if let Some(rest) = text.strip_prefix("<returncode>") {
        let (code, output) = rest.split_once("</returncode>")?;
        return Some(MessageSource::Output(output.trim(), code.trim() != "0"));
    }
    if let Some(output) = behind("output_openings", text) {
        return Some(MessageSource::Output(output.trim(), false));
    }
    // If an agent drives a shell, the shell's prompt follows each output.
    let last = text.lines().next_back().unwrap_or_default();
    let is_shell = last.trim() == "bash-$" || text.contains("\n(Current directory: ");
    let is_record = text.starts_with("{\"role\"") && text.contains("\"bashExecution\"");
    (is_shell || is_record).then_some(MessageSource::Output(text, false))
}

/// Removes the host's elements, and the tags around typed text.
fn without_host_elements(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some((before, element)) = rest.split_once('<') {
        words.push_str(before);
        let name_end = element
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':')))
            .unwrap_or(element.len());
        let name = element.get(..name_end).unwrap_or_default();
        let inner = element
            .find('>')
            .and_then(|end| element.get(end + 1..))
            .unwrap_or_default();
        let close = format!("</{name}>");
        let closed = inner.split_once(close.as_str());
        // A reminder without an end tag extends to the end of the message; `<file>` in prose is a
        // word.
        let is_open = closed.is_none() && name.contains(['-', '_']);
        let typed = list("typed_tags").find_map(|tag| {
            let (tag, around) = tag.split_once('|')?;
            (tag == name).then(|| around.split_once('|'))?
        });
        match (typed, host_tag(name)) {
            (Some((before, after)), _) => {
                let (typed, behind) = closed.unwrap_or((inner, ""));
                words.push_str(before);
                words.push_str(typed.trim());
                words.push_str(after);
                rest = behind.trim_start_matches([' ', '\n']);
            }
            (None, Some(HostTag::WithRest)) => return words,
            (None, Some(HostTag::Element)) if closed.is_some() || is_open => {
                rest = closed.map_or("", |(_, behind)| behind.trim_start_matches([' ', '\n']));
            }
            _ => {
                words.push('<');
                rest = element;
            }
        }
    }
    words.push_str(rest);
    words
}

fn host_tag(name: &str) -> Option<HostTag> {
    list("host_tags").find_map(|tag| {
        let (is_tag, kind) = match (tag.strip_suffix('*'), tag.strip_suffix('+')) {
            (Some(start), _) => (name.starts_with(start), HostTag::Element),
            (None, Some(tag)) => (name == tag, HostTag::WithRest),
            (None, None) => (name == tag, HostTag::Element),
        };
        is_tag.then_some(kind)
    })
}
