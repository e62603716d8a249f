//! `glob`: lists the files whose names match a pattern, sorted, without files ignored by `.gitignore`.

use plimsoll_context::counted;
use plimsoll_core::{ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::file_tool::Stop;
use crate::output_page::OutputPage;
use crate::scope::{Scope, left_out};
use crate::walk::{self, Pattern, WalkEnd};

/// The description of the tool for the model.
pub(crate) const DESCRIPTION: &str = "Finds files by name, such as `*.rs` or `src/**/*.md`.";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct GlobInput {
    #[serde(alias = "glob")]
    pattern: String,
    /// Directory to search
    #[serde(default, alias = "dir", alias = "directory", alias = "folder")]
    #[schemars(with = "String")]
    path: Option<String>,
}

pub(crate) fn work(scope: &Scope, input: GlobInput, stop: &Stop) -> Result<ToolOutput, ToolError> {
    let base = walk::base(scope, input.path.as_deref())?.real;
    let pattern = Pattern::new(&input.pattern, scope)?;
    let root = scope.root();
    let mut page = OutputPage::new(usize::MAX);
    let (mut found, mut seen, mut hidden) = (0_usize, 0_usize, 0_usize);
    let walked = walk::files(&base, stop, |file| {
        seen += 1;
        if !pattern.fits(file, &base, root.path()) {
        } else if scope.may_show(file) {
            found += 1;
            page.push(&root.shown(file));
        } else {
            hidden += 1;
        }
    });
    let shown = page.lines();
    let stopped = match walked {
        WalkEnd::Whole => "",
        WalkEnd::Part => "; the search was stopped early: narrow `path`",
    };
    let note = match (found, stopped) {
        (0, _) => format!("no file fits, of {seen}{stopped}"),
        _ if shown < found => format!("{shown} of {found} files; narrow the pattern{stopped}"),
        (_, "") => String::new(),
        _ => format!("{}{stopped}", counted(found as u64, "file")),
    };
    let notes = (!note.is_empty()).then_some(note).into_iter();
    let notes: Vec<String> = notes.chain(left_out(hidden)).collect();
    Ok(page.close(&notes.join("; ")).into())
}

#[cfg(test)]
mod tests {
    use crate::testing::Workspace as Files;

    fn tree() -> Files {
        let files = Files::new();
        for path in [
            "src/main.rs",
            "src/a/b.rs",
            "src/a.rs",
            "docs/a.md",
            "README.md",
            ".github/ci.yml",
            ".git/config.rs",
            "target/out.rs",
            "a/skip.rs",
        ] {
            files.put(path, "");
        }
        files.put(".gitignore", "/target\nskip.rs\n");
        files
    }

    #[test]
    fn files_are_found_in_order_without_what_is_ignored() {
        let files = tree();
        for (arguments, found) in [
            (
                r#"{"pattern":"*.rs"}"#,
                "src/a/b.rs\nsrc/a.rs\nsrc/main.rs\n",
            ),
            (
                r#"{"pattern":"**/*.rs"}"#,
                "src/a/b.rs\nsrc/a.rs\nsrc/main.rs\n",
            ),
            (r#"{"pattern":"src/*.rs"}"#, "src/a.rs\nsrc/main.rs\n"),
            (r#"{"pattern":"./src/**/b.rs"}"#, "src/a/b.rs\n"),
            (r#"{"pattern":"/docs/*"}"#, "docs/a.md\n"),
            (
                r#"{"pattern":"*.{md,yml}"}"#,
                ".github/ci.yml\nREADME.md\ndocs/a.md\n",
            ),
            (r#"{"pattern":"*.rs","path":"src/a"}"#, "src/a/b.rs\n"),
            (r#"{"pattern":"a/*.rs","path":"src"}"#, "src/a/b.rs\n"),
            (
                r#"{"pattern":"src/*.rs","path":"src"}"#,
                "src/a.rs\nsrc/main.rs\n",
            ),
            (r#"{"pattern":"config.rs"}"#, "[no file fits, of 7]"),
        ] {
            let got = files.call("glob", arguments);
            assert_eq!(got.as_deref(), Ok(found), "{arguments}");
        }
    }

    #[test]
    fn bad_patterns_and_folders_are_said() {
        let files = tree();
        for (arguments, told) in [
            (r#"{"pattern":""}"#, "names nothing"),
            (r#"{"pattern":"../*"}"#, "leads out of the folder"),
            (
                r#"{"pattern":"a[b"}"#,
                "cannot be read (unclosed character class",
            ),
            (
                r#"{"pattern":"*","path":"../x"}"#,
                "outside the workspace root",
            ),
            (r#"{"pattern":"*","path":"scr"}"#, "did you mean `src`?"),
        ] {
            let error = files.call("glob", arguments).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn links_are_not_followed_and_long_results_are_cut() {
        let files = Files::new();
        for n in 0..2_000 {
            files.put(&format!("folder/some-name-{n:04}.txt"), "");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("..", files.path("folder/up")).unwrap();
        let got = files.call("glob", r#"{"pattern":"*"}"#).unwrap();
        assert!(got.starts_with("folder/some-name-0000.txt\nfolder/some-name-0001.txt\n"));
        let lines = got.lines().count() - 1;
        assert!(lines < 2_000);
        let note = format!("[{lines} of 2000 files; narrow the pattern]");
        assert!(got.ends_with(&note), "{got}");
    }
}
