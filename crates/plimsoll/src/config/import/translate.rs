//! [`Translation`]: translates the settings of another system. The correspondence is data; see
//! [`super::rows`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::Value;

use super::super::document::{Document, Located};
use super::super::fault::{ConfigError, ConfigFault};
use super::super::file::Config;
use super::super::key::{Scope, join, key};
use super::rows::{ImportRow, ModelField, ROWS, ValueConversion};
use super::text::{ImportedLine, LinePosition, Text};
use super::{Import, ImportedSetting, System, snake, unusable, wrapped};

/// A setting of the other system.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    /// The path in the table of rows.
    pub(super) path: String,
    /// The path as written.
    shown: String,
    line: usize,
    pub(super) value: Value,
    /// The agent that it belongs to, by its index in the file.
    pub(super) agent: Option<usize>,
}

/// A part of the specification of a model, with its row and its index in the settings.
pub(super) type PartOfModel = (ModelField, Leaf, ImportRow, usize);

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
    pub(super) text: Text,
    settings: Vec<ImportedSetting>,
    /// The index in `settings` of the current setting.
    pub(super) now: usize,
    /// The parts of each agent's model, and of the model for all agents.
    pub(super) models: BTreeMap<Option<usize>, Vec<PartOfModel>>,
}

/// Returns the number of a system's settings in a file.
pub(super) fn known(system: System, document: &Document) -> usize {
    let leaves = leaves(system, document);
    let known = leaves
        .iter()
        .filter(|leaf| row(system, &leaf.path).is_some());
    known.count()
}

fn row(system: System, path: &str) -> Option<ImportRow> {
    ROWS.get(&(system, path)).copied()
}

/// Checks whether the tables of this list are agents.
fn is_of_agents(system: System, path: &str) -> bool {
    match system {
        System::Heartbit => path == "agents",
        System::PhiCore => path == "agent.instances" || path == "sub_agents.instances",
    }
}

/// Returns the settings of a file, from its top.
fn leaves(system: System, document: &Document) -> Vec<Leaf> {
    let mut search = Search {
        system,
        agents: 0,
        found: Vec::new(),
    };
    search.table(document.entries(), "", "", None);
    search.found
}

struct Search {
    system: System,
    agents: usize,
    found: Vec<Leaf>,
}

impl Search {
    fn table(
        &mut self,
        entries: Vec<(&str, Located<'_>)>,
        before: &str,
        shown: &str,
        agent: Option<usize>,
    ) {
        for (key, given) in entries {
            let path = wrapped(self.system, &join(before, &snake(key)));
            let shown = join(shown, key);
            let items = given.items().filter(|_| is_of_agents(self.system, &path));
            if let Some(items) = items {
                for entries in items.iter().filter_map(Located::entries) {
                    self.agents += 1;
                    self.table(entries, "agents", &shown, Some(self.agents));
                }
                continue;
            }
            match given.entries().filter(|entries| !entries.is_empty()) {
                Some(entries) if self.leads(&path) => self.table(entries, &path, &shown, agent),
                _ => self.found.push(Leaf {
                    path,
                    shown: clean(&shown),
                    line: given.line,
                    value: given.value.clone(),
                    agent,
                }),
            }
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
    pub(super) fn of(system: System, document: &Document) -> Self {
        let mut it = Self {
            system,
            leaves: leaves(system, document),
            text: Text::default(),
            settings: Vec::new(),
            now: 0,
            models: BTreeMap::new(),
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
                Some(row) if it.is_replaced(&leaf, row) => {
                    it.note("its successor in `compaction` is set, too, and counts instead");
                }
                Some(row) => it.translate(&leaf, row),
                None => it.note("it has no counterpart"),
            }
        }
        it.put_models();
        it.put_defaults();
        it.choose_agents();
        it
    }

    /// Returns the result after Plimsoll's parser has accepted it.
    pub(super) fn finish(self, path: Option<&Path>) -> Result<Import, ConfigError> {
        let (toml, lines) = self.text.write(self.system, &self.settings);
        let at = |line: usize| lines.get(line.saturating_sub(1)).copied().flatten();
        if let Err(error) = Config::parse(&toml) {
            let faults = error.faults.into_iter().map(|fault| ConfigFault {
                line: fault.line.and_then(at),
                text: format!(
                    "it cannot become a plimsoll.toml: {}",
                    placed(&fault.text, at)
                ),
            });
            return Err(ConfigError {
                path: path.map(Path::to_owned),
                faults: faults.collect(),
            });
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

    fn translate(&mut self, leaf: &Leaf, row: ImportRow) {
        let own = leaf.agent.map_or(LinePosition::Top, LinePosition::Agent);
        let place = match row.how {
            ValueConversion::Main => LinePosition::Main,
            _ => own,
        };
        let whole = leaf
            .value
            .as_integer()
            .and_then(|whole| u64::try_from(whole).ok());
        let changed = |whole: Option<u64>| {
            let whole = whole.and_then(|whole| i64::try_from(whole).ok());
            whole.map_or_else(unusable, Value::Integer)
        };
        let value = match row.how {
            ValueConversion::Same | ValueConversion::Main => leaf.value.clone(),
            ValueConversion::Millis => whole.map_or_else(unusable, |it| format!("{it}ms").into()),
            ValueConversion::Retries => {
                self.note("the first attempt counts here, too");
                changed(whole.map(|retries| retries.saturating_add(1)))
            }
            ValueConversion::Bytes => {
                self.note("it is in tokens here, four bytes to one");
                changed(whole.map(|bytes| bytes.div_ceil(4).max(1)))
            }
            ValueConversion::Batch => match (whole, &leaf.value) {
                (Some(size), _) if self.has_batches(leaf) => format!("batched({size})").into(),
                (Some(_), _) => return self.note("it counts for the strategy `batched` only"),
                (None, Value::String(name)) if snake(name) == "batched" => {
                    let has_size = self
                        .leaves
                        .iter()
                        .any(|leaf| leaf.path == "tools.batch_size");
                    return if has_size {
                        self.became(place.shown(row.ours))
                    } else {
                        self.note("the number of parallel calls is not stated")
                    };
                }
                (None, value) => value.clone(),
            },
            ValueConversion::Tools => return self.tools(leaf),
            ValueConversion::Permissions => return self.permissions(leaf),
            ValueConversion::Servers => return self.servers(leaf),
            ValueConversion::Model(part) => {
                let parts = self.models.entry(leaf.agent).or_default();
                return parts.push((part, leaf.clone(), row, self.now));
            }
            ValueConversion::Nothing => return self.note(row.why),
        };
        let value = match (row.value, value) {
            (Some((theirs, ours)), Value::String(text)) if text == theirs => ours.into(),
            (_, value) => value,
        };
        if self.set(leaf, row.ours, value, &place)
            && let Some((ours, value)) = row.implies
            && !self.text.has(&place, ours)
        {
            let value = match value {
                "true" => true.into(),
                value => value.into(),
            };
            self.set(leaf, ours, value, &place);
        }
    }

    /// Checks whether this is one of phi-core's legacy settings and its successor is set, too.
    fn is_replaced(&self, leaf: &Leaf, row: ImportRow) -> bool {
        let successor = |other: &Leaf| {
            let of_same = self::row(self.system, &other.path);
            !other.is_legacy() && of_same.is_some_and(|other| other.ours == row.ours)
        };
        leaf.is_legacy() && self.leaves.iter().any(successor)
    }

    /// Returns `true` if the size of a batch is used.
    fn has_batches(&self, leaf: &Leaf) -> bool {
        let is_it = |leaf: &Leaf| {
            leaf.path == "tools.tool_strategy"
                && leaf
                    .value
                    .as_str()
                    .is_some_and(|text| snake(text) == "batched")
        };
        leaf.path != "tools.batch_size" || self.leaves.iter().any(is_it)
    }

    /// Sets one of Plimsoll's settings. Returns `true` if the value is valid for it.
    pub(super) fn set(
        &mut self,
        leaf: &Leaf,
        ours: &str,
        value: Value,
        place: &LinePosition,
    ) -> bool {
        let Some(key) = key(ours) else {
            return false;
        };
        let place = match (key.scope, place) {
            (Scope::AgentOnly, LinePosition::Top) => &LinePosition::Main,
            (_, place) => place,
        };
        // Names may differ in case, and whole numbers may be written with a decimal point.
        let other = match &value {
            Value::String(text) => Some(snake(text).into()),
            Value::Float(number) if number.fract() == 0.0 && number.abs() < 1e9 => {
                Some((*number as i64).into())
            }
            _ => None,
        };
        let mut forms = [Some(value), other].into_iter().flatten();
        match forms.find(|form| key.accepts(form)) {
            // A value may be a misplaced secret, so it is not repeated.
            None => self.note(&format!("give {}", key.takes)),
            Some(Value::String(text)) if text.contains("${") => {
                self.note("write the value of the variable yourself");
            }
            Some(value) => {
                self.put(leaf, ours, written(&value), place.clone());
                return true;
            }
        }
        false
    }

    pub(super) fn became(&mut self, ours: String) {
        if let Some(setting) = self.settings.get_mut(self.now) {
            setting.became.push(ours);
        }
    }

    /// Adds a line to the text. Replaces an earlier line of the same setting.
    pub(super) fn put(&mut self, leaf: &Leaf, path: &str, value: String, place: LinePosition) {
        self.became(place.shown(path));
        let lost = self.text.put(ImportedLine {
            place,
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

    /// Writes phi-core's default limits that complement those of a file.
    fn put_defaults(&mut self) {
        const LIMITS: [&str; 5] = [
            "execution.max_turns",
            "execution.max_total_tokens",
            "execution.max_duration",
            "execution.max_duration_secs",
            "execution.max_cost",
        ];
        let mut leaves = self.leaves.iter();
        let limit = leaves.find(|leaf| LIMITS.contains(&leaf.path.as_str()));
        let Some(line) = limit.map(|leaf| leaf.line) else {
            return;
        };
        for (path, value) in [("max_total_tokens", "1000000"), ("max_duration", "600")] {
            if !self.text.has(&LinePosition::Top, path) {
                let why = format!("the default of {} beside other limits", self.system);
                self.text.put(ImportedLine {
                    place: LinePosition::Top,
                    path: path.to_owned(),
                    value: value.to_owned(),
                    from: Some((line, why)),
                });
            }
        }
    }

    /// Decides which agent calls which.
    fn choose_agents(&mut self) {
        let is_heartbit = self.system == System::Heartbit;
        let is_called = |leaf: &&Leaf| is_heartbit || leaf.shown.starts_with("sub_agents.");
        let called = self.leaves.iter().filter(is_called);
        let called: BTreeSet<usize> = called.filter_map(|leaf| leaf.agent).collect();
        let mut leaves = self.leaves.iter();
        let orchestrates = leaves.any(|leaf| leaf.path.starts_with("orchestrator."));
        self.text.main = match is_heartbit {
            true if called.is_empty() || !orchestrates => None,
            true => Some("orchestrator"),
            false => Some("main"),
        };
        self.text.called = called;
    }
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
        let end = part
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(part.len());
        let (digits, rest) = part.split_at(end);
        let line = digits.parse().ok().and_then(&at);
        let line = line.map_or_else(|| digits.to_owned(), |line| line.to_string());
        text.push_str(&format!("line {line}{rest}"));
    }
    text
}
