//! How far a file may reach that was found and not named: no path of it leaves its directory. Not
//! what is read there.

use std::path::{Component, Path, PathBuf};

/// Whether a path of this file stays in the file's directory, links followed. One that is absolute
/// does not, even where it leads there: it is of one machine.
pub(super) fn stays(file: &Path, given: &Path) -> bool {
    let home = file.parent().filter(|folder| *folder != Path::new(""));
    let home = home.unwrap_or(Path::new("."));
    given.is_relative() && is_below(&home.join(given), home)
}

/// Whether a path is this directory or in it, links followed.
pub(super) fn is_below(path: &Path, home: &Path) -> bool {
    let Ok(home) = home.canonicalize() else {
        return false;
    };
    real(path).is_some_and(|path| path.starts_with(home))
}

/// Where a path leads; of one that is not there, where it would be made. `None` where that is not
/// known: a link to nothing may lead anywhere later on.
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
