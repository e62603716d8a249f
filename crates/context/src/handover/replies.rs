//! The user's words in the results of tools: answers to a question, reasons for a refusal, edits of
//! a plan.
//!
//! Only results count that no program and no server can word: those of a closed list of tools, in
//! the exact form of their host (`words/hosts.txt`). Any other result is that of the tool.

use foldhash::HashSet;
use serde_json::Value;

use super::calls::TranscriptCall;
use super::sentences::{clip, one_line, without_escapes};
use super::words::list;

/// The maximum length of the name of a refused call that is repeated, in bytes.
const REFUSED_MAX: usize = 120;
/// The tool by which an agent proposes a plan, and the beginning of its result.
const PLAN_TOOL: &str = "ExitPlanMode";
const PLAN_APPROVED: &str = "User has approved your plan";
/// The heading of the plan that the user changed.
const PLAN_EDITED: &str = "## Approved Plan (edited by user):";
/// The maximum number of questions of one call whose answers are read.
const QUESTIONS_MAX: usize = 100;
/// The maximum length of a question that is repeated with its answer, in bytes.
const QUESTION_MAX: usize = 300;
/// The maximum length of the text between the beginning of a refusal and its reason, in bytes.
const REASON_DISTANCE: usize = 160;
/// The text that Claude Code adds to the result of a refused call.
pub(crate) const NOTE: &str = "\n\nNote: The user's next message may";
/// The texts that hosts add after a reason.
const BEHIND_REASON: [&str; 2] = ["</feedback>", NOTE];
/// The text that a host adds after the answers.
const BEHIND_ANSWERS: &str = ". You can now continue";
/// The answer that opencode writes for a question without one.
const UNANSWERED: &str = "Unanswered";

fn forms(tool: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    list("question_tools").filter_map(move |line| {
        let (of, form) = line.split_once('|')?;
        (of == tool).then(|| form.split_once('|')).flatten()
    })
}

/// Returns the user's words in the result of a call.
pub(crate) fn replies(tool: &str, arguments: &str, text: &str, is_error: bool) -> Vec<String> {
    let text = text.trim();
    if is_error {
        let words = refusal(tool, &without_escapes(text)).map(|reason| {
            let call = TranscriptCall::new(tool, arguments).signature;
            let call = one_line(&call, REFUSED_MAX);
            format!("(refused: {call}) {reason}")
        });
        return words.into_iter().collect();
    }
    if tool == PLAN_TOOL && text.starts_with(PLAN_APPROVED) {
        return edited_plan(arguments, text).into_iter().collect();
    }
    let answers = forms(tool).find_map(|(form, opening)| {
        let behind = text.strip_prefix(opening)?;
        let arguments: Value = serde_json::from_str(arguments).ok()?;
        let questions = questions(&arguments);
        Some(match form {
            "pairs" => quoted_answers(&questions, behind),
            "keys" => keyed_answers(&questions, text),
            _ => {
                let ends = ["</answer>", "</user_message>"].map(|end| behind.find(end));
                let end = ends.into_iter().flatten().min();
                only(&questions, behind.get(..end.unwrap_or(behind.len()))?)
            }
        })
    });
    answers.unwrap_or_default()
}

/// Returns the reason of a refusal in the exact form of the tool's host.
fn refusal<'t>(tool: &str, text: &'t str) -> Option<&'t str> {
    let reason = list("refusals").find_map(|line| {
        let (tools, form) = line.split_once('|')?;
        let (opening, mark) = form.split_once('|')?;
        let behind = text.strip_prefix(opening)?;
        let at = clip(behind, REASON_DISTANCE + mark.len()).find(mark)?;
        let is_of_host = tools.split(',').any(|of| of == tool);
        is_of_host.then(|| behind.get(at + mark.len()..))?
    })?;
    let ends = BEHIND_REASON.iter().filter_map(|end| reason.find(end));
    let reason = reason.get(..ends.min().unwrap_or(reason.len()))?.trim();
    (!reason.is_empty()).then_some(reason)
}

/// Returns the user's changes to a plan: the lines that the agent had not proposed.
fn edited_plan(arguments: &str, text: &str) -> Option<String> {
    let (_, plan) = text.split_once(PLAN_EDITED)?;
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let proposed = arguments.get("plan")?.as_str()?.lines();
    let proposed: HashSet<&str> = proposed.map(str::trim).collect();
    let lines = plan.trim().lines();
    let changed: Vec<&str> = lines
        .filter(|line| !proposed.contains(line.trim()))
        .collect();
    (!changed.is_empty()).then(|| format!("(changed the plan) {}", changed.join("\n")))
}

/// A question in the arguments of a call.
struct Question<'a> {
    id: Option<&'a str>,
    text: &'a str,
    options: Vec<&'a str>,
}

impl Question<'_> {
    /// Returns the question with its answer, unless that is empty.
    fn with(&self, answer: &str) -> Option<String> {
        let question = one_line(self.text, QUESTION_MAX);
        let answer = answer.trim();
        (!answer.is_empty()).then(|| format!("{question} → {answer}"))
    }
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

/// Returns the questions of a call with their options, as one text, if the tool asks the user.
pub(crate) fn asked(tool: &str, arguments: &str) -> Option<String> {
    forms(tool).next()?;
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let asked = questions(&arguments).into_iter().map(|question| {
        match question.options.join(" / ").as_str() {
            "" => question.text.to_owned(),
            options => format!("{} ({options})", question.text),
        }
    });
    let asked: Vec<String> = asked.collect();
    (!asked.is_empty()).then(|| asked.join(" "))
}

/// Returns the answer to a single question.
fn only(questions: &[Question<'_>], answer: &str) -> Vec<String> {
    match questions {
        [question] => question.with(answer).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Reads answers in JSON, by the id of the question or by its number.
fn keyed_answers(questions: &[Question<'_>], text: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let answers = questions.iter().enumerate().filter_map(|(n, question)| {
        let key = question.id.map_or_else(|| n.to_string(), str::to_owned);
        let answer = value.get("answers")?.get(&key)?;
        let answer = answer.get("answers").unwrap_or(answer);
        match answer {
            Value::Array(texts) => {
                let texts: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
                question.with(&texts.join("; "))
            }
            answer => question.with(answer.as_str()?),
        }
    });
    answers.collect()
}

/// Reads `"question"="answer"` pairs of the questions that were asked, in their order.
fn quoted_answers(questions: &[Question<'_>], text: &str) -> Vec<String> {
    let begin = |question: &Question<'_>| format!("\"{}\"=\"", question.text);
    let begins: Vec<String> = questions.iter().take(QUESTIONS_MAX).map(begin).collect();
    // Such a question would pass for a pair.
    if questions
        .iter()
        .any(|question| question.text.contains("\"=\""))
    {
        return Vec::new();
    }
    let mut rest = text;
    let mut found = Vec::new();
    for (n, (question, begin)) in questions.iter().zip(&begins).enumerate() {
        let Some((_, behind)) = rest.split_once(begin.as_str()) else {
            continue;
        };
        rest = behind;
        // An answer may contain quotes. It ends before the next pair, or before the host's text.
        let next = begins.iter().skip(n + 1).map(String::as_str);
        let ends = next
            .chain([BEHIND_ANSWERS])
            .filter_map(|end| behind.find(end));
        let behind = behind
            .get(..ends.min().unwrap_or(behind.len()))
            .unwrap_or(behind);
        found.extend(quoted_answer(question, behind.trim_end_matches([',', ' '])));
    }
    found
}

/// Reads the answer to a question, with its notes.
fn quoted_answer(question: &Question<'_>, text: &str) -> Option<String> {
    let (answer, notes) = text.split_once("\" user notes:").unwrap_or((text, ""));
    let answer = answer.split("\" selected preview:").next()?;
    let answer = answer.strip_suffix('"').unwrap_or(answer).trim();
    match notes.trim() {
        "" if answer == UNANSWERED => None,
        "" => question.with(answer),
        // A free answer is repeated as a note.
        notes if notes == answer => question.with(answer),
        notes => question.with(&format!("{answer} ({notes})")),
    }
}
