//! A temporary workspace for tests, with tool calls like those of a run. Only for the tests of this
//! crate.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_agent::{PermissionRule, Permissions};
use plimsoll_context::CallId;
use plimsoll_core::{ToolContext, ToolError, ToolOutput};
use tokio_util::sync::CancellationToken;

use crate::{Root, Toolbox};

/// A directory that is removed after the test.
pub(crate) struct Workspace {
    folder: tempfile::TempDir,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    pub(crate) fn root(&self) -> Root {
        Root::new(self.folder.path()).unwrap()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Creates a file and the directories above it.
    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Calls a tool with arguments as a model writes them.
    pub(crate) fn call(&self, name: &str, arguments: &str) -> Result<String, String> {
        call(&Toolbox::new(self.root()), name, arguments)
    }

    /// Reads a file for a model that accepts images.
    pub(crate) fn shown(&self, path: &str) -> Result<ToolOutput, ToolError> {
        let mut context = context();
        context.shows_images = true;
        let arguments = serde_json::json!({ "path": path });
        output(context, &Toolbox::new(self.root()), "read", arguments)
    }

    /// Calls a tool under permission rules such as `deny read path=.env`.
    pub(crate) fn call_under(
        &self,
        rules: &[&str],
        name: &str,
        arguments: &str,
    ) -> Result<String, String> {
        let mut context = context();
        context.permissions = Arc::new(rules_of(rules));
        call_in(context, &Toolbox::new(self.root()), name, arguments)
    }
}

/// Parses rules such as `deny read path=.env`.
pub(crate) fn rules_of(rules: &[&str]) -> Permissions {
    Permissions::new(rules.iter().map(|rule| {
        let mut words = rule.splitn(3, ' ');
        let permission = words.next().unwrap().parse().unwrap();
        let rule = PermissionRule::new(words.next().unwrap(), permission);
        match words.next() {
            Some(pattern) => rule.with_argument(pattern),
            None => rule,
        }
    }))
}

/// Returns a context that is never cancelled.
pub(crate) fn context() -> ToolContext {
    ToolContext::new(CallId("c1".into()), CancellationToken::new())
}

/// Calls a tool of a toolbox, and returns its text.
pub(crate) fn call(toolbox: &Toolbox, name: &str, arguments: &str) -> Result<String, String> {
    call_in(context(), toolbox, name, arguments)
}

fn call_in(
    context: ToolContext,
    toolbox: &Toolbox,
    name: &str,
    arguments: &str,
) -> Result<String, String> {
    let arguments = serde_json::from_str(arguments).unwrap();
    let got = output(context, toolbox, name, arguments);
    let text = |part: &plimsoll_context::Part| part.as_text().unwrap_or_default().to_owned();
    got.map(|output| output.parts.iter().map(text).collect())
        .map_err(|error| error.0)
}

fn output(
    context: ToolContext,
    toolbox: &Toolbox,
    name: &str,
    arguments: serde_json::Value,
) -> Result<ToolOutput, ToolError> {
    let tool = toolbox.tool(name).unwrap();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(tool.call(arguments, context))
}
