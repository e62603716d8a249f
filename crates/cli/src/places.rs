//! Where the files of a project and of its user are, for the library to read: instructions, skills, and
//! agents that are files.

use std::path::Path;

use plimsoll::config::{AgentConfig, ProjectFiles};
use plimsoll::tools::Skills;

use crate::paths;

/// The files of a project, and those of the user.
pub(crate) fn project(root: &Path) -> ProjectFiles {
    // With a place of its own, Plimsoll leaves the user's home alone.
    let home = match paths::variable("PLIMSOLL_HOME") {
        Some(_) => None,
        None => std::env::home_dir(),
    };
    ProjectFiles::new(root)
        .user_folder(paths::config().ok())
        .home(home)
}

/// Returns lines that say which skills there are, which are left out, and whom the agent may call.
pub(crate) fn notes(agent: &AgentConfig, skills: &Skills) -> Vec<String> {
    let names: Vec<&str> = skills.names().collect();
    let agents = &agent.settings().sub_agents;
    let found = (!names.is_empty()).then(|| format!("skills: {}", names.join(", ")));
    let called = (!agents.is_empty()).then(|| format!("agents: {}", agents.join(", ")));
    let left_out = skills.notes().to_vec();
    found.into_iter().chain(called).chain(left_out).collect()
}
