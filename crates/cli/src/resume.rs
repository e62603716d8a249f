//! [`SessionSettings`]: the settings of a session's last run, so that it continues with the same
//! model, address and settings. Flags of the continuing command win. Consent is not remembered:
//! `--yes`, `--allow` and permission modes that ask less must be given again.

use std::env;
use std::path::{Path, PathBuf};

use plimsoll::cache::Fingerprint;
use plimsoll::config::{self, SettingKind};
use plimsoll::providers::BaseUrl;
use plimsoll::store::{MAX_SETTINGS, SqliteStore};
use plimsoll::{Message, Session, SessionId, SessionStore};
use serde::{Deserialize, Serialize};

use crate::error::CliError;
use crate::flags::Flag;
use crate::model_choice::ModelChoice;
use crate::settings::Sources;
use crate::view::started;

/// The settings of a session's last run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionSettings {
    /// The model, as `--model` takes it; empty if it is not known.
    pub(crate) model: String,
    /// The base URL without a key, unless it is the provider's usual one.
    base_url: Option<String>,
    /// The configuration that was named with `--config`.
    config: Option<NamedFile>,
    no_config: bool,
    agent: Option<String>,
    /// The working directory of the run, unless its path is not UTF-8.
    pub(crate) folder: Option<PathBuf>,
    /// The flags that set anything else.
    flags: Vec<Flag>,
}

/// A file that the user named, with a hash of its content. It is trusted only while it is unchanged.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct NamedFile {
    path: PathBuf,
    content: String,
}

/// Stores the settings that a session is run with from now on.
pub(crate) async fn save(
    store: &SqliteStore,
    session: &Session,
    sources: &Sources,
    choice: &ModelChoice,
) -> Result<(), CliError> {
    let folder = sources.folder.clone().or_else(|| env::current_dir().ok());
    let mut settings = SessionSettings {
        model: choice.name.clone(),
        base_url: choice.base_url.as_deref().map(BaseUrl::without_secrets),
        config: sources.config.as_deref().and_then(NamedFile::of),
        no_config: sources.no_config,
        agent: sources.agent.clone(),
        folder: folder.filter(|folder| folder.to_str().is_some()),
        flags: sources.flags.entries().filter_map(lasting).collect(),
    };
    let mut text = serde_json::to_string(&settings)?;
    if text.len() > MAX_SETTINGS {
        settings.flags.clear();
        text = serde_json::to_string(&settings)?;
        crate::say(
            "the flags of this command are too long to be remembered; give them again to continue this session",
        );
    }
    Ok(store.save_settings(session.id(), &text).await?)
}

/// Fills in the settings of a session's last run, as far as `sources` leaves them open.
pub(crate) async fn restore(
    store: &SqliteStore,
    id: &SessionId,
    sources: &mut Sources,
) -> Result<(), CliError> {
    let settings = match store.settings(id).await? {
        Some(text) => serde_json::from_str(&text).map_err(|error| {
            CliError::failed(format!(
                "the settings of session {id} cannot be read ({error}); export it and import it by \
                 another name, which keeps only its log"
            ))
        })?,
        // The log of an imported session may name the model.
        None => {
            let (model, _) = started(&store.load(id).await?);
            SessionSettings {
                model,
                ..SessionSettings::default()
            }
        }
    };
    if settings.model.is_empty() {
        return Ok(());
    }
    settings.restore(id, sources)
}

impl SessionSettings {
    /// Parses the stored settings of a session. Settings of another version may be unreadable,
    /// which gives the default.
    pub(crate) fn of(settings: &str) -> Self {
        serde_json::from_str(settings).unwrap_or_default()
    }

    fn restore(self, id: &SessionId, sources: &mut Sources) -> Result<(), CliError> {
        if let Some(folder) = self.folder.as_ref().filter(|folder| !folder.is_dir()) {
            let folder = folder.display();
            say!(
                "session {id} was run in {folder}, which no longer exists; it continues in this \
                 folder"
            );
        }
        let flags = &mut sources.flags;
        let mut earlier = self.flags;
        if !flags.has("model") {
            let base_url = self
                .base_url
                .map(|url| Flag::new("--base-url", "base_url", url));
            earlier.extend(base_url);
            earlier.push(Flag::new("--model", "model", self.model.clone()));
            sources.resumed = Some(format!("session {id} runs on {}", self.model));
        }
        flags.restore(earlier);
        if sources.config.is_some() || sources.no_config {
            return Ok(());
        }
        sources.no_config = self.no_config;
        if let Some(file) = self.config {
            if !file.is_as_it_was() {
                let path = file.path.display();
                return Err(CliError::usage(format!(
                    "session {id} was run with --config {path}, which has changed since; give \
                     --config {path} if you trust it, or another one"
                )));
            }
            sources.config = Some(file.path);
        }
        sources.agent = sources.agent.take().or(self.agent);
        Ok(())
    }
}

impl NamedFile {
    fn of(path: &Path) -> Option<Self> {
        let content = content(path)?;
        let path = std::path::absolute(path).ok()?;
        path.to_str()?;
        Some(Self { path, content })
    }

    fn is_as_it_was(&self) -> bool {
        content(&self.path).is_some_and(|content| content == self.content)
    }
}

/// Returns a hash of a file's content; `None` if it cannot be read.
fn content(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(Fingerprint::of([&Message::user(text)]).to_string())
}

/// Converts a flag to a form that is valid in other directories and for later runs. Returns `None`
/// if it is valid only for the command that it was given to.
fn lasting(flag: Flag) -> Option<Flag> {
    match config::key(&flag.key).map(|key| (key.name.as_str(), &key.kind)) {
        // The model and its address are stored separately.
        Some(("model" | "base_url", _)) => None,
        // They would delete other sessions whenever this one goes on.
        Some(("keep_days" | "keep_bytes", _)) => None,
        // Flags that ask less than usual must be given again each time.
        Some(("permission_mode", _)) if !matches!(flag.text.as_str(), "ask" | "read-only") => None,
        Some(("permissions", _)) if !flag.text.starts_with("deny ") => None,
        Some((_, SettingKind::Path)) => {
            let path = std::path::absolute(&flag.text).ok();
            let text = path.and_then(|path| Some(path.to_str()?.to_owned()));
            Some(Flag {
                text: text.unwrap_or_else(|| flag.text.clone()),
                ..flag
            })
        }
        _ => Some(flag),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_does_not_remember_which_sessions_are_kept() {
        let kept = |key: &str, text: &str| lasting(Flag::new("--set", key, text)).is_some();
        assert!(!kept("sessions.keep_days", "1"));
        assert!(!kept("sessions.keep_bytes", "1"));
        assert!(kept("max_turns", "3"));
    }
}
