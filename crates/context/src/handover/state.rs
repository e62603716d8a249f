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
/// The keys of an entry's text in todo lists.
const TODO_TEXTS: [&str; 7] = [
    "content",
    "step",
    "title",
    "subject",
    "text",
    "task",
    "description",
];

const TODO: &str = "Todo: ";
const CURRENT: &str = " (in progress)";
const NOTHING_OPEN: &str = "nothing is open";
/// Stands before the last number of a list whose entries the host numbers.
const NUMBERED: &str = " (last number: ";
const FAILED: &str = "Last failure: ";
const FAILED_ARROW: &str = " → failed: ";
const QUESTION: &str = "Open question: ";
const CHANGED: &str = "Changed, not tested since: ";

/// The state of the work.
#[derive(Debug, Default)]
pub(crate) struct WorkState {
    todos: Vec<Todo>,
    /// The last number that the host gave to an entry. 0 if it gives none.
    numbered: usize,
    /// The last failed build or test that no success followed: its signature and the line that says
    /// why.
    failed: Option<(String, String)>,
    question: Option<String>,
    changed: Vec<String>,
}

#[derive(Debug)]
struct Todo {
    id: String,
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

impl Todo {
    fn new(id: impl ToString, text: &str, status: Status) -> Self {
        Self {
            id: id.to_string(),
            text: one_line(text, TODO_MAX),
            status,
        }
    }
}

impl WorkState {
    /// Updates the todo list if the call changes it.
    pub(crate) fn call(&mut self, call: &TranscriptCall) {
        let name = call.name.to_lowercase();
        if !["todo", "plan", "task"]
            .iter()
            .any(|word| name.contains(word))
        {
            return;
        }
        let values = call.arguments.as_object().into_iter().flatten();
        let mut lists = values.filter_map(|(_, value)| value.as_array());
        if let Some(list) = lists.find_map(|list| todos(list)) {
            (self.todos, self.numbered) = (list, 0);
            return;
        }
        let text = |key: &str| call.arguments.get(key).and_then(Value::as_str);
        if name.contains("taskcreate") || name.contains("task_create") {
            if let Some(subject) = text("subject").or_else(|| text("title")) {
                // The host numbers the entries in order.
                self.numbered = self.numbered.max(self.todos.len()) + 1;
                let todo = Todo::new(self.numbered, subject, Status::Open);
                self.todos.push(todo);
                self.bound();
            }
        } else if name.contains("taskupdate") || name.contains("task_update") {
            let id = text("taskId").or_else(|| text("task_id"));
            let mut todos = self.todos.iter_mut();
            let todo = todos.find(|todo| Some(todo.id.as_str()) == id);
            if let (Some(todo), Some(status)) = (todo, text("status")) {
                todo.status = Status::of(status);
            }
        }
    }

    /// Removes an entry that is done, else the oldest, if there are too many.
    fn bound(&mut self) {
        if self.todos.len() > TODOS_MAX {
            let done = self
                .todos
                .iter()
                .position(|todo| todo.status == Status::Done);
            self.todos.remove(done.unwrap_or_default());
        }
    }

    /// Reads the todo list from the result of a tool that prints it: `#2 [pending] Print it`.
    pub(crate) fn list(&mut self, text: &str) {
        let todos = text.lines().filter_map(|line| {
            let (id, rest) = line.trim().strip_prefix('#')?.split_once(' ')?;
            let (status, subject) = rest.trim_start().strip_prefix('[')?.split_once(']')?;
            let id = id.trim_end_matches('.');
            Some(Todo::new(id, subject, Status::of(status)))
        });
        let todos: Vec<Todo> = todos.take(TODOS_MAX).collect();
        if !todos.is_empty() {
            let numbers = todos.iter().filter_map(|todo| todo.id.parse().ok());
            self.numbered = self.numbered.max(numbers.max().unwrap_or_default());
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

    /// Records a failed build or test.
    pub(crate) fn fail(&mut self, call: &TranscriptCall, line: &str) {
        self.failed = Some((call.signature.clone(), line.to_owned()));
    }

    /// Records a successful build or test with this key. It settles the failure of another one of the
    /// same program.
    pub(crate) fn succeeded(&mut self, key: &str) {
        let program = |key: &str| key.split(' ').next().map(str::to_owned);
        let key_of = |signature: &str| TranscriptCall::new("", signature).key().to_owned();
        self.failed
            .take_if(|(signature, _)| program(&key_of(signature)) == program(key));
    }

    /// Records the last question of the agent, or that it was answered.
    pub(crate) fn ask(&mut self, question: Option<&str>) {
        self.question = question.map(|question| one_line(question, LINE_MAX));
    }

    /// Returns the lines of the state, the most important first.
    pub(crate) fn items(&self) -> Vec<SectionItem> {
        let mut items = Vec::new();
        if let Some((signature, line)) = &self.failed {
            items.push(format!("{FAILED}{signature}{FAILED_ARROW}{line}"));
        }
        if let Some(question) = &self.question {
            items.push(format!("{QUESTION}{question}"));
        }
        if !self.changed.is_empty() {
            let newest = self.changed.iter().rev().take(CHANGED_MAX);
            let paths: Vec<&str> = newest.map(String::as_str).collect();
            items.push(format!("{CHANGED}{}", paths.join(", ")));
        }
        let open = self.todos.iter().filter(|todo| todo.status != Status::Done);
        let open: Vec<String> = open
            .map(|Todo { id, text, status }| match status {
                Status::Current => format!("#{id} {text}{CURRENT}"),
                _ => format!("#{id} {text}"),
            })
            .collect();
        let all = match self.numbered {
            0 => String::new(),
            last => format!("{NUMBERED}{last})"),
        };
        if !open.is_empty() {
            items.push(format!("{TODO}{}{all}", open.join("; ")));
        } else if !all.is_empty() {
            items.push(format!("{TODO}{NOTHING_OPEN}{all}"));
        }
        items.iter().map(SectionItem::note).collect()
    }

    /// Restores a line that [`WorkState::items`] wrote.
    pub(crate) fn carry(&mut self, line: &str) {
        if let Some(failure) = line.strip_prefix(FAILED) {
            let parts = failure.split_once(FAILED_ARROW);
            self.failed = parts.map(|(signature, line)| (signature.to_owned(), line.to_owned()));
        } else if let Some(question) = line.strip_prefix(QUESTION) {
            self.question = Some(question.to_owned());
        } else if let Some(paths) = line.strip_prefix(CHANGED) {
            self.changed = paths.rsplit(", ").map(str::to_owned).collect();
        } else if let Some(todos) = line.strip_prefix(TODO) {
            let last = |rest: &str| rest.strip_suffix(')')?.parse().ok();
            let numbered = todos
                .rsplit_once(NUMBERED)
                .and_then(|(todos, rest)| Some((todos, last(rest)?)));
            let (todos, numbered) = numbered.unwrap_or((todos, 0));
            self.numbered = numbered;
            let todos = todos.strip_prefix('#').unwrap_or_default();
            let todos = todos.split("; #").filter_map(|todo| {
                let (id, text) = todo.split_once(' ')?;
                Some(match text.strip_suffix(CURRENT) {
                    Some(text) => Todo::new(id, text, Status::Current),
                    None => Todo::new(id, text, Status::Open),
                })
            });
            self.todos = todos.take(TODOS_MAX).collect();
        }
    }
}

/// Parses a todo list: objects with a text and a status.
fn todos(list: &[Value]) -> Option<Vec<Todo>> {
    let entries = list.iter().take(TODOS_MAX).enumerate();
    let todos = entries.map(|(n, entry)| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let status = text("status").or_else(|| text("state"))?;
        let id = text("id").map_or_else(|| (n + 1).to_string(), str::to_owned);
        let subject = TODO_TEXTS.iter().find_map(|key| text(key))?;
        Some(Todo::new(id, subject, Status::of(status)))
    });
    let todos: Option<Vec<Todo>> = todos.collect();
    todos.filter(|todos| !todos.is_empty())
}
