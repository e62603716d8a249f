//! Checks whether a path stays below a directory.

use std::path::{Component, Path, PathBuf};

/// Checks whether a path is this directory or inside it, following links.
pub(super) fn is_below(path: &Path, home: &Path) -> bool {
    let Ok(home) = home.canonicalize() else {
        return false;
    };
    real(path).is_some_and(|path| path.starts_with(home))
}

/// Returns the target of a path. For a missing file, returns the path that would be created. `None`
/// if the target is unknown: a dangling link may lead anywhere later.
fn real(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    let is_there = path.symlink_metadata().is_ok();
    let Some(Component::Normal(name)) = path.components().next_back().filter(|_| !is_there) else {
        return None;
    };
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    Some(real(parent.unwrap_or(Path::new(".")))?.join(name))
}
