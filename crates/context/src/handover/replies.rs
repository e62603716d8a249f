//! The user's words in the results of tools: answers to a question, reasons for a refusal, edits of
//! a plan.
//!
//! Only results count that no program and no server can word: those of a closed list of tools, in
//! the exact form of their host (`words/hosts.txt`).

use foldhash::HashSet;

use serde_json::Value;

use super::sentences::{clip, one_line, without_escapes};
use super::words::{behind, list};

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

/// The tool by which an agent proposes a plan, and the beginnings of its result.
const PLAN_TOOL: &str = "ExitPlanMode";
const PLAN_APPROVED: &str = "User has approved your plan";
/// The maximum length of a question that is repeated with its answer, in bytes.
const QUESTION_MAX: usize = 300;
/// The maximum length of the text between the beginning of a refusal and its reason, in bytes.
const REASON_DISTANCE: usize = 160;
/// The text that a host adds after a reason.
const BEHIND_REASON: &str = "\n\nNote:";

/// Returns `true` if `tool` asks the user.
pub(crate) fn is_question_tool(tool: &str) -> bool {
    forms(tool).next().is_some()
}

fn forms(tool: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    list("question_tools").filter_map(move |line| {
        let (of, form) = line.split_once('|')?;
        (of == tool).then(|| form.split_once('|')).flatten()
    })
}

/// Reads the result of a call. Returns `None` if the user did not answer it.
pub(crate) fn reply(tool: &str, arguments: &str, text: &str, is_error: bool) -> Option<Reply> {
    if is_error {
        return refusal(tool, without_escapes(text).trim()).map(Reply::Refused);
    }
    let is_plan = tool == PLAN_TOOL && text.trim_start().starts_with(PLAN_APPROVED);
    if !is_plan && !is_question_tool(tool) {
        return None;
    }
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    if is_plan {
        return Some(Reply::Plan(edited_plan(&arguments, text)));
    }
    let text = text.trim();
    let questions = questions(&arguments);
    let answers = forms(tool)
        .find_map(|(form, opening)| {
            let behind = text.strip_prefix(opening)?;
            match form {
                "pairs" => Some(quoted_answers(&questions, behind)),
                "ids" | "indices" => Some(keyed_answers(&questions, text, form == "ids")),
                "tag" => only(&questions, behind.split_once("</answer>")?.0),
                _ => only(&questions, behind),
            }
        })
        .unwrap_or_default();
    (!answers.is_empty()).then_some(Reply::Answers(answers))
}

/// Returns `true` if a result begins as hosts begin those of refused calls.
pub(crate) fn is_refusal(text: &str) -> bool {
    behind("refusal_openings", text).is_some()
}

/// Returns the reason of a refusal; an empty one unless the result has the exact form of the tool's
/// host.
fn refusal(tool: &str, text: &str) -> Option<String> {
    if !is_refusal(text) {
        return None;
    }
    let reason = list("refusals").find_map(|line| {
        let (tools, form) = line.split_once('|')?;
        let (opening, mark) = form.split_once('|')?;
        let behind = text.strip_prefix(opening)?;
        let is_of_host = tools.split(',').any(|of| of == tool);
        // Some openings end with the mark's place.
        let at = clip(behind, REASON_DISTANCE + mark.len()).find(mark)?;
        is_of_host.then(|| behind.get(at + mark.len()..))?
    });
    let reason = reason.unwrap_or_default();
    let reason = reason.split("</feedback>").next().unwrap_or_default();
    let reason = reason.split(BEHIND_REASON).next().unwrap_or_default();
    Some(reason.trim().to_owned())
}

/// Returns the user's changes to a plan: the lines that the agent had not proposed.
fn edited_plan(arguments: &Value, text: &str) -> Option<String> {
    let (_, plan) = text.split_once("## Approved Plan (edited by user):")?;
    let proposed = arguments.get("plan").and_then(Value::as_str)?;
    let proposed: HashSet<&str> = proposed.lines().map(str::trim).collect();
    let changed: Vec<&str> = plan
        .trim()
        .lines()
        .filter(|line| !proposed.contains(line.trim()))
        .collect();
    (!changed.is_empty()).then(|| changed.join("\n"))
}

/// A question in the arguments of a call.
struct Question<'a> {
    id: Option<&'a str>,
    text: &'a str,
    options: Vec<&'a str>,
}

fn questions(arguments: &Value) -> Vec<Question<'_>> {
    let read = |question| {
        let text = |key| Value::get(question, key).and_then(Value::as_str);
        let options = question.get("options").and_then(Value::as_array);
        let label = |option| Value::get(option, "label").unwrap_or(option).as_str();
        Some(Question {
            id: text("id"),
            text: text("question")?,
            options: options.into_iter().flatten().filter_map(label).collect(),
        })
    };
    let list = arguments.get("questions").and_then(Value::as_array);
    let listed = list.into_iter().flatten().filter_map(read);
    listed.chain(read(arguments)).collect()
}

/// Returns the questions of a call with their options, as one text.
pub(crate) fn asked(arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let asked = questions(&arguments).into_iter().map(|question| {
        let options = question.options.join(" / ");
        match options.as_str() {
            "" => question.text.to_owned(),
            options => format!("{} ({options})", question.text),
        }
    });
    let asked: Vec<String> = asked.collect();
    (!asked.is_empty()).then(|| asked.join(" "))
}

fn pair(question: &str, answer: &str) -> String {
    format!("{} → {}", one_line(question, QUESTION_MAX), answer.trim())
}

fn only(questions: &[Question<'_>], answer: &str) -> Option<Vec<String>> {
    match questions {
        [question] if !answer.trim().is_empty() => Some(vec![pair(question.text, answer)]),
        _ => None,
    }
}

/// Reads answers in JSON, by the id or the number of the question.
fn keyed_answers(questions: &[Question<'_>], text: &str, by_id: bool) -> Vec<String> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let answers = questions.iter().enumerate().filter_map(|(n, question)| {
        let key = if by_id {
            question.id?.to_owned()
        } else {
            n.to_string()
        };
        let answer = value.get("answers")?.get(&key)?;
        let list = answer.get("answers").unwrap_or(answer);
        let answer = match list {
            Value::Array(list) => {
                let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                texts.join("; ")
            }
            _ => list.as_str()?.to_owned(),
        };
        (!answer.trim().is_empty()).then(|| pair(question.text, &answer))
    });
    answers.collect()
}

/// Reads `"question"="answer"` pairs of the questions that were asked.
fn quoted_answers(questions: &[Question<'_>], text: &str) -> Vec<String> {
    let begins: Vec<String> = questions
        .iter()
        .map(|question| format!("\"{}\"=\"", question.text))
        .collect();
    let mut answers = Vec::new();
    for (question, begin) in questions.iter().zip(&begins) {
        let Some((_, behind)) = text.split_once(begin.as_str()) else {
            continue;
        };
        // An answer may contain quotes. It ends before the next pair, or before the host's text.
        let next = begins
            .iter()
            .filter_map(|begin| behind.find(begin.as_str()));
        let behind = behind.get(..next.min().unwrap_or(behind.len()));
        let behind = behind.unwrap_or_default();
        let behind = behind.split(". You can now").next().unwrap_or_default();
        let behind = behind.trim_end_matches([',', ' ']);
        let (answer, notes) = match behind.split_once("\" user notes:") {
            // A free answer is repeated as a note.
            Some((answer, notes)) if notes.trim() == answer.trim() => (answer, String::new()),
            Some((answer, notes)) => (answer, format!(" ({})", notes.trim())),
            None => (behind.strip_suffix('"').unwrap_or(behind), String::new()),
        };
        let answer = answer
            .split("\" selected preview:")
            .next()
            .unwrap_or_default();
        answers.push(pair(question.text, &format!("{answer}{notes}")));
    }
    answers
}
