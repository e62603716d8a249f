//! Provider features that an agent uses: the provider's own tools and the lifetime of its prompt
//! cache.

use std::collections::HashSet;

use plimsoll_agent::Permission;
use plimsoll_context::{CacheRetention, HostedTool, SettingFault};

use super::AgentBuilder;
use crate::agent::RECALL_TOOLS;

impl AgentBuilder {
    /// Adds a tool of the provider, in the provider's own format.
    ///
    /// It runs on the provider's side without approval, and its results are part of the answer. If
    /// [`permissions`](Self::permissions) deny it by name or kind, it is left out of the request.
    ///
    /// ```
    /// use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// let agent = Agent::builder(ScriptedProvider::new([]))
    ///     .hosted_tool(serde_json::json!({"type": "web_search_20250305", "name": "web_search"}))
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn hosted_tool(mut self, definition: serde_json::Value) -> Self {
        self.settings.hosted_tools.push(HostedTool(definition));
        self
    }

    /// Returns the provider tools and the cache lifetime to request, with warnings about everything
    /// that was left out.
    pub(super) fn asked_of_provider(&self) -> (Vec<HostedTool>, CacheRetention, Vec<String>) {
        let mut notes = Vec::new();
        let mut tools = self.settings.hosted_tools.clone();
        tools.retain(|tool| {
            let denied = self.permissions.hosted(tool) == Ok(Permission::Deny);
            if denied {
                let name = tool.name();
                notes.push(format!(
                    "`{name}`, a tool of the provider's own, is denied by the permissions, so it is not \
                     asked for"
                ));
            }
            // One without a kind is a fault.
            !denied && !tool.kind().is_empty()
        });
        if !tools.is_empty() && self.settings.limits.max_cost.is_some() {
            notes.push(
                "max_cost counts tokens only: the provider's fees for the use of its own tools \
                 are unknown"
                    .to_owned(),
            );
        }
        let mut retention = self.settings.retention;
        if !self.settings.cache.is_on() {
            // Without caching, the lifetime does not matter.
            retention = CacheRetention::Usual;
        } else if !self.parts.provider.keeps(retention) {
            let (model, name) = (self.parts.provider.model(), retention.name());
            notes.push(format!(
                "cache.retention is \"{name}\", and {model} has no such thing: its prompt cache lives \
                 as usual"
            ));
            retention = CacheRetention::Usual;
        }
        notes.extend(self.parts.provider.sampling_notes(&self.settings.sampling));
        (tools, retention, notes)
    }

    /// Leaves out the last tools beyond the provider's maximum, which also counts its own tools and those
    /// for recalls. Returns a note that names them.
    pub(super) fn leave_out_tools(&mut self, hosted: usize) -> Option<String> {
        let most = self.parts.provider.max_tools()?;
        let recalls = usize::from(self.settings.recall) * RECALL_TOOLS.len();
        let kept = most.saturating_sub(hosted + recalls);
        if self.tools.len() <= kept {
            return None;
        }
        let left_out = self.tools.split_off(kept);
        let first = left_out.first()?;
        Some(format!(
            "{} accepts {most} tools in a request: the last {} of {} are left out, from `{}` on",
            self.parts.provider.model(),
            left_out.len(),
            left_out.len() + kept,
            first.spec().name,
        ))
    }

    /// Returns the faults of the provider tools. `names` are the names of the host's tools.
    pub(super) fn hosted_faults<'a>(&'a self, mut names: HashSet<&'a str>) -> Vec<SettingFault> {
        let fault = |text: String| SettingFault::new(&["hosted_tools"], text);
        let mut faults = Vec::new();
        for (tool, number) in self.settings.hosted_tools.iter().zip(1..) {
            let name = tool.name();
            if tool.kind().is_empty() {
                faults.push(fault(format!(
                    "number {number} of hosted_tools has no `type`; write it as the provider's pages do"
                )));
                continue;
            }
            if !names.insert(name) {
                let text = format!("two tools are named `{name}`; leave one out");
                faults.push(fault(text));
            }
            if let Err(text) = self.permissions.hosted(tool) {
                faults.push(SettingFault::new(&["permissions", "hosted_tools"], text));
            }
        }
        faults
    }
}
