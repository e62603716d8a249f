//! Going through the files of a folder as `glob` and `grep` do: in one order on every machine,
//! without what `.gitignore` leaves out, bounded in number and time. It opens no file.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use plimsoll_core::ToolError;

use crate::file_tool::Stop;
use crate::scope::{Located, Scope};

/// A walk ends after this many entries: several times the largest source trees.
pub const WALK_MAX: usize = 500_000;
/// The folder that holds a repository's history: never searched.
const HISTORY: &str = ".git";

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walked {
    /// Everything was seen.
    Whole,
    /// It was stopped before the end, by a bound.
    Part,
}

/// Calls `visit` with each regular file below `base`, or with `base` if it is one; the rest of
/// the order is by path. Links are not followed.
pub(crate) fn files(base: &Path, stop: &Stop, mut visit: impl FnMut(&Path)) -> Walked {
    let walk = WalkBuilder::new(base)
        // Files with a leading dot are files; what is left out is the business of .gitignore,
        // inside a repository or not, and the same for every user.
        .hidden(false)
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != HISTORY)
        .sort_by_file_path(Path::cmp)
        .build();
    for (seen, entry) in walk.enumerate() {
        if seen >= WALK_MAX || stop.now() {
            return Walked::Part;
        }
        // A folder that may not be read is passed over, as the shell's tools do.
        let Ok(entry) = entry else { continue };
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            visit(entry.path());
        }
    }
    Walked::Whole
}

/// A pattern of names, as `.gitignore` reads it: without a `/` it is matched with the name
/// alone, at any depth; with one, with the whole path.
#[derive(Debug)]
pub(crate) struct Pattern {
    matcher: GlobMatcher,
    name_only: bool,
}

impl Pattern {
    /// # Errors
    /// A text for the model.
    pub(crate) fn new(pattern: &str, scope: &Scope) -> Result<Self, ToolError> {
        let inside = Path::new(pattern).strip_prefix(scope.root().path());
        let relative = inside.ok().and_then(Path::to_str).unwrap_or(pattern);
        let relative = relative.trim_start_matches("./").trim_start_matches('/');
        let fault = |why: &str| {
            ToolError(format!(
                "the pattern `{pattern}` {why}; write one such as `*.rs` or `src/**/*.rs`"
            ))
        };
        if relative.is_empty() {
            return Err(fault("names nothing"));
        }
        if relative.split('/').any(|part| part == "..") {
            return Err(fault("leads out of the folder"));
        }
        let glob = GlobBuilder::new(relative)
            .literal_separator(true)
            .build()
            .map_err(|error| fault(&format!("cannot be read ({})", error.kind())))?;
        Ok(Self {
            matcher: glob.compile_matcher(),
            name_only: !relative.contains('/'),
        })
    }

    /// Whether it fits a file, seen from the folder that is searched or from the root.
    pub(crate) fn fits(&self, file: &Path, base: &Path, root: &Path) -> bool {
        if self.name_only {
            return file
                .file_name()
                .is_some_and(|name| self.matcher.is_match(name));
        }
        let from = |folder: &Path| {
            let relative = file.strip_prefix(folder);
            relative.is_ok_and(|path| self.matcher.is_match(path))
        };
        from(base) || from(root)
    }
}

/// Where a search begins: the path that was given, or the root.
pub(crate) fn base(scope: &Scope, path: Option<&str>) -> Result<Located, ToolError> {
    match path.map(str::trim) {
        None | Some("") => scope.existing("."),
        Some(path) => scope.existing(path),
    }
}
