//! [`Guards`]: the restrictions of the command line and the environment, which apply to the running
//! agent and to every agent that it calls. Permissions are not inherited.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use plimsoll_agent::Permission;
use plimsoll_tools::Root;

use super::agent::AgentConfig;
use super::layer::Layer;
use super::permission::Rule;

/// The restrictions for called agents, whatever their file sets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guards {
    rules: Vec<Rule>,
    root: Option<PathBuf>,
    /// Files that are changed only after approval.
    pub(super) protected: Vec<PathBuf>,
    /// The program, with its first arguments, that enters the sandbox of `bash`.
    pub(super) sandbox_launcher: Vec<OsString>,
}

impl Guards {
    /// Returns the restrictions of these layers, uppermost first.
    pub(crate) fn of(layers: &[&Layer]) -> Self {
        let mut guards = Self::default();
        for layer in layers {
            let rules: Vec<Rule> = layer.get("permissions").unwrap_or_default();
            let forbid = rules
                .into_iter()
                .filter(|rule| rule.then != Permission::Allow);
            guards.rules.extend(forbid);
            guards.root = guards.root.or(layer.get("root"));
        }
        guards
    }

    /// Applies them to an agent. Its own root is kept only if it is the caller's root or below it.
    pub(crate) fn hold(&self, called: &mut AgentConfig) {
        let is_set = called.origin("root").is_some();
        let own = &mut called.settings;
        own.permissions.splice(0..0, self.rules.iter().cloned());
        if let Some(root) = &self.root
            && !(is_set && is_below(&own.root, root))
        {
            own.root.clone_from(root);
        }
        called.guards = self.clone();
    }
}

/// Checks whether a path is this directory or inside it, following links.
fn is_below(path: &Path, home: &Path) -> bool {
    let path = std::path::absolute(path).ok();
    let path = path.as_deref().and_then(Path::to_str);
    Root::new(home).is_ok_and(|root| path.is_some_and(|path| root.resolve(path).is_ok()))
}
