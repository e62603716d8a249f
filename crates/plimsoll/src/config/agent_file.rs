//! Agents as Markdown files: settings of `[[agents]]` between two lines `---`, followed by the
//! system prompt. Files of Claude Code are read too.

use std::path::Path;
use std::sync::Arc;

use plimsoll_tools::front_matter;
use serde_json::Value as Json;

use super::document::Located;
use super::fault::{ConfigError, ConfigFault, Faults, Origin, Place};
use super::file::{AgentPart, Config, config_text};
use super::import::own_tools;
use super::kind::names;
use super::layer::Layer;

/// The format of an agent file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentFileForm {
    /// Plimsoll's own: every setting of `[[agents]]`.
    Plimsoll,
    /// The format of Claude Code: `name`, `description` and `tools`. Other fields are ignored: the agent
    /// runs on the model of its caller.
    ClaudeCode,
}

impl Config {
    /// Adds the agent that a Markdown file describes. It can be called by agents without
    /// `sub_agents`. If there is an agent of this name already, that one stays.
    ///
    /// A faulty file adds nothing; [`Config::warnings`] reports the reason.
    ///
    /// ```
    /// use plimsoll::config::{AgentFileForm, Config};
    /// use std::path::Path;
    /// let path = Path::new("no/such/agent.md");
    /// let config = Config::parse("")?.agent_file(path, AgentFileForm::ClaudeCode);
    /// assert_eq!(config.warnings().len(), 1);
    /// # Ok::<(), plimsoll::config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn agent_file(mut self, path: &Path, form: AgentFileForm) -> Self {
        match config_text(path) {
            Ok(text) => self.add_agent_text(path, &text, form),
            Err(error) => self.leave_out(path, error.faults),
        }
        self
    }

    /// Like [`Self::agent_file`], with the text of the file. The agent is left out if it is faulty together
    /// with those that may call it.
    pub(super) fn add_agent_text(&mut self, path: &Path, text: &str, form: AgentFileForm) {
        let mut faults = Faults::default();
        let part = part_of(text, path, form, &mut faults).filter(|_| faults.faults.is_empty());
        let is_new = |part: &AgentPart| self.shared.agent(&part.name).is_err();
        if let Some(part) = part.filter(is_new) {
            Arc::make_mut(&mut self.shared).agents.push(part);
            let mut own = Faults::default();
            for part in [None, self.shared.agents.last()] {
                let mut idle = self.agent_of(&[], part, &mut own).check(&mut own);
                idle.retain(|fault| fault.origin.path() == Some(path));
                own.add(ConfigError { faults: idle });
            }
            if let Err(error) = own.check() {
                Arc::make_mut(&mut self.shared).agents.pop();
                faults.add(error);
            }
        }
        self.leave_out(path, std::mem::take(&mut faults.faults));
        self.faults.extend(faults);
    }

    /// Adds the reasons why a file is left out to the warnings.
    fn leave_out(&mut self, path: &Path, faults: Vec<ConfigFault>) {
        let start = Origin::start(Some(path));
        for ConfigFault { origin, text } in faults {
            let origin = Some(&origin).filter(|origin| origin.place().is_some());
            let text = format!("{text} (the agent is left out)");
            self.faults.warn(origin.unwrap_or(&start), text);
        }
    }

    /// Returns the names of the agents that are files, in the order in which they were added.
    pub fn file_agents(&self) -> impl Iterator<Item = &str> {
        let agents = self.shared.agents.iter().filter(|agent| agent.is_file);
        agents.map(|agent| agent.name.as_str())
    }
}

/// Parses the text of an agent file.
fn part_of(
    whole: &str,
    path: &Path,
    form: AgentFileForm,
    faults: &mut Faults,
) -> Option<AgentPart> {
    let start = Origin::start(Some(path));
    let (fields, body) = front_matter(whole)
        .map_err(|why| faults.push(&start, why))
        .ok()?;
    let origin_of = |key: &str| {
        let is_key = |line: &str| {
            line.strip_prefix(key)
                .is_some_and(|rest| rest.trim_start().starts_with(':'))
        };
        let line = whole.lines().position(is_key).map_or(1, |at| at + 1);
        Origin::File(path.into(), Place { line, column: 1 })
    };
    let mut layer = Layer::default();
    for (key, value) in fields {
        let origin = origin_of(&key);
        let value = match (form, key.as_str()) {
            (AgentFileForm::Plimsoll, "system" | "system_file") => {
                let why =
                    "the text below the second line --- is its system prompt; leave out this one";
                faults.push(&origin, why);
                continue;
            }
            (AgentFileForm::Plimsoll, _) | (_, "name" | "description") => Some(value),
            (AgentFileForm::ClaudeCode, "tools") => tools(&value, &origin, faults),
            (AgentFileForm::ClaudeCode, _) => None,
        };
        let Some(value) = value else { continue };
        // A field without a value is an empty text.
        let value = if value.is_null() { "".into() } else { value };
        layer.read("", &key, &Located::new(value, &origin), faults);
    }
    if !body.trim().is_empty() {
        let system = Located::new(body.trim().into(), &start);
        layer.read("", "system", &system, faults);
    }
    layer.check_scope(true, faults);
    let part = AgentPart::of(layer, true);
    if part.is_none() {
        faults.push(&start, "it needs a `name` between the two lines ---");
    }
    part
}

/// Converts the tool names of a Claude Code file. Returns `None` if it names none, which means all.
fn tools(value: &Json, origin: &Origin, faults: &mut Faults) -> Option<Json> {
    if [Json::Null, "".into(), Json::Array(Vec::new())].contains(value) {
        return None;
    }
    // What is no list of names must not mean all tools.
    let given = names(value).unwrap_or_else(|| vec![value.to_string()]);
    let (names, others) = own_tools(&given);
    if !others.is_empty() {
        let others = others.join(", ");
        let text = format!("the tools {others} have no counterpart, and are left out");
        faults.warn(origin, text);
    }
    Some(names.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AgentConfig, Overrides};

    fn config(files: &[(&str, &str, AgentFileForm)]) -> (Config, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::parse("[[agents]]\nname = \"main\"\n").unwrap();
        for (name, text, form) in files {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            config = config.agent_file(&path, *form);
        }
        let shown = folder.path().display().to_string() + "/";
        let warnings = config.warnings().iter();
        let warnings = warnings.map(|fault| fault.to_string().replace(&shown, ""));
        let warnings = warnings.collect();
        (config, warnings)
    }

    fn agent(config: &Config, name: Option<&str>) -> AgentConfig {
        config.resolve(name, &Overrides::default()).unwrap()
    }

    #[test]
    fn a_file_is_an_agent_that_the_others_may_call() {
        let text = "---\nname: reviewer\ndescription: Reviews.\ntools: [read, grep]\nmax_turns: 7\n---\n\nBe strict.\n";
        let (config, warnings) = config(&[("r.md", text, AgentFileForm::Plimsoll)]);
        assert_eq!(warnings, [""; 0]);
        assert_eq!(config.agents().collect::<Vec<_>>(), ["main"]);
        assert_eq!(config.file_agents().collect::<Vec<_>>(), ["reviewer"]);
        let reviewer = agent(&config, Some("reviewer"));
        assert_eq!(reviewer.settings().system.as_deref(), Some("Be strict."));
        assert_eq!(reviewer.settings().tools, ["read", "grep"]);
        assert_eq!(reviewer.settings().builder.limits.max_turns, Some(7));
        assert_eq!(reviewer.settings().sub_agents, [""; 0]);
        for name in [None, Some("main")] {
            assert_eq!(agent(&config, name).settings().sub_agents, ["reviewer"]);
        }
        let alone = Config::parse("tools = \"none\"").unwrap();
        assert_eq!(agent(&alone, None).settings().sub_agents, [""; 0]);
    }

    #[test]
    fn a_file_of_claude_code_is_taken_as_far_as_it_has_a_counterpart() {
        let text = "---\nname: code-reviewer\ndescription: Reviews.\ntools: Read, LS, Bash(git diff:*), WebFetch\n\
                    model: opus\ncolor: red\nhooks: {}\n---\nBe strict.\n";
        let (config, warnings) = config(&[("c.md", text, AgentFileForm::ClaudeCode)]);
        let agent = agent(&config, Some("code-reviewer"));
        assert_eq!(agent.settings().tools, ["bash", "list", "read"]);
        assert_eq!(agent.settings().model, None);
        assert_eq!(
            warnings,
            ["c.md:4:1: the tools WebFetch have no counterpart, and are left out",]
        );
    }

    #[test]
    fn tools_of_claude_code_are_never_more_than_it_names() {
        for (tools, ours) in [
            ("", "all"),
            (" []", "all"),
            (" Read", "read"),
            (" [Read, 3]", "none"),
            (" Read,,Grep", "none"),
            (" {a: 1}", "none"),
            (" WebFetch", "none"),
        ] {
            let text = format!("---\nname: a\ntools:{tools}\n---\nx");
            let (config, _) = config(&[("c.md", &text, AgentFileForm::ClaudeCode)]);
            assert_eq!(agent(&config, Some("a")).settings().tools, [ours], "{text}");
        }
    }

    #[test]
    fn a_field_without_a_value_is_an_empty_text() {
        let text = "---\nname: a\ndescription:\n---\nHelp.";
        for form in [AgentFileForm::Plimsoll, AgentFileForm::ClaudeCode] {
            let (config, warnings) = config(&[("a.md", text, form)]);
            assert_eq!(warnings, [""; 0]);
            let agent = agent(&config, Some("a"));
            assert_eq!(agent.settings().description.as_deref(), Some(""));
        }
    }

    #[test]
    fn a_setting_of_a_table_may_have_its_full_name() {
        for text in ["retry.max_attempts: 2", "retry:\n  max_attempts: 2"] {
            let text = format!("---\nname: a\n{text}\n---\nx");
            let (config, warnings) = config(&[("a.md", &text, AgentFileForm::Plimsoll)]);
            assert_eq!(warnings, [""; 0]);
            let retry = agent(&config, Some("a")).settings().builder.driver.retry;
            assert_eq!(retry.max_attempts, 2, "{text}");
        }
    }

    #[test]
    fn a_faulty_file_is_left_out_and_named() {
        for (text, why) in [
            (
                "# No front matter",
                "a.md:1:1: it does not start with a line --- (the agent is left out)",
            ),
            ("---\ndescription: x\n---\n", "a.md:1:1: it needs a `name`"),
            (
                "---\nname: a\nmax_trns: 3\n---\n",
                "a.md:3:1: there is no `max_trns`",
            ),
            (
                "---\nname: read\n---\n",
                "two tools are named `read`; rename one",
            ),
            ("---\nname: a b\n---\n", "cannot name a tool"),
            ("---\nname: a\nsystem: x\n---\nBody", "leave out this one"),
            (
                "---\nname: a\nmax_turns: many\n---\n",
                "a.md:3:1: `max_turns` is",
            ),
        ] {
            let (config, warnings) = config(&[("a.md", text, AgentFileForm::Plimsoll)]);
            assert_eq!(config.file_agents().count(), 0, "{text}");
            assert!(
                warnings.iter().any(|warning| warning.contains(why)),
                "{warnings:?}"
            );
        }
        let (config, warnings) =
            config(&[("m.md", "---\nname: main\n---\nx", AgentFileForm::Plimsoll)]);
        assert_eq!(
            (config.file_agents().count(), warnings.len()),
            (0, 0),
            "the other counts"
        );
    }
}
