//! [`ProjectFiles::instruct`]: the system prompt with the instruction files (AGENTS.md, CLAUDE.md), and
//! a sentence about the place and time of the work.

use std::path::PathBuf;
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

impl ProjectFiles {
    /// Sets the system prompt of an agent: the configured one, or else `built_in`, followed by the
    /// texts of the instruction files. Returns these files: the user's own, then the trusted ones from
    /// the top of the git repository down to the root. See [`ProjectFiles`] for an example.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn instruct(
        &self,
        agent: &mut AgentConfig,
        built_in: &str,
    ) -> Result<Vec<PathBuf>, ConfigError> {
        let system = agent.system()?;
        let mut parts = vec![system.as_deref().unwrap_or(built_in).trim_end().to_owned()];
        let users = self.user.iter();
        let mut users = users.flat_map(|folder| INSTRUCTION_FILES.map(|name| folder.join(name)));
        let mut files = Vec::new();
        if let Some(path) = users.find(|path| path.is_file()) {
            let text = text(&path, MAX_PROMPT, "instructions");
            files.push((path, text.map_err(|fault| agent.fault(fault))?));
        }
        let own = self.trusted.of_kind(FoundKind::Instructions);
        files.extend(own.map(|(path, text)| (path, text.to_owned())));
        for (path, text) in &files {
            let short = head_tail(text, FILE_LIMIT);
            let short = short.as_deref().unwrap_or(text).trim();
            if !short.is_empty() {
                parts.push(format!("Instructions of {}:\n\n{short}", path.display()));
            }
        }
        agent.settings_mut().system = Some(parts.join("\n\n"));
        Ok(files.into_iter().map(|(path, _)| path).collect())
    }

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
