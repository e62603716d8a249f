//! [`Guards`]: what the command line and the environment forbid, which holds for every agent that the
//! one calls which runs. Not what they allow: that is the caller's alone.

use std::ffi::OsString;
use std::path::PathBuf;

use plimsoll_agent::Permission;
use plimsoll_providers::ModelBook;

use super::kind::Value;
use super::layer::Layer;
use super::permission::Rule;
use super::reach::is_below;
use super::resolve::Resolved;

/// What holds for agents that are called, whatever their file says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guards {
    rules: Vec<Rule>,
    root: Option<PathBuf>,
    /// Files that are changed only after a question.
    pub(super) protected: Vec<PathBuf>,
    /// What enters the sandbox of `bash`.
    pub(super) sandbox_launcher: Vec<OsString>,
    /// What the program knows of models, below the configuration.
    pub(super) models: ModelBook,
}

impl Guards {
    /// What these layers forbid, the uppermost first.
    pub(crate) fn of(layers: &[&Layer]) -> Self {
        let mut guards = Self::default();
        for found in layers.iter().flat_map(|layer| &layer.found) {
            match (found.key.path().as_str(), &found.value) {
                ("permissions", Value::Rules(rules)) => {
                    let forbid = rules.iter().filter(|rule| rule.then != Permission::Allow);
                    guards.rules.extend(forbid.cloned());
                }
                ("root", Value::Path(root)) if guards.root.is_none() => {
                    guards.root = Some(root.clone());
                }
                _ => {}
            }
        }
        guards
    }

    /// Lays them over an agent: its own root stays where it is the caller's or below it.
    pub(crate) fn hold(&self, resolved: &mut Resolved) {
        let own = &mut resolved.settings;
        own.permissions.splice(0..0, self.rules.iter().cloned());
        if let Some(root) = &self.root {
            let says = resolved.found.contains_key("root");
            if !(says && is_below(&own.root, root)) {
                own.root.clone_from(root);
            }
        }
    }
}
