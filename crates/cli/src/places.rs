//! Where skills and agents that are files are looked for: in the project, then in what belongs to the user.
//! The folders are our own, and those that other agents have.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll::config::{AgentConfig, AgentFileForm, Config};

use crate::instructions::repository;
use crate::paths;

/// Our own folder in a project.
const OURS: &str = ".plimsoll";
/// Where others have skills, in a project and in the user's home.
const SKILLS_OF_OTHERS: [&str; 2] = [".agents", ".claude"];
/// And agents.
const AGENTS_OF_OTHERS: [&str; 1] = [".claude"];
/// Files of one folder that are looked at, at most.
const MAX_FILES: usize = 1_000;

/// A folder to look at.
struct Place {
    folder: PathBuf,
    is_ours: bool,
    is_users: bool,
}

/// Sets the places where an agent's skills are looked for, unless its settings name some.
pub(crate) fn add_skills(agent: &mut AgentConfig) {
    let settings = agent.settings_mut();
    if settings.skills.is_none() {
        let places = places(&settings.root, "skills", &SKILLS_OF_OTHERS);
        settings.skills = Some(places.into_iter().map(|place| place.folder).collect());
    }
}

/// Adds the agents that are files.
pub(crate) fn with_agents(mut config: Config, root: &Path) -> Config {
    for place in places(root, "agents", &AGENTS_OF_OTHERS) {
        let form = match place.is_ours {
            true => AgentFileForm::Plimsoll,
            false => AgentFileForm::ClaudeCode,
        };
        let Ok(files) = fs::read_dir(&place.folder) else {
            continue;
        };
        let files = files.flatten().take(MAX_FILES).map(|file| file.path());
        let is_agent = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
        let mut files: Vec<PathBuf> = files
            .filter(is_agent)
            .filter(|path| path.is_file())
            .collect();
        files.sort_unstable();
        for file in files {
            config = config.agent_file(&file, form, place.is_users);
        }
    }
    config
}

/// Returns lines that say which skills there are, which are left out, and whom the agent may call.
pub(crate) fn notes(agent: &AgentConfig) -> Vec<String> {
    let skills = agent.skills();
    let names: Vec<&str> = skills.names().collect();
    let agents = &agent.settings().sub_agents;
    let found = (!names.is_empty()).then(|| format!("skills: {}", names.join(", ")));
    let called = (!agents.is_empty()).then(|| format!("agents: {}", agents.join(", ")));
    let left_out = skills.notes().to_vec();
    found.into_iter().chain(called).chain(left_out).collect()
}

/// The folders of one kind. What is found in the first of them counts.
fn places(root: &Path, kind: &str, others: &[&str]) -> Vec<Place> {
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    let top = repository(&root).filter(|top| *top != root);
    let mut places = Vec::new();
    let mut add = |folder: PathBuf, is_ours, is_users| {
        places.push(Place {
            folder,
            is_ours,
            is_users,
        });
    };
    for folder in [root].iter().chain(&top) {
        add(folder.join(OURS).join(kind), true, false);
        for other in others {
            add(folder.join(other).join(kind), false, false);
        }
    }
    if let Ok(settings) = paths::config() {
        add(settings.join(kind), true, true);
    }
    // With a place of its own, Plimsoll leaves the user's home alone.
    if paths::variable("PLIMSOLL_HOME").is_none()
        && let Some(home) = std::env::home_dir()
    {
        for other in others {
            add(home.join(other).join(kind), false, true);
        }
    }
    places
}
