//! [`ChatCompleter`]: completes commands, the sessions and models behind some of them, and paths after `@`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::chat::parse::COMMANDS;
use crate::chat::templates::Templates;
use crate::lock;

/// Maximum number of candidates of one kind.
pub(crate) const MAX_WORDS: usize = 1_000;
/// Maximum number of files of a folder that are examined for a completion.
const MAX_FILES: usize = 10_000;

/// The candidates for completion.
#[derive(Debug, Default)]
pub(crate) struct ChatCompleter {
    templates: Arc<Templates>,
    /// The folder that paths are relative to.
    root: PathBuf,
    sessions: Mutex<Vec<String>>,
    models: Mutex<Vec<String>>,
}

impl ChatCompleter {
    pub(crate) fn new(templates: Arc<Templates>, root: &Path) -> Self {
        Self {
            templates,
            root: root.to_owned(),
            ..Self::default()
        }
    }

    /// Sets the sessions, newest first.
    pub(crate) fn set_sessions(&self, ids: impl IntoIterator<Item = String>) {
        *lock(&self.sessions) = ids.into_iter().take(MAX_WORDS).collect();
    }

    /// Adds models.
    pub(crate) fn add_models(&self, names: impl IntoIterator<Item = String>) {
        let mut models = lock(&self.models);
        for name in names {
            if models.len() < MAX_WORDS && !models.contains(&name) {
                models.push(name);
            }
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
        let of = match name {
            "session" => &self.sessions,
            "model" => &self.models,
            _ => return nothing,
        };
        let word = word.trim_start();
        let fit = lock(of)
            .iter()
            .filter(|of| of.starts_with(word))
            .cloned()
            .collect();
        (line.len() - word.len(), fit)
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
        found.truncate(MAX_WORDS);
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
        let words = ChatCompleter::new(Arc::default(), home.path());
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
    fn commands_sessions_and_models_are_completed() {
        let words = ChatCompleter::default();
        words.set_sessions(["18f2c-a1".to_owned(), "18f2d-00".to_owned(), "x".to_owned()]);
        words.add_models(["openai/gpt-5".to_owned(), "ollama/qwen3".to_owned()]);
        words.add_models(["openai/gpt-5".to_owned()]);
        for (line, at, found) in [
            ("/co", 0, vec!["/compact", "/context", "/cost"]),
            ("/unknown", 0, vec![]),
            ("/session 18", 9, vec!["18f2c-a1", "18f2d-00"]),
            ("/session ", 9, vec!["18f2c-a1", "18f2d-00", "x"]),
            ("/model  o", 8, vec!["openai/gpt-5", "ollama/qwen3"]),
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
