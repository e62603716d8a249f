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
        let refused = refusal(tool, &without_escapes(text)).map(|reason| {
            let call = TranscriptCall::new(tool, arguments).signature;
            format!("(refused: {}) {reason}", one_line(&call, REFUSED_MAX))
        });
        return refused.into_iter().collect();
    }
    let is_plan = tool == PLAN_TOOL && text.starts_with(PLAN_APPROVED);
    let mut forms = forms(tool).filter_map(|(form, begin)| Some((form, text.strip_prefix(begin)?)));
    let form = forms.next();
    if !is_plan && form.is_none() {
        return Vec::new();
    }
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let questions = questions(&arguments);
    let answers = match form {
        Some(("pairs", behind)) => quoted_answers(&questions, behind),
        Some(("keys", _)) => keyed_answers(&questions, text),
        Some((_, behind)) if questions.len() == 1 => vec![until("ends_of_answers", behind).into()],
        Some(_) => Vec::new(),
        None => return edited_plan(&arguments, text).into_iter().collect(),
    };
    let pairs = questions.iter().zip(&answers);
    let pairs = pairs.filter(|(_, answer)| !answer.trim().is_empty());
    let texts = pairs.map(|(question, answer)| {
        let question = one_line(question.text, QUESTION_MAX);
        format!("{question} → {}", answer.trim())
    });
    texts.collect()
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
fn edited_plan(arguments: &Value, text: &str) -> Option<String> {
    let (_, plan) = text.split_once(PLAN_EDITED)?;
    let proposed = arguments.get("plan")?.as_str()?.lines();
    let proposed: HashSet<&str> = proposed.map(str::trim).collect();
    let lines = plan.trim().lines();
    let changed = lines.filter(|line| !proposed.contains(line.trim()));
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
        let options = format!(" ({})", question.options.join(" / "));
        question.text.to_owned() + options.trim_end_matches(" ()")
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
        let answer = answer.map(|answer| answer.get("answers").unwrap_or(answer));
        let all = answer.and_then(Value::as_array).into_iter().flatten();
        let texts = all.chain(answer).filter_map(Value::as_str);
        texts.collect::<Vec<_>>().join("; ")
    });
    answers.collect()
}

/// Reads `"question"="answer"` pairs of the questions that were asked, in their order.
fn quoted_answers(questions: &[Question<'_>], mut text: &str) -> Vec<String> {
    // A question with such signs would pass for a pair.
    if questions.iter().any(|one| one.text.contains("\"=\"")) {
        return Vec::new();
    }
    let begins = questions.iter().map(|one| format!("\"{}\"=\"", one.text));
    let begins: Vec<String> = begins.collect();
    let answers = begins.iter().enumerate().map(|(n, begin)| {
        let Some((_, behind)) = text.split_once(begin.as_str()) else {
            return String::new();
        };
        text = behind;
        // An answer may contain quotes. It ends before the next pair, or before the host's text.
        let later = begins.get(n + 1..).unwrap_or_default();
        let next = later.iter().filter_map(|next| text.find(next)).min();
        let answer = text.get(..next.unwrap_or(text.len()));
        quoted_answer(until("ends_of_pairs", answer.unwrap_or_default()))
    });
    answers.collect()
}

/// Reads an answer with its notes.
fn quoted_answer(text: &str) -> String {
    let text = text.trim_end_matches([',', ' ']);
    // A preview of the option may stand between the answer and the notes.
    let (answer, notes) = text.rsplit_once(" user notes:").unwrap_or((text, ""));
    let answer = until("ends_of_quotes", answer);
    let answer = answer.strip_suffix('"').unwrap_or(answer).trim();
    match notes.trim() {
        "" if answer == UNANSWERED => String::new(),
        // A free answer is repeated as a note.
        notes if notes.is_empty() || notes == answer => answer.to_owned(),
        notes => format!("{answer} ({notes})"),
    }
}
