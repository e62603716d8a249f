//! Determines the author of a text in the user's role. Hosts put reminders, bodies of skills,
//! messages of other agents, command outputs and their own summaries there; only typed text is the
//! user's. The forms are data, in `words/hosts.txt`; a host that is not listed there is not known.

use std::borrow::Cow;
use std::sync::LazyLock;

use foldhash::HashMap;

use super::entries::Text;
use super::format::Kind;
use super::words::{behind, behind_form, list, until};

/// The maximum number of signs that are tried as the beginning of an element.
const STARTS_MAX: usize = 1_000;

/// Analyses a text in the user's role: it is the user's, the host's, or a summary by the host.
pub(crate) fn speech(text: &str) -> Text<'_> {
    let text = text.trim();
    if behind("summary_openings", text).is_some() {
        return Text::Foreign(summary_body(text));
    }
    if begins_as_hosts(text) || is_shell(text) {
        return Text::Host(text);
    }
    let words = match task_of_template(text) {
        Some(task) => Cow::Borrowed(task),
        None => without_elements(text),
    };
    let words = match words {
        Cow::Borrowed(words) => Cow::Borrowed(without_ending(words)),
        Cow::Owned(words) => Cow::Owned(without_ending(&words).to_owned()),
    };
    if words.is_empty() || begins_as_hosts(&words) {
        return Text::Host(between_elements(text).unwrap_or(text));
    }
    Text::Person(Kind::Typed, words)
}

/// Returns `true` if a text begins as those that a host writes completely.
fn begins_as_hosts(text: &str) -> bool {
    let mut forms = list("host_openings").map(|row| row.split_once('|').unwrap_or((row, "")));
    forms.any(|(form, rest)| behind_form(form, text).is_some_and(|text| text.contains(rest)))
        || behind("body_openings", text).is_some()
        || behind("result_headings", text).is_some()
}

/// Returns the words that a person typed in a text in the user's role. Returns `None` if a host
/// wrote all of it.
#[must_use]
pub fn typed_words(text: &str) -> Option<Cow<'_, str>> {
    match speech(text) {
        Text::Person(_, words) => Some(words),
        _ => None,
    }
}

/// Returns the task in a message that a program wrote around it.
fn task_of_template(text: &str) -> Option<&str> {
    list("task_templates").find_map(|line| {
        let (opening, line) = line.split_once('|')?;
        let (before, line) = line.split_once('|')?;
        let (behind, rest) = line.split_once('|')?;
        let text = text.strip_prefix(opening)?;
        let (task, end) = text.rsplit_once(behind)?;
        // Files before the task may contain the text before it.
        let at = match before {
            "" => 0,
            before => task.rfind(before)? + before.len(),
        };
        let task = task.get(at..)?;
        end.trim_start().starts_with(rest).then_some(task)
    })
}

/// Returns a summary of a host without the host's own texts around it.
pub(crate) fn summary_body(text: &str) -> &str {
    let is_opened = behind("summary_openings", text).is_some();
    let body = text.split_once('\n').filter(|_| is_opened);
    body.map_or(text, |(_, body)| until("ends_of_summaries", body))
}

/// Removes the texts that hosts append.
fn without_ending(text: &str) -> &str {
    let typed = list("endings").filter_map(|row| {
        let (begin, form) = row.split_once('|')?;
        let (typed, end) = text.split_once(begin)?;
        behind_form(form, end).map(|_| typed)
    });
    let typed = typed.min_by_key(|typed| typed.len());
    typed.unwrap_or(text).trim()
}

/// Returns `true` if the texts behind this one are its body: that of a user's command, a result, or a
/// file. A command of the host itself begins with another element.
pub(crate) fn brings_a_body(text: &str) -> bool {
    let text = text.trim();
    let is_heading = behind("result_headings", text).is_some();
    let is_command = text.starts_with("<command-message>");
    is_command
        || behind("body_openings", text).is_some()
        || is_heading && text.ends_with("] Result:")
}

/// Returns `true` if a text is the output of an agent's text, or of the command there.
pub(crate) fn is_output(text: &str, has_command: bool) -> bool {
    let text = text.trim();
    let is_of_command = has_command && behind("outputs_of_commands", text).is_some();
    is_of_command || behind("output_openings", text).is_some() || is_shell(text)
}

/// Returns `true` if a text ends with the prompt of the shell that SWE-agent drives.
fn is_shell(text: &str) -> bool {
    text.ends_with("\nbash-$") && text.contains("\n(Current directory: ")
}

/// What is listed behind the names of known elements: nothing; `+` if the host wrote all that follows the
/// element; or, if a person typed the content, `=` and what stands for the start tag.
static TAGS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let tags = list("tags").map(|row| row.split_at(row.find(['+', '=']).unwrap_or(row.len())));
    tags.collect()
});
const ENDLESS: &str = "+";
const TYPED: char = '=';
/// The beginning of the lines around a block of code.
const FENCE: &str = "```";

/// Splits the name of an element from the text behind it.
fn name(text: &str) -> Option<(&str, &str)> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':');
    Some(text.split_at(text.find(|c| !is_of_name(c))?))
}

/// Returns the start tag of a known element with which a text begins, its name and the text behind it.
fn start_tag(text: &str) -> Option<(&'static str, &str, &str)> {
    let (name, behind) = name(text.strip_prefix('<')?)?;
    let tag = *TAGS.get(name)?;
    let (_, inner) = behind.split_once('>')?;
    Some((tag, name, inner))
}

/// Returns the element of a host with which a text begins: its tag, its name and the text behind the start
/// tag. `before` stands in front of it. In a sentence, an element is the person's, and so is one without an
/// end if the person speaks of it.
fn host_element<'t>(before: &str, text: &'t str) -> Option<(&'static str, &'t str, &'t str)> {
    let (tag, name, inner) = start_tag(text).filter(|(tag, ..)| !tag.starts_with(TYPED))?;
    let is_plain = !name.contains(['-', '_']);
    let before = before.trim_end_matches([' ', '\t']);
    let is_first = before.is_empty();
    let begins_line = is_first || before.ends_with('\n');
    let is_line = |text: &str| text.starts_with(['\n', '\r', '<']);
    let is_hosts = match inner.split_once(&format!("</{name}>")) {
        _ if is_plain && !begins_line => false,
        _ if is_line(inner) && is_first => true,
        Some((_, behind)) if is_plain => is_line(inner) || behind.is_empty() || is_line(behind),
        Some(_) => begins_line || is_line(inner),
        None if tag != ENDLESS => is_first && !is_plain && !inner.starts_with(' '),
        None => begins_line,
    };
    is_hosts.then_some((tag, name, inner))
}

/// Returns the first element of a host in a text: the text before it, its name, and the text behind its
/// start tag.
fn first_element(text: &str) -> Option<(&str, &str, &str)> {
    let mut starts = text.match_indices('<').take(STARTS_MAX);
    starts.find_map(|(at, _)| {
        let (before, element) = text.split_at(at);
        let (tag, name, inner) = host_element(before, element)?;
        // A person quotes it in a block of code.
        let fences = before
            .lines()
            .filter(|line| line.trim_start().starts_with(FENCE));
        if fences.count() % 2 == 1 && inner.contains(FENCE) {
            return None;
        }
        Some((before, name, if tag == ENDLESS { "" } else { inner }))
    })
}

/// Returns the text behind the last end tag of a host's element.
fn behind_last_end(text: &str) -> Option<&str> {
    text.rmatch_indices("</").find_map(|(at, end)| {
        let (name, behind) = name(text.get(at + end.len()..)?)?;
        let is_hosts = !TAGS.get(name)?.starts_with(TYPED);
        behind.strip_prefix('>').filter(|_| is_hosts)
    })
}

/// Returns the text between the elements of a host. A person may have typed it, or it stands in a file between two
/// tags.
pub(crate) fn between_elements(text: &str) -> Option<&str> {
    let mut next = first_element(text)?;
    loop {
        let (_, name, inner) = next;
        let (_, rest) = inner.split_once(&format!("</{name}>"))?;
        next = first_element(rest.trim_start())?;
        if !next.0.is_empty() {
            return Some(next.0.trim_end());
        }
    }
}

/// Removes the elements of a host, from the first start tag to the last end tag: a file in one of them may
/// contain any tag. The tags around typed text are removed at the beginning.
fn without_elements(text: &str) -> Cow<'_, str> {
    if !text.contains('<') {
        return Cow::Borrowed(text);
    }
    let typed = first_element(text).map(|(before, _, inner)| {
        let behind = behind_last_end(inner).unwrap_or_default();
        format!("{}\n{}", before.trim_end(), behind.trim_start())
    });
    let typed = typed.unwrap_or_else(|| text.to_owned());
    let (mut words, mut rest) = (String::new(), typed.trim());
    while let Some((tag, name, inner)) = start_tag(rest) {
        let ended = inner.split_once(&format!("</{name}>"));
        let (Some(sign), Some((content, behind))) = (tag.strip_prefix(TYPED), ended) else {
            break;
        };
        // The arguments of a command begin with a blank.
        let is_joined = words.is_empty() || sign.starts_with(' ');
        if !content.trim().is_empty() {
            words.extend([if is_joined { "" } else { "\n" }, sign, content.trim()]);
        }
        rest = behind.trim_start();
    }
    let is_joined = words.is_empty() || rest.is_empty();
    words.extend([if is_joined { "" } else { "\n" }, rest]);
    Cow::Owned(words)
}
