//! [`Scope`]: the part of the workspace that one call of a tool may use, according to the permission
//! rules of its run.
//!
//! The run has judged the call by the path that the model wrote. A scope applies the rules to the path
//! that it leads to, and to every file that a search finds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_agent::{CallTarget, PathTarget, Permission, Permissions};
use plimsoll_core::ToolError;
use serde_json::Value;

use crate::protected::is_protected;
use crate::root::Root;

/// The settings that all file tools of a toolbox share.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    pub(crate) root: Root,
    /// Additional files and directories that are changed only with approval.
    pub(crate) protected: Vec<PathBuf>,
}

/// The way in which a tool uses its path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    /// The tool's name.
    pub(crate) tool: &'static str,
    /// The tool's description.
    pub(crate) description: &'static str,
    /// `true` if the tool is idempotent.
    pub(crate) is_idempotent: bool,
    /// The arguments that contain the path.
    pub(crate) fields: &'static [&'static str],
    /// Tools that do the same with a file.
    pub(crate) same_as: &'static [&'static str],
    /// `true` if the path is optional; the default is the root.
    pub(crate) is_optional: bool,
    /// `true` if the tool changes the file.
    pub(crate) writes: bool,
}

/// The workspace for one call.
pub(crate) struct Scope {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) access: Access,
    pub(crate) permissions: Arc<Permissions>,
    /// `true` if the model accepts images.
    pub(crate) shows_images: bool,
}

/// A path in the workspace that the rules allow.
#[derive(Debug, Clone)]
pub(crate) struct LocatedPath {
    /// The absolute path, without links.
    pub(crate) real: PathBuf,
    /// The path relative to the root.
    pub(crate) relative: PathBuf,
}

impl Access {
    /// Returns the target of a call, as far as its arguments determine it.
    pub(crate) fn target(&self, workspace: &Workspace, arguments: &Value) -> CallTarget {
        let mut fields = self.fields.iter();
        let given = fields.find_map(|field| arguments.get(field));
        let given = match (given.and_then(Value::as_str), self.is_optional) {
            (Some(given), true) => given.trim(),
            (Some(given), false) => given,
            (None, true) => "",
            (None, false) => return CallTarget::Arguments,
        };
        let path = workspace.root.relative(Path::new(given));
        let mut target = self.path(workspace, path);
        target.written = given.to_owned();
        CallTarget::Path(target)
    }

    fn path(&self, workspace: &Workspace, path: String) -> PathTarget {
        let absolute = match path.as_str() {
            "." => workspace.root.path().to_owned(),
            path => workspace.root.path().join(path),
        };
        PathTarget {
            fields: self.fields,
            is_protected: self.writes && is_protected(&path, &absolute, &workspace.protected),
            absolute: absolute.to_string_lossy().into_owned(),
            written: path.clone(),
            path,
            // A search checks each file separately.
            same_as: if self.is_optional { &[] } else { self.same_as },
        }
    }
}

impl Scope {
    pub(crate) fn root(&self) -> &Root {
        &self.workspace.root
    }

    /// Returns a path as shown to the model.
    pub(crate) fn shown(&self, located: &LocatedPath) -> String {
        self.root().shown(&located.real)
    }

    /// Resolves a path that a model wrote, if the rules allow the tool to use it.
    pub(crate) fn locate(&self, given: &str) -> Result<LocatedPath, ToolError> {
        let real = self.root().resolve(given)?;
        self.allowed(given, real)
    }

    /// Does the same for an existing file or directory.
    pub(crate) fn existing(&self, given: &str) -> Result<LocatedPath, ToolError> {
        let real = self.root().existing(given)?;
        self.allowed(given, real)
    }

    fn allowed(&self, given: &str, real: PathBuf) -> Result<LocatedPath, ToolError> {
        let path = self.root().relative(&real);
        let is_plain = path == self.root().relative(Path::new(given));
        let shown = self.root().shown(&real);
        let tool = self.access.tool;
        match self.decide(path) {
            Some(Permission::Deny) => Err(ToolError(format!(
                "the rules of this run do not allow `{tool}` to use `{shown}`; do something else"
            ))),
            // The approval was for another path, or there was none.
            Some(Permission::Ask) if !is_plain => Err(ToolError(format!(
                "`{given}` leads to `{shown}`, about which a person must be asked; call `{tool}` with \
                 that path"
            ))),
            _ => {
                let relative = real.strip_prefix(self.root().path());
                let relative = relative.unwrap_or(&real).to_owned();
                Ok(LocatedPath { real, relative })
            }
        }
    }

    /// Checks whether a search may show the name of a file or directory that it finds.
    pub(crate) fn may_show(&self, real: &Path) -> bool {
        let path = || self.root().relative(real);
        let is_allowed = |permission| permission == Permission::Allow;
        self.permissions.is_empty() || self.decide(path()).is_none_or(is_allowed)
    }

    /// Checks whether a search may show the content of a file. `named` is the file in the call.
    pub(crate) fn may_search(&self, real: &Path, named: &Path) -> bool {
        if self.permissions.is_empty() {
            return true;
        }
        let own = self
            .access
            .path(&self.workspace, self.root().relative(real));
        let with_others = PathTarget {
            same_as: self.access.same_as,
            ..own.clone()
        };
        match self.decide_on(with_others) {
            Some(Permission::Deny) => false,
            // The file named in the call was approved if its rules require approval.
            Some(Permission::Ask) => real == named && self.decide_on(own) == Some(Permission::Ask),
            Some(Permission::Allow) | None => true,
        }
    }

    fn decide(&self, path: String) -> Option<Permission> {
        self.decide_on(self.access.path(&self.workspace, path))
    }

    fn decide_on(&self, path: PathTarget) -> Option<Permission> {
        let target = CallTarget::Path(path);
        self.permissions
            .decide(self.access.tool, &Value::Null, &target)
    }
}

/// Returns a note about the results that a search omitted because of the rules.
pub(crate) fn left_out(count: usize) -> Option<String> {
    (count > 0).then(|| format!("{count} left out by the rules of this run"))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;
    use crate::Toolbox;
    use crate::testing::{Workspace as Files, rules_of};

    fn files() -> Files {
        let files = Files::new();
        files.put(".env", "KEY=hunter2\n");
        files.put("keys/prod", "KEY=hunter3\n");
        files.put("src/main.rs", "let KEY = 1;\n");
        symlink(".env", files.path("link")).unwrap();
        symlink("../keys", files.path("src/near")).unwrap();
        files
    }

    #[test]
    fn a_rule_holds_for_what_a_path_leads_to_in_every_file_tool() {
        let files = files();
        let deny = ["deny read path=.env", "deny read path=keys"];
        for (tool, arguments) in [
            ("read", r#"{"path":".env"}"#),
            ("read", r#"{"path":"./src//../.env"}"#),
            ("read", r#"{"path":"link"}"#),
            ("read", r#"{"path":"keys/prod"}"#),
            ("read", r#"{"path":"src/near/prod"}"#),
            ("edit", r#"{"path":".env","old":"nothing","new":"x"}"#),
            ("edit", r#"{"path":"link","old":"nothing","new":"x"}"#),
        ] {
            let error = files.call_under(&deny, tool, arguments).unwrap_err();
            assert!(
                error.contains("the rules of this run do not allow"),
                "{error}"
            );
            assert!(!error.contains("hunter"), "{error}");
        }
        let absolute = json!({ "path": files.path(".env") }).to_string();
        assert!(files.call_under(&deny, "read", &absolute).is_err());
        for arguments in [
            r#"{"pattern":"KEY"}"#,
            r#"{"pattern":"KEY","path":"."}"#,
            r#"{"pattern":"KEY","glob":"*"}"#,
        ] {
            let found = files.call_under(&deny, "grep", arguments).unwrap();
            assert_eq!(
                found,
                "src/main.rs:1: let KEY = 1;\n[2 left out by the rules of this run]"
            );
        }
        for path in [".env", "keys", "src/near", "link"] {
            let arguments = json!({ "pattern": "KEY", "path": path }).to_string();
            let found = files.call_under(&deny, "grep", &arguments).unwrap();
            assert!(
                found.ends_with("1 left out by the rules of this run]"),
                "{path}: {found}"
            );
        }
        // Rules about contents do not hide names, unless a rule is for the tools that show them.
        let names = files
            .call_under(&deny, "glob", r#"{"pattern":"*"}"#)
            .unwrap();
        assert!(names.contains(".env"), "{names}");
        let all = ["deny * path=.env"];
        let names = files
            .call_under(&all, "glob", r#"{"pattern":"*"}"#)
            .unwrap();
        assert_eq!(
            names,
            "keys/prod\nsrc/main.rs\n[1 left out by the rules of this run]"
        );
        let names = files.call_under(&all, "list", "{}").unwrap();
        assert_eq!(
            names,
            "keys/\nlink -> .env\nsrc/\n[1 left out by the rules of this run]"
        );
        // Rules for reading do not affect writing, and vice versa.
        let write = r#"{"path":".env","content":"x"}"#;
        files.call_under(&deny, "write", write).unwrap();
        let error = files.call_under(&["deny edit path=.env"], "write", write);
        assert!(
            error
                .unwrap_err()
                .contains("do not allow `write` to use `.env`")
        );
    }

    #[test]
    fn a_question_about_one_path_is_none_about_another() {
        let files = files();
        let ask = ["ask read path=.env", "ask grep path=keys/*"];
        let read = |path: &str| {
            let arguments = json!({ "path": path }).to_string();
            files.call_under(&ask, "read", &arguments)
        };
        // These calls were approved.
        assert!(read(".env").is_ok() && read("./src/../.env").is_ok());
        assert_eq!(
            read("link").unwrap_err(),
            "`link` leads to `.env`, about which a person must be asked; call `read` with that path"
        );
        let grep = |path: &str| {
            let arguments = json!({ "pattern": "KEY", "path": path }).to_string();
            files.call_under(&ask, "grep", &arguments).unwrap()
        };
        assert_eq!(grep("keys/prod"), "keys/prod:1: KEY=hunter3\n");
        for path in ["keys", ".env"] {
            let found = grep(path);
            assert!(!found.contains("hunter"), "{path}: {found}");
        }
        // Protected files need approval.
        symlink("AGENTS.md", files.path("notes.md")).unwrap();
        files.put("AGENTS.md", "Be kind.");
        let error = files.call("write", r#"{"path":"notes.md","content":"x"}"#);
        assert_eq!(
            error.unwrap_err(),
            "`notes.md` leads to `AGENTS.md`, about which a person must be asked; call `write` with \
             that path"
        );
    }

    #[test]
    fn a_tool_says_what_its_calls_act_on() {
        let files = files();
        let toolbox = Toolbox::new(files.root()).protect([files.path("guard")]);
        let root = files.root();
        let target =
            |tool: &str, arguments: Value| match toolbox.tool(tool).unwrap().target(&arguments) {
                CallTarget::Path(path) => Some((path.path, path.is_protected)),
                _ => None,
            };
        let some = |path: &str, protected| Some((path.to_owned(), protected));
        let absolute = root.path().join(".env");
        for (tool, arguments, expected) in [
            ("read", json!({"path": ".//.env"}), some(".env", false)),
            ("read", json!({"path": absolute}), some(".env", false)),
            ("read", json!({"file": "./.env"}), some(".env", false)),
            ("read", json!({}), None),
            ("grep", json!({"pattern": "x"}), some(".", false)),
            ("grep", json!({"file": " .env "}), some(".env", false)),
            (
                "write",
                json!({"path": "a/../AGENTS.md"}),
                some("AGENTS.md", true),
            ),
            (
                "edit",
                json!({"path": ".git/config"}),
                some(".git/config", true),
            ),
            ("write", json!({"path": "guard"}), some("guard", true)),
            (
                "read",
                json!({"path": "AGENTS.md"}),
                some("AGENTS.md", false),
            ),
            ("bash", json!({"path": ".env"}), None),
        ] {
            assert_eq!(
                target(tool, arguments.clone()),
                expected,
                "{tool} {arguments}"
            );
        }
        let rules = rules_of(&["deny write path=AGENTS.md"]);
        let arguments = json!({"file_path": "./AGENTS.md"});
        let target = toolbox.tool("write").unwrap().target(&arguments);
        let said = rules.decide("write", &arguments, &target);
        assert_eq!(said, Some(Permission::Deny));
    }
}
