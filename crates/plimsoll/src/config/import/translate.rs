//! [`Translation`]: translates the settings of another system. The correspondence is data; see
//! [`super::rows`].

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use plimsoll_agent::Permission;
use plimsoll_context::{Bytes, clip, snake_case as snake};
use serde_json::Value as Json;
use toml::{Table, Value};

use super::super::form::texts;
use super::super::key::{Scope, join, key};
use super::super::permission::Rule;
use super::models::PartOfModel;
use super::rows::{ImportRow, OF_MODELS, ROWS, unwrapped};
use super::{ImportedSetting, System};

/// Tool names of other systems, and Plimsoll's.
const TOOLS: [(&str, &str); 7] = [
    ("shell", "bash"),
    ("patch", "edit"),
    ("multi_edit", "edit"),
    ("ls", "list"),
    ("list_files", "list"),
    ("list_directory", "list"),
    ("search", "grep"),
];
/// Limits of phi-core. If one is set, the others have the defaults of [`LIMITS`].
const EXECUTION: &str = "execution.max_";
const LIMITS: [(&str, i64); 2] = [("max_total_tokens", 1_000_000), ("max_duration", 600)];

/// A setting of the other system.
#[derive(Debug, Clone)]
pub(super) struct TheirSetting {
    /// The path in the table of rows.
    path: String,
    /// The path as written.
    pub(super) shown: String,
    pub(super) value: Value,
    /// The agent that it belongs to, by its number in the file.
    pub(super) agent: Option<usize>,
}

/// A part of the resulting file, in the order of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    /// The settings for all agents, with the tables of the file.
    All,
    /// One of `[[mcp]]`.
    Server(usize),
    /// The agent that calls the others.
    Main,
    /// An agent, by its number in the other file.
    Agent(usize),
}

/// A setting of the result: its full name, its value, and a comment.
struct ResultLine {
    path: String,
    value: Value,
    comment: String,
}

/// The state of a translation.
pub(super) struct Translation {
    system: System,
    settings: Vec<TheirSetting>,
    pub(super) report: Vec<ImportedSetting>,
    /// The index of the current setting.
    pub(super) now: usize,
    result: BTreeMap<Section, Vec<ResultLine>>,
    /// The parts of each agent's model, and of the model for all agents.
    pub(super) models: BTreeMap<Option<usize>, Vec<PartOfModel>>,
    /// Tool servers as the other system describes them, with their names here.
    pub(super) servers: Vec<(Value, String)>,
}

/// Returns the number of a system's settings in a file.
pub(super) fn known(system: System, document: &Json) -> usize {
    let settings = settings(system, document);
    let is_known = |it: &&TheirSetting| ImportRow::find(system, &it.path).is_some();
    settings.iter().filter(is_known).count()
}

/// Returns the settings of a file, from its top.
fn settings(system: System, document: &Json) -> Vec<TheirSetting> {
    let mut found = Vec::new();
    collect(system, document, ["", ""], None, &mut found);
    found
}

/// Adds the settings of a table. Its path is given in snake case and as written.
fn collect(
    system: System,
    table: &Json,
    [own, shown]: [&str; 2],
    agent: Option<usize>,
    found: &mut Vec<TheirSetting>,
) {
    for (key, given) in table.as_object().into_iter().flatten() {
        let own = join(own, &snake(key));
        let path = unwrapped(system, &own);
        let shown = join(shown, &clean(key));
        match given {
            // A YAML file has empty values.
            Json::Null => {}
            Json::Array(items) if is_of_agents(system, &path) => {
                for (at, item) in items.iter().enumerate() {
                    let last = found.iter().filter_map(|it| it.agent).max();
                    let shown = format!("{shown}[{at}]");
                    let number = last.map_or(1, |last| last + 1);
                    collect(system, item, ["agents", &shown], Some(number), found);
                }
            }
            Json::Object(table) if !table.is_empty() && leads(system, &path) => {
                collect(system, given, [&own, &shown], agent, found);
            }
            _ => found.push(TheirSetting {
                path,
                shown,
                // No setting accepts a value that TOML does not have.
                value: Value::try_from(given).unwrap_or(Value::Float(f64::NAN)),
                agent,
            }),
        }
    }
}

/// Checks whether the tables of this list are agents.
fn is_of_agents(system: System, path: &str) -> bool {
    match system {
        System::Heartbit => path == "agents",
        System::PhiCore => path == "agent.instances" || path == "sub_agents.instances",
    }
}

/// Checks whether a table of this path contains known settings.
fn leads(system: System, path: &str) -> bool {
    let begin = format!("{path}.");
    let after = ROWS.range((system, begin.as_str())..).next();
    after.is_some_and(|((of, row), _)| *of == system && row.starts_with(&begin))
        || path == "sub_agents"
}

impl Translation {
    pub(super) fn of(system: System, document: &Json) -> Self {
        let settings = settings(system, document);
        let mut it = Self {
            system,
            report: settings.iter().map(ImportedSetting::of).collect(),
            settings,
            now: 0,
            result: BTreeMap::new(),
            models: BTreeMap::new(),
            servers: Vec::new(),
        };
        for (now, setting) in it.settings.clone().iter().enumerate() {
            it.now = now;
            match ImportRow::find(system, &setting.path) {
                Some(row) => it.translate(setting, row),
                None => it.note("it has no counterpart"),
            }
        }
        for (agent, parts) in std::mem::take(&mut it.models) {
            it.put_model(agent, &parts);
        }
        it.complete();
        it
    }

    /// Adds a note to the current setting. The first note counts.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        if let Some(setting) = self.report.get_mut(self.now) {
            setting.note.get_or_insert_with(|| note.into());
        }
    }

    /// Notes that the current setting is this one here.
    pub(super) fn became(&mut self, ours: impl Into<String>) {
        if let Some(setting) = self.report.get_mut(self.now) {
            setting.became.push(ours.into());
        }
    }

    fn translate(&mut self, setting: &TheirSetting, row: ImportRow) {
        let section = match row.how {
            "main" => Section::Main,
            _ => setting.agent.map_or(Section::All, Section::Agent),
        };
        if OF_MODELS.contains(&row.how) {
            let value = setting.value.clone();
            let part = PartOfModel {
                at: self.now,
                row,
                value,
            };
            return self.models.entry(setting.agent).or_default().push(part);
        }
        if let Some(value) = self.convert(setting, row, section)
            && self.set(section, row.ours, value)
            && let Some((ours, implied)) = row.implies
            && self.get(section, ours).is_none()
        {
            self.set(section, ours, super::super::document::parse_value(implied));
        }
    }

    /// Returns the value as Plimsoll has it. Otherwise, the note says why there is none.
    fn convert(
        &mut self,
        setting: &TheirSetting,
        row: ImportRow,
        section: Section,
    ) -> Option<Value> {
        let value = &setting.value;
        let whole = value.as_integer().filter(|whole| *whole >= 0);
        Some(match (row.how, whole) {
            ("-", _) => {
                self.note(row.why);
                return None;
            }
            ("legacy", _) if self.get(section, row.ours).is_some() => {
                self.note("its successor is set, too, and counts instead");
                return None;
            }
            ("millis", Some(millis)) => format!("{millis}ms").into(),
            ("retries", Some(retries)) => {
                self.note("the first attempt counts here, too");
                retries.saturating_add(1).into()
            }
            ("bytes", Some(bytes)) => {
                self.note("it is in tokens here, four bytes to one");
                (bytes / 4 + i64::from(bytes % 4 > 0)).max(1).into()
            }
            ("effort", _) if value.as_str() == Some("none") => "off".into(),
            ("strategy", _) if is_batched(setting) => {
                if self.has(|it| it.path == "tools.batch_size") {
                    self.became(row.ours);
                } else {
                    self.note("the number of parallel calls is not stated");
                }
                return None;
            }
            ("size", Some(size)) => {
                let has_strategy = self.has(|it| it.path == "tools.tool_strategy");
                if has_strategy && !self.has(is_batched) {
                    self.note("it counts for the strategy `batched` only");
                    return None;
                }
                Value::Table(Table::from_iter([("batched".to_owned(), size.into())]))
            }
            ("tools", _) => return self.tools(value),
            ("permissions", _) => return self.permissions(value),
            ("servers", _) => self.servers(value),
            _ => value.clone(),
        })
    }

    fn get(&self, section: Section, path: &str) -> Option<&Value> {
        let mut lines = self.result.get(&section)?.iter();
        lines.find(|line| line.path == path).map(|line| &line.value)
    }

    /// Sets one of Plimsoll's settings. Returns `true` if the value is valid for it.
    pub(super) fn set(&mut self, section: Section, ours: &str, value: Value) -> bool {
        let Some(key) = key(ours) else {
            return false;
        };
        let section = match (key.scope, section) {
            (Scope::AgentOnly, Section::All) => Section::Main,
            (_, section) => section,
        };
        // Names may differ in case, and whole numbers may be written with a decimal point.
        let other = in_our_words(&value);
        let mut forms = [value, other].into_iter();
        match forms.find(|form| key.accepts(form)) {
            // A value may be a misplaced secret, so it is not repeated.
            None => self.note(format!("give {}", key.takes)),
            Some(Value::String(text)) if text.contains("${") => {
                self.note("write the value of the variable yourself");
            }
            Some(value) => {
                self.put(section, ours, value);
                return true;
            }
        }
        false
    }

    /// Writes a line for the current setting. Replaces an earlier line of the same name.
    pub(super) fn put(&mut self, section: Section, path: &str, value: Value) {
        self.became(match section {
            Section::All => path.to_owned(),
            Section::Server(_) => format!("[[mcp]] {path}"),
            Section::Main | Section::Agent(_) => format!("[[agents]] {path}"),
        });
        let from = self.report.get(self.now).map(|it| it.name.clone());
        if self.get(section, path).is_some_and(|old| *old != value) {
            self.note("it is set twice, and the later one counts");
        }
        self.add(section, path, value, from.unwrap_or_default());
    }

    fn add(&mut self, section: Section, path: &str, value: Value, comment: impl Into<String>) {
        let lines = self.result.entry(section).or_default();
        lines.retain(|line| line.path != path);
        let (path, comment) = (path.to_owned(), comment.into());
        lines.push(ResultLine {
            path,
            value,
            comment,
        });
    }

    /// Returns the tools of an agent by Plimsoll's names.
    fn tools(&mut self, given: &Value) -> Option<Value> {
        let Some(names) = texts(given) else {
            self.note("give a list of names");
            return None;
        };
        let (mut tools, others) = own_tools(&names);
        if !others.is_empty() {
            let others: Vec<String> = others.into_iter().map(clean).collect();
            let others = others.join(", ");
            self.note(format!("these tools are not known here: {others}"));
        }
        if tools.is_empty() {
            tools.push("none");
        }
        Some(tools.into())
    }

    /// Returns permission rules as Plimsoll has them.
    fn permissions(&mut self, given: &Value) -> Option<Value> {
        let Value::Array(tables) = given else {
            self.note("give a list of rules, each in [[permissions]]");
            return None;
        };
        let mut rules = Vec::new();
        for table in tables {
            let field = |name: &str| table.get(name)?.as_str().map(str::to_owned);
            let then = field("action").and_then(|then| Permission::from_str(&then).ok());
            match (field("tool"), then) {
                (Some(tool), Some(then)) => rules.push(Rule {
                    tool,
                    arguments: field("pattern").filter(|pattern| pattern != "*"),
                    then,
                }),
                _ => self.note("a rule without `tool` or `action` is left out"),
            }
        }
        Some(Value::Array(rules.iter().map(Rule::table).collect()))
    }

    /// Adds what is implicit in the other system: limits, names, the agents that the main one calls,
    /// and that an agent without servers has none.
    fn complete(&mut self) {
        if self.has(|it| it.path.starts_with(EXECUTION)) {
            for (path, value) in LIMITS {
                if self.get(Section::All, path).is_none() {
                    let comment = format!("the default of {} beside other limits", self.system);
                    self.add(Section::All, path, value.into(), comment);
                }
            }
        }
        let is_heartbit = self.system == System::Heartbit;
        let mut called: Vec<Value> = Vec::new();
        let agents = self.settings.iter().map(|it| {
            let is_called = is_heartbit || it.shown.starts_with("sub_agents.");
            it.agent.map(|agent| (agent, is_called))
        });
        for (agent, is_called) in agents.flatten().collect::<BTreeMap<_, _>>() {
            let name = self.name(Section::Agent(agent), &format!("agent-{agent}"));
            called.extend(is_called.then_some(name));
        }
        let main = if is_heartbit { "orchestrator" } else { "main" };
        if is_heartbit
            && (called.is_empty() || !self.has(|it| it.path.starts_with("orchestrator.")))
        {
            // Nothing calls the agents, so these settings apply to all of them.
            let lines = self.result.remove(&Section::Main).unwrap_or_default();
            self.result.entry(Section::All).or_default().extend(lines);
        } else if self.result.contains_key(&Section::Main) || !called.is_empty() {
            self.name(Section::Main, main);
            if !called.is_empty() {
                self.add(Section::Main, "sub_agents", called.into(), "");
            }
        }
        let is_agent = |it: &Section| matches!(it, Section::Main | Section::Agent(_));
        let sections: Vec<Section> = self.result.keys().copied().filter(is_agent).collect();
        for agent in sections {
            if !self.servers.is_empty() && self.get(agent, "mcp").is_none() {
                self.add(agent, "mcp", Vec::<Value>::new().into(), "");
            }
        }
    }

    fn has(&self, is_it: impl Fn(&TheirSetting) -> bool) -> bool {
        self.settings.iter().any(is_it)
    }

    /// Returns the name of an agent. One without a name gets this one, before its other settings.
    fn name(&mut self, agent: Section, name: &str) -> Value {
        if let Some(name) = self.get(agent, "name") {
            return name.clone();
        }
        self.add(agent, "name", name.into(), "");
        if let Some(lines) = self.result.get_mut(&agent) {
            lines.rotate_right(1);
        }
        name.into()
    }

    /// Returns the text of the result.
    pub(super) fn toml(&self) -> String {
        let mut text = format!(
            "# Imported from {} by `plimsoll config import`.\n",
            self.system
        );
        for (section, lines) in &self.result {
            text.push_str(match section {
                Section::All => "",
                Section::Server(_) => "\n[[mcp]]\n",
                Section::Main | Section::Agent(_) => "\n[[agents]]\n",
            });
            for ResultLine {
                path,
                value,
                comment,
            } in lines
            {
                let mark = if comment.is_empty() { "" } else { " # " };
                text.push_str(&format!("{path} = {}{mark}{comment}\n", written(value)));
            }
        }
        let mut title = "\n# Not translated:\n";
        for lost in self.report.iter().filter(|it| it.became.is_empty()) {
            let note = lost.note.as_deref().unwrap_or_default();
            text.push_str(&format!("{title}# {}: {note}\n", lost.name));
            title = "";
        }
        text
    }
}

/// Returns Plimsoll's tools for those of another system, and the names that have none.
pub(in super::super) fn own_tools(names: &[String]) -> (Vec<&'static str>, Vec<&str>) {
    let (mut tools, mut others) = (BTreeSet::new(), Vec::new());
    for name in names {
        // Claude Code writes patterns of arguments, such as `Bash(git diff:*)`.
        let plain = snake(name.split('(').next().unwrap_or(name));
        let plain = plain.strip_suffix("_file").unwrap_or(&plain);
        let plain = plain.strip_prefix("file_").unwrap_or(plain);
        let known = TOOLS.iter().find(|(theirs, _)| *theirs == plain);
        let ours = known.map_or(plain, |(_, ours)| ours);
        match plimsoll_tools::NAMES.into_iter().find(|name| *name == ours) {
            Some(ours) => _ = tools.insert(ours),
            None => others.push(name.as_str()),
        }
    }
    (tools.into_iter().collect(), others)
}

/// Returns a value with names in snake case, and whole numbers without a decimal point.
fn in_our_words(value: &Value) -> Value {
    match value {
        Value::String(text) => snake(text).into(),
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 1e9 => {
            (*number as i64).into()
        }
        Value::Table(table) => {
            let entries = table.iter();
            let entries = entries.map(|(name, it)| (snake(name), in_our_words(it)));
            Value::Table(entries.collect())
        }
        other => other.clone(),
    }
}

fn is_batched(setting: &TheirSetting) -> bool {
    let name = setting.value.as_str();
    name.is_some_and(|name| snake(name) == "batched")
}

/// Returns a name of the file on one line, clipped.
fn clean(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    clip(&name, Bytes(80)).to_owned()
}

/// Formats a value as TOML. A text of several lines stays on several lines.
fn written(value: &Value) -> String {
    let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    match value {
        Value::String(text) if text.contains('\n') && text.chars().all(is_plain) => {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"\"\"\n{text}\"\"\"")
        }
        value => value.to_string(),
    }
}
