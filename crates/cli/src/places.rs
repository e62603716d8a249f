//! The locations of the files of a project and its user, for the library to read: instructions,
//! skills and agents.

use std::path::Path;

use plimsoll::config::{AgentConfig, ProjectFiles};
use plimsoll::tools::Skills;

use crate::paths;

/// Returns the files of a project and of the user.
pub(crate) fn project(root: &Path) -> ProjectFiles {
    // If `PLIMSOLL_HOME` is set, Plimsoll does not read the user's home.
    let home = match paths::variable("PLIMSOLL_HOME") {
        Some(_) => None,
        None => std::env::home_dir(),
    };
    ProjectFiles::new(root)
        .user_folder(paths::config().ok())
        .home(home)
}

/// Returns lines about the available skills, the ignored skills, and the agents that the agent may
/// call.
pub(crate) fn notes(agent: &AgentConfig, skills: &Skills) -> Vec<String> {
    let names: Vec<&str> = skills.names().collect();
    let agents = &agent.settings().sub_agents;
    let found = (!names.is_empty()).then(|| format!("skills: {}", names.join(", ")));
    let called = (!agents.is_empty()).then(|| format!("agents: {}", agents.join(", ")));
    let left_out = skills.notes().to_vec();
    found.into_iter().chain(called).chain(left_out).collect()
}
