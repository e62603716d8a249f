//! Determines the author of a text in the user's role. Hosts put reminders, bodies of skills,
//! messages of other agents, command outputs and their own summaries there; only typed text is the
//! user's. The forms are data, in `words/hosts.txt`; a host that is not listed there is not known.

use std::borrow::Cow;
use std::sync::LazyLock;

use foldhash::HashMap;

use super::entries::Text;
use super::words::{behind, behind_form, list, until};

/// The maximum number of elements that are tried as the first of those at the end of a text.
const ENDS_MAX: usize = 100;

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
        None if text.contains('<') => Cow::Owned(without_host_elements(text)),
        None => Cow::Borrowed(text),
    };
    let words = match words {
        Cow::Borrowed(words) => Cow::Borrowed(without_ending(words.trim()).trim()),
        Cow::Owned(words) => Cow::Owned(without_ending(words.trim()).trim().to_owned()),
    };
    if words.is_empty() || begins_as_hosts(&words) {
        return between_elements(text).map_or(Text::Host(text), Text::Unsure);
    }
    let is_answer = false;
    Text::Person { words, is_answer }
}

/// Returns `true` if a text begins as those that a host writes completely.
fn begins_as_hosts(text: &str) -> bool {
    let mut forms = list("host_openings").map(|row| row.split_once('|').unwrap_or((row, "")));
    let is_form = |(opening, after): (&str, &str)| {
        behind_form(opening, text).is_some_and(|text| text.contains(after))
    };
    forms.any(is_form)
        || behind("body_openings", text).is_some()
        || behind("result_headings", text).is_some()
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
    typed.min_by_key(|typed| typed.len()).unwrap_or(text)
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

/// Returns the text behind the last end tag of the host's elements.
fn behind_last_end(text: &str) -> Option<&str> {
    text.rmatch_indices("</").find_map(|(at, end)| {
        let (name, behind) = name(text.get(at + end.len()..)?)?;
        let is_hosts = !TAGS.get(name)?.starts_with(TYPED);
        behind.strip_prefix('>').filter(|_| is_hosts)
    })
}

/// Returns the text behind the first elements of a host that stands before the next one. A person may have
/// typed it, or it stands in a file between two tags.
fn between_elements(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some((_, name, inner)) = start_tag(rest) {
        rest = inner.split_once(&format!("</{name}>"))?.1.trim_start();
    }
    let mut starts = rest.match_indices('<').take(ENDS_MAX);
    let next = starts.find(|(at, _)| rest.get(*at..).and_then(start_tag).is_some());
    let text = rest.get(..next?.0)?.trim_end();
    (!text.is_empty()).then_some(text)
}

/// Checks for a name of one word, as a person may write it. Such an element stands on lines of its own:
/// in `<file>a.rs</file> must stay` it is the person's.
fn is_plain(name: &str) -> bool {
    !name.contains(['-', '_'])
}

/// Returns the text behind the elements of a host with which a text begins. They extend to the last end
/// tag of such elements, because a file in one of them may contain any tag; without an end tag, or as a
/// message of another agent, to the end.
fn behind_host_elements(text: &str) -> Option<&str> {
    let (tag, name, inner) = start_tag(text).filter(|(tag, ..)| !tag.starts_with(TYPED))?;
    let begins_line = |text: &str| text.starts_with(['\n', '\r', '<']);
    let ended = inner.split_once(&format!("</{name}>"));
    let is_hosts = match ended {
        _ if begins_line(inner) => true,
        Some((_, behind)) => !is_plain(name) || behind.is_empty() || begins_line(behind),
        // A person may write of an element.
        None => !is_plain(name) && !inner.starts_with(' '),
    };
    let behind = match ended {
        Some(_) if tag.is_empty() => behind_last_end(inner),
        _ => Some(""),
    };
    behind.filter(|_| is_hosts)
}

/// Removes the host's elements at the beginning and the end, and the tags around typed text at the
/// beginning. Elements in the middle of a person's text are the person's.
fn without_host_elements(text: &str) -> String {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    loop {
        if let Some(behind) = behind_host_elements(rest) {
            rest = behind.trim_start();
        } else if let Some((content, behind)) = typed_element(rest) {
            words.push(content);
            rest = behind.trim_start();
        } else {
            break;
        }
    }
    words.push(without_last_elements(rest).to_owned());
    words.retain(|words| !words.is_empty());
    // The arguments of a command begin with a blank.
    let joined = words.into_iter().reduce(|words, next| {
        let end = if next.starts_with(' ') { "" } else { "\n" };
        words + end + &next
    });
    joined.unwrap_or_default()
}

/// Returns the content of the element with typed text with which a text begins, and what follows.
fn typed_element(text: &str) -> Option<(String, &str)> {
    let (tag, name, inner) = start_tag(text)?;
    let sign = tag.strip_prefix(TYPED)?;
    let ended = inner.split_once(&format!("</{name}>"));
    let (content, behind) = ended.or((!is_plain(name)).then_some((inner, "")))?;
    let content = content.trim();
    let sign = if content.is_empty() { "" } else { sign };
    Some((format!("{sign}{content}"), behind))
}

/// Removes the host's elements with which a text ends, and the messages of other agents behind a text.
fn without_last_elements(text: &str) -> &str {
    let is_ended = behind_last_end(text).is_some_and(|behind| behind.trim().is_empty());
    let last = text.rfind('>').unwrap_or_default();
    let starts = text.match_indices('<').take_while(|(at, _)| *at < last);
    let starts = starts.map(|(at, _)| text.split_at(at));
    let starts = starts.filter(|(before, element)| {
        let begins_line = before.is_empty() || before.ends_with('\n');
        start_tag(element).is_some_and(|(tag, name, _)| {
            let may_end = is_ended || tag == ENDLESS;
            may_end && (begins_line || !is_plain(name))
        })
    });
    let mut starts = starts.take(ENDS_MAX);
    let typed = starts.find(|(_, element)| behind_host_elements(element).is_some());
    typed.map_or(text, |(typed, _)| typed)
}
