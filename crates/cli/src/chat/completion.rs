//! [`ChatCompleter`]: completes commands, models behind `/model`, and paths after `@`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll::providers::{ModelBook, VENDORS};

use crate::chat::parse::COMMANDS;
use crate::chat::templates::Templates;

/// Maximum number of completed paths.
const MAX_PATHS: usize = 1_000;
/// Maximum number of files of a folder that are examined for a completion.
const MAX_FILES: usize = 10_000;

/// The candidates for completion.
pub(crate) struct ChatCompleter {
    templates: Arc<Templates>,
    /// The folder that paths are relative to.
    root: PathBuf,
    models: Vec<String>,
}

impl ChatCompleter {
    pub(crate) fn new(templates: Arc<Templates>, root: &Path, model: String) -> Self {
        let vendors = VENDORS.iter().map(|vendor| format!("{}/", vendor.name));
        let known = ModelBook::built_in().models();
        let known = known.filter(|(vendor, _)| VENDORS.iter().any(|of| of.name == *vendor));
        let known = known.map(|(vendor, name)| format!("{vendor}/{name}"));
        let mut models: Vec<String> = vendors.chain(known).chain([model]).collect();
        models.sort_unstable();
        models.dedup();
        Self {
            templates,
            root: root.to_owned(),
            models,
        }
    }

    /// Returns the offset of the word to complete, and its completions.
    pub(crate) fn complete(&self, line: &str) -> (usize, Vec<String>) {
        let nothing = (line.len(), Vec::new());
        let begins = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        if let Some(path) = line.get(begins..).and_then(|word| word.strip_prefix('@')) {
            return (line.len() - path.len(), self.paths(path));
        }
        let Some(rest) = line.strip_prefix('/') else {
            return nothing;
        };
        let Some((name, word)) = rest.split_once(' ') else {
            let names = COMMANDS.iter().map(|command| command.name.to_owned());
            let names = names.chain(self.templates.names());
            let names = names.filter(|name| name.starts_with(rest));
            return (0, names.map(|name| format!("/{name}")).collect());
        };
        if name != "model" {
            return nothing;
        }
        let word = word.trim_start();
        let models = self.models.iter().filter(|model| model.starts_with(word));
        (line.len() - word.len(), models.cloned().collect())
    }

    /// Returns the paths with this prefix. Hidden files are included only if a dot was typed.
    fn paths(&self, typed: &str) -> Vec<String> {
        let end = typed.rfind('/').map_or(0, |at| at + 1);
        let (folder, begins) = typed.split_at_checked(end).unwrap_or(("", typed));
        let files = std::fs::read_dir(self.root.join(folder));
        let files = files.into_iter().flatten().flatten().take(MAX_FILES);
        let found = files.filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            let is_shown = begins.starts_with('.') || !name.starts_with('.');
            let fits = name.starts_with(begins) && !name.contains(char::is_whitespace);
            let slash = if file.path().is_dir() { "/" } else { "" };
            (is_shown && fits).then(|| format!("{folder}{name}{slash}"))
        });
        let mut found: Vec<String> = found.collect();
        found.sort_unstable();
        found.truncate(MAX_PATHS);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_behind_an_at_sign_are_completed() {
        let home = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        for file in [
            "src/main.rs",
            "src/map.rs",
            "shot.png",
            ".env",
            "with space",
        ] {
            let path = home.path().join(file);
            let made = std::fs::create_dir_all(path.parent().unwrap_or(home.path()));
            made.and_then(|()| std::fs::write(path, ""))
                .unwrap_or_else(|error| panic!("{error}"));
        }
        let words = ChatCompleter::new(Arc::default(), home.path(), String::new());
        for (line, at, found) in [
            ("@", 1, vec!["shot.png", "src/"]),
            ("what is @s", 9, vec!["shot.png", "src/"]),
            ("what is @src/ma", 9, vec!["src/main.rs", "src/map.rs"]),
            ("@.e", 1, vec![".env"]),
            ("@none/", 1, vec![]),
            ("ada@s", 5, vec![]),
        ] {
            let (start, words) = words.complete(line);
            let found: Vec<String> = found.into_iter().map(str::to_owned).collect();
            assert_eq!((start, words), (at, found), "{line}");
        }
    }

    #[test]
    fn commands_and_models_are_completed() {
        let model = "ollama/qwen3-of-mine".to_owned();
        let words = ChatCompleter::new(Arc::default(), Path::new(""), model);
        for (line, at, found) in [
            ("/co", 0, vec!["/compact", "/context", "/cost"]),
            ("/unknown", 0, vec![]),
            ("/model  ollama/qwen3-of", 8, vec!["ollama/qwen3-of-mine"]),
            ("/undo ", 6, vec![]),
            ("say /co", 7, vec![]),
            ("", 0, vec![]),
        ] {
            let (start, words) = words.complete(line);
            assert_eq!(
                (start, words),
                (at, found.into_iter().map(str::to_owned).collect()),
                "{line}"
            );
        }
    }
}
