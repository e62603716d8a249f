//! Visits the files of a directory for `glob` and `grep`: in the same order on every machine, without
//! files ignored by `.gitignore`, and with limits on number and time.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use plimsoll_core::ToolError;

use crate::file_tool::Stop;
use crate::scope::{LocatedPath, Scope};

/// Maximum number of visited entries: several times the largest source trees.
pub const WALK_MAX: usize = 500_000;
/// The directory with a repository's history, which is never searched.
const HISTORY: &str = ".git";

/// The end of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkEnd {
    /// All files were visited.
    Whole,
    /// A limit stopped the walk.
    Part,
}

/// Calls `visit` with each regular file below `base`, sorted by path, or with `base` itself if it is a
/// file. Links are not followed.
pub(crate) fn files(base: &Path, stop: &Stop, mut visit: impl FnMut(&Path)) -> WalkEnd {
    let walk = WalkBuilder::new(base)
        // Files with a leading dot are included. Only .gitignore files exclude files, inside a
        // repository or not, and equally for every user.
        .hidden(false)
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != HISTORY)
        .sort_by_file_path(Path::cmp)
        .build();
    for (seen, entry) in walk.enumerate() {
        if seen >= WALK_MAX || stop.now() {
            return WalkEnd::Part;
        }
        // Unreadable directories are skipped, as usual for shell tools.
        let Ok(entry) = entry else { continue };
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            visit(entry.path());
        }
    }
    WalkEnd::Whole
}

/// A file name pattern with the rules of `.gitignore`: a pattern without `/` is matched with the name
/// alone, at any depth; a pattern with `/` is matched with the whole path.
#[derive(Debug)]
pub(crate) struct Pattern {
    matcher: GlobMatcher,
    name_only: bool,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// If the pattern is invalid. The error is a text for the model.
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

    /// Checks whether the pattern matches a file, relative to the searched directory or to the root.
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

/// Returns the start of a search: the given path, or the root.
pub(crate) fn base(scope: &Scope, path: Option<&str>) -> Result<LocatedPath, ToolError> {
    match path.map(str::trim) {
        None | Some("") => scope.existing("."),
        Some(path) => scope.existing(path),
    }
}
