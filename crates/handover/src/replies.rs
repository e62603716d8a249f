//! The user's words in the results of tools: answers to a question, reasons for a refusal, edits of
//! a plan.

use foldhash::HashSet;

use serde_json::Value;

use crate::calls::leaves;
use crate::sentences::{one_line, without_escapes};

/// The user's reply to a tool call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Answers, each with its question.
    Answers(Vec<String>),
    /// The call was refused or interrupted. The reason is empty if none was given.
    Refused(String),
    /// A plan was approved; contains the user's changes if the plan was edited.
    Plan(Option<String>),
}

/// The maximum length of a question that is repeated with its answer, in bytes.
const QUESTION_MAX: usize = 300;
/// The maximum length of a refusal, in bytes; a longer result of a command is its output.
const REFUSAL_MAX: usize = 4_000;

/// The beginnings of results of refused calls.
const REFUSED: &str = "Action rejected by the user|The user doesn't want to|User doesn't want to|\
    The user rejected|User rejected|The user denied|User denied|The user declined|\
    User declined|The user refused|[Request interrupted by user|Tool use rejected|\
    Permission denied by user|Request denied by user|Operation cancelled by user";
/// The endings of results of refused calls, as worded by other hosts.
const REFUSED_END: &str =
    "rejected by user|rejected by the user|denied by the user|aborted by user";
/// Texts before the reason.
const REASONS: &str = "Reason:|the user said:|The user said:|following feedback:|user feedback:|User feedback:|\
    with the reason:|reason:";
/// Texts that hosts add after the reason.
const BEHIND_REASON: [&str; 2] = ["\n\nNote: The user's next message", "\n\nNote:"];
/// Words in the names of tools that ask the user.
const ASKING: &str =
    "ask|question|user_input|userinput|human|clarif|elicit|prompt_user|confirm_with_user";
/// Words in the names of other tools that contain one of these.
const NOT_ASKING: &str = "task|mask|flask|basket|transfer|agent";

/// Reads the result of a call. Returns `None` if the user did not answer it.
pub(crate) fn reply(tool: &str, arguments: &Value, text: &str, is_error: bool) -> Option<Reply> {
    let plain = without_escapes(text);
    let text = plain.trim();
    if let Some(reason) = refusal(text) {
        return Some(Reply::Refused(reason));
    }
    let tool = tool.to_lowercase();
    if text.starts_with("User has approved your plan") || text.starts_with("User approved the plan")
    {
        return Some(Reply::Plan(edited_plan(arguments, text)));
    }
    let is_question = ASKING.split('|').any(|word| tool.contains(word))
        && !NOT_ASKING.split('|').any(|word| tool.contains(word));
    if is_error || text.is_empty() || !is_question {
        return None;
    }
    let answers = answers(arguments, text);
    (!answers.is_empty()).then_some(Reply::Answers(answers))
}

fn refusal(text: &str) -> Option<String> {
    if text.len() > REFUSAL_MAX {
        return None;
    }
    let first = text
        .lines()
        .next()
        .unwrap_or_default()
        .trim_end_matches('.');
    let is_refused = REFUSED.split('|').any(|opening| text.starts_with(opening))
        || text.lines().count() == 1
            && REFUSED_END.split('|').any(|ending| first.ends_with(ending));
    if !is_refused {
        return None;
    }
    if let Some((_, inner)) = text.split_once("<feedback>") {
        let (reason, _) = inner.split_once("</feedback>").unwrap_or((inner, ""));
        return Some(reason.trim().to_owned());
    }
    let found = REASONS.split('|').find_map(|mark| text.split_once(mark));
    let reason = found.map_or("", |(_, reason)| reason);
    let behind = BEHIND_REASON
        .iter()
        .find_map(|mark| reason.split_once(mark));
    let reason = behind.map_or(reason, |(reason, _)| reason);
    Some(reason.trim().to_owned())
}

/// Returns the user's changes to a plan: the lines that the agent had not proposed.
fn edited_plan(arguments: &Value, text: &str) -> Option<String> {
    let (_, plan) = text.split_once("Approved Plan")?;
    let (by, plan) = plan.split_once('\n')?;
    let proposed = arguments
        .get("plan")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let proposed: HashSet<&str> = proposed.lines().map(str::trim).collect();
    let changed: Vec<&str> = plan
        .trim()
        .lines()
        .filter(|line| !proposed.contains(line.trim()))
        .collect();
    (by.contains("edited") && !changed.is_empty()).then(|| changed.join("\n"))
}

/// Pairs each question with its answer.
fn answers(arguments: &Value, text: &str) -> Vec<String> {
    let quoted = quoted_pairs(text);
    if !quoted.is_empty() {
        return quoted;
    }
    let mut questions = Vec::new();
    strings_of(arguments, "question", &mut questions);
    if questions.is_empty() {
        for key in ["prompt", "message", "text", "query"] {
            questions.extend(
                arguments
                    .get(key)
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
        }
        questions.truncate(1);
    }
    let mut answers = Vec::new();
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => leaves(&value, 0, &mut answers),
        _ => answers.push(bare_answer(text).to_owned()),
    }
    if questions.len() == answers.len() {
        let pairs = questions.iter().zip(&answers);
        return pairs
            .map(|(question, answer)| pair(question, answer))
            .collect();
    }
    match questions.as_slice() {
        [] => answers,
        questions => vec![pair(&questions.join(" "), &answers.join("; "))],
    }
}

/// Returns an answer without the words that a host puts around it.
fn bare_answer(text: &str) -> &str {
    let tagged = text
        .split_once("<answer>")
        .and_then(|(_, inner)| inner.split_once("</answer>"));
    let text = tagged.map_or(text, |(answer, _)| answer);
    let openings = [
        "User answered:",
        "User response:",
        "User:",
        "The user answered:",
        "Answer:",
    ];
    let found = openings
        .iter()
        .find_map(|opening| text.strip_prefix(opening));
    found.unwrap_or(text).trim()
}

fn pair(question: &str, answer: &str) -> String {
    format!("{} → {}", one_line(question, QUESTION_MAX), answer.trim())
}

/// Reads `"question"="answer"` pairs.
fn quoted_pairs(text: &str) -> Vec<String> {
    let mut pairs = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("\"=\"") {
        let question = before
            .rsplit_once('"')
            .map_or(before, |(_, question)| question);
        // An answer may contain quotes. It ends before the next pair, or before the host's next
        // text.
        let end = [
            "\", \"",
            "\". You can now",
            "\" user notes:",
            "\" selected preview:",
        ]
        .iter()
        .filter_map(|end| behind.find(end))
        .min()
        .or_else(|| behind.rfind('"'))
        .unwrap_or(behind.len());
        let (answer, mut more) = behind.split_at_checked(end).unwrap_or((behind, ""));
        let mut answer = answer.to_owned();
        if let Some(notes) = more.strip_prefix("\" user notes:") {
            let end = notes
                .find(", \"")
                .or_else(|| notes.find(". You can now"))
                .unwrap_or(notes.len());
            answer.push_str(" (");
            answer.push_str(notes.get(..end).unwrap_or_default().trim());
            answer.push(')');
            more = notes.get(end..).unwrap_or_default();
        }
        pairs.push(pair(question, &answer));
        rest = more.strip_prefix("\", ").unwrap_or(more);
    }
    pairs
}

/// Collects the texts under `key` anywhere in `value`.
fn strings_of(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match value {
                    Value::String(text) if name == key => found.push(text.clone()),
                    Value::Object(_) | Value::Array(_) => strings_of(value, key, found),
                    _ => {}
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| strings_of(value, key, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_stands_with_its_answer() {
        let questions = json!({"questions": [{"question": "Which database?"}]});
        for (tool, arguments, text, answers) in [
            (
                "AskUserQuestion",
                questions.clone(),
                r#"User has answered your questions: "Which database?"="SQLite, never Postgres". You can now continue with the user's answers in mind."#,
                &["Which database? → SQLite, never Postgres"][..],
            ),
            (
                "AskUserQuestion",
                questions.clone(),
                r#"Your questions have been answered: "A?"="the "old" one", "B?"="two" user notes: only here. You can now continue."#,
                &[r#"A? → the "old" one"#, "B? → two (only here)"],
            ),
            (
                "request_user_input",
                questions.clone(),
                r#"{"answers": {"db": {"answers": ["SQLite"]}}}"#,
                &["Which database? → SQLite"],
            ),
            (
                "ask_followup_question",
                json!({"question": "Go on?"}),
                "<answer>\nonly with tests\n</answer>",
                &["Go on? → only with tests"],
            ),
        ] {
            let found = reply(tool, &arguments, text, false);
            let answers = answers.iter().map(|one| (*one).to_owned()).collect();
            assert_eq!(found, Some(Reply::Answers(answers)), "{text}");
        }
        assert_eq!(reply("Task", &json!({}), "done", false), None);
    }

    #[test]
    fn a_refusal_keeps_its_reason() {
        for (text, reason) in [
            (
                "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\nput it into berth.rs",
                "put it into berth.rs",
            ),
            (
                "The user doesn't want to proceed with this tool use. The tool use was rejected. STOP what you are doing and wait for the user to tell you how to proceed.",
                "",
            ),
            ("exec command rejected by user", ""),
            (
                "The user denied this operation and provided the following feedback:\n<feedback>\nnot now\n</feedback>",
                "not now",
            ),
            (
                "The user rejected permission to use this specific tool call with the following feedback: use pnpm",
                "use pnpm",
            ),
        ] {
            let found = reply("Edit", &json!({}), text, true);
            assert_eq!(found, Some(Reply::Refused(reason.to_owned())), "{text}");
        }
        let grep = "src/a.rs:1: // rejected by user\nsrc/b.rs:2: fn x";
        assert_eq!(reply("Grep", &json!({}), grep, false), None);
    }

    #[test]
    fn an_edited_plan_is_the_users() {
        let text = "User has approved your plan. You can now start coding.\n\n## Approved Plan (edited by user):\n# Plan\n1. only the parser";
        assert_eq!(
            reply(
                "ExitPlanMode",
                &json!({"plan": "# Plan\n1. everything"}),
                text,
                false
            ),
            Some(Reply::Plan(Some("1. only the parser".to_owned())))
        );
        assert_eq!(
            reply(
                "ExitPlanMode",
                &json!({}),
                "User has approved your plan. Go on.",
                false
            ),
            Some(Reply::Plan(None))
        );
    }
}
