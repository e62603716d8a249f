//! Checks whether an answer is a summary: it must have some of our headings.
//!
//! Lines that name a path or an id that never occurred are marked. Important messages are quoted
//! separately.

use std::collections::BTreeSet;

use plimsoll_context::{Part, each_name};

/// The headings of a summary, in order.
pub(crate) const HEADINGS: [&str; 9] = [
    "Goal",
    "Constraints",
    "Done",
    "Under way",
    "Decisions",
    "Files",
    "Errors",
    "Open work",
    "Next step",
];
/// Minimum number of headings. Small models leave out headings without content.
const LEAST_HEADINGS: usize = 4;
/// An answer that contains this many characters of the prompt's beginning is an echo.
const ECHO: usize = 80;

/// Extracts the summary from an answer: everything from its first heading on.
///
/// # Errors
/// The reason why the answer is not a summary.
pub(crate) fn summary(parts: &[Part], prompt: &str) -> Result<String, String> {
    if parts.iter().any(|part| matches!(part, Part::ToolCall(_))) {
        return Err("it called a tool in place of an answer".to_owned());
    }
    let text = Part::texts(parts);
    if text.trim().is_empty() {
        return Err("it was empty".to_owned());
    }
    if is_echo(&text, prompt) {
        return Err("it repeated its input".to_owned());
    }
    let found: BTreeSet<&str> = text.lines().filter_map(heading).collect();
    if found.len() < LEAST_HEADINGS {
        return Err(format!(
            "it had {} of the {} headings that a summary has",
            found.len(),
            HEADINGS.len()
        ));
    }
    let lines = text.lines().skip_while(|line| heading(line).is_none());
    let lines: Vec<&str> = lines.collect();
    // "- none" below each heading
    let said = lines.iter();
    let said = said.filter(|line| heading(line).is_none() || line.contains(':'));
    let words = said.flat_map(|line| line.split_whitespace()).count();
    if words <= 2 * found.len() {
        return Err("it is nearly empty".to_owned());
    }
    Ok(lines.join("\n").trim_end().to_owned())
}

/// The mark of a line that names something that never occurred.
const UNKNOWN: &str = " (never occurred)";

/// Marks the lines that contain a path, an id or another name that does not occur in `known`.
pub(crate) fn marked(text: &str, known: &str) -> String {
    let lines = text.lines().map(|line| {
        let mut is_known = true;
        each_name(line, &mut |name| {
            // "GitHub" may stand there as "github".
            let is_word = name.bytes().all(|b| b.is_ascii_alphabetic());
            is_known = is_word || known.contains(name);
            is_known
        });
        let mark = if is_known { "" } else { UNKNOWN };
        format!("{line}{mark}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the heading that a line is or begins with. Models write `## Goal`, `**Goal**`, `Goal:` and
/// `1. Goal`.
fn heading(line: &str) -> Option<&'static str> {
    let bare = line
        .trim()
        .trim_start_matches(|c: char| "#*0123456789. ".contains(c));
    HEADINGS.into_iter().find(|heading| {
        let (head, rest) = (bare.get(..heading.len()), bare.get(heading.len()..));
        let rest = rest
            .unwrap_or_default()
            .trim_start_matches('*')
            .trim_start();
        // A line that merely begins with the word is not a heading.
        let is_whole = rest.is_empty() || rest.starts_with(':');
        is_whole && head.is_some_and(|head| head.eq_ignore_ascii_case(heading))
    })
}

/// Checks whether an answer repeats its prompt or the tags around its material.
fn is_echo(text: &str, prompt: &str) -> bool {
    let start: String = prompt.chars().take(ECHO).collect();
    start.chars().count() == ECHO && text.contains(&start) || text.contains("<transcript>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_context::{CallId, ToolCall};

    const PROMPT: &str = include_str!("../../prompts/summarize.md");

    fn read(text: &str) -> Result<String, String> {
        summary(&[Part::text(text)], PROMPT)
    }

    #[test]
    fn headings_are_read_however_they_are_written() {
        let text = "Here you are:\n**Goal**: port the parser to Rust\n### Constraints\n- never touch vendor/\n\
             3. Decisions\n- keep the old API\n\n## Files\n- src/parser.rs read\n## Errors\nnone\n## Next step:\nrun the tests";
        let summary = text.strip_prefix("Here you are:\n").unwrap();
        assert_eq!(read(text).unwrap(), summary);
    }

    #[test]
    fn invented_paths_and_ids_are_marked() {
        let known = r#"read {"path":"src/parser.rs"} [next d4c16f87] fix and/or leave it"#;
        for (line, is_marked) in [
            ("- `src/parser.rs:12` was read", false),
            ("- src/ghost.rs was edited", true),
            ("- committed as d4c16f87, in the end.", false),
            ("- committed as 0a1b2c3d", true),
            ("- and/or e.g. the other one, 12 of 14 (v1.2)", false),
        ] {
            let marked = marked(line, known);
            assert_eq!(marked.ends_with(UNKNOWN), is_marked, "{marked}");
        }
    }

    #[test]
    fn what_is_no_summary_is_refused() {
        for (text, why) in [
            ("", "empty"),
            (" \n ", "empty"),
            (
                "I'm sorry, but I can't help with that.",
                "0 of the 9 headings",
            ),
            (
                "Le fichier a été lu et tout va bien, rien à signaler de plus.",
                "0 of the 9",
            ),
            (
                &PROMPT.chars().take(600).collect::<String>(),
                "it repeated its input",
            ),
            (PROMPT, "it repeated its input"),
            (
                "## Goal\n- none\n## Constraints\n## Decisions:\n## Files\n- none",
                "nearly empty",
            ),
            (
                "Goals of the project are many, and errors too",
                "0 of the 9",
            ),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
        let call = Part::ToolCall(ToolCall {
            id: CallId("c".into()),
            name: "read".into(),
            arguments: "{}".into(),
            opaque: None,
        });
        assert!(summary(&[call], PROMPT).unwrap_err().contains("tool"));
    }
}
