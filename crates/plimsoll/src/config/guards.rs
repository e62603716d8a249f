//! The restrictions of the command line and the environment, which apply to the running agent and to every
//! agent that it calls. Permissions are not inherited.

use std::path::{Path, PathBuf};

use plimsoll_agent::Permission;
use plimsoll_tools::Root;

use super::agent::AgentConfig;
use super::permission::Rule;

impl AgentConfig {
    /// Applies the restrictions to an agent that this one calls. Its own root is kept only if it is the
    /// caller's root or below it.
    pub(super) fn restrict(&self, called: &mut Self) {
        let rules: Vec<Rule> = self.over.get("permissions").unwrap_or_default();
        let forbid = rules
            .into_iter()
            .filter(|rule| rule.then != Permission::Allow);
        let is_set = called.origin("root").is_some();
        let own = &mut called.settings;
        own.permissions.splice(0..0, forbid);
        if let Some(root) = self.over.get::<PathBuf>("root")
            && !(is_set && is_below(&own.root, &root))
        {
            own.root = root;
        }
        called.over = self.over.clone();
        called.protected.clone_from(&self.protected);
        called.sandbox_launcher.clone_from(&self.sandbox_launcher);
    }
}

/// Checks whether a path is this directory or inside it, following links.
fn is_below(path: &Path, home: &Path) -> bool {
    let path = std::path::absolute(path).ok();
    let path = path.as_deref().and_then(Path::to_str);
    Root::new(home).is_ok_and(|root| path.is_some_and(|path| root.resolve(path).is_ok()))
}
