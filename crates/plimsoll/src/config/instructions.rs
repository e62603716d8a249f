//! [`Instructions`]: the system prompt and the instruction files (AGENTS.md, CLAUDE.md), and a
//! sentence about the place and time of the work.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plimsoll_context::{Bytes, head_tail};
use plimsoll_tools::project_files::INSTRUCTION_FILES;

use super::agent::AgentConfig;
use super::fault::ConfigError;
use super::file::{MAX_PROMPT, text};
use super::found::FoundKind;
use super::project::ProjectFiles;

/// Maximum size per file, because it is sent with every request.
const FILE_LIMIT: Bytes = Bytes(32 * 1024);

/// The user's instructions to the model in files and settings. See [`ProjectFiles`] for an example.
#[derive(Debug, Clone)]
pub struct Instructions {
    /// The configured system prompt.
    system: Option<String>,
    files: Vec<PathBuf>,
    /// The texts of the files.
    texts: Vec<String>,
}

impl Instructions {
    /// Reads the system prompt and the files: first the user's own, then the trusted ones from the
    /// top of the git repository down to the root.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn read(agent: &AgentConfig, project: &ProjectFiles) -> Result<Self, ConfigError> {
        let mut read = Self {
            system: agent.system()?,
            files: Vec::new(),
            texts: Vec::new(),
        };
        let users = project.user.iter();
        let mut users = users.flat_map(|folder| INSTRUCTION_FILES.map(|name| folder.join(name)));
        if let Some(path) = users.find(|path| path.is_file()) {
            let text = text(&path, MAX_PROMPT, "instructions");
            read.add(path, &text.map_err(|fault| agent.fault(fault))?);
        }
        for (path, text) in project.trusted.of_kind(FoundKind::Instructions) {
            read.add(path, text);
        }
        Ok(read)
    }

    fn add(&mut self, path: PathBuf, text: &str) {
        let short = head_tail(text, FILE_LIMIT).unwrap_or_else(|| text.to_owned());
        let shown = path.display();
        if !short.trim().is_empty() {
            let text = format!("Instructions of {shown}:\n\n{}", short.trim());
            self.texts.push(text);
        }
        self.files.push(path);
    }

    /// Returns the files that were read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path)
    }

    /// Sets the system prompt of an agent (`built_in` if none is configured), followed by the texts of the
    /// files.
    pub fn apply(&self, agent: &mut AgentConfig, built_in: &str) {
        let system = self.system.as_deref().unwrap_or(built_in).trim_end();
        let texts = self.texts.iter().map(String::as_str);
        let parts: Vec<&str> = std::iter::once(system).chain(texts).collect();
        agent.settings_mut().system = Some(parts.join("\n\n"));
    }
}

impl ProjectFiles {
    /// Returns a sentence about the place and time of the work. It is the same for all runs of a
    /// day, so the provider's cache stays valid.
    #[must_use]
    pub fn surroundings(&self) -> String {
        let now = httpdate::fmt_http_date(SystemTime::now());
        let day: Vec<&str> = now.split_whitespace().skip(1).take(3).collect();
        let git = match self.repository {
            Some(_) => ", in a git repository",
            None => "",
        };
        format!(
            "Today is {}. You work on {} in {}{git}.",
            day.join(" "),
            std::env::consts::OS,
            self.root.display()
        )
    }
}
