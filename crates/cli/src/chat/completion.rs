//! [`ChatCompleter`]: completes commands, models behind `/model`, and paths behind `@`.

use std::sync::Arc;

use plimsoll::providers::{ModelBook, VENDORS};
use rustyline::completion::{FilenameCompleter, Pair};

use crate::chat::parse::Command;
use crate::chat::templates::Templates;

/// The candidates for completion.
pub(crate) struct ChatCompleter {
    templates: Arc<Templates>,
    models: Vec<String>,
    paths: FilenameCompleter,
}

impl ChatCompleter {
    pub(crate) fn new(templates: Arc<Templates>) -> Self {
        let vendors = VENDORS.iter().map(|vendor| format!("{}/", vendor.name));
        let known = ModelBook::built_in().models();
        let known = known.filter(|(vendor, _)| VENDORS.iter().any(|of| of.name == *vendor));
        let known = known.map(|(vendor, name)| format!("{vendor}/{name}"));
        let mut models: Vec<String> = vendors.chain(known).collect();
        models.sort_unstable();
        models.dedup();
        Self {
            templates,
            models,
            paths: FilenameCompleter::new(),
        }
    }

    /// Returns the offset of the word to complete, and its completions.
    pub(crate) fn complete(&self, line: &str) -> rustyline::Result<(usize, Vec<Pair>)> {
        if line.contains('@') {
            return self.paths.complete_path(line, line.len());
        }
        let (at, words): (usize, Vec<String>) = match line.strip_prefix('/') {
            None => (line.len(), Vec::new()),
            Some(rest) => match rest.strip_prefix("model ") {
                Some(word) => {
                    let word = word.trim_start();
                    let models = self.models.iter().filter(|model| model.starts_with(word));
                    (line.len() - word.len(), models.cloned().collect())
                }
                None => {
                    let names = Command::all().iter().map(|of| of.name());
                    let names = names.chain(self.templates.names());
                    let names = names.filter(|name| name.starts_with(rest));
                    (0, names.map(|name| format!("/{name}")).collect())
                }
            },
        };
        let pair = |word: String| Pair {
            display: word.clone(),
            replacement: word,
        };
        Ok((at, words.into_iter().map(pair).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_models_are_completed() {
        let words = ChatCompleter::new(Arc::default());
        for (line, at, found) in [
            ("/co", 0, vec!["/compact", "/context", "/cost"]),
            ("/unknown", 0, vec![]),
            ("/model  lla", 8, vec!["llama.cpp/"]),
            ("/undo ", 0, vec![]),
            ("say /co", 7, vec![]),
            ("", 0, vec![]),
            ("@Cargo.to", 1, vec!["Cargo.toml"]),
            ("what is @src/chat/comp", 9, vec!["src/chat/completion.rs"]),
            ("@none/", 1, vec![]),
        ] {
            let (start, words) = words.complete(line).unwrap();
            let words: Vec<&str> = words.iter().map(|word| word.replacement.as_str()).collect();
            assert_eq!((start, words), (at, found), "{line}");
        }
    }
}
