//! The user's words in the results of tools: answers to a question, reasons for a refusal, edits of
//! a plan.
//!
//! Only results count that no program and no server can word: those of a closed list of tools, in
//! the exact form of their host (`words/hosts.txt`).

use foldhash::HashSet;

use serde_json::Value;

use super::calls::signature_of;
use super::sentences::{clip, one_line, without_escapes};
use super::words::{behind, list};

/// The user's reply to a tool call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The user's words.
    Words(String),
    /// A decision without words.
    Decision(String),
}

/// The maximum length of the name of a refused call that is repeated, in bytes.
const REFUSED_MAX: usize = 120;
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

/// Reads the result of a call. Returns nothing if the user did not answer it.
pub(crate) fn replies(tool: &str, arguments: &str, text: &str, is_error: bool) -> Vec<Reply> {
    if is_error {
        let text = without_escapes(text);
        let refused = refusal(tool, text.trim()).map(|refusal| {
            let call = one_line(&signature_of(tool, arguments), REFUSED_MAX);
            of_refusal(&call, refusal)
        });
        return refused.into_iter().collect();
    }
    let is_plan = tool == PLAN_TOOL && text.trim_start().starts_with(PLAN_APPROVED);
    if !is_plan && !is_question_tool(tool) {
        return Vec::new();
    }
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    if is_plan {
        return vec![match edited_plan(&arguments, text) {
            Some(changed) => Reply::Words(format!("(changed the plan) {changed}")),
            None => Reply::Decision("the user approved the plan".to_owned()),
        }];
    }
    let text = text.trim();
    let questions = questions(&arguments);
    let answers = forms(tool).find_map(|(form, opening)| {
        let behind = text.strip_prefix(opening)?;
        match form {
            "pairs" => Some(quoted_answers(&questions, behind)),
            "keys" => Some(keyed_answers(&questions, text)),
            "tag" => only(&questions, behind.split_once("</answer>")?.0),
            _ => only(&questions, behind),
        }
    });
    let answers = answers.unwrap_or_default().into_iter();
    answers.map(Reply::Words).collect()
}

/// A refusal with its reason. In a form that anyone can word, the reason is not the user's.
fn of_refusal(call: &str, (reason, is_of_host): (&str, bool)) -> Reply {
    match reason {
        "" => Reply::Decision(format!("the user refused: {call}")),
        reason if is_of_host => Reply::Words(format!("(refused: {call}) {reason}")),
        reason => Reply::Decision(format!("the user refused: {call}; {reason}")),
    }
}

/// Returns `true` if a result begins as hosts begin those of refused calls.
pub(crate) fn is_refusal(text: &str) -> bool {
    behind("refusal_openings", text).is_some()
}

/// Returns the reason of a refusal, and whether the result has the exact form of the tool's host.
/// Otherwise, the reason is the last line.
fn refusal<'t>(tool: &str, text: &'t str) -> Option<(&'t str, bool)> {
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
    let Some(reason) = reason else {
        let last = text.rsplit_once('\n').map_or("", |(_, last)| last);
        return Some((last, false));
    };
    let reason = reason.split("</feedback>").next().unwrap_or_default();
    let reason = reason.split(BEHIND_REASON).next().unwrap_or_default();
    Some((reason.trim(), true))
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

/// Reads answers in JSON, by the id of the question or by its number.
fn keyed_answers(questions: &[Question<'_>], text: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let answers = questions.iter().enumerate().filter_map(|(n, question)| {
        let key = question.id.map_or_else(|| n.to_string(), str::to_owned);
        let answer = value.get("answers")?.get(&key)?;
        let answer = answer.get("answers").unwrap_or(answer);
        let single = std::slice::from_ref(answer);
        let texts = answer.as_array().map_or(single, Vec::as_slice).iter();
        let texts: Vec<&str> = texts.filter_map(Value::as_str).collect();
        let answer = texts.join("; ");
        (!answer.trim().is_empty()).then(|| pair(question.text, &answer))
    });
    answers.collect()
}

/// Reads `"question"="answer"` pairs of the questions that were asked.
fn quoted_answers(questions: &[Question<'_>], text: &str) -> Vec<String> {
    let begin = |question: &Question<'_>| format!("\"{}\"=\"", question.text);
    let begins: Vec<String> = questions.iter().map(begin).collect();
    let answers = questions
        .iter()
        .zip(&begins)
        .filter_map(|(question, begin)| {
            let (_, behind) = text.split_once(begin.as_str())?;
            // An answer may contain quotes. It ends before the next pair, or before the host's text.
            let ends = begins.iter().map(String::as_str).chain([". You can now"]);
            let end = ends.filter_map(|end| behind.find(end)).min();
            let behind = behind.get(..end.unwrap_or(behind.len()))?;
            let behind = behind.trim_end_matches([',', ' ']);
            let (answer, notes) = behind.split_once("\" user notes:").unwrap_or((behind, ""));
            let answer = answer.split("\" selected preview:").next()?;
            let answer = answer.strip_suffix('"').unwrap_or(answer);
            let notes = match notes.trim() {
                // A free answer is repeated as a note.
                notes if notes.is_empty() || notes == answer.trim() => String::new(),
                notes => format!(" ({notes})"),
            };
            Some(pair(question.text, &format!("{answer}{notes}")))
        });
    answers.collect()
}
