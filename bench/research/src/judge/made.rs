//! Made-up exchanges that are planted in copies of real sessions: questions that a person answered,
//! calls that a person refused with a reason, plans that a person edited, failed edits, and program
//! messages in the user's role. Recorded sessions have few of these.
//!
//! The forms are those of published agents; the contents are our own.

mod contents;
mod forms;

use plimsoll_context::{CallId, Message, Part, ToolCall};

use contents::{ANSWERS, HOST_RULES, PLAN_EDITS, REASONS};

/// Number of exchanges of each kind in one session.
const ANSWERS_EACH: usize = 3;
const REASONS_EACH: usize = 2;
const HOST_EACH: usize = 5;
const EDITS_EACH: usize = 3;

/// A session with the made-up exchanges, and the planted contents.
pub(super) struct PlantedSession {
    pub(super) messages: Vec<Message>,
    /// Answers to questions of the agent.
    pub(super) answers: Vec<&'static str>,
    /// The questions that they answer.
    pub(super) questions: Vec<&'static str>,
    /// Reasons given when refusing a call.
    pub(super) reasons: Vec<&'static str>,
    /// The plan around the changed lines.
    pub(super) plan: &'static str,
    /// Lines that a person changed in a plan.
    pub(super) plan_edits: Vec<&'static str>,
    /// Files whose only edit failed or was refused.
    pub(super) unedited: Vec<String>,
}

/// Plants the made-up exchanges in a copy of `messages`, between `from` and `until` percent of
/// them. The contents and forms depend on `n`, the number of the session.
pub(super) fn plant(messages: &[Message], n: usize, from: usize, until: usize) -> PlantedSession {
    let mut planted = PlantedSession {
        messages: Vec::new(),
        answers: Vec::new(),
        questions: Vec::new(),
        reasons: Vec::new(),
        plan: forms::PLAN,
        plan_edits: Vec::new(),
        unedited: Vec::new(),
    };
    let mut groups: Vec<Vec<Message>> = Vec::new();
    let call = |groups: &Vec<Vec<Message>>| CallId(format!("call_made_{}", groups.len()));
    for i in 0..ANSWERS_EACH {
        if let Some((question, answer)) = pick(&ANSWERS, n * ANSWERS_EACH + i) {
            let form = n + 3 * i;
            groups.push(forms::answered(call(&groups), form, question, answer));
            planted.questions.extend([question, forms::SECOND_QUESTION]);
            planted.answers.push(answer);
        }
    }
    for i in 0..REASONS_EACH {
        if let Some(reason) = pick(&REASONS, n * REASONS_EACH + i) {
            let path = format!("src/harbour/refused_{n}_{i}.rs");
            groups.push(forms::refused(call(&groups), n + 2 * i, &path, reason));
            planted.reasons.push(reason);
            planted.unedited.push(path);
        }
    }
    if let Some(line) = pick(&PLAN_EDITS, n) {
        groups.push(forms::plan_edited(call(&groups), line));
        planted.plan_edits.push(line);
    }
    for i in 0..EDITS_EACH {
        let path = format!("src/harbour/failing_{n}_{i}.rs");
        groups.push(forms::failed_edit(call(&groups), n + 3 * i, &path));
        planted.unedited.push(path);
    }
    for i in 0..HOST_EACH {
        if let Some(rule) = pick(&HOST_RULES, n + 2 * i) {
            groups.push(forms::host(n + 4 * i, rule));
        }
    }
    let count = groups.len().max(1);
    let total = messages.len();
    let mut places: Vec<(usize, Vec<Message>)> = groups
        .into_iter()
        .enumerate()
        .map(|(i, group)| {
            // Spread evenly; the order of the kinds differs from session to session.
            let step = (i * 5 + n) % count;
            let percent = from + (until - from) * (2 * step + 1) / (2 * count);
            (total * percent / 100, group)
        })
        .collect();
    places.sort_by_key(|(at, _)| *at);
    let mut places = places.into_iter().peekable();
    for (at, message) in messages.iter().enumerate() {
        // Nothing is inserted between a call and its result, or before the task.
        if !matches!(message, Message::ToolResult(_)) && at > 1 {
            while let Some((_, group)) = places.next_if(|(place, _)| *place <= at) {
                planted.messages.extend(group);
            }
        }
        planted.messages.push(message.clone());
    }
    planted.messages.extend(places.flat_map(|(_, group)| group));
    planted
}

impl PlantedSession {
    /// Returns all planted words of a person.
    pub(super) fn words(&self) -> impl Iterator<Item = &'static str> {
        let all = [&self.answers, &self.reasons, &self.plan_edits];
        all.into_iter().flatten().copied()
    }
}

fn pick<T: Copy>(all: &[T], at: usize) -> Option<T> {
    all.get(at % all.len().max(1)).copied()
}

/// Creates a message of the assistant that makes one call.
fn calls(id: &CallId, name: &str, arguments: &serde_json::Value) -> Message {
    Message::Assistant {
        parts: vec![Part::ToolCall(ToolCall {
            id: id.clone(),
            name: name.to_owned(),
            arguments: arguments.to_string(),
            opaque: None,
        })],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_keeps_its_result() {
        let messages: Vec<Message> = (0..40)
            .flat_map(|n| {
                let id = CallId(n.to_string());
                [
                    calls(&id, "read", &serde_json::json!({ "path": "a.rs" })),
                    Message::result(id, "text"),
                ]
            })
            .collect();
        for n in 0..24 {
            let planted = plant(&messages, n, 0, 100);
            assert_eq!(planted.answers.len(), ANSWERS_EACH);
            for pair in planted.messages.windows(2) {
                if let Message::ToolResult(result) = &pair[1] {
                    let asked = pair[0].calls().any(|call| call.id == result.call);
                    assert!(asked, "{:?}", pair[1]);
                }
            }
            let text = |words: &str| {
                let said = |message: &Message| message.text().contains(words);
                planted.messages.iter().any(said)
            };
            assert!(planted.words().all(text));
        }
    }
}
