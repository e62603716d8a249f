//! The user's words in the results of tools: answers to a question, reasons for a refusal, edits of
//! a plan.
//!
//! Only results count that no program and no server can word: those of a closed list of tools, in
//! the exact form of their host (`words/hosts.txt`). Any other result is that of the tool.

use foldhash::HashSet;
use serde_json::Value;

use super::calls::TranscriptCall;
use super::sentences::{clip, one_line, without_escapes};
use super::words::{list, until};

/// The maximum length of the name of a refused call that is repeated, in bytes.
const REFUSED_MAX: usize = 120;
/// The maximum length of a question that is repeated with its answer, in bytes.
const QUESTION_MAX: usize = 300;
/// The maximum number of questions of one call whose answers are read.
const QUESTIONS_MAX: usize = 100;
/// The maximum length of the text between the beginning of a refusal and its reason, in bytes.
const REASON_DISTANCE: usize = 160;
/// The tool by which an agent proposes a plan, the beginning of its result, and the heading of the plan
/// that the user changed.
const PLAN_TOOL: &str = "ExitPlanMode";
const PLAN_APPROVED: &str = "User has approved your plan";
const PLAN_EDITED: &str = "## Approved Plan (edited by user):";
/// The answer that opencode writes for a question without one.
const UNANSWERED: &str = "Unanswered";

/// Returns the user's words in the result of a call.
pub(crate) fn replies(tool: &str, arguments: &str, text: &str, is_error: bool) -> Vec<String> {
    let text = text.trim();
    if is_error {
        let words = refusal(tool, &without_escapes(text)).map(|reason| {
            let call = TranscriptCall::new(tool, arguments).signature;
            format!("(refused: {}) {reason}", one_line(&call, REFUSED_MAX))
        });
        return words.into_iter().collect();
    }
    if tool == PLAN_TOOL && text.starts_with(PLAN_APPROVED) {
        return edited_plan(arguments, text).into_iter().collect();
    }
    let result = forms(tool).find_map(|(form, opening)| Some((form, text.strip_prefix(opening)?)));
    let Some((form, behind)) = result else {
        return Vec::new();
    };
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let questions = questions(&arguments);
    let answers = match form {
        "pairs" => quoted_answers(&questions, behind),
        "keys" => keyed_answers(&questions, text),
        _ => vec![until("ends_of_answers", behind).to_owned()],
    };
    if answers.len() != questions.len() {
        return Vec::new();
    }
    let answered = questions
        .iter()
        .zip(&answers)
        .filter_map(|(question, answer)| {
            let answer = answer.trim();
            let question = one_line(question.text, QUESTION_MAX);
            (!answer.is_empty()).then(|| format!("{question} → {answer}"))
        });
    answered.collect()
}

/// Returns the forms of a question tool's results, with their beginnings.
fn forms(tool: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    list("question_tools").filter_map(move |line| {
        let (of, form) = line.split_once('|')?;
        (of == tool).then(|| form.split_once('|')).flatten()
    })
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
    let reason = until("ends_of_reasons", reason).trim();
    (!reason.is_empty()).then_some(reason)
}

/// Returns the user's changes to a plan: the lines that the agent had not proposed.
fn edited_plan(arguments: &str, text: &str) -> Option<String> {
    let (_, plan) = text.split_once(PLAN_EDITED)?;
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let proposed = arguments.get("plan")?.as_str()?.lines();
    let proposed: HashSet<&str> = proposed.map(str::trim).collect();
    let changed = plan.trim().lines();
    let changed = changed.filter(|line| !proposed.contains(line.trim()));
    let changed: Vec<&str> = changed.collect();
    (!changed.is_empty()).then(|| format!("(changed the plan) {}", changed.join("\n")))
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
    let list = list.into_iter().flatten().take(QUESTIONS_MAX);
    list.chain([arguments]).filter_map(read).collect()
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

/// Reads answers in JSON, by the id of the question or by its number.
fn keyed_answers(questions: &[Question<'_>], text: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let answers = questions.iter().enumerate().map(|(n, question)| {
        let key = question.id.map_or_else(|| n.to_string(), str::to_owned);
        let answer = value.get("answers").and_then(|answers| answers.get(&key));
        let answer = answer.unwrap_or(&Value::Null);
        match answer.get("answers").unwrap_or(answer) {
            Value::Array(texts) => {
                let texts: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
                texts.join("; ")
            }
            answer => answer.as_str().unwrap_or_default().to_owned(),
        }
    });
    answers.collect()
}

/// Reads `"question"="answer"` pairs of the questions that were asked, in their order.
fn quoted_answers(questions: &[Question<'_>], mut text: &str) -> Vec<String> {
    let begin = |question: &Question<'_>| format!("\"{}\"=\"", question.text);
    let begins: Vec<String> = questions.iter().map(begin).collect();
    // A question with such signs would pass for a pair.
    if questions
        .iter()
        .any(|question| question.text.contains("\"=\""))
    {
        return Vec::new();
    }
    let answers = begins.iter().enumerate().map(|(n, begin)| {
        let Some((_, behind)) = text.split_once(begin.as_str()) else {
            return String::new();
        };
        text = behind;
        // An answer may contain quotes. It ends before the next pair, or before the host's text.
        let next = begins
            .iter()
            .skip(n + 1)
            .filter_map(|next| behind.find(next));
        let behind = behind.get(..next.min().unwrap_or(behind.len()));
        quoted_answer(until("ends_of_pairs", behind.unwrap_or_default()))
    });
    answers.collect()
}

/// Reads an answer with its notes.
fn quoted_answer(text: &str) -> String {
    let text = text.trim_end_matches([',', ' ']);
    let (answer, notes) = text.split_once("\" user notes:").unwrap_or((text, ""));
    let answer = answer
        .split("\" selected preview:")
        .next()
        .unwrap_or_default();
    let answer = answer.strip_suffix('"').unwrap_or(answer).trim();
    match notes.trim() {
        "" if answer == UNANSWERED => String::new(),
        // A free answer is repeated as a note.
        notes if notes.is_empty() || notes == answer => answer.to_owned(),
        notes => format!("{answer} ({notes})"),
    }
}
