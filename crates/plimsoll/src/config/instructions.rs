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

/// The start and the end of a pinned passage in an instruction file.
const PIN: &str = "<!-- pin -->";
const UNPIN: &str = "<!-- /pin -->";
/// Maximum size per file, because it is sent with every request.
const FILE_LIMIT: Bytes = Bytes(32 * 1024);

/// The user's instructions to the model in files and settings. See [`ProjectFiles`] for an example.
#[derive(Debug, Clone)]
pub struct Instructions {
    /// The configured system prompt.
    system: Option<String>,
    files: Vec<PathBuf>,
    /// The texts of the files without their pinned passages.
    texts: Vec<String>,
    pins: Vec<String>,
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
            pins: Vec::new(),
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
        let (text, pins) = pinned(text);
        let short = head_tail(&text, FILE_LIMIT).unwrap_or(text);
        let shown = path.display();
        if !short.trim().is_empty() {
            let text = format!("Instructions of {shown}:\n\n{}", short.trim());
            self.texts.push(text);
        }
        self.pins.extend(pins);
        self.files.push(path);
    }

    /// Returns the files that were read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path)
    }

    /// Applies the instructions to an agent: sets the system prompt (`built_in` if none is
    /// configured) followed by the texts of the files, and adds the pinned passages.
    pub fn apply(&self, agent: &mut AgentConfig, built_in: &str) {
        let system = self.system.as_deref().unwrap_or(built_in).trim_end();
        let texts = self.texts.iter().map(String::as_str);
        let parts: Vec<&str> = std::iter::once(system).chain(texts).collect();
        let settings = agent.settings_mut();
        settings.system = Some(parts.join("\n\n"));
        settings.builder.pins.extend(self.pins.iter().cloned());
    }
}

/// Returns the text without its pinned passages, and these passages: those between `<!-- pin -->`
/// and `<!-- /pin -->`. An unclosed passage extends to the end.
fn pinned(text: &str) -> (String, Vec<String>) {
    let (mut rest, mut pins) = (String::new(), Vec::new());
    let mut left = text;
    while let Some((before, after)) = left.split_once(PIN) {
        rest.push_str(before);
        let (pin, behind) = after.split_once(UNPIN).unwrap_or((after, ""));
        if !pin.trim().is_empty() {
            pins.push(pin.trim().to_owned());
        }
        left = behind;
    }
    rest.push_str(left);
    (rest, pins)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_pins_is_taken_out_of_it_whole() {
        for (text, rest, pins) in [
            ("plain", "plain", vec![]),
            ("a<!-- pin -->\n b \n<!-- /pin -->c", "ac", vec!["b"]),
            (
                "<!-- pin -->x<!-- /pin --><!-- pin -->y",
                "",
                vec!["x", "y"],
            ),
            (
                "<!-- pin --> <!-- /pin -->z<!-- /pin -->",
                "z<!-- /pin -->",
                vec![],
            ),
        ] {
            let (left, found) = pinned(text);
            assert_eq!(
                (left.as_str(), found),
                (rest, pins.iter().map(|pin| (*pin).to_owned()).collect())
            );
        }
    }
}
