//! The state of the work at the end: the last failure, the open question, untested changes, the
//! todo list.

use serde_json::Value;

use super::calls::TranscriptCall;
use super::sentences::one_line;
use super::words::{is_in, list};

/// The maximum length of an entry of a todo list, in bytes.
const TODO_MAX: usize = 160;
/// The maximum number of open entries of a todo list.
const TODOS_MAX: usize = 40;
/// The maximum number of changed files that are listed.
const CHANGED_MAX: usize = 12;
/// The maximum length of a question, in bytes.
const LINE_MAX: usize = 400;

const TODO: &str = "Todo: ";
const CURRENT: &str = " (in progress)";
const FAILED: &str = "Last failure: ";
const FAILED_ARROW: &str = " → failed: ";
const QUESTION: &str = "Open question: ";
const CHANGED: &str = "Changed, not tested since: ";

/// The state of the work.
#[derive(Debug, Default)]
pub(crate) struct WorkState {
    /// The open entries of the todo list.
    todos: Vec<Todo>,
    /// The last failed build or test that no success followed, and the line that says why.
    failed: Option<(TranscriptCall, String)>,
    question: Option<String>,
}

#[derive(Debug)]
struct Todo {
    id: String,
    text: String,
    is_current: bool,
}

impl Todo {
    /// Returns an open entry; `None` if its status says that it is done.
    fn open(id: &str, text: &str, status: &str) -> Option<Self> {
        (!is_in("todo_done", status)).then(|| Self {
            id: id.to_owned(),
            text: one_line(text, TODO_MAX),
            is_current: is_in("todo_current", status),
        })
    }

    /// Parses an entry of a todo list: an object with a text and a status. Returns `None` for any
    /// other value.
    fn read(number: usize, entry: &Value) -> Option<Option<Self>> {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let status = text("status").or_else(|| text("state"))?;
        let subject = list("todo_texts").find_map(text)?;
        let id = text("id").map_or_else(|| number.to_string(), str::to_owned);
        Some(Self::open(&id, subject, status))
    }
}

impl WorkState {
    /// Updates the todo list with a call of a planning tool: a new list, a change of an entry, or a new
    /// entry. `result` contains the number of a new entry.
    pub(crate) fn plan(&mut self, call: &TranscriptCall, result: &str) {
        let text = |key: &str| call.arguments.get(key).and_then(Value::as_str);
        let values = call.arguments.as_object().into_iter().flatten();
        let mut lists = values.filter_map(|(_, value)| value.as_array());
        let is_entry = |entry: &Value| Todo::read(0, entry).is_some();
        let is_of_one = text("taskId").is_some() || text("subject").is_some();
        let is_list =
            |list: &Vec<Value>| list.is_empty() && !is_of_one || list.iter().any(is_entry);
        if let Some(list) = lists.find(|list| is_list(list)) {
            let todos = list.iter().enumerate();
            let todos = todos.filter_map(|(n, entry)| Todo::read(n + 1, entry)?);
            self.todos = todos.take(TODOS_MAX).collect();
        } else if let Some(id) = text("taskId") {
            if let Some(at) = self.todos.iter().position(|todo| todo.id == id) {
                let old = self.todos.remove(at);
                let status = if old.is_current { "active" } else { "" };
                let status = text("status").unwrap_or(status);
                let new = Todo::open(id, text("subject").unwrap_or(&old.text), status);
                new.into_iter().for_each(|new| self.todos.insert(at, new));
            }
        } else if let Some(subject) = text("subject") {
            let number = result.split_once('#').map_or("", |(_, behind)| behind);
            let id = number.split(|c: char| !c.is_ascii_digit()).next();
            let todo = Todo::open(id.unwrap_or_default(), subject, "");
            self.todos.extend(todo);
        }
        if self.todos.len() > TODOS_MAX {
            self.todos.remove(0);
        }
    }

    /// Records a failed build or test.
    pub(crate) fn fail(&mut self, call: TranscriptCall, line: &str) {
        self.failed = Some((call, line.to_owned()));
    }

    /// Records a successful build or test. It settles the failure of the same one, or of a part of
    /// it: `pytest` settles `pytest tests/test_crane.py`.
    pub(crate) fn succeed(&mut self, call: &TranscriptCall) {
        let _settled = self.failed.take_if(|(failed, _)| {
            let folders = [&failed.test_folder, &call.test_folder];
            let is_here = folders.iter().any(|folder| folder.is_empty());
            let is_same = failed.signature == call.signature || includes(&call.test, &failed.test);
            is_same && (is_here || failed.test_folder == call.test_folder)
        });
    }

    /// Records the last question of the agent, or that it was answered.
    pub(crate) fn ask(&mut self, question: Option<String>) {
        self.question = question.map(|question| one_line(&question, LINE_MAX));
    }

    /// Returns the lines of the state, the most important first. `untested` are the changed files
    /// that no test followed, the newest first.
    pub(crate) fn items(&self, untested: &[&str]) -> Vec<String> {
        let failed = self.failed.iter().map(|(call, line)| {
            let signature = &call.signature;
            format!("{FAILED}{signature}{FAILED_ARROW}{line}")
        });
        let question = self.question.iter();
        let question = question.map(|question| format!("{QUESTION}{question}"));
        let mut items: Vec<String> = failed.chain(question).collect();
        let todos = self.todos.iter().map(|todo| {
            let current = if todo.is_current { CURRENT } else { "" };
            format!("#{} {}{current}", todo.id, todo.text)
        });
        let todos: Vec<String> = todos.collect();
        if !todos.is_empty() {
            items.push(format!("{TODO}{}", todos.join("; ")));
        }
        // The files stand in their own list, too.
        if !untested.is_empty() {
            let newest: Vec<&str> = untested.iter().take(CHANGED_MAX).copied().collect();
            items.push(format!("{CHANGED}{}", newest.join(", ")));
        }
        items
    }

    /// Restores a line that [`WorkState::items`] wrote. Returns the untested files.
    pub(crate) fn carry<'t>(&mut self, line: &'t str) -> Option<&'t str> {
        if let Some(failure) = line.strip_prefix(FAILED) {
            let (signature, line) = failure.split_once(FAILED_ARROW)?;
            self.fail(TranscriptCall::new("", signature), line);
        } else if let Some(question) = line.strip_prefix(QUESTION) {
            self.question = Some(question.to_owned());
        } else if let Some(todos) = line.strip_prefix(TODO) {
            let todos = todos.strip_prefix('#')?.split("; #");
            let todos = todos.filter_map(|todo| {
                let (id, text) = todo.split_once(' ')?;
                let current = text.strip_suffix(CURRENT);
                let status = if current.is_some() { "active" } else { "" };
                Todo::open(id, current.unwrap_or(text), status)
            });
            self.todos = todos.collect();
        }
        line.strip_prefix(CHANGED)
    }
}

/// Checks whether a test runs another one, too: `pytest a.py` runs `pytest a.py::t`, and `go test ./...` runs
/// `go test ./a`.
fn includes(test: &[String], part: &[String]) -> bool {
    let (test, part) = (test.join(" "), part.join(" "));
    let test = test.strip_suffix("...").unwrap_or(&test);
    part.strip_prefix(test).is_some_and(|rest| {
        rest.is_empty() || test.ends_with('/') || rest.starts_with([' ', ':', '/'])
    })
}
