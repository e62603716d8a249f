//! [`FileChange`]: a preview of the change that a call of `write` or `edit` would make.

use std::path::Path;
use std::sync::Arc;

use plimsoll_context::CallId;
use plimsoll_core::{FileEdit, ToolError, parse_arguments};
use serde_json::Value;

use crate::scope::{Access, LocatedPath, Scope, Workspace};
use crate::toolbox::{EDIT, Toolbox, WRITE};
use crate::{edit, safe_open, saved_files, write};

/// A change of one file, before it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The path of the file, relative to the workspace root.
    pub path: String,
    /// The current content; `None` if the file does not exist. Empty if it is not UTF-8 text.
    pub before: Option<String>,
    /// The content after the change.
    pub after: String,
}

/// A validated change that can be made.
pub(crate) struct PlannedChange {
    pub(crate) file: LocatedPath,
    /// The path of the file as shown to the model.
    pub(crate) shown: String,
    /// The current content; `None` if the file does not exist.
    pub(crate) before: Option<Vec<u8>>,
    pub(crate) after: Vec<u8>,
    /// The tool result if the change succeeds.
    pub(crate) told: String,
}

impl PlannedChange {
    /// Returns the change in the form that the session stores. Returns `None` if nothing changes.
    pub(crate) fn edit(&self, call: CallId, root: &Path) -> Option<FileEdit> {
        (self.before.as_ref() != Some(&self.after)).then(|| FileEdit {
            call: Some(call),
            root: root.to_owned(),
            path: self.file.relative.clone(),
            before: self.before.clone(),
            after: Some(self.after.clone()),
        })
    }

    /// Makes the change, and returns the tool result.
    pub(crate) fn make(self, root: &Path) -> Result<String, ToolError> {
        let Self { file, shown, .. } = &self;
        let failed = |error| ToolError(format!("cannot write `{shown}`: {error}"));
        let now = saved_files::content(root, &file.relative).map_err(failed)?;
        if now != self.before {
            return Err(ToolError(format!(
                "`{shown}` was changed by another program meanwhile, so nothing was written; read it again"
            )));
        }
        safe_open::replace(root, &file.relative, &self.after).map_err(failed)?;
        Ok(self.told)
    }
}

impl From<PlannedChange> for FileChange {
    fn from(planned: PlannedChange) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap_or_default();
        Self {
            path: planned.shown,
            before: planned.before.map(text),
            after: text(planned.after),
        }
    }
}

impl Toolbox {
    /// Returns the change that a call would make, without making it. It performs the same checks as the
    /// call. Returns `None` for tools other than `write` and `edit`. Permission rules are not checked.
    ///
    /// Reads the file, so it blocks.
    ///
    /// # Errors
    /// If the call would fail. The error is the text that the model would receive.
    ///
    /// ```
    /// # let folder = std::env::temp_dir();
    /// use plimsoll_tools::{Root, Toolbox};
    /// use serde_json::json;
    /// let toolbox = Toolbox::new(Root::new(&folder).unwrap());
    /// let write = json!({"path": "no-such-file.txt", "content": "new\n"});
    /// let change = toolbox.preview("write", &write).unwrap().unwrap();
    /// assert_eq!((change.before, change.after.as_str()), (None, "new\n"));
    /// assert!(toolbox.preview("read", &json!({"path": "x"})).is_none());
    /// ```
    #[must_use]
    pub fn preview(&self, tool: &str, arguments: &Value) -> Option<Result<FileChange, ToolError>> {
        let workspace = Arc::new(self.workspace().clone());
        match tool {
            "write" => {
                let scope = scope(workspace, WRITE);
                let input = parse_arguments(&self.tool(tool)?.spec().clone(), arguments.clone());
                Some(input.and_then(|input| Ok(write::plan(&scope, &input)?.into())))
            }
            "edit" => {
                let scope = scope(workspace, EDIT);
                let input = parse_arguments(&self.tool(tool)?.spec().clone(), arguments.clone());
                Some(input.and_then(|input| Ok(edit::plan(&scope, &input)?.into())))
            }
            _ => None,
        }
    }
}

fn scope(workspace: Arc<Workspace>, access: Access) -> Scope {
    Scope {
        workspace,
        access,
        permissions: Arc::default(),
        shows_images: false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::testing::Workspace as Files;

    #[test]
    fn a_preview_is_what_the_call_then_does() {
        let files = Files::new();
        let toolbox = Toolbox::new(files.root());
        for (before, tool, arguments) in [
            (None, "write", json!({"path": "f", "content": "new\n"})),
            (
                Some("old\n"),
                "write",
                json!({"file_path": "f", "text": "new\n"}),
            ),
            (
                Some("a\r\nb\r\n"),
                "edit",
                json!({"path": "f", "old_string": "a\nb", "new_string": "c"}),
            ),
        ] {
            let _ = fs::remove_file(files.path("f"));
            if let Some(text) = before {
                files.put("f", text);
            }
            let change = toolbox.preview(tool, &arguments).unwrap().unwrap();
            assert_eq!(change.path, "f");
            assert_eq!(change.before.as_deref(), before);
            assert_eq!(fs::read_to_string(files.path("f")).ok().as_deref(), before);
            files.call(tool, &arguments.to_string()).unwrap();
            assert_eq!(fs::read_to_string(files.path("f")).unwrap(), change.after);
        }
    }

    #[test]
    fn what_another_program_writes_meanwhile_is_not_written_over() {
        let files = Files::new();
        files.put("f", "old");
        let scope = scope(
            Arc::new(Toolbox::new(files.root()).workspace().clone()),
            WRITE,
        );
        let input = serde_json::from_value(json!({"path": "f", "content": "new"})).unwrap();
        let planned = write::plan(&scope, &input).unwrap();
        files.put("f", "theirs");
        let error = planned.make(files.root().path()).unwrap_err();
        assert!(error.0.contains("changed by another program"), "{error}");
        assert_eq!(fs::read_to_string(files.path("f")).unwrap(), "theirs");
    }

    #[test]
    fn a_call_that_would_fail_says_the_same_beforehand() {
        let files = Files::new();
        files.put("f", "a");
        let toolbox = Toolbox::new(files.root());
        for (tool, arguments) in [
            ("edit", json!({"path": "f", "old": "x", "new": "y"})),
            ("edit", json!({"path": "../f", "old": "x", "new": "y"})),
            ("write", json!({"path": "f/", "content": ""})),
            ("write", json!({"path": "f"})),
        ] {
            let told = toolbox.preview(tool, &arguments).unwrap().unwrap_err();
            assert_eq!(files.call(tool, &arguments.to_string()), Err(told.0));
        }
    }
}
