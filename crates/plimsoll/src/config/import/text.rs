//! [`Text`]: the lines of the resulting `plimsoll.toml`, each with its line in the imported file.

use std::collections::{BTreeMap, BTreeSet};

use super::super::document::quoted;
use super::{ImportedSetting, System};

/// The position of a line, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinePosition {
    /// For all agents.
    Top,
    /// In `[providers.NAME]`.
    Provider(String),
    /// In `[models.PROVIDER.NAME]`.
    Model(String, String),
    /// In the `[[mcp]]` of this name.
    Mcp(String),
    /// In the agent that calls the others.
    Main,
    /// In an agent, by its index in the other file.
    Agent(usize),
}

/// A line with a comment about its origin.
#[derive(Debug, Clone)]
pub(super) struct ImportedLine {
    pub(super) place: LinePosition,
    pub(super) path: String,
    pub(super) value: String,
    /// The line and the name in the other file; `None` for an added line.
    pub(super) from: Option<(usize, String)>,
}

/// All lines, in the order of the other file.
#[derive(Debug, Default)]
pub(super) struct Text {
    lines: Vec<ImportedLine>,
    /// The default name of the agent that calls the others. `None` if there is no such agent; then
    /// its settings apply to all agents.
    pub(super) main: Option<&'static str>,
    /// The agents that it calls.
    pub(super) called: BTreeSet<usize>,
    /// Variables that tool servers need.
    pub(super) passed: BTreeSet<String>,
    /// Tool servers by their address or command.
    servers: BTreeMap<String, String>,
}

impl LinePosition {
    /// Formats a path in this place for a person.
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

impl Text {
    /// Adds a line. If two lines set the same setting, the one in the outer table counts, then the
    /// later one. Returns the overridden line of the other file.
    pub(super) fn put(&mut self, line: ImportedLine) -> Option<usize> {
        let is_same =
            |other: &&mut ImportedLine| other.place == line.place && other.path == line.path;
        let Some(other) = self.lines.iter_mut().find(is_same) else {
            self.lines.push(line);
            return None;
        };
        let depth = |line: &ImportedLine| {
            line.from
                .as_ref()
                .map_or(0, |(_, name)| name.matches('.').count())
        };
        let loser = if depth(other) < depth(&line) {
            line
        } else {
            std::mem::replace(other, line)
        };
        loser.from.map(|(line, _)| line)
    }

    pub(super) fn has(&self, place: &LinePosition, path: &str) -> bool {
        let mut lines = self.lines.iter();
        lines.any(|line| line.place == *place && line.path == path)
    }

    /// Returns the name of a tool server, and whether it is new.
    pub(super) fn server(&mut self, key: &str, reach: &str) -> (String, bool) {
        if let Some(name) = self.servers.get(key) {
            return (name.clone(), false);
        }
        let rest = reach.split_once("://").map_or(reach, |(_, rest)| rest);
        let host = rest.split(['/', ':']).next().filter(|_| rest != reach);
        let word = host.unwrap_or_else(|| rest.rsplit(['/', '\\']).next().unwrap_or(rest));
        let sign = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        };
        let word: String = word.chars().map(sign).take(24).collect();
        let word = match word.trim_matches('_') {
            "" => "server",
            word => word,
        };
        let names: Vec<String> = self.servers.values().cloned().collect();
        let mut name = word.to_owned();
        for number in 2.. {
            if !names.contains(&name) {
                break;
            }
            name = format!("{word}_{number}");
        }
        self.servers.insert(key.to_owned(), name.clone());
        (name, true)
    }

    /// Returns the text, and for each of its lines the line of the other file.
    pub(super) fn write(
        mut self,
        system: System,
        settings: &[ImportedSetting],
    ) -> (String, Vec<Option<usize>>) {
        if self.main.is_none() {
            for line in &mut self.lines {
                if line.place == LinePosition::Main {
                    line.place = LinePosition::Top;
                }
            }
        }
        self.complete();
        let mut out = Out::default();
        out.line(
            &format!("# Imported from {system} by `plimsoll config import`."),
            None,
        );
        // First the settings for all agents, then their tables, servers and finally agents.
        let header_of = |line: &ImportedLine| {
            let table = line
                .path
                .split_once('.')
                .filter(|_| line.place == LinePosition::Top);
            let table = table.map_or("", |(table, _)| table).to_owned();
            (line.place.clone(), table)
        };
        let mut before = (LinePosition::Top, String::new());
        self.lines.sort_by_cached_key(header_of);
        for line in &self.lines {
            let header = header_of(line);
            if header != before {
                let title = match header.1.as_str() {
                    "" => line.place.shown(""),
                    table => format!("[{table}]"),
                };
                out.line(&format!("\n{}", title.trim_end()), None);
                if let LinePosition::Mcp(name) = &line.place {
                    out.line(&format!("name = {}", quoted(name)), None);
                }
                before = header;
            }
            let begin = format!("{}.", before.1);
            let path = line.path.strip_prefix(&begin).unwrap_or(&line.path);
            out.setting(path, line);
        }
        let mut lost = settings
            .iter()
            .filter(|setting| setting.became.is_empty())
            .peekable();
        if lost.peek().is_some() {
            out.line("\n# Not translated:", None);
        }
        for setting in lost {
            let note = setting.note.as_deref().unwrap_or_default();
            out.line(
                &format!("# line {}: {}: {note}", setting.line, setting.name),
                None,
            );
        }
        (out.text, out.lines)
    }

    /// Adds settings that are implicit in the other system.
    fn complete(&mut self) {
        if !self.passed.is_empty() {
            let names: Vec<String> = self.passed.iter().map(|name| quoted(name)).collect();
            self.own(
                LinePosition::Top,
                "pass_env",
                format!("[{}]", names.join(", ")),
            );
        }
        let name_of = |text: &Self, place: &LinePosition| {
            let found = text
                .lines
                .iter()
                .find(|line| line.place == *place && line.path == "name");
            found.map(|line| line.value.clone())
        };
        let agents: BTreeSet<LinePosition> =
            self.lines.iter().map(|line| line.place.clone()).collect();
        let mut agents: Vec<LinePosition> = agents
            .into_iter()
            .filter(|place| matches!(place, LinePosition::Agent(_)))
            .collect();
        for (number, place) in agents.iter().enumerate() {
            if name_of(self, place).is_none() {
                self.first(
                    place.clone(),
                    "name",
                    quoted(&format!("agent-{}", number + 1)),
                );
            }
        }
        let names: Vec<String> = agents
            .iter()
            .filter_map(|place| name_of(self, place))
            .collect();
        let is_called = |place: &LinePosition| matches!(place, LinePosition::Agent(at) if self.called.contains(at));
        let called = agents.iter().filter(|place| is_called(place));
        let called: Vec<String> = called.filter_map(|place| name_of(self, place)).collect();
        let has_main = self
            .lines
            .iter()
            .any(|line| line.place == LinePosition::Main)
            || !called.is_empty();
        if let Some(name) = self.main.filter(|_| has_main) {
            if name_of(self, &LinePosition::Main).is_none() {
                let mut name = name.to_owned();
                while names.contains(&quoted(&name)) {
                    name.push_str("-main");
                }
                self.first(LinePosition::Main, "name", quoted(&name));
            }
            if !called.is_empty() {
                self.own(
                    LinePosition::Main,
                    "sub_agents",
                    format!("[{}]", called.join(", ")),
                );
            }
            agents.push(LinePosition::Main);
        }
        // There, an agent that names no server has none; here it would have all.
        for place in agents {
            if !self.servers.is_empty() && !self.has(&place, "mcp") {
                self.own(place, "mcp", "[]".to_owned());
            }
        }
    }

    fn own(&mut self, place: LinePosition, path: &str, value: String) {
        let path = path.to_owned();
        let from = None;
        self.lines.push(ImportedLine {
            place,
            path,
            value,
            from,
        });
    }

    /// Like [`Self::own`], before all other lines.
    fn first(&mut self, place: LinePosition, path: &str, value: String) {
        self.own(place, path, value);
        self.lines.rotate_right(1);
    }
}

/// A text with the origin of its lines.
#[derive(Default)]
struct Out {
    text: String,
    lines: Vec<Option<usize>>,
}

impl Out {
    fn line(&mut self, line: &str, from: Option<usize>) {
        self.text.push_str(line);
        self.text.push('\n');
        let count = line.split('\n').count();
        self.lines.extend(std::iter::repeat_n(from, count));
    }

    fn setting(&mut self, path: &str, line: &ImportedLine) {
        let ImportedLine { value, from, .. } = line;
        match from {
            Some((at, name)) => {
                self.line(&format!("{path} = {value} # line {at}: {name}"), Some(*at))
            }
            None => self.line(&format!("{path} = {value}"), None),
        }
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
