//! `write`: creates or replaces a file and the directories above it, atomically.

use std::fs;
use std::io::ErrorKind;

use plimsoll_context::{Bytes, counted};
use plimsoll_core::{MAX_KEPT_FILE, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::change::PlannedChange;
use crate::file;
use crate::scope::{LocatedPath, Scope};

/// The description of the tool for the model.
pub(crate) const DESCRIPTION: &str = "Creates or replaces a file. To change a part, use edit.";
/// Maximum size of the content. A longer reply would not fit any window.
pub const WRITE_MAX: Bytes = Bytes(16 * 1024 * 1024);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct WriteInput {
    #[serde(alias = "file", alias = "file_path", alias = "filename")]
    path: String,
    #[serde(alias = "text", alias = "contents")]
    content: String,
}

/// Plans the change of a call.
pub(crate) fn plan(scope: &Scope, input: &WriteInput) -> Result<PlannedChange, ToolError> {
    let (file, is_new) = target(scope, input)?;
    let shown = scope.shown(&file);
    let before = if is_new {
        None
    } else {
        Some(file::read_bytes(
            scope,
            &shown,
            &file,
            MAX_KEPT_FILE,
            "kept before they are replaced",
        )?)
    };
    let content = &input.content;
    let done = if is_new { "created" } else { "replaced" };
    let lines = counted(content.lines().count() as u64, "line");
    let bytes = counted(content.len() as u64, "byte");
    Ok(PlannedChange {
        told: format!("{done} `{shown}`: {lines}, {bytes}"),
        file,
        shown,
        before,
        after: content.clone().into_bytes(),
    })
}

/// Returns the file to write, and whether it is new.
fn target(scope: &Scope, input: &WriteInput) -> Result<(LocatedPath, bool), ToolError> {
    let WriteInput { path, content } = input;
    let bytes = content.len();
    if bytes as u64 > WRITE_MAX.0 {
        return Err(ToolError(format!(
            "`content` has {bytes} bytes, more than {WRITE_MAX}; write it with bash"
        )));
    }
    let file = scope.locate(path)?;
    let shown = scope.shown(&file);
    if path.ends_with('/') {
        return Err(ToolError(format!(
            "`{path}` names a folder; give a file in it"
        )));
    }
    match fs::symlink_metadata(&file.real) {
        Ok(old) => {
            file::regular(&shown, &old)?;
            if old.permissions().readonly() {
                return Err(ToolError(format!(
                    "`{shown}` is read-only; leave it, or change its permissions with bash"
                )));
            }
            Ok((file, false))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok((file, true)),
        Err(error) => Err(ToolError(format!("cannot write `{shown}`: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::testing::Workspace as Files;

    #[test]
    fn files_are_made_and_replaced() {
        let files = Files::new();
        for (path, content, told) in [
            ("a.txt", "one\ntwo\n", "created `a.txt`: 2 lines, 8 bytes"),
            ("a.txt", "é", "replaced `a.txt`: 1 line, 2 bytes"),
            ("a/b/c.txt", "", "created `a/b/c.txt`: 0 lines, 0 bytes"),
            ("./crlf", "a\r\n", "created `crlf`: 1 line, 3 bytes"),
        ] {
            let arguments = serde_json::json!({ "path": path, "content": content });
            let got = files.call("write", &arguments.to_string());
            assert_eq!(got.as_deref(), Ok(told));
            assert_eq!(fs::read_to_string(files.path(path)).unwrap(), content);
        }
        // No other files were created.
        assert_eq!(fs::read_dir(files.root().path()).unwrap().count(), 3);
    }

    #[test]
    fn a_file_that_is_too_large_to_be_kept_is_not_replaced() {
        let files = Files::new();
        let large = fs::File::create(files.path("large")).unwrap();
        large.set_len(16 * 1024 * 1024 + 1).unwrap();
        let refused = files.call("write", r#"{"path":"large","content":"x"}"#);
        assert_eq!(
            refused.unwrap_err(),
            "`large` has 16777217 bytes, more than the 16777216 that can be kept before they are \
             replaced; use bash"
        );
        assert_eq!(large.metadata().unwrap().len(), 16 * 1024 * 1024 + 1);
    }

    #[cfg(unix)]
    #[test]
    fn what_must_not_be_written_is_refused() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let outside = Files::new();
        let files = Files::new();
        files.put("dir/x", "x");
        files.put("locked", "x");
        fs::set_permissions(files.path("locked"), fs::Permissions::from_mode(0o444)).unwrap();
        symlink(outside.path("new"), files.path("nowhere")).unwrap();
        symlink(outside.root().path(), files.path("out")).unwrap();
        symlink("dir/x", files.path("inside")).unwrap();
        for (path, refusal) in [
            ("dir", "`dir` is a directory"),
            ("new/", "names a folder"),
            ("../new", "outside the workspace root"),
            ("out/new", "outside the workspace root"),
            ("nowhere", "leads nowhere"),
            ("locked", "is read-only"),
            ("dir/x/y", "Not a directory"),
        ] {
            let arguments = serde_json::json!({ "path": path, "content": "new" });
            let error = files.call("write", &arguments.to_string()).unwrap_err();
            assert!(error.contains(refusal), "{error}");
        }
        assert_eq!(fs::read_dir(outside.root().path()).unwrap().count(), 0);
        // If a link stays inside, its target is written and the link is kept.
        files
            .call("write", r#"{"path":"inside","content":"new"}"#)
            .unwrap();
        assert_eq!(fs::read_to_string(files.path("dir/x")).unwrap(), "new");
        assert!(files.path("inside").is_symlink());
    }
}
