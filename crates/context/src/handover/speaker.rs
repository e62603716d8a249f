//! Determines the author of a message in the user's role. Hosts put reminders, bodies of skills,
//! messages of other agents, command outputs and their own summaries there; only typed text is the
//! user's. The forms are data, in `words/`; a host that is not listed there is not known.

use std::borrow::Cow;

use super::words::{behind, list};

/// A text in the user's role, after analysis.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MessageSource<'a> {
    /// Text that the user typed.
    Person(Cow<'a, str>),
    /// A summary by the host, without the host's own texts around it.
    Summary(&'a str),
    /// Other text of the host.
    Host,
}

/// The texts that hosts append to the user's words and to summaries.
const HOST_ENDINGS: [&str; 3] = [
    "\n\nIf you need specific details from before exiting plan mode",
    "\nIf you need specific details from before compaction",
    "\nPlease continue the conversation from where we left off",
];
/// The heading before a person's request, after the text that an editor added.
const REQUEST: &str = "## My request for Codex:";
/// The sign of a host's element behind which everything is the host's.
const WITH_REST: char = '+';

/// Analyses a text in the user's role.
pub(crate) fn speech(text: &str) -> MessageSource<'_> {
    let text = text.trim();
    if behind("summary_openings", text).is_some() {
        return MessageSource::Summary(summary_body(text));
    }
    let typed = text.split_once(REQUEST).map_or(text, |(_, typed)| typed);
    let typed = task_of_template(typed).unwrap_or(typed);
    let words = if typed.contains('<') {
        Cow::Owned(without_host_elements(without_ending(typed)))
    } else {
        Cow::Borrowed(without_ending(typed).trim())
    };
    let is_host = |text: &str| behind("host_openings", text).is_some();
    if words.is_empty() || is_shell(text) || is_host(text) || is_host(&words) {
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
        MessageSource::Summary(_) | MessageSource::Host => None,
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
    let text = without_ending(text);
    let is_opened = behind("summary_openings", text).is_some();
    match text.split_once('\n').filter(|_| is_opened) {
        Some((_, body)) => body,
        None => text,
    }
}

/// Removes the texts that hosts append.
fn without_ending(text: &str) -> &str {
    let cut = HOST_ENDINGS.iter().filter_map(|ending| text.find(ending));
    let cut = cut.min().and_then(|at| text.get(..at));
    cut.unwrap_or(text).trim_end()
}

/// Returns `true` if a text is a user's command whose body follows in the next one. A command of the
/// host itself begins with another element.
pub(crate) fn brings_a_body(text: &str) -> bool {
    text.trim_start().starts_with("<command-message>")
}

/// Reads the output of a command that stands in the agent's text. Returns the output, and whether
/// the command failed.
pub(crate) fn output(text: &str) -> Option<(&str, bool)> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix("<returncode>") {
        let (code, output) = rest.split_once("</returncode>")?;
        return Some((output.trim(), code.trim() != "0"));
    }
    if let Some(output) = behind("output_openings", text) {
        return Some((output.trim(), false));
    }
    is_shell(text).then_some((text, false))
}

/// Returns `true` if a text ends with the prompt of the shell that SWE-agent drives.
fn is_shell(text: &str) -> bool {
    text.ends_with("\nbash-$") && text.contains("\n(Current directory: ")
}

/// Removes the host's elements at the beginning and the end, and the tags around typed text at the
/// beginning. Elements in the middle of a person's text are the person's.
fn without_host_elements(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text.trim_start();
    while let Some((name, inner, behind)) = element(rest) {
        match (typed_tag(name), host_tag(name)) {
            (Some((before, after)), _) => {
                words.push_str(before);
                words.push_str(inner.trim());
                words.push_str(after);
            }
            (None, Some(tag)) if tag.ends_with(WITH_REST) => return words,
            (None, _) => {}
        }
        rest = behind.trim_start();
    }
    words.push_str(before_host_elements(rest));
    words.trim().to_owned()
}

/// Returns a text without the elements of hosts with which it ends. They begin at the beginning of a
/// line.
fn before_host_elements(text: &str) -> &str {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find("\n<")) {
        let (before, mut rest) = text.split_at(from + at);
        rest = rest.trim_start();
        while let Some((name, _, behind)) = element(rest) {
            match host_tag(name) {
                Some(tag) if tag.ends_with(WITH_REST) => return before,
                Some(_) => rest = behind.trim_start(),
                None => break,
            }
        }
        if rest.is_empty() {
            return before;
        }
        // No later element of this row can be followed by the end.
        from = (text.len() - rest.len()).max(before.len() + 1);
    }
    text
}

/// Returns the name, the content and the text behind the known element with which a text begins. An
/// element without an end tag extends to the end.
fn element(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.strip_prefix('<')?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':');
    let name = text.get(..text.find(|c| !is_of_name(c))?)?;
    if host_tag(name).is_none() && typed_tag(name).is_none() {
        return None;
    }
    let (_, inner) = text.split_once('>')?;
    match inner.split_once(&format!("</{name}>")) {
        Some((inner, behind)) => Some((name, inner, behind)),
        None => name.contains(['-', '_']).then_some((name, inner, "")),
    }
}

/// Returns the texts around the content of an element that contains typed text.
fn typed_tag(name: &str) -> Option<(&'static str, &'static str)> {
    list("typed_tags").find_map(|tag| {
        let (tag, around) = tag.split_once('|')?;
        (tag == name).then(|| around.split_once('|'))?
    })
}

/// Returns the entry of the list of hosts' elements for a name.
fn host_tag(name: &str) -> Option<&'static str> {
    list("host_tags").find(|tag| match tag.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => tag.trim_end_matches(WITH_REST) == name,
    })
}
