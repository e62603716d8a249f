//! [`ProjectFiles`]: the folders of a project and its user with instructions, skills and agents.
//! They include Plimsoll's own folders and those of other agents.

use std::fs;
use std::path::{Path, PathBuf};

use super::agent::AgentConfig;
use super::agent_file::AgentFileForm;
use super::file::Config;

/// Plimsoll's own folder in a project.
const OURS: &str = ".plimsoll";
/// Folders of other programs with skills, in a project and in the user's home.
const SKILLS_OF_OTHERS: [&str; 2] = [".agents", ".claude"];
/// Folders of other programs with agents.
const AGENTS_OF_OTHERS: [&str; 1] = [".claude"];
/// Maximum number of files that are read in one folder.
const MAX_FILES: usize = 1_000;
/// Maximum number of folders above the root that are searched.
pub(super) const MAX_FOLDERS: usize = 16;

/// The files of a project, and of its user, that instruct agents.
///
/// ```no_run
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use plimsoll::config::{Config, Instructions, ProjectFiles};
///
/// let files = ProjectFiles::new(".");
/// let mut agent = files.add_agents(Config::read("plimsoll.toml")?).agent("reviewer")?;
/// files.add_skills(&mut agent);
/// Instructions::read(&agent, &files)?.apply(&mut agent, "You review code.");
/// let agent = agent.builder()?.build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ProjectFiles {
    pub(super) root: PathBuf,
    /// The git repository that contains the root.
    pub(super) repository: Option<PathBuf>,
    pub(super) user: Option<PathBuf>,
    home: Option<PathBuf>,
}

/// A folder to search.
struct SearchFolder {
    folder: PathBuf,
    is_ours: bool,
    is_users: bool,
}

impl ProjectFiles {
    /// Creates the places of a project by its root. Those of its user are added by the other
    /// methods.
    pub fn new(root: impl AsRef<Path>) -> Self {
        let root = root.as_ref();
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        let mut folders = root.ancestors().take(MAX_FOLDERS);
        let repository = folders.find(|folder| folder.join(".git").exists());
        Self {
            repository: repository.map(Path::to_owned),
            root,
            user: None,
            home: None,
        }
    }

    /// Adds the folder with the user's settings of Plimsoll.
    ///
    /// ```
    /// use plimsoll::config::ProjectFiles;
    /// let files = ProjectFiles::new(".").user_folder(Some("/home/mate/.config/plimsoll".into()));
    /// ```
    #[must_use]
    pub fn user_folder(mut self, folder: Option<PathBuf>) -> Self {
        self.user = folder;
        self
    }

    /// Adds the user's home, which contains folders of other agents.
    ///
    /// ```
    /// use plimsoll::config::ProjectFiles;
    /// let files = ProjectFiles::new(".").home(std::env::home_dir());
    /// ```
    #[must_use]
    pub fn home(mut self, folder: Option<PathBuf>) -> Self {
        self.home = folder;
        self
    }

    /// Sets the folders to search for an agent's skills, unless its settings name some.
    pub fn add_skills(&self, agent: &mut AgentConfig) {
        let skills = &mut agent.settings_mut().skills;
        if skills.is_none() {
            let places = self.places("skills", &SKILLS_OF_OTHERS);
            *skills = Some(places.into_iter().map(|place| place.folder).collect());
        }
    }

    /// Adds the agents that are files. Those of the project take precedence over those of the user.
    #[must_use]
    pub fn add_agents(&self, mut config: Config) -> Config {
        for place in self.places("agents", &AGENTS_OF_OTHERS) {
            let form = if place.is_ours {
                AgentFileForm::Plimsoll
            } else {
                AgentFileForm::ClaudeCode
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

    /// Returns the folders of one kind. The first folder with a given name takes precedence.
    fn places(&self, kind: &str, others: &[&str]) -> Vec<SearchFolder> {
        let top = self.repository.iter().filter(|top| **top != self.root);
        let mut places = Vec::new();
        let mut add = |folder: PathBuf, is_ours, is_users| {
            places.push(SearchFolder {
                folder,
                is_ours,
                is_users,
            });
        };
        for folder in std::iter::once(&self.root).chain(top) {
            add(folder.join(OURS).join(kind), true, false);
            for other in others {
                add(folder.join(other).join(kind), false, false);
            }
        }
        if let Some(settings) = &self.user {
            add(settings.join(kind), true, true);
        }
        if let Some(home) = &self.home {
            for other in others {
                add(home.join(other).join(kind), false, true);
            }
        }
        places
    }
}
