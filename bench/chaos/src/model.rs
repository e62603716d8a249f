//! The strict model server, with a record of each session: the requests, the tool results in them,
//! and the charged tokens. The checks compare this record with the session's log.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_mock::{Mock, MockError, Server, Turn};
use serde_json::{Value, json};

use crate::plan::Plan;

/// A running model server.
pub(crate) struct Model {
    server: Server,
    sheets: Arc<Sheets>,
}

/// The records of all sessions.
struct Sheets {
    plans: BTreeMap<String, Plan>,
    ledger: PathBuf,
    by_session: Mutex<BTreeMap<String, Sheet>>,
    /// The number of requests that name no planned session.
    strangers: Mutex<u64>,
}

/// The record of one session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sheet {
    /// The number of answered requests.
    pub(crate) requests: u64,
    /// The requested turns, from 0. A repeated request counts as the same turn.
    pub(crate) turns: BTreeMap<u64, AskedTurn>,
    /// The latest content of each tool result, by call id.
    pub(crate) results: BTreeMap<String, String>,
    /// The number of requests that are older than one before them: from a process that was paused
    /// meanwhile, or from a log that has lost entries.
    pub(crate) late: u64,
    /// The requests whose messages differ from those of earlier requests, each once: a request is
    /// repeated after a kill.
    pub(crate) rewritten: BTreeSet<Vec<u64>>,
    /// A digest of each message of the longest request.
    history: Vec<u64>,
}

/// A requested turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AskedTurn {
    /// Whether the request allowed tool calls.
    pub(crate) may_call: bool,
    /// The tokens of the request, by the server's own count.
    pub(crate) tokens: u64,
}

impl Model {
    /// Starts the server for sessions whose effects go to the file `ledger`.
    pub(crate) async fn start(plans: &[Plan], ledger: PathBuf) -> Result<Self, MockError> {
        let by_name = plans
            .iter()
            .map(|plan| (plan.session.clone(), plan.clone()));
        let sheets = Arc::new(Sheets {
            plans: by_name.collect(),
            ledger,
            by_session: Mutex::default(),
            strangers: Mutex::new(0),
        });
        let asked = Arc::clone(&sheets);
        let mock = Mock::chat("compatible")?
            .page("/v1/models", 404, json!({}))
            .then(move |request, _| asked.answer(request));
        let server = Server::start(mock).await?;
        Ok(Self { server, sheets })
    }

    /// Returns the address for `--base-url`.
    pub(crate) fn url(&self) -> String {
        format!("{}/v1", self.server.address())
    }

    /// Returns the record of each session.
    pub(crate) fn sheets(&self) -> BTreeMap<String, Sheet> {
        let mut sheets = lock(&self.sheets.by_session).clone();
        for request in self.server.requests() {
            let messages = messages_of(&request.body);
            let turn = turn_of(&messages);
            let sheet = session_of(&messages).and_then(|session| sheets.get_mut(&session));
            if let Some(turn) = sheet.and_then(|sheet| sheet.turns.get_mut(&turn)) {
                turn.tokens = turn.tokens.max(request.tokens.0);
            }
        }
        sheets
    }

    /// Returns the number of answered requests of a session.
    pub(crate) fn requests_of(&self, session: &str) -> u64 {
        let sheets = lock(&self.sheets.by_session);
        sheets.get(session).map_or(0, |sheet| sheet.requests)
    }

    /// Returns the number of received requests.
    pub(crate) fn requests(&self) -> u64 {
        self.server.tally().asked
    }

    /// Returns the faults of all requests. An incomplete request of a killed process is not a
    /// fault.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let asked = self.requests();
        let kept = self.server.requests();
        let checked = kept.iter().filter(|request| request.bytes > 0).count();
        if (checked as u64) < asked {
            faults.push(format!(
                "only the last {checked} requests could be checked; use fewer sessions"
            ));
        }
        for request in kept {
            let is_whole = !request.raw.is_empty();
            if is_whole && request.status != 200 {
                let why = request
                    .fault
                    .map_or_else(|| request.body.to_string(), |fault| fault.to_string());
                faults.push(format!(
                    "a request was refused with {}: {why}",
                    request.status
                ));
            }
        }
        let strangers = *lock(&self.sheets.strangers);
        if strangers > 0 {
            faults.push(format!("{strangers} request(s) name no planned session"));
        }
        faults
    }
}

impl Sheets {
    fn answer(&self, request: &Value) -> Turn {
        let messages = messages_of(request);
        let plan = session_of(&messages).and_then(|session| self.plans.get(&session));
        let Some(plan) = plan else {
            *lock(&self.strangers) += 1;
            return Turn::fail(400);
        };
        let may_call = request.get("tools").is_some()
            && request
                .get("tool_choice")
                .is_none_or(|choice| choice != "none");
        let mut sheets = lock(&self.by_session);
        let sheet = sheets.entry(plan.session.clone()).or_default();
        let (turn, asked) = sheet.note(&messages);
        asked.may_call = may_call;
        plan.say(turn, may_call, &self.ledger)
    }
}

impl Sheet {
    /// Records a request. Returns its turn, from 0.
    fn note(&mut self, messages: &[&Value]) -> (u64, &mut AskedTurn) {
        let turn = turn_of(messages);
        self.requests += 1;
        // The system prompt contains the date.
        let history: Vec<u64> = messages
            .iter()
            .filter(|message| !is_of(message, "system"))
            .map(|message| digest(message))
            .collect();
        let (older, newer) = if history.len() < self.history.len() {
            self.late += 1;
            (&history, &self.history)
        } else {
            (&self.history, &history)
        };
        if !newer.starts_with(older) {
            self.rewritten.insert(history.clone());
        }
        if history.len() >= self.history.len() {
            self.history = history;
            for message in messages.iter().filter(|m| is_of(m, "tool")) {
                let text = |key| message.get(key).and_then(Value::as_str);
                if let (Some(id), Some(content)) = (text("tool_call_id"), text("content")) {
                    self.results.insert(id.to_owned(), content.to_owned());
                }
            }
        }
        (turn, self.turns.entry(turn).or_default())
    }
}

fn messages_of(request: &Value) -> Vec<&Value> {
    let messages = request.get("messages").and_then(Value::as_array);
    messages.into_iter().flatten().collect()
}

/// Returns the session of a request.
fn session_of(messages: &[&Value]) -> Option<String> {
    let mut contents = messages.iter().filter_map(|message| message.get("content"));
    contents.find_map(|content| named(&content.to_string()))
}

/// Returns the turn that a request asks for, from 0.
fn turn_of(messages: &[&Value]) -> u64 {
    messages.iter().filter(|m| is_of(m, "assistant")).count() as u64
}

fn is_of(message: &Value, role: &str) -> bool {
    message.get("role").is_some_and(|is| is == role)
}

/// Returns the session that a task names.
fn named(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("the work of session ")?;
    let (name, _) = rest.split_once('.')?;
    Some(name.to_owned())
}

fn digest(message: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.to_string().hash(&mut hasher);
    hasher.finish()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_again_is_one_turn_and_an_older_or_another_one_is_noted() {
        let user = json!({"role": "user", "content": "Do the work of session s-0001."});
        let calls = json!({"role": "assistant", "content": null});
        let result = json!({"role": "tool", "tool_call_id": "s-0001-0", "content": "happened"});
        let other = json!({"role": "tool", "tool_call_id": "s-0001-0", "content": "unknown"});
        assert_eq!(named(&user.to_string()).as_deref(), Some("s-0001"));
        let mut sheet = Sheet::default();
        assert_eq!(sheet.note(&[&user]).0, 0);
        assert_eq!(sheet.note(&[&user]).0, 0);
        assert_eq!(sheet.note(&[&user, &calls, &result]).0, 1);
        assert_eq!((sheet.requests, sheet.turns.len()), (3, 2));
        assert_eq!((sheet.late, sheet.rewritten.len()), (0, 0));
        assert_eq!(sheet.results["s-0001-0"], "happened");
        sheet.note(&[&user]);
        assert_eq!((sheet.late, sheet.rewritten.len()), (1, 0));
        sheet.note(&[&user, &calls, &other]);
        assert_eq!((sheet.late, sheet.rewritten.len()), (1, 1));
    }
}
