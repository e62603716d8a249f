//! `list`: lists the entries of one directory, sorted; directories are marked and files have their
//! size.
//!
//! Subdirectories are not listed; use `glob` for them.

use std::fs::DirEntry;

use plimsoll_core::{ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::file_tool::Stop;
use crate::output_page::OutputPage;
use crate::root::one_line;
use crate::safe_open;
use crate::scope::{Scope, left_out};
use crate::walk;

/// The description of the tool for the model.
pub(crate) const DESCRIPTION: &str = "Lists a directory.";
/// Maximum number of entries that are read: all must be held in memory to be sorted.
pub const LIST_SCAN_MAX: usize = 100_000;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListInput {
    #[serde(default, alias = "dir", alias = "directory", alias = "folder")]
    #[schemars(with = "String")]
    path: Option<String>,
}

pub(crate) fn work(scope: &Scope, input: ListInput, stop: &Stop) -> Result<ToolOutput, ToolError> {
    let folder = walk::base(scope, input.path.as_deref())?;
    let shown = scope.shown(&folder);
    if !folder.real.is_dir() {
        return Err(ToolError(format!("`{shown}` is a file; use read")));
    }
    let failed = |error| ToolError(format!("cannot list `{shown}`: {error}"));
    // Kept open until the end, so that its path refers to the same directory.
    let (_open, path) =
        safe_open::readable(scope.root().path(), &folder.relative).map_err(failed)?;
    let mut entries: Vec<DirEntry> = Vec::new();
    let (mut more, mut hidden) = ("", 0);
    for entry in path.read_dir().map_err(failed)? {
        if entries.len() >= LIST_SCAN_MAX || stop.now() {
            more = "over ";
            break;
        }
        let entry = entry.map_err(failed)?;
        if scope.may_show(&folder.real.join(entry.file_name())) {
            entries.push(entry)
        } else {
            hidden += 1
        }
    }
    if entries.is_empty() && hidden == 0 {
        return Ok("[empty directory]".into());
    }
    entries.sort_by_key(DirEntry::file_name);
    let mut page = OutputPage::new(usize::MAX);
    for entry in &entries {
        page.push(&line(entry));
    }
    let (count, total) = (page.lines(), entries.len());
    let mut notes = Vec::new();
    if count < total || !more.is_empty() {
        notes.push(format!(
            "{count} of {more}{total} entries; find others with glob"
        ));
    }
    notes.extend(left_out(hidden));
    Ok(page.close(&notes.join("; ")).into())
}

fn line(entry: &DirEntry) -> String {
    let name = one_line(&entry.file_name().to_string_lossy());
    let Ok(kind) = entry.file_type() else {
        return name;
    };
    if kind.is_dir() {
        return format!("{name}/");
    }
    if kind.is_symlink() {
        let target = entry.path().read_link().unwrap_or_default();
        return format!("{name} -> {}", one_line(&target.to_string_lossy()));
    }
    match entry.metadata() {
        Ok(metadata) if kind.is_file() => format!("{name} ({} bytes)", metadata.len()),
        _ => format!("{name} (not a file)"),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Workspace as Files;

    #[cfg(unix)]
    #[test]
    fn a_folder_is_listed_in_order() {
        let files = Files::new();
        files.put("b.txt", "12345");
        files.put("a/x", "");
        files.put(".hidden", "");
        files.put("B", "");
        files.put("new\nline", "");
        std::os::unix::fs::symlink("b.txt", files.path("link")).unwrap();
        let all = ".hidden (0 bytes)\nB (0 bytes)\na/\nb.txt (5 bytes)\nlink -> b.txt\n\
                   new\\nline (0 bytes)\n";
        for arguments in [
            "{}",
            r#"{"path":"."}"#,
            r#"{"path":""}"#,
            r#"{"path":null}"#,
        ] {
            assert_eq!(files.call("list", arguments).as_deref(), Ok(all));
        }
        let a = files.call("list", r#"{"dir":"a"}"#);
        assert_eq!(a.as_deref(), Ok("x (0 bytes)\n"));
    }

    #[test]
    fn what_is_no_folder_is_said() {
        let files = Files::new();
        files.put("b.txt", "");
        std::fs::create_dir(files.path("empty")).unwrap();
        for (path, told) in [
            ("b.txt", Err("`b.txt` is a file; use read")),
            ("empty", Ok("[empty directory]")),
            ("emty", Err("there is no `emty`; did you mean `empty`?")),
        ] {
            let arguments = serde_json::json!({ "path": path }).to_string();
            let got = files.call("list", &arguments);
            assert_eq!(got.as_deref().map_err(String::as_str), told);
        }
    }

    #[test]
    fn a_long_list_says_how_much_is_missing() {
        let files = Files::new();
        for n in 0..3_000 {
            files.put(&format!("a-file-of-some-length-{n:04}"), "");
        }
        let got = files.call("list", "{}").unwrap();
        assert!(got.len() <= crate::PAGE.0 as usize + 100);
        let lines = got.lines().count() - 1;
        let note = format!("[{lines} of 3000 entries; find others with glob]");
        assert!(got.ends_with(&note), "{note}");
    }
}
