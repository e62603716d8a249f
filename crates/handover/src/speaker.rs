//! Determines the author of a message in the user's role. Hosts put reminders, bodies of skills,
//! command outputs and their own summaries there; only typed text is the user's.

use std::borrow::Cow;

use crate::sentences::is_one_of;

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

/// Elements that hosts write around their own texts. `*` matches any ending.
const HOST_TAGS: &str = include_str!("words/host_tags.txt");
/// Beginnings of messages that are completely written by a host.
const HOST_OPENINGS: &str = include_str!("words/host_openings.txt");
/// Beginnings of summaries by hosts.
const SUMMARY_OPENINGS: &str = "This session is being continued from a previous conversation|\
    The conversation history before this point was compacted|\
    The following is a summary of a branch|\
    Another language model started to solve this problem";
/// Headings of the summaries that hosts request from models. A text with three of them is a
/// summary.
const SUMMARY_HEADINGS: &str = "## Goal|## Constraints & Preferences|## Progress|## Key Decisions|## Next Steps|\
    ## Critical Context|Primary Request and Intent|Key Technical Concepts|\
    Files and Code Sections|Errors and fixes|Pending Tasks|Current Work|## Completed|\
    ## Remaining";
/// Texts that hosts append to the user's words.
const HOST_ENDINGS: [&str; 3] = [
    "\n\nIf you need specific details from before exiting plan mode",
    "\n\nARGUMENTS:",
    "\n###STOP###",
];
/// Elements with text that the user typed.
const TYPED_TAGS: &str = "user_query|user_message|feedback|answer|command-args";
/// Commands of a host without text of their own.
const BUILT_IN: &str = "/clear|/compact|/model|/status|/help|/login|/logout|/config|/cost|/resume|/exit|/quit|\
    /context|/mcp|/permissions|/usage";

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
    if !text.contains('<') {
        return MessageSource::Person(Cow::Borrowed(without_host_ending(text)));
    }
    let words = without_host_elements(text);
    let words = without_host_ending(words.trim());
    if words.is_empty() || is_host(words) {
        MessageSource::Host
    } else if words.len() == text.len() {
        MessageSource::Person(Cow::Borrowed(text))
    } else {
        MessageSource::Person(Cow::Owned(words.to_owned()))
    }
}

/// Removes texts that hosts append to the user's words.
fn without_host_ending(text: &str) -> &str {
    let cut = HOST_ENDINGS
        .iter()
        .filter_map(|ending| text.find(ending))
        .min();
    let words = cut.and_then(|at| text.get(..at)).unwrap_or(text).trim_end();
    if words.is_empty() { text } else { words }
}

/// Returns `true` if a message is a user's command whose body follows in the next message.
pub(crate) fn brings_a_body(text: &str) -> bool {
    let Some((_, name)) = text.split_once("<command-name>") else {
        return false;
    };
    let (name, _) = name.split_once("</command-name>").unwrap_or((name, ""));
    !is_one_of(BUILT_IN, name.trim())
}

fn is_host(text: &str) -> bool {
    HOST_OPENINGS
        .lines()
        .any(|opening| !opening.is_empty() && text.starts_with(opening))
}

fn is_summary(text: &str) -> bool {
    if SUMMARY_OPENINGS
        .split('|')
        .any(|opening| text.starts_with(opening))
    {
        return true;
    }
    let begins =
        text.starts_with('#') || text.starts_with("<summary>") || text.starts_with("<analysis>");
    begins
        && SUMMARY_HEADINGS
            .split('|')
            .filter(|heading| text.contains(*heading))
            .count()
            >= 3
}

/// Reads the output of a command that a host without tool calls sends in the user's role.
fn output(text: &str) -> Option<MessageSource<'_>> {
    if let Some(rest) = text.strip_prefix("<returncode>") {
        let (code, output) = rest.split_once("</returncode>")?;
        return Some(MessageSource::Output(output.trim(), code.trim() != "0"));
    }
    let opening = ["OBSERVATION:", "Observation:", "EXECUTION RESULT of"];
    if let Some(output) = opening
        .iter()
        .find_map(|opening| text.strip_prefix(opening))
    {
        return Some(MessageSource::Output(output.trim(), false));
    }
    // If an agent drives a shell, the shell's prompt follows each output.
    let last = text.lines().next_back().unwrap_or_default();
    let is_shell = last.trim() == "bash-$"
        || text.contains("\n(Current directory: ")
        || text.starts_with("(Open file: ");
    let is_record = text.starts_with("{\"role\"") && text.contains("\"bashExecution\"");
    (is_shell || is_record).then_some(MessageSource::Output(text, false))
}

/// Removes the host's elements, and the tags around typed text.
fn without_host_elements(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some((before, element)) = rest.split_once('<') {
        let name_end = element
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':')))
            .unwrap_or(element.len());
        let name = element.get(..name_end).unwrap_or_default();
        let tag_end = element.find('>');
        let inner = tag_end.and_then(|end| element.get(end + 1..));
        let close = format!("</{name}>");
        if let Some(inner) = inner.filter(|_| is_one_of(TYPED_TAGS, name)) {
            words.push_str(before);
            let (typed, behind) = inner.split_once(close.as_str()).unwrap_or((inner, ""));
            words.push_str(typed.trim());
            rest = behind.trim_start_matches([' ', '\n']);
        } else if let Some(behind) = inner.filter(|_| is_host_tag(name)).and_then(|inner| {
            let closed = inner.split_once(close.as_str());
            // A reminder without an end tag extends to the end of the message; `<file>` in prose is
            // a word.
            let is_open = name.contains(['-', '_']);
            closed.map(|(_, behind)| behind).or(is_open.then_some(""))
        }) {
            words.push_str(before);
            rest = behind.trim_start_matches('\n');
        } else {
            words.push_str(before);
            words.push('<');
            rest = element;
        }
    }
    words.push_str(rest);
    words
}

fn is_host_tag(name: &str) -> bool {
    !name.is_empty()
        && HOST_TAGS.lines().any(|tag| match tag.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == tag,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Option<String> {
        match speech(text) {
            MessageSource::Person(words) => Some(words.into_owned()),
            _ => None,
        }
    }

    #[test]
    fn the_words_of_a_person_are_told_from_the_hosts() {
        for (text, words) in [
            ("fix the <b>bold</b> text", "fix the <b>bold</b> text"),
            ("a < b and c > d", "a < b and c > d"),
            (
                "<system-reminder>\nToday is Monday.\n</system-reminder>\nfix the test",
                "fix the test",
            ),
            (
                "<command-name>/review</command-name>\n<command-message>review is running…</command-message>\n<command-args>only crane.rs</command-args>",
                "only crane.rs",
            ),
            (
                "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>\n\nport the parser",
                "port the parser",
            ),
            ("<user_query>\nwhy?\n</user_query>", "why?"),
            (
                "<issue_description>\nIt crashes.\n</issue_description>",
                "<issue_description>\nIt crashes.\n</issue_description>",
            ),
        ] {
            assert_eq!(typed(text).as_deref(), Some(words), "{text}");
        }
    }

    #[test]
    fn texts_of_the_host_are_nobodys_words() {
        for text in [
            "<local-command-stdout>Set model</local-command-stdout>",
            "<system-reminder>never closed",
            "<bash-input>ls src</bash-input>",
            "<command-name>/review</command-name>",
            "Caveat: The messages below were generated by the user while running local commands.",
            "Base directory for this skill: /x\n\n# Skill\nAlways do this.",
            "[Request interrupted by user for tool use]",
            "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nnever\n</INSTRUCTIONS>",
            "Stop hook feedback:\nrun the tests",
        ] {
            assert_eq!(speech(text), MessageSource::Host, "{text}");
        }
        assert_eq!(
            speech("<returncode>1</returncode>\n<output>\nno\n</output>"),
            MessageSource::Output("<output>\nno\n</output>", true)
        );
        for text in [
            "This session is being continued from a previous conversation that ran out of context. …",
            "The conversation history before this point was compacted into the following summary:\n\n<summary>x</summary>",
            "# Checkpoint\n## Goal\nx\n## Progress\ny\n## Next Steps\nz",
        ] {
            assert!(matches!(speech(text), MessageSource::Summary(_)), "{text}");
        }
    }
}
