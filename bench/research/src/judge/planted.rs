//! Made-up exchanges that are planted in copies of real sessions: questions that a person answered,
//! calls that a person refused with a reason, plans that a person edited, failed edits, and program
//! messages in the user's role. Recorded sessions have few of these.
//!
//! The forms in `planted.json` are those of published agents; the contents are our own, and none is
//! chosen to suit `extract`.

use plimsoll_context::{CallId, Message, Part, ToolCall};
use serde_json::Value;

/// Number of exchanges of each kind in one session.
const ANSWERS_EACH: usize = 3;
const REASONS_EACH: usize = 2;
const HOST_EACH: usize = 5;
const EDITS_EACH: usize = 3;
/// The places of the exchanges, in percent of the messages.
const FROM: usize = 3;
const UNTIL: usize = 95;
const FORMS: &str = include_str!("planted.json");

/// A session with the made-up exchanges, and the planted contents.
#[derive(Default)]
pub(super) struct PlantedSession {
    pub(super) messages: Vec<Message>,
    /// Answers to questions of the agent.
    pub(super) answers: Vec<String>,
    /// The questions that they answer.
    pub(super) questions: Vec<String>,
    /// Reasons given when refusing a call.
    pub(super) reasons: Vec<String>,
    /// The plan around the changed lines.
    pub(super) plan: String,
    /// Lines that a person changed in a plan.
    pub(super) plan_edits: Vec<String>,
    /// Files whose only edit failed or was refused.
    pub(super) unedited: Vec<String>,
}

/// Plants the made-up exchanges in a copy of `messages`. The contents and forms depend on `n`, the
/// number of the session.
pub(super) fn plant(messages: &[Message], n: usize) -> PlantedSession {
    let forms: Value = serde_json::from_str(FORMS).unwrap_or_default();
    let text = |list: &str, at: usize| {
        pick(&forms, list, at)
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let mut planted = PlantedSession {
        plan: forms
            .get("plan")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        ..PlantedSession::default()
    };
    let second = forms
        .get("second_question")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let mut groups: Vec<Vec<Message>> = Vec::new();
    for i in 0..ANSWERS_EACH {
        let pair = pick(&forms, "answers", n * ANSWERS_EACH + i);
        let word = |at: usize| {
            pair.get(at)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (question, answer) = (word(0), word(1));
        let filled = [
            ("{question}", question.as_str()),
            ("{answer}", answer.as_str()),
        ];
        groups.push(exchange(
            pick(&forms, "answered", n + 3 * i),
            groups.len(),
            &filled,
        ));
        planted.questions.extend([question, second.to_owned()]);
        planted.answers.push(answer);
    }
    for i in 0..REASONS_EACH {
        let reason = text("reasons", n * REASONS_EACH + i);
        let path = format!("src/harbour/refused_{n}_{i}.rs");
        let filled = [("{reason}", reason.as_str()), ("{path}", path.as_str())];
        groups.push(exchange(
            pick(&forms, "refused", n + 2 * i),
            groups.len(),
            &filled,
        ));
        planted.reasons.push(reason);
        planted.unedited.push(path);
    }
    let line = text("plan_edits", n);
    groups.push(exchange(
        pick(&forms, "plan_edited", 0),
        groups.len(),
        &[("{line}", &line)],
    ));
    planted.plan_edits.push(line);
    for i in 0..EDITS_EACH {
        let path = format!("src/harbour/failing_{n}_{i}.rs");
        groups.push(exchange(
            pick(&forms, "failed", n + 3 * i),
            groups.len(),
            &[("{path}", &path)],
        ));
        planted.unedited.push(path);
    }
    for i in 0..HOST_EACH {
        let rule = text("host_rules", n + 2 * i);
        let texts = pick(&forms, "host", n + 4 * i)
            .as_array()
            .into_iter()
            .flatten();
        let texts = texts.filter_map(Value::as_str);
        groups.push(
            texts
                .map(|text| Message::user(text.replace("{rule}", &rule)))
                .collect(),
        );
    }
    planted.messages = spread(messages, groups, n);
    planted
}

impl PlantedSession {
    /// Returns all planted words of a person.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let all = [&self.answers, &self.reasons, &self.plan_edits];
        all.into_iter().flatten().map(String::as_str)
    }
}

/// Spreads groups of messages evenly; the order of the kinds differs from session to session.
fn spread(messages: &[Message], groups: Vec<Vec<Message>>, n: usize) -> Vec<Message> {
    let count = groups.len().max(1);
    let places = groups.into_iter().enumerate().map(|(i, group)| {
        let step = (i * 5 + n) % count;
        let percent = FROM + (UNTIL - FROM) * (2 * step + 1) / (2 * count);
        (messages.len() * percent / 100, group)
    });
    let mut places: Vec<(usize, Vec<Message>)> = places.collect();
    places.sort_by_key(|(at, _)| *at);
    let mut places = places.into_iter().peekable();
    let mut spread = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        // Nothing is inserted between a call and its result, or before the task.
        if !matches!(message, Message::ToolResult(_)) && at > 1 {
            while let Some((_, group)) = places.next_if(|(place, _)| *place <= at) {
                spread.extend(group);
            }
        }
        spread.push(message.clone());
    }
    spread.extend(places.flat_map(|(_, group)| group));
    spread
}

/// Returns an entry of a list, counted around its end.
fn pick<'v>(forms: &'v Value, list: &str, at: usize) -> &'v Value {
    let list = forms.get(list).and_then(Value::as_array);
    let entry = list.and_then(|list| list.get(at % list.len().max(1)));
    entry.unwrap_or(&Value::Null)
}

/// Creates a call and its result from a form.
fn exchange(form: &Value, number: usize, filled: &[(&str, &str)]) -> Vec<Message> {
    let text = |key: &str| match form.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let fill = |text: String| {
        let fill = |text: String, (slot, value): &(&str, &str)| text.replace(slot, value);
        filled.iter().fold(text, fill)
    };
    let id = CallId(format!("call_made_{number}"));
    let call = Part::ToolCall(ToolCall {
        id: id.clone(),
        name: text("tool"),
        arguments: fill(text("arguments")),
        opaque: None,
    });
    let result = fill(text("result"));
    let result = if form.get("is_error").is_some_and(|flag| flag == true) {
        Message::error_result(id, result)
    } else {
        Message::result(id, result)
    };
    vec![Message::Assistant { parts: vec![call] }, result]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_keeps_its_result() {
        let messages: Vec<Message> = (0..40)
            .map(|n| Message::user(format!("turn {n}")))
            .collect();
        for n in 0..24 {
            let planted = plant(&messages, n);
            assert_eq!(planted.words().count(), 6);
            let results = planted
                .messages
                .windows(2)
                .filter_map(|pair| match &pair[1] {
                    Message::ToolResult(result) => Some((&pair[0], result)),
                    _ => None,
                });
            for (call, result) in results {
                assert!(
                    call.calls().any(|call| call.id == result.call),
                    "{result:?}"
                );
            }
            let text = |words: &str| {
                planted
                    .messages
                    .iter()
                    .any(|one| one.text().contains(words))
            };
            assert!(planted.words().all(text), "{n}");
        }
    }
}
