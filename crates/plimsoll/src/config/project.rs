//! [`ProjectFiles`]: the files of a project and its user with instructions, skills and agents. They
//! include those in Plimsoll's own folders and in those of other agents.

use std::path::{Path, PathBuf};

use plimsoll_tools::project_files::CONFIG_FILE;

use super::agent::AgentConfig;
use super::agent_file::AgentFileForm;
use super::file::Config;
use super::found::{FoundFiles, FoundKind, canonical, files_in, folders_in};

/// Maximum number of folders above the root that are searched.
const MAX_FOLDERS: usize = 16;

/// The files of a project, and of its user, that configure and instruct agents.
///
/// Those of the project have no effect until a person has trusted them, see
/// [`TrustStore`](super::TrustStore).
///
/// ```no_run
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use plimsoll::config::{Config, ProjectFiles};
///
/// let files = ProjectFiles::new(".");
/// let found = files.found();
/// // Here the program vouches for them.
/// let files = files.trusting(found);
/// let mut agent = files.add_agents(Config::read("plimsoll.toml")?).agent("reviewer")?;
/// files.add_skills(&mut agent);
/// files.instruct(&mut agent, "You review code.")?;
/// let agent = agent.builder()?.build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ProjectFiles {
    pub(super) root: PathBuf,
    /// The root as the caller writes it, for messages.
    written: PathBuf,
    /// The git repository that contains the root.
    pub(super) repository: Option<PathBuf>,
    pub(super) user: Option<PathBuf>,
    pub(super) home: Option<PathBuf>,
    /// The files of the project that a person trusts.
    pub(super) trusted: FoundFiles,
}

impl ProjectFiles {
    /// Creates the places of a project by its root. Those of its user are added by the other
    /// methods.
    pub fn new(root: impl AsRef<Path>) -> Self {
        let written = root.as_ref().to_owned();
        let root = std::path::absolute(Path::new(".").join(&written));
        let root = root.unwrap_or_else(|_| written.clone());
        let mut folders = root.ancestors().take(MAX_FOLDERS);
        let repository = folders.find(|folder| folder.join(".git").exists());
        Self {
            repository: repository.map(Path::to_owned),
            root,
            written,
            user: None,
            home: None,
            trusted: FoundFiles::default(),
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

    /// Finds the files of the project that would configure or instruct agents.
    #[must_use]
    pub fn found(&self) -> FoundFiles {
        FoundFiles::of(self)
    }

    /// Lets these files of the project have an effect.
    #[must_use]
    pub fn trusting(mut self, found: FoundFiles) -> Self {
        self.trusted = found;
        self
    }

    /// Returns `true` if the files of the project have an effect.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        !self.trusted.is_empty()
    }

    /// Returns the trusted configuration of the project, if there is one, as a [draft](Config::draft).
    #[must_use]
    pub fn config(&self) -> Option<Config> {
        let (_, text) = self.trusted.of_kind(FoundKind::Config).next()?;
        Some(Config::of(text, Some(&self.written.join(CONFIG_FILE))))
    }

    /// Sets the folders to search for an agent's skills, unless its settings name some.
    pub fn add_skills(&self, agent: &mut AgentConfig) {
        let skills = &mut agent.settings_mut().skills;
        if skills.is_none() {
            let users = self.users_folders().into_iter();
            let users = users.filter_map(|(it, kind)| (kind == FoundKind::Skill).then_some(it));
            let own = self.trusted.of_kind(FoundKind::Skill);
            let own = own.filter_map(|(path, _)| Some(path.parent()?.to_owned()));
            *skills = Some(own.chain(users).collect());
        }
    }

    /// Adds the agents that are files. Those of the project take precedence over those of the user.
    #[must_use]
    pub fn add_agents(&self, mut config: Config) -> Config {
        for form in [AgentFileForm::Plimsoll, AgentFileForm::ClaudeCode] {
            for (path, text) in self.trusted.of_kind(FoundKind::Agent(form)) {
                config.add_agent_text(&path, text, form);
            }
        }
        for (folder, kind) in self.users_folders() {
            if let FoundKind::Agent(form) = kind {
                let files = files_in(&folder, kind).into_iter();
                let files = files.filter(|file| file.is_file());
                config = files.fold(config, |config, file| config.agent_file(&file, form));
            }
        }
        config
    }

    /// Checks whether a folder is that of the user's settings.
    pub(super) fn is_users(&self, folder: &Path) -> bool {
        self.user.as_deref().map(canonical) == Some(folder.to_owned())
    }

    /// Returns the user's folders. The first one of a kind takes precedence.
    fn users_folders(&self) -> Vec<(PathBuf, FoundKind)> {
        folders_in(self.user.as_deref(), self.home.as_deref())
    }
}
