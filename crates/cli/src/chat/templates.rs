//! [`Templates`]: prompts in Markdown files, each with its own command. `/review src` sends the
//! text of `review.md`, with `src` as its argument.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::parse::{ChatLine, Command};
use crate::paths;
use crate::trust;

/// The folder of a project's prompts, in its root.
const PROJECT: &str = ".plimsoll/prompts";
/// The folder of the user's prompts, in the configuration directory.
const USERS: &str = "prompts";
/// The file name extension.
const ENDING: &str = "md";
/// Maximum size of a template, in bytes.
const MAX_TEMPLATE: u64 = 256 << 10;
/// Maximum number of listed files of one folder.
const MAX_LISTED: usize = 200;
/// The placeholder for the typed text.
const TYPED: &str = "$ARGUMENTS";

/// The folders of templates, the user's own first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Templates {
    folders: Vec<PathBuf>,
}

impl Templates {
    /// Creates the templates of the user, and those of the project in `root` if it is trusted.
    pub(crate) fn of(root: &Path) -> Self {
        let users = paths::config().ok().map(|folder| folder.join(USERS));
        let is_trusted = trust::project(root).is_trusted();
        let project = is_trusted.then(|| root.join(PROJECT));
        Self {
            folders: users.into_iter().chain(project).collect(),
        }
    }

    /// Parses a line. The name of a template is a command unless there is a built-in one of that
    /// name.
    pub(crate) fn order(&self, line: &str) -> ChatLine {
        match ChatLine::of(line) {
            order @ ChatLine::Unknown(_) => self.expand(line).unwrap_or(order),
            order => order,
        }
    }

    /// Returns the names that can be typed, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        self.files().into_keys().collect()
    }

    /// Returns the files of all prompts by their names.
    fn files(&self) -> BTreeMap<String, PathBuf> {
        // The user's own prompts replace those of the project.
        let folders = self.folders.iter().rev();
        let files = folders.filter_map(|folder| fs::read_dir(folder).ok());
        let files = files.flat_map(|files| files.flatten().take(MAX_LISTED));
        let named = files.filter_map(|file| {
            let path = file.path();
            let name = path.file_stem()?.to_str()?.to_owned();
            let is_template = path.extension().is_some_and(|ending| ending == ENDING);
            (is_template && is_name(&name)).then_some((name, path))
        });
        named.collect()
    }

    fn expand(&self, line: &str) -> Option<ChatLine> {
        let line = line.trim().strip_prefix('/')?;
        let (name, text) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let path = self.files().remove(name)?;
        Some(match read(&path) {
            Ok(template) => match filled(&template, text.trim()) {
                said if said.trim().is_empty() => {
                    ChatLine::Unknown(format!("{} says nothing", path.display()))
                }
                said => ChatLine::Say(said),
            },
            Err(why) => ChatLine::Unknown(format!("{}: {why}", path.display())),
        })
    }
}

/// Checks whether a name can be typed, and is that of no built-in command.
fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    !name.is_empty() && name.chars().all(allowed) && Command::from_str(name, false).is_err()
}

fn read(path: &Path) -> Result<String, String> {
    let text = File::open(path).and_then(|file| io::read_to_string(file.take(MAX_TEMPLATE + 1)));
    let text = text.map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_TEMPLATE {
        Err(format!("it is larger than {} KiB", MAX_TEMPLATE >> 10))
    } else {
        Ok(text)
    }
}

/// Returns the text of a prompt: the template without its front matter, with the typed text in place of
/// `$ARGUMENTS`. If the template has no placeholder, the typed text follows it.
fn filled(template: &str, typed: &str) -> String {
    let text = body(template).trim();
    if text.contains(TYPED) || typed.is_empty() {
        text.replace(TYPED, typed)
    } else {
        format!("{text}\n\n{typed}")
    }
}

/// Returns a template without its front matter, the lines between `---` at its top.
fn body(template: &str) -> &str {
    let Some(rest) = template.strip_prefix("---\n") else {
        return template;
    };
    match rest.split_once("\n---\n") {
        Some((_, body)) => body,
        None => template,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::parse::Command;

    #[test]
    fn what_is_typed_takes_its_place() {
        for (template, typed, said) in [
            ("Review.", "", "Review."),
            ("Review.", "src", "Review.\n\nsrc"),
            (
                "Review $ARGUMENTS, all of it.",
                "a b",
                "Review a b, all of it.",
            ),
            ("It costs $5.", "a", "It costs $5.\n\na"),
            ("---\ndescription: x\n---\nGo.\n", "", "Go."),
            ("---\nno end", "", "---\nno end"),
            ("$ARGUMENTS", "$ARGUMENTS", "$ARGUMENTS"),
        ] {
            assert_eq!(filled(template, typed), said, "{template:?}");
        }
    }

    #[test]
    fn a_name_stays_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let prompts = folder.path().join(PROJECT);
        fs::create_dir_all(&prompts).unwrap();
        fs::write(folder.path().join("secret.md"), "secret").unwrap();
        fs::write(prompts.join("review.md"), "Review it.").unwrap();
        fs::write(prompts.join("cost.md"), "never").unwrap();
        fs::write(prompts.join("empty.md"), "\n").unwrap();
        let templates = Templates {
            folders: vec![prompts],
        };
        assert_eq!(templates.names(), ["empty", "review"]);
        let review = ChatLine::Say("Review it.".to_owned());
        assert_eq!(templates.order("/review"), review);
        let cost = ChatLine::Command(Command::Cost, String::new());
        assert_eq!(templates.order("/cost"), cost);
        for line in [
            "/../secret",
            "/../../secret",
            "/nothing",
            "/empty",
            "/.review",
        ] {
            assert!(
                matches!(templates.order(line), ChatLine::Unknown(_)),
                "{line}"
            );
        }
        assert_eq!(
            templates.order("//review"),
            ChatLine::Say("/review".to_owned())
        );
    }
}
