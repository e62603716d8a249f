//! Determines the author of a text in the user's role. Hosts put reminders, bodies of skills,
//! messages of other agents, command outputs and their own summaries there; only typed text is the
//! user's. The forms are data, in `words/hosts.txt`; a host that is not listed there is not known.

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

/// Analyses a text in the user's role.
pub(crate) fn speech(text: &str) -> MessageSource<'_> {
    let text = text.trim();
    let is = |list: &str, text: &str| behind(list, text).is_some();
    if is("summary_openings", text) {
        return MessageSource::Summary(summary_body(text));
    }
    let typed = without_ending(task_of_template(text).unwrap_or(text)).trim();
    let words = if typed.contains('<') {
        Cow::Owned(without_host_elements(typed))
    } else {
        Cow::Borrowed(typed)
    };
    let is_host = |text: &str| is("host_openings", text) || is("result_headings", text);
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
    let body = text.split_once('\n').filter(|_| is_opened);
    body.map_or(text, |(_, body)| body)
}

/// Removes the texts that hosts append.
fn without_ending(text: &str) -> &str {
    let cut = list("endings").filter_map(|ending| text.find(ending));
    let cut = cut.min().and_then(|at| text.get(..at));
    cut.unwrap_or(text).trim_end()
}

/// Returns `true` if the next text is the body of this one: of a user's command, or of a result. A
/// command of the host itself begins with another element.
pub(crate) fn brings_a_body(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("<command-message>") || behind("result_headings", text) == Some("")
}

/// Returns `true` if a text is the output of a command that stands in the agent's text.
pub(crate) fn is_output(text: &str) -> bool {
    let text = text.trim();
    behind("output_openings", text).is_some() || is_shell(text)
}

/// Returns `true` if a text ends with the prompt of the shell that SWE-agent drives.
fn is_shell(text: &str) -> bool {
    text.ends_with("\nbash-$") && text.contains("\n(Current directory: ")
}

/// An element that a host writes.
#[derive(Clone, Copy)]
enum Tag {
    Host,
    /// All text behind it is the host's, too.
    HostWithRest,
    /// What the user typed stands in it; the texts that replace the tags.
    Typed(&'static str, &'static str),
}

/// Returns the kind of a listed element.
fn tag(name: &str) -> Option<Tag> {
    list("tags").find_map(|row| {
        let (form, around) = row.split_once('|').unwrap_or((row, ""));
        let is_known = match form.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => form.trim_end_matches('+') == name,
        };
        let tag = match around.split_once('|') {
            Some((before, behind)) => Tag::Typed(before, behind),
            None if form.ends_with('+') => Tag::HostWithRest,
            None => Tag::Host,
        };
        is_known.then_some(tag)
    })
}

/// Removes the host's elements at the beginning and the end, and the tags around typed text at the
/// beginning. Elements in the middle of a person's text are the person's.
fn without_host_elements(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text.trim_start();
    while let Some((tag, inner, behind)) = element(rest) {
        match tag {
            Tag::Typed(before, after) => {
                words.push_str(before);
                words.push_str(inner.trim());
                words.push_str(after);
            }
            Tag::HostWithRest => return words,
            Tag::Host => {}
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
        while let Some((tag, _, behind)) = element(rest) {
            match tag {
                Tag::HostWithRest => return before,
                Tag::Host => rest = behind.trim_start(),
                Tag::Typed(..) => break,
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

/// Returns the kind, the content and the text behind the known element with which a text begins. An
/// element without an end tag extends to the end. One with a name of one word stands on lines of its
/// own: in `<file>a.rs</file> must stay` it is the person's.
fn element(text: &str) -> Option<(Tag, &str, &str)> {
    let text = text.strip_prefix('<')?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':');
    let name = text.get(..text.find(|c| !is_of_name(c))?)?;
    let tag = tag(name)?;
    let is_plain = !name.contains(['-', '_']);
    let (_, inner) = text.split_once('>')?;
    let Some((inner, behind)) = inner.split_once(&format!("</{name}>")) else {
        return (!is_plain).then_some((tag, inner, ""));
    };
    let is_alone = behind.is_empty() || behind.starts_with(['\n', '\r', '<']);
    let is_hosts = is_alone || !is_plain || matches!(tag, Tag::Typed(..));
    is_hosts.then_some((tag, inner, behind))
}
