//! Determines the author of a text in the user's role. Hosts put reminders, bodies of skills,
//! messages of other agents, command outputs and their own summaries there; only typed text is the
//! user's. The forms are data, in `words/hosts.txt`; a host that is not listed there is not known.

use std::borrow::Cow;

use super::entries::Text;
use super::words::{behind, list};

/// The maximum number of elements that are tried as the first of those at the end of a text.
const ENDS_MAX: usize = 100;

/// Analyses a text in the user's role: it is the user's, the host's, or a summary by the host.
pub(crate) fn speech(text: &str) -> Text<'_> {
    let text = text.trim();
    if behind("summary_openings", text).is_some() {
        return Text::Foreign(summary_body(text));
    }
    let typed = without_ending(task_of_template(text).unwrap_or(text)).trim();
    let words = if typed.contains('<') {
        Cow::Owned(without_host_elements(typed))
    } else {
        Cow::Borrowed(typed)
    };
    let is_host = [text, &words].iter().any(|text| {
        behind("host_openings", text).is_some() || behind("result_headings", text).is_some()
    });
    if words.is_empty() || is_shell(text) || is_host {
        return Text::Host(text);
    }
    let is_answer = false;
    Text::Person { words, is_answer }
}

/// Returns the words that a person typed in a text in the user's role. Returns `None` if a host
/// wrote all of it.
#[must_use]
pub fn typed_words(text: &str) -> Option<Cow<'_, str>> {
    match speech(text) {
        Text::Person { words, .. } => Some(words),
        _ => None,
    }
}

/// Returns the task in a message that a program wrote around it.
fn task_of_template(text: &str) -> Option<&str> {
    list("task_templates").find_map(|line| {
        let (opening, line) = line.split_once('|')?;
        let (before, line) = line.split_once('|')?;
        let (behind, rest) = line.split_once('|')?;
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
    let cut = list("endings").filter_map(|ending| text.find(ending)).min();
    let typed = cut.and_then(|at| text.get(..at));
    typed.unwrap_or(text).trim_end()
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

/// An element that a host writes, with which a text begins.
struct HostElement<'t> {
    /// The texts that replace the tags if a person typed the content.
    typed: Option<(&'static str, &'static str)>,
    content: &'t str,
    behind: &'t str,
}

/// Removes the host's elements at the beginning and the end, and the tags around typed text at the
/// beginning. Elements in the middle of a person's text are the person's.
fn without_host_elements(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text.trim_start();
    while let Some(element) = element(rest) {
        if let Some((before, after)) = element.typed {
            words.extend([before, element.content.trim(), after]);
        }
        rest = element.behind.trim_start();
    }
    // Elements at the end begin at the beginning of a line.
    let lines = rest.match_indices("\n<").map(|(at, _)| rest.split_at(at));
    let tagged = lines.filter(|(_, lines)| tag(lines.trim_start()).is_some());
    let end = tagged.take(ENDS_MAX).find(|(_, lines)| is_of_host(lines));
    let rest = end.map_or(rest, |(typed, _)| typed);
    if !words.ends_with(char::is_whitespace) && !words.is_empty() && !rest.is_empty() {
        words.push('\n');
    }
    words.push_str(rest);
    words.trim().to_owned()
}

/// Returns `true` if a text consists of elements of the host.
fn is_of_host(text: &str) -> bool {
    let mut rest = text.trim();
    while let Some(element) = element(rest).filter(|element| element.typed.is_none()) {
        rest = element.behind.trim_start();
    }
    rest.is_empty()
}

/// The tag of a known element.
struct Tag<'t> {
    name: &'t str,
    /// Whether the host wrote all that follows.
    is_endless: bool,
    /// The texts that replace the tags if a person typed the content.
    typed: Option<(&'static str, &'static str)>,
    behind: &'t str,
}

/// Returns the tag of a known element with which a text begins.
fn tag(text: &str) -> Option<Tag<'_>> {
    let text = text.strip_prefix('<')?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':');
    let name = text.get(..text.find(|c| !is_of_name(c))?)?;
    list("tags").find_map(|row| {
        let (form, around) = row.split_once('|').unwrap_or((row, ""));
        let is_known = match form.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => form.trim_end_matches('+') == name,
        };
        is_known.then_some(Tag {
            name,
            is_endless: form.ends_with('+'),
            typed: around.split_once('|'),
            behind: text.split_at(name.len()).1,
        })
    })
}

/// Returns the known element with which a text begins. It extends to its last end tag, because a file
/// in it may contain another one; without an end tag, or as a message of another agent, to the end. An
/// element with a name of one word stands on lines of its own: in `<file>a.rs</file> must stay` it is
/// the person's.
fn element(text: &str) -> Option<HostElement<'_>> {
    let tag = tag(text)?;
    let typed = tag.typed;
    let (_, inner) = tag.behind.split_once('>')?;
    let end = format!("</{}>", tag.name);
    let ended = match typed {
        Some(_) => inner.split_once(&end),
        None => inner.rsplit_once(&end),
    };
    let own = ended.filter(|_| !tag.is_endless);
    let (content, behind) = own.unwrap_or((inner, ""));
    let is_open =
        own.is_none() || content.starts_with(['\n', '\r', '<']) || !content.contains(&end);
    let is_alone = is_open && (behind.is_empty() || behind.starts_with(['\n', '\r', '<']));
    let is_plain = !tag.name.contains(['-', '_']);
    let is_hosts = !is_plain || ended.is_some() && (is_alone || typed.is_some());
    let element = HostElement {
        typed,
        content,
        behind,
    };
    is_hosts.then_some(element)
}
