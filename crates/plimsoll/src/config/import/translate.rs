//! [`Translation`]: translates the settings of another system. The correspondence is data; see
//! [`super::rows`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::str::FromStr;

use plimsoll_agent::Permission;
use toml::{Table, Value};

use super::super::document::Located;
use super::super::fault::{ConfigError, Faults, Origin, Place};
use super::super::file::Config;
use super::super::form::texts;
use super::super::key::{Scope, join, key};
use super::super::permission::Rule;
use super::lines::{ImportedLine, Lines, Section};
use super::models::PartOfModel;
use super::rows::{ImportRow, OF_MODELS, ROWS};
use super::{Import, ImportedSetting, System, snake, unusable, wrapped};

/// Tool names of other systems, and Plimsoll's.
const TOOLS: [(&str, &str); 6] = [
    ("shell", "bash"),
    ("patch", "edit"),
    ("ls", "list"),
    ("list_files", "list"),
    ("list_directory", "list"),
    ("search", "grep"),
];
/// Limits of phi-core. If one is set, the others have the defaults of [`LIMITS`].
const EXECUTION: &str = "execution.max_";
const LIMITS: [(&str, &str); 2] = [("max_total_tokens", "1000000"), ("max_duration", "600")];

/// A setting of the other system.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    /// The path in the table of rows.
    path: String,
    /// The path as written.
    shown: String,
    line: usize,
    pub(super) value: Value,
    /// The agent that it belongs to, by its number in the file.
    pub(super) agent: Option<usize>,
}

impl Leaf {
    /// Checks whether it is one of the settings of phi-core's `ContextConfig` that its
    /// `compaction` replaces.
    fn is_legacy(&self) -> bool {
        let path = snake(&self.shown);
        let (table, name) = path.rsplit_once('.').unwrap_or(("", &path));
        match name {
            "keep_first" | "keep_recent" => true,
            "tool_output_max_lines" => !table.ends_with("compaction"),
            _ => false,
        }
    }
}

/// The state of a translation.
pub(super) struct Translation {
    system: System,
    leaves: Vec<Leaf>,
    pub(super) lines: Lines,
    settings: Vec<ImportedSetting>,
    /// The index of the current setting in `settings`.
    pub(super) now: usize,
    /// The parts of each agent's model, and of the model for all agents.
    pub(super) models: BTreeMap<Option<usize>, Vec<PartOfModel>>,
    /// Tool servers by their address or command.
    pub(super) servers: BTreeMap<String, String>,
    /// Variables that tool servers need.
    pub(super) passed: BTreeSet<String>,
}

/// Returns the number of a system's settings in a file.
pub(super) fn known(system: System, document: &Located) -> usize {
    let leaves = leaves(system, document);
    let known = leaves
        .iter()
        .filter(|leaf| row(system, &leaf.path).is_some());
    known.count()
}

fn row(system: System, path: &str) -> Option<ImportRow> {
    ROWS.get(&(system, path)).copied()
}

/// Returns the settings of a file, from its top.
fn leaves(system: System, document: &Located) -> Vec<Leaf> {
    let (agents, found) = (0, Vec::new());
    let mut search = Search {
        system,
        agents,
        found,
    };
    search.table(document, "", "", None);
    search.found
}

struct Search {
    system: System,
    agents: usize,
    found: Vec<Leaf>,
}

impl Search {
    fn table(&mut self, table: &Located, before: &str, shown: &str, agent: Option<usize>) {
        for (key, given) in table.entries().into_iter().flatten() {
            let path = wrapped(self.system, &join(before, &snake(key)));
            let shown = join(shown, key);
            if let Some(items) = given.items().filter(|_| self.is_of_agents(&path)) {
                for agent in items {
                    self.agents += 1;
                    self.table(agent, "agents", &shown, Some(self.agents));
                }
                continue;
            }
            match given.entries() {
                Some([_, ..]) if self.leads(&path) => self.table(given, &path, &shown, agent),
                _ => self.found.push(Leaf {
                    path,
                    shown: clean(&shown),
                    line: given.place.line,
                    value: given.value(),
                    agent,
                }),
            }
        }
    }

    /// Checks whether the tables of this list are agents.
    fn is_of_agents(&self, path: &str) -> bool {
        match self.system {
            System::Heartbit => path == "agents",
            System::PhiCore => path == "agent.instances" || path == "sub_agents.instances",
        }
    }

    /// Checks whether a table of this path contains known settings.
    fn leads(&self, path: &str) -> bool {
        let begin = format!("{path}.");
        let after = ROWS.range((self.system, begin.as_str())..).next();
        after.is_some_and(|((system, row), _)| *system == self.system && row.starts_with(&begin))
            || path == "sub_agents"
    }
}

impl Translation {
    pub(super) fn of(system: System, document: &Located) -> Self {
        let mut it = Self {
            system,
            leaves: leaves(system, document),
            lines: Lines::default(),
            settings: Vec::new(),
            now: 0,
            models: BTreeMap::new(),
            servers: BTreeMap::new(),
            passed: BTreeSet::new(),
        };
        for leaf in it.leaves.clone() {
            it.now = it.settings.len();
            it.settings.push(ImportedSetting {
                line: leaf.line,
                name: leaf.shown.clone(),
                became: Vec::new(),
                note: None,
            });
            match row(system, &leaf.path) {
                Some(row) if leaf.is_legacy() && it.has_successor(row) => {
                    it.note("its successor in `compaction` is set, too, and counts instead");
                }
                Some(row) => it.translate(&leaf, row),
                None => it.note("it has no counterpart"),
            }
        }
        it.put_models();
        it.complete();
        it
    }

    /// Returns the result after Plimsoll's parser has accepted it.
    pub(super) fn finish(self, path: Option<&Path>) -> Result<Import, ConfigError> {
        let (toml, lines) = self.lines.write(self.system, &self.settings);
        let at = |line: usize| lines.get(line.saturating_sub(1)).copied().flatten();
        if let Err(error) = Config::parse(&toml) {
            let mut faults = Faults::of_file(path);
            for fault in error.faults {
                let line = fault.origin.place().and_then(|place| at(place.line));
                let origin = line.map_or(Origin::Default, |line| faults.origin(Place::line(line)));
                let text = placed(&fault.text, at);
                faults.at(origin, format!("it cannot become a plimsoll.toml: {text}"));
            }
            return Err(faults.into());
        }
        Ok(Import {
            system: self.system,
            toml,
            settings: self.settings,
        })
    }

    /// Adds a note to the current setting. The first note counts.
    pub(super) fn note(&mut self, note: &str) {
        if let Some(setting) = self.settings.get_mut(self.now) {
            setting.note.get_or_insert_with(|| note.to_owned());
        }
    }

    /// Notes that the current setting is this one here.
    pub(super) fn became(&mut self, ours: String) {
        if let Some(setting) = self.settings.get_mut(self.now) {
            setting.became.push(ours);
        }
    }

    fn translate(&mut self, leaf: &Leaf, row: ImportRow) {
        let section = match row.how {
            "main" => Section::Main,
            _ => Section::of(leaf.agent),
        };
        let whole = leaf.value.as_integer().filter(|whole| *whole >= 0);
        let number = |whole: Option<i64>| whole.map_or_else(unusable, Value::Integer);
        let size =
            |size: i64| Value::Table(Table::from_iter([("batched".to_owned(), size.into())]));
        let value = match row.how {
            "-" => return self.note(row.why),
            "tools" => return self.tools(leaf),
            "permissions" => return self.permissions(leaf),
            "servers" => return self.servers(leaf),
            how if OF_MODELS.contains(&how) => {
                let parts = self.models.entry(leaf.agent).or_default();
                return parts.push((leaf.clone(), row, self.now));
            }
            "millis" => whole.map_or_else(unusable, |it| format!("{it}ms").into()),
            "retries" => {
                self.note("the first attempt counts here, too");
                number(whole.map(|retries| retries.saturating_add(1)))
            }
            "bytes" => {
                self.note("it is in tokens here, four bytes to one");
                number(whole.map(|bytes| (bytes / 4 + i64::from(bytes % 4 > 0)).max(1)))
            }
            "effort" if leaf.value.as_str() == Some("none") => "off".into(),
            "strategy" if is_batched(leaf) => {
                if self.has("tools.batch_size") {
                    self.became(section.shown(row.ours));
                } else {
                    self.note("the number of parallel calls is not stated");
                }
                return;
            }
            "size" => {
                let mut strategies = self.leaves.iter();
                let is_used = leaf.path != "tools.batch_size"
                    || strategies.any(|it| it.path == "tools.tool_strategy" && is_batched(it));
                if !is_used {
                    return self.note("it counts for the strategy `batched` only");
                }
                whole.map_or_else(unusable, size)
            }
            _ => leaf.value.clone(),
        };
        if self.set(leaf, row.ours, value, &section)
            && let Some((ours, value)) = row.implies
            && self.lines.get(&section, ours).is_none()
        {
            let value = match value {
                "true" => true.into(),
                value => value.into(),
            };
            self.set(leaf, ours, value, &section);
        }
    }

    fn has(&self, path: &str) -> bool {
        self.leaves.iter().any(|leaf| leaf.path == path)
    }

    /// Checks whether the setting that replaces one of phi-core's legacy settings is set, too.
    fn has_successor(&self, row: ImportRow) -> bool {
        self.leaves.iter().any(|other| {
            let of_same = self::row(self.system, &other.path);
            !other.is_legacy() && of_same.is_some_and(|other| other.ours == row.ours)
        })
    }

    /// Sets one of Plimsoll's settings. Returns `true` if the value is valid for it.
    pub(super) fn set(&mut self, leaf: &Leaf, ours: &str, value: Value, section: &Section) -> bool {
        let Some(key) = key(ours) else {
            return false;
        };
        let section = match (key.scope, section) {
            (Scope::AgentOnly, Section::Top) => &Section::Main,
            (_, section) => section,
        };
        // Names may differ in case, and whole numbers may be written with a decimal point.
        let other = in_our_words(&value);
        let mut forms = [value, other].into_iter();
        match forms.find(|form| key.accepts(form)) {
            // A value may be a misplaced secret, so it is not repeated.
            None => self.note(&format!("give {}", key.takes)),
            Some(Value::String(text)) if text.contains("${") => {
                self.note("write the value of the variable yourself");
            }
            Some(value) => {
                self.put(leaf, ours, written(&value), section.clone());
                return true;
            }
        }
        false
    }

    /// Adds a line to the result. Replaces an earlier line of the same setting.
    pub(super) fn put(&mut self, leaf: &Leaf, path: &str, value: String, section: Section) {
        self.became(section.shown(path));
        let lost = self.lines.put(ImportedLine {
            section,
            path: path.to_owned(),
            value,
            from: Some((leaf.line, leaf.shown.clone())),
        });
        if let Some(line) = lost {
            self.note(&format!(
                "it is set on line {line}, too, and the later one counts"
            ));
        }
    }

    /// Writes the tools of an agent with Plimsoll's names.
    fn tools(&mut self, leaf: &Leaf) {
        let Some(names) = texts(&leaf.value) else {
            return self.note("give a list of names");
        };
        let ours = |name: &String| {
            let name = snake(name);
            let name = name.strip_suffix("_file").unwrap_or(&name);
            let name = name.strip_prefix("file_").unwrap_or(name);
            let known = TOOLS.iter().find(|(theirs, _)| *theirs == name);
            let name = known.map_or(name, |(_, ours)| ours);
            let mut tools = plimsoll_tools::NAMES.into_iter();
            tools.find(|ours| name == *ours)
        };
        let mut tools: Vec<&str> = names.iter().filter_map(ours).collect();
        tools.sort_unstable();
        tools.dedup();
        if tools.is_empty() {
            tools.push("none");
        }
        self.set(leaf, "tools", tools.into(), &Section::of(leaf.agent));
        let others = names.iter().filter(|name| ours(name).is_none());
        let others: Vec<String> = others.map(|name| clean(name)).collect();
        if !others.is_empty() {
            self.note(&format!(
                "these tools are not known here: {}",
                others.join(", ")
            ));
        }
    }

    /// Writes permission rules.
    fn permissions(&mut self, leaf: &Leaf) {
        let Value::Array(tables) = &leaf.value else {
            return self.note("give a list of rules, each in [[permissions]]");
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
        let rules = Value::Array(rules.iter().map(Rule::table).collect());
        self.put(leaf, "permissions", rules.to_string(), Section::Top);
    }

    /// Adds what is implicit in the other system.
    fn complete(&mut self) {
        let mut leaves = self.leaves.iter();
        if let Some(limit) = leaves.find(|leaf| leaf.path.starts_with(EXECUTION)) {
            let from = (
                limit.line,
                format!("the default of {} beside other limits", self.system),
            );
            for (path, value) in LIMITS {
                if self.lines.get(&Section::Top, path).is_none() {
                    self.lines.put(ImportedLine {
                        section: Section::Top,
                        path: path.to_owned(),
                        value: value.to_owned(),
                        from: Some(from.clone()),
                    });
                }
            }
        }
        if !self.passed.is_empty() {
            let names: Vec<Value> = self.passed.iter().map(|it| it.as_str().into()).collect();
            self.lines.put(ImportedLine {
                section: Section::Top,
                path: "pass_env".to_owned(),
                value: Value::Array(names).to_string(),
                from: None,
            });
        }
        let is_heartbit = self.system == System::Heartbit;
        let called = self.leaves.iter();
        let called = called.filter(|leaf| is_heartbit || leaf.shown.starts_with("sub_agents."));
        let called: BTreeSet<usize> = called.filter_map(|leaf| leaf.agent).collect();
        let mut leaves = self.leaves.iter();
        let orchestrates = leaves.any(|leaf| leaf.path.starts_with("orchestrator."));
        let main = match is_heartbit {
            true if called.is_empty() || !orchestrates => None,
            true => Some("orchestrator"),
            false => Some("main"),
        };
        self.lines.complete(main, &called);
    }
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
            Value::Table(
                entries
                    .map(|(name, it)| (snake(name), in_our_words(it)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

fn is_batched(leaf: &Leaf) -> bool {
    let name = leaf.value.as_str();
    name.is_some_and(|name| snake(name) == "batched")
}

/// Returns a name of the file on one line, clipped.
pub(super) fn clean(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    plimsoll_context::clip(&name, plimsoll_context::Bytes(80)).to_owned()
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

/// Returns a fault with the lines of the other file in place of the result's.
fn placed(fault: &str, at: impl Fn(usize) -> Option<usize>) -> String {
    let mut parts = fault.split("line ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = part.strip_suffix(rest).unwrap_or_default();
        let line = digits.parse().ok().and_then(&at);
        let line = line.map_or_else(|| digits.to_owned(), |line| line.to_string());
        text.push_str(&format!("line {line}{rest}"));
    }
    text
}
