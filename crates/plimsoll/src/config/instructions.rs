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
    files: Vec<InstructionFile>,
}

/// An instruction file.
#[derive(Debug, Clone)]
struct InstructionFile {
    path: PathBuf,
    /// The text without its pinned passages.
    text: String,
    pins: Vec<String>,
}

impl Instructions {
    /// Reads the system prompt and the files: first the user's own, then the trusted ones from the
    /// top of the git repository down to the root.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn read(agent: &AgentConfig, project: &ProjectFiles) -> Result<Self, ConfigError> {
        let users = project.user.as_deref().map(read_first);
        let users = users.transpose().map_err(|fault| agent.fault(fault))?;
        let of_project = project.trusted.of_kind(FoundKind::Instructions);
        let of_project = of_project.map(|(path, text)| InstructionFile::of(path, text));
        Ok(Self {
            system: agent.system()?,
            files: users.flatten().into_iter().chain(of_project).collect(),
        })
    }

    /// Returns the files that were read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// Applies the instructions to an agent: sets the system prompt (`built_in` if none is
    /// configured) followed by the texts of the files, and adds the pinned passages.
    pub fn apply(&self, agent: &mut AgentConfig, built_in: &str) {
        let system = self.system.as_deref().unwrap_or(built_in);
        let mut parts = vec![system.trim_end().to_owned()];
        for file in &self.files {
            let short = head_tail(&file.text, FILE_LIMIT);
            let text = short.as_deref().unwrap_or(&file.text).trim();
            if !text.is_empty() {
                parts.push(format!(
                    "Instructions of {}:\n\n{text}",
                    file.path.display()
                ));
            }
        }
        let settings = agent.settings_mut();
        settings.system = Some(parts.join("\n\n"));
        let pins = self.files.iter().flat_map(|file| &file.pins);
        settings.builder.pins.extend(pins.cloned());
    }
}

impl InstructionFile {
    fn of(path: PathBuf, text: &str) -> Self {
        let (text, pins) = pinned(text);
        Self { path, text, pins }
    }
}

/// Reads the first instruction file in a folder of the user.
fn read_first(folder: &Path) -> Result<Option<InstructionFile>, String> {
    let mut paths = INSTRUCTION_FILES.iter().map(|name| folder.join(name));
    let path = paths.find(|path| path.is_file());
    path.map(|path| {
        let text = text(&path, MAX_PROMPT, "instructions")?;
        Ok(InstructionFile::of(path, &text))
    })
    .transpose()
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
