//! The state of the work at the end: the todo list, the last failure, the open question, untested
//! changes.

use serde_json::Value;

use super::calls::TranscriptCall;
use super::format::SectionItem;
use super::sentences::one_line;

/// The maximum length of an entry of a todo list, in bytes.
const TODO_MAX: usize = 160;
/// The maximum number of entries of a todo list.
const TODOS_MAX: usize = 40;
/// The maximum number of changed files that are listed.
const CHANGED_MAX: usize = 12;
/// The maximum length of a question or failure, in bytes.
const LINE_MAX: usize = 400;

/// Folders of temporary files, and the extensions of notes: they need no test.
const TEMPORARY: [&str; 3] = ["/tmp/", "tmp/", "/scratchpad/"];
const NOTES: [&str; 3] = [".md", ".txt", ".log"];

const TODO: &str = "Todo";
const FAILED: &str = "Last failure: ";
const QUESTION: &str = "Open question: ";
const CHANGED: &str = "Changed, not tested since: ";

/// The state of the work.
#[derive(Debug, Default)]
pub(crate) struct WorkState {
    todos: Vec<Todo>,
    /// The last failed build or test that no success followed.
    pub(crate) failed: Option<Failure>,
    question: Option<String>,
    changed: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) signature: String,
    /// The family of the command, by which a later success settles the failure.
    pub(crate) key: String,
    pub(crate) line: String,
}

#[derive(Debug)]
struct Todo {
    id: Option<String>,
    text: String,
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Open,
    Current,
    Done,
}

impl Status {
    fn of(name: &str) -> Self {
        match name {
            "completed" | "done" | "complete" | "cancelled" | "deleted" => Self::Done,
            "in_progress" | "in-progress" | "active" | "running" => Self::Current,
            _ => Self::Open,
        }
    }
}

impl WorkState {
    /// Updates the todo list if the call changes it.
    pub(crate) fn call(&mut self, call: &TranscriptCall) {
        let list = call.arguments.as_object().and_then(|map| {
            map.values()
                .find_map(|value| value.as_array().and_then(|list| todos(list)))
        });
        let name = call.name.to_lowercase();
        if let Some(list) =
            list.filter(|_| name.contains("todo") || name.contains("plan") || name.contains("task"))
        {
            self.todos = list;
            return;
        }
        let text = |key: &str| call.arguments.get(key).and_then(Value::as_str);
        if name.contains("taskcreate") || name.contains("task_create") {
            if let Some(subject) = text("subject").or_else(|| text("title")) {
                self.todos.push(Todo {
                    // The host numbers the entries in order.
                    id: Some((self.todos.len() + 1).to_string()),
                    text: one_line(subject, TODO_MAX),
                    status: Status::Open,
                });
            }
        } else if name.contains("taskupdate") || name.contains("task_update") {
            let id = text("taskId").or_else(|| text("task_id"));
            let todo = self
                .todos
                .iter_mut()
                .find(|todo| todo.id.as_deref() == id && id.is_some());
            if let (Some(todo), Some(status)) = (todo, text("status")) {
                todo.status = Status::of(status);
            }
        }
        let excess = self.todos.len().saturating_sub(TODOS_MAX);
        self.todos.drain(..excess);
    }

    /// Reads the todo list from the result of a tool that prints it: `#2 [pending] Print it`.
    pub(crate) fn list(&mut self, text: &str) {
        let todos = text.lines().filter_map(|line| {
            let (id, rest) = line.trim().strip_prefix('#')?.split_once(' ')?;
            let (status, subject) = rest.trim_start().strip_prefix('[')?.split_once(']')?;
            Some(Todo {
                id: Some(id.trim_end_matches('.').to_owned()),
                text: one_line(subject, TODO_MAX),
                status: Status::of(status),
            })
        });
        let todos: Vec<Todo> = todos.take(TODOS_MAX).collect();
        if !todos.is_empty() {
            self.todos = todos;
        }
    }

    /// Records a change of a file, unless it is a note or a temporary file.
    pub(crate) fn change(&mut self, path: &str) {
        self.forget(path);
        let is_aside = TEMPORARY.iter().any(|folder| path.contains(folder))
            || NOTES.iter().any(|extension| path.ends_with(extension));
        if !is_aside {
            self.changed.push(path.to_owned());
        }
    }

    /// Records that a file was removed or restored.
    pub(crate) fn forget(&mut self, path: &str) {
        self.changed.retain(|changed| changed != path);
    }

    /// Records that a test or a build ran.
    pub(crate) fn tested(&mut self) {
        self.changed.clear();
    }

    /// Records a successful build or test with this key. It settles the failure of another one of the
    /// same program.
    pub(crate) fn succeeded(&mut self, key: &str) {
        let program = |key: &str| key.split(' ').next().map(str::to_owned);
        if self
            .failed
            .as_ref()
            .is_some_and(|failure| program(&failure.key) == program(key))
        {
            self.failed = None;
        }
    }

    /// Records the last question of the agent, or that it was answered.
    pub(crate) fn ask(&mut self, question: Option<&str>) {
        self.question = question.map(|question| one_line(question, LINE_MAX));
    }

    /// Returns the lines of the state, the most important first.
    pub(crate) fn items(&self) -> Vec<SectionItem> {
        let mut items = Vec::new();
        if let Some(failure) = &self.failed {
            items.push(SectionItem::note(format!(
                "{FAILED}{} → failed: {}",
                failure.signature, failure.line
            )));
        }
        if let Some(question) = &self.question {
            items.push(SectionItem::note(format!("{QUESTION}{question}")));
        }
        if !self.changed.is_empty() {
            let newest = self.changed.iter().rev().take(CHANGED_MAX);
            let paths: Vec<&str> = newest.map(String::as_str).collect();
            items.push(SectionItem::note(format!("{CHANGED}{}", paths.join(", "))));
        }
        let open: Vec<String> = self
            .todos
            .iter()
            .filter(|todo| todo.status != Status::Done)
            .map(|todo| match todo.status {
                Status::Current => format!("{} (in progress)", todo.text),
                _ => todo.text.clone(),
            })
            .collect();
        if !open.is_empty() {
            let done = self.todos.len() - open.len();
            let all = self.todos.len();
            items.push(SectionItem::note(format!(
                "{TODO} ({done} of {all} done): {}",
                open.join("; ")
            )));
        }
        items
    }

    /// Restores a line that [`WorkState::items`] wrote.
    pub(crate) fn carry(&mut self, line: &str) {
        if let Some(failure) = line.strip_prefix(FAILED) {
            if let Some((signature, line)) = failure.split_once(" → failed: ") {
                self.failed = Some(Failure {
                    signature: signature.to_owned(),
                    key: TranscriptCall::new("", signature).key().to_owned(),
                    line: line.to_owned(),
                });
            }
        } else if let Some(question) = line.strip_prefix(QUESTION) {
            self.question = Some(question.to_owned());
        } else if let Some(paths) = line.strip_prefix(CHANGED) {
            self.changed = paths.split(", ").map(str::to_owned).collect();
            self.changed.reverse();
        } else if let Some((head, list)) = line
            .strip_prefix(TODO)
            .and_then(|rest| rest.split_once("): "))
        {
            let done = head.trim_start_matches([' ', '(']).split(' ').next();
            let done = done
                .and_then(|done| done.parse().ok())
                .unwrap_or(0_usize)
                .min(TODOS_MAX);
            self.todos = (0..done)
                .map(|_| Todo {
                    id: None,
                    text: String::new(),
                    status: Status::Done,
                })
                .collect();
            for text in list.split("; ") {
                let current = text.strip_suffix(" (in progress)");
                self.todos.push(Todo {
                    id: None,
                    text: current.unwrap_or(text).to_owned(),
                    status: if current.is_some() {
                        Status::Current
                    } else {
                        Status::Open
                    },
                });
            }
            for (n, todo) in self.todos.iter_mut().enumerate() {
                todo.id = Some((n + 1).to_string());
            }
        }
    }
}

/// Parses a todo list: objects with a text and a status.
fn todos(list: &[Value]) -> Option<Vec<Todo>> {
    let todos: Option<Vec<Todo>> = list
        .iter()
        .take(TODOS_MAX)
        .map(|entry| {
            let text = [
                "content",
                "step",
                "title",
                "subject",
                "text",
                "task",
                "description",
            ]
            .iter()
            .find_map(|key| entry.get(key).and_then(Value::as_str))?;
            let status = entry
                .get("status")
                .or_else(|| entry.get("state"))
                .and_then(Value::as_str)?;
            Some(Todo {
                id: entry.get("id").and_then(Value::as_str).map(str::to_owned),
                text: one_line(text, TODO_MAX),
                status: Status::of(status),
            })
        })
        .collect();
    todos.filter(|todos| !todos.is_empty())
}
