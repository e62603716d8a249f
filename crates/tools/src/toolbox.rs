//! [`Toolbox`]: creates the tools of one workspace root, all or by name.

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_core::Tool;

use crate::bash::Bash;
use crate::error::ToolsError;
use crate::file_tool::{Work, file_tool};
use crate::root::Root;
use crate::sandbox::Sandbox;
use crate::scope::{Access, Workspace};
use crate::similar::nearest;
use crate::{edit, glob, grep, list, read, write};

/// The names of all tools, in the order in which they are sent to the model. The order never changes,
/// so that the beginning of requests stays the same.
pub const NAMES: [&str; 7] = ["bash", "read", "write", "edit", "list", "glob", "grep"];

/// A factory for tools that work in one root.
#[derive(Debug, Clone)]
pub struct Toolbox {
    workspace: Workspace,
    sandbox: Option<Sandbox>,
}

impl Toolbox {
    /// Creates a toolbox for a root.
    #[must_use]
    pub fn new(root: Root) -> Self {
        let workspace = Workspace {
            root,
            protected: Vec::new(),
        };
        Self {
            workspace,
            sandbox: None,
        }
    }

    /// Adds files and directories that `write` and `edit` change only with approval.
    ///
    /// Files that programs run or agents read without asking, such as `AGENTS.md`, `.envrc` or all of
    /// `.git`, are always protected. A permission rule that allows exactly such a path makes the
    /// approval unnecessary.
    ///
    /// ```
    /// use plimsoll_tools::{Root, Toolbox};
    /// let toolbox = Toolbox::new(Root::new(".")?).protect(["deploy.toml".into()]);
    /// # Ok::<(), plimsoll_tools::ToolsError>(())
    /// ```
    #[must_use]
    pub fn protect(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths = paths.into_iter();
        let real = |path: &PathBuf| {
            let new = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
            path.canonicalize().ok().or_else(new)
        };
        let paths = paths.map(|path| real(&path).unwrap_or(path));
        self.workspace.protected.extend(paths);
        self
    }

    /// Sets the sandbox for commands of `bash`. Default: no restrictions.
    ///
    /// ```
    /// use plimsoll_tools::sandbox::{Sandbox, SandboxMode};
    /// use plimsoll_tools::{Root, Toolbox};
    /// let sandbox = Sandbox::new(SandboxMode::Off, ["plimsoll", "sandbox"])?;
    /// let toolbox = Toolbox::new(Root::new(".")?).sandbox(sandbox);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Returns all tools, in the order of [`NAMES`].
    #[must_use]
    pub fn all(&self) -> Vec<Arc<dyn Tool>> {
        NAMES.iter().filter_map(|name| self.tool(name)).collect()
    }

    /// Returns the tools in a list such as `read,grep`, in the order of [`NAMES`], each once. `all` and
    /// `none` are accepted too.
    ///
    /// # Errors
    /// If no tool has one of the names.
    pub fn select(&self, list: &str) -> Result<Vec<Arc<dyn Tool>>, ToolsError> {
        let names: Vec<&str> = list.split(',').map(str::trim).collect();
        match names.as_slice() {
            ["all"] => return Ok(self.all()),
            ["none"] => return Ok(Vec::new()),
            _ => {}
        }
        if let Some(name) = names.iter().find(|name| !NAMES.contains(name)) {
            return Err(unknown(name));
        }
        let chosen = NAMES.iter().filter(|name| names.contains(name));
        Ok(chosen.filter_map(|name| self.tool(name)).collect())
    }

    /// Returns the tool with this name, if there is one.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let all = Arc::new(self.workspace.clone());
        Some(match name {
            "bash" => Arc::new(Bash::new(all.root.path().to_owned(), self.sandbox.clone())),
            "read" => file_tool(&all, READ, Work::Read(read::work)),
            "write" => file_tool(&all, WRITE, Work::Change(write::plan)),
            "edit" => file_tool(&all, EDIT, Work::Change(edit::plan)),
            "list" => file_tool(&all, LIST, Work::Read(list::work)),
            "glob" => file_tool(&all, GLOB, Work::Read(glob::work)),
            "grep" => file_tool(&all, GREP, Work::Read(grep::work)),
            _ => return None,
        })
    }
}

const READ: Access = Access {
    tool: "read",
    description: read::DESCRIPTION,
    is_idempotent: true,
    fields: &["path", "file", "file_path", "filename"],
    same_as: &[],
    is_optional: false,
    writes: false,
};
pub(crate) const WRITE: Access = Access {
    tool: "write",
    description: write::DESCRIPTION,
    same_as: &["edit"],
    writes: true,
    ..READ
};
pub(crate) const EDIT: Access = Access {
    tool: "edit",
    description: edit::DESCRIPTION,
    is_idempotent: false,
    // If it finds nothing, it shows the most similar lines, so it also reads.
    same_as: &["read", "write"],
    ..WRITE
};
const LIST: Access = Access {
    tool: "list",
    description: list::DESCRIPTION,
    fields: &["path", "dir", "directory", "folder"],
    is_optional: true,
    ..READ
};
const GLOB: Access = Access {
    tool: "glob",
    description: glob::DESCRIPTION,
    ..LIST
};
const GREP: Access = Access {
    tool: "grep",
    description: grep::DESCRIPTION,
    fields: &["path", "file", "dir", "directory"],
    same_as: &["read"],
    ..LIST
};

fn unknown(name: &str) -> ToolsError {
    let near = nearest(name, NAMES.into_iter());
    let advice = near.map_or_else(
        || format!("name some of {}, or say all or none", NAMES.join(",")),
        |near| format!("did you mean `{near}`?"),
    );
    ToolsError::UnknownTool {
        name: name.to_owned(),
        advice,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_context::{Bpe, TokenCounter, Tokens};

    use super::*;
    use crate::testing::Workspace as Files;

    fn names(list: &str) -> Result<Vec<String>, String> {
        let toolbox = Toolbox::new(Files::new().root());
        let tools = toolbox.select(list).map_err(|error| error.to_string())?;
        Ok(tools.iter().map(|tool| tool.spec().name.clone()).collect())
    }

    #[test]
    fn tools_are_chosen_by_name() {
        assert_eq!(names("all").unwrap(), NAMES);
        assert_eq!(names("grep, read,grep").unwrap(), ["read", "grep"]);
        assert_eq!(names("none").unwrap(), [""; 0]);
        for (list, told) in [
            ("reed", "there is no tool `reed`; did you mean `read`?"),
            (
                "read,nothing",
                "there is no tool `nothing`; name some of bash,read,write,edit,list,glob,grep, or \
                 say all or none",
            ),
            (
                "",
                "there is no tool ``; name some of bash,read,write,edit,list,glob,grep, or say all \
                 or none",
            ),
        ] {
            assert_eq!(names(list), Err(told.to_owned()));
        }
    }

    #[test]
    fn each_says_whether_it_asks_and_may_be_repeated() {
        for tool in Toolbox::new(Files::new().root()).all() {
            let name = tool.spec().name.as_str();
            assert_eq!(tool.asks(), name == "bash", "{name}");
            assert_eq!(
                tool.idempotent(),
                !["bash", "edit"].contains(&name),
                "{name}"
            );
        }
    }

    #[test]
    fn all_seven_fit_a_small_context() {
        let counter = Bpe::o200k();
        let mut sum = Tokens::ZERO;
        for tool in Toolbox::new(Files::new().root()).all() {
            let tokens = counter.tool(tool.spec());
            println!("{:>4} {} {}", tokens, tool.spec().name, tool.spec().schema);
            sum += tokens;
        }
        println!("{sum:>4} in all");
        assert!(sum <= Tokens(600), "{sum}");
    }
}
