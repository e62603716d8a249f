//! Where skills are looked for if nothing says where: in the project, then in what belongs to the user. The
//! folders are those that several agents share, and our own.

use std::path::{Path, PathBuf};

use plimsoll::config::AgentConfig;

use crate::instructions::repository;
use crate::paths;

/// Folders of skills in a project, and in the user's home.
const SHARED: [&str; 2] = [".agents/skills", ".claude/skills"];
/// Our own in a project.
const PROJECT: &str = ".plimsoll/skills";
/// And in the directory of settings.
const USERS: &str = "skills";

/// Sets the places where an agent's skills are looked for, unless its settings name some.
pub(crate) fn adapt(agent: &mut AgentConfig) {
    let settings = agent.settings_mut();
    if settings.skills.is_none() {
        settings.skills = Some(places(&settings.root));
    }
}

/// Returns the line that says which skills there are, and one for each that is left out.
pub(crate) fn notes(agent: &AgentConfig) -> Vec<String> {
    let skills = agent.skills();
    let names: Vec<&str> = skills.names().collect();
    let found = (!names.is_empty()).then(|| format!("skills: {}", names.join(", ")));
    found.into_iter().chain(skills.notes().to_vec()).collect()
}

/// The first that has a skill of some name counts.
fn places(root: &Path) -> Vec<PathBuf> {
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    let top = repository(&root).filter(|top| *top != root);
    let mut places = Vec::new();
    for folder in [root].iter().chain(&top) {
        places.push(folder.join(PROJECT));
        places.extend(SHARED.map(|shared| folder.join(shared)));
    }
    places.extend(paths::config().map(|folder| folder.join(USERS)));
    // With a place of its own, Plimsoll leaves the user's home alone.
    if paths::variable("PLIMSOLL_HOME").is_none()
        && let Some(home) = std::env::home_dir()
    {
        places.extend(SHARED.map(|shared| home.join(shared)));
    }
    places
}
