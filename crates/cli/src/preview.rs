//! [`Previews`]: shows the change of a tool call before the user is asked about it, and only once.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;

use plimsoll::model::CallId;
use plimsoll::permissions::Question;
use plimsoll::tools::{Root, Toolbox};

use crate::diff::{self, Diff};
use crate::lock;
use crate::terminal::Terminal;
use crate::terminal::text::clean;
use crate::tool_line;

/// Maximum number of remembered calls. Further changes may be shown twice.
const MAX_SHOWN: usize = 1_000;

/// The changes of the calls of one workspace.
pub(crate) struct Previews {
    /// `None` if the workspace does not exist.
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

    /// Returns the tools of the workspace.
    pub(crate) fn toolbox(&self) -> Option<&Toolbox> {
        self.toolbox.as_ref()
    }

    /// Returns the change that a call would make to a file, if any.
    pub(crate) fn diff(&self, tool: &str, arguments: &str) -> Option<Diff> {
        let arguments = serde_json::from_str(arguments).ok()?;
        let change = self.toolbox.as_ref()?.preview(tool, &arguments)?;
        Diff::of(&change.ok()?)
    }

    /// Returns the text of a question: the change of a file, or all arguments of the call.
    pub(crate) fn question(&self, question: &Question, terminal: &Terminal) -> String {
        let call = &question.call;
        let name = terminal.bold(&clean(&call.name));
        let Some(diff) = self.diff(&call.name, &call.arguments) else {
            return tool_line::in_full(&name, &call.arguments);
        };
        let mut shown = lock(&self.shown);
        if shown.len() < MAX_SHOWN {
            shown.insert(call.id.clone());
        }
        let colours = terminal.colours();
        let argument = tool_line::argument(&call.name, &call.arguments);
        let mut lines = vec![format!("{name} {argument} {}", diff.summary(colours))];
        lines.extend(diff.lines(diff::ASKED, colours));
        lines.join("\n")
    }

    /// Returns `true` if the change of a call was shown, and forgets the call.
    pub(crate) fn was_shown(&self, call: &CallId) -> bool {
        let mut shown = lock(&self.shown);
        shown.remove(call)
    }
}
