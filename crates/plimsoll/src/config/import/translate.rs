//! [`Translation`]: translates the settings of another system. The correspondence is data; see
//! [`super::rows`].

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_context::{Bytes, clip, snake_case as snake};
use serde_json::Value as Json;
use toml::{Table, Value};

use super::super::document::parse_value;
use super::super::form::texts;
use super::super::key::{join, key};
use super::super::permission::Rule;
use super::models::OF_MODELS;
use super::rows::{ImportRow, TOOLS, row, rows, unwrapped};
use super::{ImportedSetting, System};

/// A setting of the other system.
#[derive(Debug, Clone)]
pub(super) struct TheirSetting {
    row: Option<ImportRow>,
    /// Its translation, with its path as written.
    pub(super) report: ImportedSetting,
    pub(super) value: Value,
    /// The agent that it belongs to, by its number in the file.
    pub(super) agent: Option<usize>,
}

/// The number of the agent that calls the others. Those of the other file begin at 1.
const MAIN: usize = 0;

/// The state of a translation.
pub(super) struct Translation {
    system: System,
    pub(super) settings: Vec<TheirSetting>,
    /// The position of the current setting.
    at: usize,
    /// The settings for all agents, with the tables of the file.
    all: Table,
    agents: BTreeMap<usize, Table>,
    /// Tool servers as the other system describes them, and as tables of `[[mcp]]`.
    pub(super) servers: Vec<(Value, Table)>,
}

/// Returns the number of a system's settings in a file.
pub(super) fn known(system: System, document: &Json) -> usize {
    let mut settings = Vec::new();
    collect(system, document, ["", ""], None, &mut settings);
    settings.iter().filter(|it| it.row.is_some()).count()
}

/// Adds the settings of a table, from its top. Its path is given in snake case and as written.
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
        let row = row(system.name(), &path);
        match given {
            // A YAML file has empty values.
            Json::Null => {}
            Json::Array(items) if row.is_some_and(|row| row.how == "each") => {
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
                row,
                report: ImportedSetting {
                    name: shown,
                    became: Vec::new(),
                    note: None,
                },
                // No setting accepts a value that TOML does not have.
                value: Value::try_from(given).unwrap_or(Value::Float(f64::NAN)),
                agent,
            }),
        }
    }
}

/// Checks whether a table of this path contains known settings.
fn leads(system: System, path: &str) -> bool {
    let begin = format!("{path}.");
    rows(system.name()).any(|(row, _)| row.starts_with(&begin))
}

impl TheirSetting {
    fn is(&self, how: &str) -> bool {
        self.row.is_some_and(|row| row.how == how)
    }

    /// Returns the agent that the counterpart belongs to.
    fn target(&self) -> Option<usize> {
        let main = self.is("main").then_some(MAIN);
        main.or(self.agent)
    }

    fn text(&self) -> Option<String> {
        self.value.as_str().map(snake)
    }
}

impl Translation {
    pub(super) fn of(system: System, document: &Json) -> Self {
        let mut settings = Vec::new();
        collect(system, document, ["", ""], None, &mut settings);
        let mut it = Self {
            system,
            settings: settings.clone(),
            at: 0,
            all: Table::new(),
            agents: BTreeMap::new(),
            servers: Vec::new(),
        };
        for (at, setting) in settings.iter().enumerate() {
            it.at = at;
            match setting.row {
                None => it.note("it has no counterpart"),
                Some(row) if OF_MODELS.contains(&row.how) => it.put_part(setting, row),
                Some(row) => it.translate(setting, row),
            }
        }
        for (at, setting) in settings.iter().enumerate() {
            it.at = at;
            it.imply(setting);
        }
        it.complete();
        it
    }

    /// Adds a note to the current setting. The first note counts.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        if let Some(setting) = self.settings.get_mut(self.at) {
            setting.report.note.get_or_insert_with(|| note.into());
        }
    }

    /// Notes that the current setting is this one here.
    pub(super) fn became(&mut self, ours: impl Into<String>) {
        if let Some(setting) = self.settings.get_mut(self.at) {
            setting.report.became.push(ours.into());
        }
    }

    /// Returns the value of the setting of an agent, or of all agents, with this conversion.
    pub(super) fn part(&self, agent: Option<usize>, how: &str) -> Option<&Value> {
        let mut settings = self.settings.iter();
        let part = settings.find(|it| it.agent == agent && it.is(how));
        part.map(|it| &it.value)
    }

    fn translate(&mut self, setting: &TheirSetting, row: ImportRow) {
        let agent = setting.target();
        if let Some(value) = self.convert(setting, row, agent) {
            self.set(agent, row.ours, value);
        }
    }

    /// Sets what a translated setting implies, unless the file sets it.
    fn imply(&mut self, setting: &TheirSetting) {
        let translated = self.settings.get(self.at);
        let translated = translated.filter(|it| !it.report.became.is_empty());
        let row = translated.and_then(|it| it.row);
        for (ours, value) in row.into_iter().flat_map(ImportRow::implied) {
            if self.get(setting.target(), ours).is_none() {
                self.note("the others are the defaults of the system beside it");
                self.set(setting.target(), ours, parse_value(value));
            }
        }
    }

    /// Returns the value as Plimsoll has it. Otherwise, the note says why there is none.
    fn convert(
        &mut self,
        setting: &TheirSetting,
        row: ImportRow,
        agent: Option<usize>,
    ) -> Option<Value> {
        let value = &setting.value;
        let whole = value.as_integer().filter(|whole| *whole >= 0);
        let is_batched = |it: &TheirSetting| it.text().as_deref() == Some("batched");
        let mut strategies = self.settings.iter().filter(|it| it.is("strategy"));
        Some(match (row.how, whole) {
            ("-", _) => {
                self.note(row.ours);
                return None;
            }
            ("legacy", _) if self.get(agent, row.ours).is_some() => {
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
                if self.settings.iter().any(|it| it.is("size")) {
                    self.became(row.ours);
                } else {
                    self.note("the number of parallel calls is not stated");
                }
                return None;
            }
            ("size", Some(size)) => {
                if strategies.next().is_some_and(|it| !is_batched(it)) {
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

    /// Returns one of Plimsoll's settings, if it is set.
    fn get(&self, agent: Option<usize>, ours: &str) -> Option<&Value> {
        let table = agent.map_or(Some(&self.all), |agent| self.agents.get(&agent))?;
        match ours.split_once('.') {
            Some((outer, name)) => table.get(outer)?.get(name),
            None => table.get(ours),
        }
    }

    /// Sets one of Plimsoll's settings, if the value is valid for it.
    pub(super) fn set(&mut self, agent: Option<usize>, ours: &str, value: Value) {
        let Some(key) = key(ours) else { return };
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
                let agent = agent.or(key.is_of_one_agent.then_some(MAIN));
                if self.get(agent, ours).is_some_and(|old| *old != value) {
                    self.note("it is set twice, and the later one counts");
                }
                self.put(agent, &ours.split('.').collect::<Vec<_>>(), value);
            }
        }
    }

    /// Writes a value for the current setting.
    pub(super) fn put(&mut self, agent: Option<usize>, path: &[&str], value: Value) {
        let shown = path.join(".");
        self.became(agent.map_or(shown.clone(), |_| format!("[[agents]] {shown}")));
        let mut table = match agent {
            Some(agent) => self.agents.entry(agent).or_default(),
            None => &mut self.all,
        };
        let Some((name, outer)) = path.split_last() else {
            return;
        };
        for name in outer {
            let inner = table.entry(*name).or_insert_with(|| Table::new().into());
            let Value::Table(inner) = inner else { return };
            table = inner;
        }
        table.insert((*name).to_owned(), value);
    }

    /// Returns the tools of an agent by Plimsoll's names.
    fn tools(&mut self, given: &Value) -> Option<Value> {
        let Some(names) = texts(given) else {
            self.note("give a list of names");
            return None;
        };
        let (tools, others) = own_tools(&names);
        if !others.is_empty() {
            let others: Vec<String> = others.into_iter().map(clean).collect();
            let others = others.join(", ");
            self.note(format!("these tools are not known here: {others}"));
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
            let field = |name: &str| table.get(name)?.as_str().map(Value::from);
            let pattern = field("pattern").filter(|pattern| pattern.as_str() != Some("*"));
            let fields = [("tool", field("tool")), ("then", field("action"))];
            let fields = fields.into_iter().chain([("arguments", pattern)]);
            let fields = fields.filter_map(|(name, value)| Some((name.to_owned(), value?)));
            let rule = Value::Table(fields.collect());
            match Rule::of(&rule) {
                Some(_) => rules.push(rule),
                None => self.note("a rule without `tool` or `action` is left out"),
            }
        }
        Some(Value::Array(rules))
    }

    /// Adds what is implicit in the other system: names, the agents that the main one calls, and that an
    /// agent without servers has none.
    fn complete(&mut self) {
        let mut settings = self.settings.iter();
        let has_main = settings.any(|it| it.report.name.starts_with("orchestrator."));
        let is_heartbit = self.system == System::Heartbit;
        let mut called: Vec<Value> = Vec::new();
        for setting in &self.settings {
            let Some(agent) = setting.agent else { continue };
            let own = self.agents.entry(agent).or_default();
            let name = own.entry("name").or_insert(format!("agent-{agent}").into());
            let is_called = is_heartbit || setting.report.name.starts_with("sub_agents.");
            if is_called && !called.contains(name) {
                called.push(name.clone());
            }
        }
        if is_heartbit && (called.is_empty() || !has_main) {
            // Nothing calls the agents, so these settings apply to all of them.
            self.all
                .extend(self.agents.remove(&MAIN).unwrap_or_default());
        } else if !called.is_empty() || self.agents.contains_key(&MAIN) {
            let main = self.agents.entry(MAIN).or_default();
            let name = if is_heartbit { "orchestrator" } else { "main" };
            main.entry("name").or_insert(name.into());
            if !called.is_empty() {
                main.insert("sub_agents".to_owned(), called.into());
            }
        }
        if !self.servers.is_empty() {
            for agent in self.agents.values_mut() {
                agent.entry("mcp").or_insert(Vec::<Value>::new().into());
            }
        }
    }

    /// Returns the text of the result.
    pub(super) fn toml(&self) -> String {
        let mut all = self.all.clone();
        let servers = self.servers.iter().map(|(_, server)| server.clone());
        let agents = self.agents.values().cloned();
        for (name, tables) in [
            ("mcp", Vec::from_iter(servers)),
            ("agents", agents.collect()),
        ] {
            if !tables.is_empty() {
                all.insert(name.to_owned(), tables.into());
            }
        }
        let mut text = format!(
            "# Imported from {} by `plimsoll config import`.\n{all}",
            self.system
        );
        let mut title = "\n# Not translated:\n";
        let report = self.settings.iter().map(|it| &it.report);
        for lost in report.filter(|it| it.became.is_empty()) {
            let note = lost.note.as_deref().unwrap_or_default();
            text.push_str(&format!("{title}# {}: {note}\n", lost.name));
            title = "";
        }
        text
    }
}

/// Returns Plimsoll's tools for those of another system, or `none`, and the names that have none.
pub(in super::super) fn own_tools(names: &[String]) -> (Vec<&'static str>, Vec<&str>) {
    let (mut tools, mut others) = (BTreeSet::new(), Vec::new());
    for name in names {
        // Claude Code writes patterns of arguments, such as `Bash(git diff:*)`.
        let plain = snake(name.split('(').next().unwrap_or(name));
        let plain = plain.strip_suffix("_file").unwrap_or(&plain);
        let plain = plain.strip_prefix("file_").unwrap_or(plain);
        let ours = row(TOOLS, plain).map_or(plain, |row| row.ours);
        match plimsoll_tools::NAMES.into_iter().find(|name| *name == ours) {
            Some(ours) => _ = tools.insert(ours),
            None => others.push(name.as_str()),
        }
    }
    if tools.is_empty() {
        tools.insert("none");
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

/// Returns a name of the file on one line, clipped.
fn clean(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    clip(&name, Bytes(80)).to_owned()
}
