//! [`Previews`]: what a tool call would change, shown before a person is asked about it, and only once.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use plimsoll::model::CallId;
use plimsoll::permissions::Question;
use plimsoll::tools::{Root, Toolbox};

use crate::diff::{self, Diff};
use crate::terminal::Terminal;
use crate::terminal::text::clean;
use crate::tool_line;

/// Calls whose changes were shown, at most; of more, some may be shown again.
const MAX_SHOWN: usize = 1_000;

/// The changes of the calls of one workspace.
pub(crate) struct Previews {
    /// `None` if there is no such workspace.
    toolbox: Option<Toolbox>,
    shown: Mutex<HashSet<CallId>>,
}

impl Previews {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            toolbox: Root::new(root).ok().map(Toolbox::new),
            shown: Mutex::default(),
        }
    }

    /// The tools of the workspace.
    pub(crate) fn toolbox(&self) -> Option<&Toolbox> {
        self.toolbox.as_ref()
    }

    /// What a call is about to change, if it is a file.
    pub(crate) fn diff(&self, tool: &str, arguments: &str) -> Option<Diff> {
        let arguments = serde_json::from_str(arguments).ok()?;
        let change = self.toolbox.as_ref()?.preview(tool, &arguments)?;
        Diff::of(&change.ok()?)
    }

    /// What a person is asked about: the change of a file, or all that the call is made with.
    pub(crate) fn question(&self, question: &Question, terminal: &Terminal) -> String {
        let call = &question.call;
        let name = terminal.bold(&clean(&call.name));
        let Some(diff) = self.diff(&call.name, &call.arguments) else {
            return tool_line::in_full(&name, &call.arguments);
        };
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.len() < MAX_SHOWN {
            shown.insert(call.id.clone());
        }
        let colours = terminal.colours();
        let argument = tool_line::argument(&call.name, &call.arguments);
        let mut lines = vec![format!("{name} {argument} {}", diff.summary(colours))];
        lines.extend(diff.lines(diff::ASKED, colours));
        lines.join("\n")
    }

    /// Whether a person has been shown what a call changes. Said once.
    pub(crate) fn was_shown(&self, call: &CallId) -> bool {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.remove(call)
    }
}
