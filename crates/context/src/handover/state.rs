//! The state of the work at the end: the last failure, the open question, the todo list.

use serde_json::Value;

use super::calls::TranscriptCall;
use super::sentences::one_line;
use super::words::{self, is_in};

/// The maximum length of an entry of a todo list, in bytes.
const TODO_MAX: usize = 160;
/// The maximum number of open entries of a todo list.
const TODOS_MAX: usize = 40;
/// The maximum number of failures that are not settled.
const FAILED_MAX: usize = 16;
/// The maximum length of a question, in bytes.
const LINE_MAX: usize = 400;

const TODO: &str = "Todo: ";
const CURRENT: &str = " (in progress)";
const FAILED: &str = "Last failure: ";
const FAILED_ARROW: &str = " → failed: ";
const QUESTION: &str = "Open question: ";

/// A build, a check or a test.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestRun {
    /// The variables that make another test of it, the folder, and all words up to that which names the test.
    pub(crate) test: String,
    /// The words behind it.
    pub(crate) words: Vec<String>,
}

impl TestRun {
    /// Checks whether this run tests all that another one did: it is the same test with the same words, or
    /// without any if those of the other one only choose some of the tests.
    fn covers(&self, other: &Self) -> bool {
        let has = |word: &String| self.words.iter().any(|own| includes(own, word));
        let is_used = |word: &String| other.words.iter().any(|other| includes(word, other));
        let chooses = |word: &String| !word.starts_with('-') || is_in("choosing_options", word);
        let has_all = other.words.iter().all(has) && self.words.iter().all(is_used);
        self.test == other.test
            && (has_all || self.words.is_empty() && other.words.iter().all(chooses))
    }
}

/// Checks whether a name means another one, too: `a.py` means `a.py::t`, and `./...` means `./a`.
fn includes(name: &str, other: &str) -> bool {
    let all = name.strip_suffix("...");
    let rest = other.strip_prefix(all.unwrap_or(name));
    rest.is_some_and(|rest| {
        all.is_some()
            || rest.is_empty()
            || rest.starts_with(['/', ':', '[']) && !rest.ends_with("...")
    })
}

/// The state of the work.
#[derive(Debug, Default)]
pub(crate) struct WorkState {
    /// The numbers and texts of the open entries of the todo list.
    todos: Vec<(String, String)>,
    /// The failed builds and tests that no success followed, and the lines that say why.
    failed: Vec<(TranscriptCall, String)>,
    pub(crate) question: Option<String>,
}

impl WorkState {
    /// Updates the todo list with a call of a planning tool: a change of an entry, a new entry, or a new
    /// list. `result` contains the number of a new entry.
    pub(crate) fn plan(&mut self, call: &TranscriptCall, result: &str) {
        let text = |key: &str| call.arguments.get(key).and_then(Value::as_str);
        let values = call.arguments.as_object().into_iter().flatten();
        let mut lists = values.filter_map(|(_, value)| value.as_array());
        if let Some(id) = text("taskId") {
            let Some(at) = self.todos.iter().position(|(known, _)| known == id) else {
                return;
            };
            let (_, old) = self.todos.remove(at);
            let subject = text("subject").unwrap_or(old.trim_end_matches(CURRENT));
            let was = if old.ends_with(CURRENT) { "active" } else { "" };
            if let Some(todo) = todo(id, subject, text("status").unwrap_or(was)) {
                self.todos.insert(at, todo);
            }
        } else if let Some(subject) = text("subject") {
            let number = result.split_once('#').map_or("", |(_, behind)| behind);
            let id = number.split(|c: char| !c.is_ascii_digit()).next();
            self.todos.extend(todo(id.unwrap_or_default(), subject, ""));
            let extra = self.todos.len().saturating_sub(TODOS_MAX);
            self.todos.drain(..extra);
        } else if let Some(list) = lists.find(|list| list.iter().all(|one| status(one).is_some())) {
            let todos = list.iter().enumerate().filter_map(|(n, entry)| {
                let text = |key: &str| entry.get(key).and_then(Value::as_str);
                let id = text("id").map_or_else(|| (n + 1).to_string(), str::to_owned);
                todo(
                    &id,
                    words::list("todo_texts").find_map(text)?,
                    status(entry)?,
                )
            });
            self.todos = todos.take(TODOS_MAX).collect();
        }
    }

    /// Records a successful command. It settles the failure of tests that it covers: `pytest` settles
    /// `pytest tests/test_crane.py`.
    pub(crate) fn succeed(&mut self, call: &TranscriptCall) {
        self.failed.retain_mut(|(failed, _)| {
            let is_open = |other: &TestRun| !call.tests.iter().any(|test| test.covers(other));
            failed.tests.retain(is_open);
            !failed.tests.is_empty()
        });
    }

    /// Records a failed command. The failures of tests that it covers are those of this run.
    pub(crate) fn fail(&mut self, call: TranscriptCall, line: String) {
        self.succeed(&call);
        self.failed.push((call, line));
        let extra = self.failed.len().saturating_sub(FAILED_MAX);
        self.failed.drain(..extra);
    }

    /// Returns the lines of the state, the most important first.
    pub(crate) fn items(&self) -> impl Iterator<Item = String> {
        let failed = self.failed.last().map(|(call, line)| {
            let place = format!("cd {} && ", call.folder);
            let place = if call.folder.is_empty() { "" } else { &place };
            format!("{FAILED}{place}{}{FAILED_ARROW}{line}", call.signature)
        });
        let question = self.question.iter();
        let question = question.map(|text| format!("{QUESTION}{}", one_line(text, LINE_MAX)));
        let todos = self.todos.iter();
        let todos = todos.map(|(id, text)| format!("{TODO}#{id} {text}"));
        failed.into_iter().chain(question).chain(todos)
    }

    /// Restores a line that [`WorkState::items`] wrote.
    pub(crate) fn carry(&mut self, line: &str) {
        if let Some(failure) = line.strip_prefix(FAILED) {
            let (signature, line) = failure.split_once(FAILED_ARROW).unwrap_or((failure, ""));
            self.fail(TranscriptCall::new("", signature), line.to_owned());
        } else if let Some(question) = line.strip_prefix(QUESTION) {
            self.question = Some(question.to_owned());
        } else if let Some(todos) = line.strip_prefix(TODO) {
            let todos = todos.trim_start_matches('#').split("; #");
            let todos = todos.filter_map(|todo| todo.split_once(' '));
            let todos = todos.map(|(id, text)| (id.to_owned(), text.to_owned()));
            self.todos.extend(todos);
        }
    }
}

/// Returns the status of an entry of a todo list.
fn status(entry: &Value) -> Option<&str> {
    entry.get("status").or_else(|| entry.get("state"))?.as_str()
}

/// Returns an open entry of a todo list; `None` if its status says that it is done.
fn todo(id: &str, text: &str, status: &str) -> Option<(String, String)> {
    let current = is_in("todo_current", status).then_some(CURRENT);
    let text = one_line(text, TODO_MAX) + current.unwrap_or_default();
    (!is_in("todo_done", status)).then(|| (id.to_owned(), text))
}
