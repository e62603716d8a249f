//! [`FoundFiles`]: the files of a project that would configure or instruct agents.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use plimsoll_tools::project_files::{
    AGENT_FOLDERS, CONFIG_FILE, INSTRUCTION_FILES, PLIMSOLL_FOLDER, SKILL_FILE, SKILL_FOLDERS,
    read_project_file,
};

use super::agent_file::AgentFileForm;
use super::file::Config;
use super::project::ProjectFiles;

/// Maximum number of files that are read in one folder.
const MAX_FILES: usize = 1_000;
/// Number of paths in a summary.
const MAX_SHOWN: usize = 4;

/// The files of a project that would configure or instruct agents, with their texts.
///
/// They are regular files of the project with at most 64 KiB of text. Others are left out.
#[derive(Debug, Clone, Default)]
pub struct FoundFiles {
    folder: PathBuf,
    files: Vec<FoundFile>,
    /// The files that are left out, with the reasons.
    left_out: Vec<(FoundKind, String)>,
}

#[derive(Debug, Clone)]
struct FoundFile {
    /// The path below the folder.
    path: PathBuf,
    kind: FoundKind,
    text: String,
}

/// The effect of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FoundKind {
    Config,
    /// A prompt that the configuration names.
    NamedPrompt,
    Instructions,
    Skill,
    Agent(AgentFileForm),
    /// A command of the chat.
    Prompt,
}

impl FoundFiles {
    /// Returns the git repository that contains the root, or else the root.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the paths below the folder, and the texts.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &str)> {
        let files = self.files.iter();
        files.map(|file| (file.path.as_path(), file.text.as_str()))
    }

    /// Returns `true` if there is no such file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns one sentence for each file that is left out.
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        self.left_out.iter().map(|(_, why)| why.as_str())
    }

    /// Returns the sentence for the configuration, if that is left out.
    #[must_use]
    pub fn left_out_config(&self) -> Option<&str> {
        let mut left_out = self.left_out.iter();
        let config = left_out.find(|(kind, _)| *kind == FoundKind::Config);
        config.map(|(_, why)| why.as_str())
    }

    /// Returns the files that have an effect beside a configuration that the user has named.
    #[must_use]
    pub fn without_config(mut self) -> Self {
        let is_config = |kind| matches!(kind, FoundKind::Config | FoundKind::NamedPrompt);
        self.files.retain(|file| !is_config(file.kind));
        self.left_out.retain(|(kind, _)| !is_config(*kind));
        self
    }

    /// Returns a short list such as "plimsoll.toml, AGENTS.md, b.md, c.md and 2 more".
    #[must_use]
    pub fn summary(&self) -> String {
        let paths = self.files().map(|(path, _)| path.display().to_string());
        let shown = paths.take(MAX_SHOWN).collect::<Vec<_>>().join(", ");
        match self.files.len().saturating_sub(MAX_SHOWN) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    }

    /// Returns the paths and the texts of one kind. Of instructions, those of the uppermost folder
    /// are first.
    pub(super) fn of_kind(&self, kind: FoundKind) -> impl Iterator<Item = (PathBuf, &str)> {
        let files = self.files.iter().filter(move |file| file.kind == kind);
        files.map(|file| (self.folder.join(&file.path), file.text.as_str()))
    }

    /// Finds the files of a project.
    pub(super) fn of(project: &ProjectFiles) -> Self {
        let mut found = Self {
            folder: canonical(project.repository.as_ref().unwrap_or(&project.root)),
            ..Self::default()
        };
        let root = canonical(&project.root);
        let config = root.join(CONFIG_FILE);
        let users = project.user.as_ref().map(|user| user.join(CONFIG_FILE));
        let is_users = users.is_some_and(|users| canonical(&users) == canonical(&config));
        if !is_users && found.add(&config, FoundKind::Config) {
            found.add_prompts_of_config();
        }
        let top = found.folder.clone();
        let folders = root.ancestors().take_while(|it| it.starts_with(&top));
        let folders: Vec<&Path> = folders.filter(|it| !project.is_users(it)).collect();
        for folder in folders.iter().rev() {
            let mut names = INSTRUCTION_FILES.iter();
            names.find(|name| found.add(&folder.join(name), FoundKind::Instructions));
        }
        let mut places = vec![&root, &top];
        places.dedup();
        for place in places {
            // In the home directory, the folders of other programs are the user's own.
            let is_home = project.home.as_deref().map(canonical).as_ref() == Some(place);
            let others = Some(place.as_path()).filter(|_| !is_home);
            for (folder, kind) in folders_in(Some(&place.join(PLIMSOLL_FOLDER)), others) {
                for file in files_in(&folder, kind) {
                    found.add(&file, kind);
                }
            }
        }
        found
    }

    /// Adds the prompts that the configuration names.
    fn add_prompts_of_config(&mut self) {
        let config = self.of_kind(FoundKind::Config).next();
        let config = config.map(|(path, text)| Config::of(text, Some(&path)));
        // The configuration that names a file elsewhere is itself shown and trusted.
        let mut prompts = config.unwrap_or_default().prompts();
        prompts.retain(|prompt| canonical(prompt).starts_with(&self.folder));
        for prompt in prompts {
            self.add(&prompt, FoundKind::NamedPrompt);
        }
    }

    /// Adds a file. Returns `true` if there is such a file, whether or not it can be used.
    fn add(&mut self, path: &Path, kind: FoundKind) -> bool {
        match read_project_file(&self.folder, path).map_err(|error| (error.kind(), error)) {
            Ok(text) => {
                let path = path.strip_prefix(&self.folder).unwrap_or(path).to_owned();
                self.files.push(FoundFile { path, kind, text });
            }
            Err((ErrorKind::NotFound | ErrorKind::NotADirectory, _)) => return false,
            Err((_, error)) => {
                let why = format!("{} is left out: {error}", path.display());
                self.left_out.push((kind, why));
            }
        }
        true
    }
}

/// Returns the folders of files of each kind: those of Plimsoll in a folder of its own, and those of other
/// programs in folders in `others`.
pub(super) fn folders_in(ours: Option<&Path>, others: Option<&Path>) -> Vec<(PathBuf, FoundKind)> {
    let own = [
        ("skills", FoundKind::Skill),
        ("agents", FoundKind::Agent(AgentFileForm::Plimsoll)),
        ("prompts", FoundKind::Prompt),
    ];
    let skills = SKILL_FOLDERS.map(|folder| (folder, "skills", FoundKind::Skill));
    let agent = FoundKind::Agent(AgentFileForm::ClaudeCode);
    let agents = AGENT_FOLDERS.map(|folder| (folder, "agents", agent));
    let own = own.map(|(name, kind)| Some((ours?.join(name), kind)));
    let theirs = skills.into_iter().chain(agents);
    let theirs = theirs.map(|(folder, name, kind)| Some((others?.join(folder).join(name), kind)));
    own.into_iter().chain(theirs).flatten().collect()
}

/// Returns a path without links, or the path itself if it does not exist.
pub(super) fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the files of a kind in a folder, sorted: Markdown files, or the files of skills.
pub(super) fn files_in(folder: &Path, kind: FoundKind) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.take(MAX_FILES).map(|entry| entry.path()).collect();
    paths.sort_unstable();
    if kind == FoundKind::Skill {
        return paths.iter().map(|skill| skill.join(SKILL_FILE)).collect();
    }
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    paths
}
