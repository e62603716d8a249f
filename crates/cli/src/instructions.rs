//! What the model is told before anything else: the system prompt, where and when it works, and the
//! instructions that stand in files (AGENTS.md, CLAUDE.md).

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plimsoll::config::AgentConfig;
use plimsoll::{Bytes, head_tail};

use crate::agent::{TEXT_LIMIT, unreadable};
use crate::exit::Stop;
use crate::paths;

/// Files with instructions; of a folder, the first that is there.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// What opens and closes a pinned passage of such a file.
const PIN: &str = "<!-- pin -->";
const UNPIN: &str = "<!-- /pin -->";
/// Of each file, at most: it is sent with every request.
const FILE_LIMIT: Bytes = Bytes(32 * 1024);
/// Folders above the root that are looked at, at most.
const FOLDERS: usize = 16;
/// Of the file that names the branch, at most.
const HEAD_LIMIT: u64 = 4 * 1024;

/// What the user tells the model in files and settings.
pub(crate) struct Instructions {
    /// The configured system prompt.
    system: Option<String>,
    files: Vec<InstructionFile>,
    /// Where and when the model works.
    setting: String,
}

/// A file with instructions.
struct InstructionFile {
    path: PathBuf,
    /// Its text without what it pins.
    text: String,
    pins: Vec<String>,
}

impl Instructions {
    /// Reads the system prompt and the files: the user's own first, then those from the top of the git
    /// repository down to the root.
    pub(crate) fn read(agent: &AgentConfig) -> Result<Self, Stop> {
        let root = &agent.settings().root;
        let root = std::path::absolute(root).unwrap_or_else(|_| root.clone());
        let repository = repository(&root);
        let top = repository.as_deref().unwrap_or(&root);
        let within = root.ancestors().take(FOLDERS);
        let mut folders: Vec<PathBuf> = within
            .take_while(|folder| folder.starts_with(top))
            .map(Path::to_owned)
            .collect();
        folders.push(paths::config()?);
        folders.dedup();
        let mut files = Vec::new();
        for folder in folders.iter().rev() {
            files.extend(read_first(folder)?);
        }
        Ok(Self {
            system: agent.system().map_err(Stop::usage)?,
            files,
            setting: setting(&root, repository.as_deref()),
        })
    }

    /// Returns the system prompt. If none is configured, it is `built_in`, which is told where and when
    /// it works if it `wants_setting`.
    pub(crate) fn system(&self, built_in: &str, wants_setting: bool) -> String {
        let mut parts = match &self.system {
            Some(system) => vec![system.trim_end().to_owned()],
            None if wants_setting => vec![format!("{}\n{}", built_in.trim_end(), self.setting)],
            None => vec![built_in.trim_end().to_owned()],
        };
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
        parts.join("\n\n")
    }

    /// Returns what the files pin.
    pub(crate) fn pins(&self) -> impl Iterator<Item = &String> {
        self.files.iter().flat_map(|file| &file.pins)
    }

    /// Returns the line that says which files were read. `None` if there are none.
    pub(crate) fn note(&self) -> Option<String> {
        let paths = self
            .files
            .iter()
            .map(|file| file.path.display().to_string());
        let paths: Vec<String> = paths.collect();
        (!paths.is_empty()).then(|| format!("instructions from {}", paths.join(", ")))
    }
}

/// The first file with instructions in a folder.
fn read_first(folder: &Path) -> Result<Option<InstructionFile>, Stop> {
    for name in NAMES {
        let path = folder.join(name);
        if let Some(text) = read_text(&path)? {
            let (text, pins) = pinned(&text);
            return Ok(Some(InstructionFile { path, text, pins }));
        }
    }
    Ok(None)
}

/// The text without what it pins, and what it pins: all between `<!-- pin -->` and `<!-- /pin -->`.
/// A pin that is never closed goes to the end.
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

/// A text file; `None` where there is none.
fn read_text(path: &Path) -> Result<Option<String>, Stop> {
    let bad = |error: &io::Error| {
        let why = unreadable(error);
        Stop::usage(format!("{} cannot be read: {why}", path.display()))
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(bad(&error)),
    };
    let mut text = String::new();
    file.take(TEXT_LIMIT)
        .read_to_string(&mut text)
        .map_err(|error| bad(&error))?;
    Ok(Some(text))
}

/// The folder of the git repository that a folder is in.
pub(crate) fn repository(folder: &Path) -> Option<PathBuf> {
    let folders = folder.ancestors().take(FOLDERS);
    let mut with_git = folders.filter(|folder| folder.join(".git").exists());
    with_git.next().map(Path::to_owned)
}

/// Says where and when the model works. It is the same for all runs of a day on one branch, so the
/// provider's cache is kept.
fn setting(root: &Path, repository: Option<&Path>) -> String {
    let now = httpdate::fmt_http_date(SystemTime::now());
    let day: Vec<&str> = now.split_whitespace().skip(1).take(3).collect();
    let git = match repository.map(branch) {
        Some(Some(branch)) => format!(", in a git repository on branch {branch}"),
        Some(None) => ", in a git repository".to_owned(),
        None => String::new(),
    };
    format!(
        "Today is {}. You work on {} in {}{git}.",
        day.join(" "),
        std::env::consts::OS,
        root.display()
    )
}

/// The branch that is checked out; `None` if it is none, or cannot be read.
fn branch(repository: &Path) -> Option<String> {
    let git = repository.join(".git");
    let git = match git.is_dir() {
        true => git,
        // A worktree has a file there that names the folder.
        false => {
            let file = read_start(&git)?;
            repository.join(file.strip_prefix("gitdir:")?.trim())
        }
    };
    let head = read_start(&git.join("HEAD"))?;
    let branch = head.trim().strip_prefix("ref: refs/heads/")?;
    Some(branch.to_owned())
}

fn read_start(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(HEAD_LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
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
