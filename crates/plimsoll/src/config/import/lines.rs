//! [`Lines`]: the settings of the resulting `plimsoll.toml`, each with its origin in the imported
//! file.

use std::collections::BTreeSet;

use super::super::document::quoted;
use super::{ImportedSetting, System};

/// A table of the result, in the order of its text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    /// For all agents.
    Top,
    /// `[providers.NAME]`.
    Provider(String),
    /// `[models.PROVIDER.NAME]`.
    Model(String, String),
    /// An `[[mcp]]`, by its name.
    Mcp(String),
    /// The agent that calls the others.
    Main,
    /// An agent, by its number in the other file.
    Agent(usize),
}

/// A setting with a comment about its origin.
#[derive(Debug)]
pub(super) struct ImportedLine {
    pub(super) section: Section,
    pub(super) path: String,
    pub(super) value: String,
    /// The line and the name in the other file; `None` for an added setting.
    pub(super) from: Option<(usize, String)>,
}

/// All settings, in the order of the other file.
#[derive(Debug, Default)]
pub(super) struct Lines(Vec<ImportedLine>);

impl Section {
    /// Returns the section of an agent's settings.
    pub(super) fn of(agent: Option<usize>) -> Self {
        agent.map_or(Self::Top, Self::Agent)
    }

    /// Formats a path in this section for a person.
    pub(super) fn shown(&self, path: &str) -> String {
        match self {
            Self::Top => path.to_owned(),
            Self::Main | Self::Agent(_) => format!("[[agents]] {path}"),
            Self::Provider(name) => format!("[providers.{}] {path}", bare(name)),
            Self::Model(vendor, name) => format!("[models.{}.{}] {path}", bare(vendor), bare(name)),
            Self::Mcp(_) => format!("[[mcp]] {path}"),
        }
    }
}

impl Lines {
    /// Adds a setting. If it is set already, the one in the outer table counts, then the later one.
    /// Returns the overridden line of the other file.
    pub(super) fn put(&mut self, line: ImportedLine) -> Option<usize> {
        let mut lines = self.0.iter_mut();
        let is_same =
            |other: &&mut ImportedLine| other.section == line.section && other.path == line.path;
        let Some(other) = lines.find(is_same) else {
            self.0.push(line);
            return None;
        };
        let depth = |line: &ImportedLine| {
            let from = line.from.as_ref();
            from.map_or(0, |(_, name)| name.matches('.').count())
        };
        let loser = if depth(other) < depth(&line) {
            line
        } else {
            std::mem::replace(other, line)
        };
        loser.from.map(|(line, _)| line)
    }

    /// Adds a setting that the other file does not have.
    fn add(&mut self, section: Section, path: &str, value: String) {
        let path = path.to_owned();
        self.0.push(ImportedLine {
            section,
            path,
            value,
            from: None,
        });
    }

    /// Returns a setting as it is written.
    pub(super) fn get(&self, section: &Section, path: &str) -> Option<&str> {
        let mut lines = self.0.iter();
        let line = lines.find(|line| line.section == *section && line.path == path);
        line.map(|line| line.value.as_str())
    }

    /// Adds settings that are implicit in the other system: names, the agents that `main` calls, and
    /// that an agent without servers has none. Without `main`, its settings apply to all agents.
    pub(super) fn complete(&mut self, main: Option<&str>, called: &BTreeSet<usize>) {
        let sections: BTreeSet<Section> = self.0.iter().map(|it| it.section.clone()).collect();
        let has_servers = sections.iter().any(|it| matches!(it, Section::Mcp(_)));
        let is_agent = |it: &&Section| matches!(it, Section::Agent(_));
        let mut agents: Vec<Section> = sections.iter().filter(is_agent).cloned().collect();
        for (at, agent) in agents.iter().enumerate() {
            self.name(agent, &format!("agent-{}", at + 1));
        }
        let is_called = |it: &&Section| matches!(it, Section::Agent(at) if called.contains(at));
        let names = agents.iter().filter(is_called);
        let names = names.filter_map(|agent| self.get(agent, "name"));
        let names = names.collect::<Vec<_>>().join(", ");
        match main {
            None => {
                let of_main = self.0.iter_mut().filter(|it| it.section == Section::Main);
                of_main.for_each(|line| line.section = Section::Top);
            }
            Some(name) if sections.contains(&Section::Main) || !names.is_empty() => {
                let is_taken = |name: &str| {
                    let name = quoted(name);
                    self.0
                        .iter()
                        .any(|it| it.path == "name" && it.value == name)
                };
                let name = if is_taken(name) {
                    format!("{name}-main")
                } else {
                    name.to_owned()
                };
                self.name(&Section::Main, &name);
                if !names.is_empty() {
                    self.add(Section::Main, "sub_agents", format!("[{names}]"));
                }
                agents.push(Section::Main);
            }
            Some(_) => {}
        }
        for agent in agents {
            if has_servers && self.get(&agent, "mcp").is_none() {
                self.add(agent, "mcp", "[]".to_owned());
            }
        }
    }

    /// Names an agent that has no name, before its other settings.
    fn name(&mut self, agent: &Section, name: &str) {
        if self.get(agent, "name").is_none() {
            self.add(agent.clone(), "name", quoted(name));
            self.0.rotate_right(1);
        }
    }

    /// Returns the text, and for each of its lines the line of the other file.
    pub(super) fn write(
        mut self,
        system: System,
        settings: &[ImportedSetting],
    ) -> (String, Vec<Option<usize>>) {
        // First the settings for all agents, then their tables, servers and finally agents.
        let place = |line: &ImportedLine| {
            let table = line.path.split_once('.');
            let table = table.filter(|_| line.section == Section::Top);
            let table = table.map_or(String::new(), |(table, _)| table.to_owned());
            (line.section.clone(), table)
        };
        self.0.sort_by_cached_key(place);
        let (mut text, mut origins) = (String::new(), Vec::new());
        let mut push = |part: String, from: Option<usize>| {
            origins.extend(std::iter::repeat_n(from, part.matches('\n').count()));
            text.push_str(&part);
        };
        push(
            format!("# Imported from {system} by `plimsoll config import`.\n"),
            None,
        );
        let mut before = (Section::Top, String::new());
        for line in &self.0 {
            let here = place(line);
            let (section, table) = &here;
            if here != before {
                let title = match table.as_str() {
                    "" => section.shown(""),
                    table => format!("[{table}]"),
                };
                push(format!("\n{}\n", title.trim_end()), None);
                before = here.clone();
            }
            let path = line.path.strip_prefix(&format!("{table}."));
            let path = path.unwrap_or(&line.path);
            let (from, comment) = match &line.from {
                Some((at, name)) => (Some(*at), format!(" # line {at}: {name}")),
                None => (None, String::new()),
            };
            push(format!("{path} = {}{comment}\n", line.value), from);
        }
        let mut title = "\n# Not translated:\n";
        for lost in settings.iter().filter(|it| it.became.is_empty()) {
            let note = lost.note.as_deref().unwrap_or_default();
            let ImportedSetting { line, name, .. } = lost;
            push(format!("{title}# line {line}: {name}: {note}\n"), None);
            title = "";
        }
        (text, origins)
    }
}

/// Returns a name as a TOML key, quoted if it needs to be.
fn bare(key: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(good) {
        key.to_owned()
    } else {
        quoted(key)
    }
}
