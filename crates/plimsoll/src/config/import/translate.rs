//! Translates the settings of another system. The correspondence is data; see [`super::rows`]. Keys are
//! never written, only the names of their variables.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_context::{Bytes, clip, snake_case as snake};
use plimsoll_providers::{BaseUrl, Vendor};
use serde_json::{Value as Json, json};
use toml::Table;

use super::super::key::{SettingKey, join, key, lacks, put};
use super::super::kind::{number, texts};
use super::super::provider::COMPATIBLE;
use super::rows::{ImportRow, ROWS};
use super::{Import, ImportedSetting};

/// The number of the agent that calls the others. Those of the other file begin at 1.
const MAIN: usize = 0;

/// A setting of the other system.
#[derive(Debug)]
struct TheirSetting {
    row: Option<&'static ImportRow>,
    /// Its path as written.
    name: String,
    value: Json,
    /// The agent that it belongs to, by its number in the file.
    agent: Option<usize>,
}

/// The settings of the other system, from the top of the file.
#[derive(Default)]
struct TheirSettings(Vec<TheirSetting>);

/// A place in our file: the number of the agent, if it is in its table, and the names from there.
type Place = (Option<usize>, Vec<String>);
/// Plimsoll's settings.
type OurSettings = BTreeMap<Place, Json>;

/// Translates a file. Returns `None` if it has no setting that is known.
pub(super) fn translated(document: &Json) -> Option<Import> {
    let mut theirs = TheirSettings::default();
    theirs.collect(document, ["", ""], None);
    theirs.0.iter().find(|setting| setting.row.is_some())?;
    let mut ours = OurSettings::new();
    let translate = |setting| match theirs.translate(setting) {
        Ok((place, value, mut note)) => {
            let old = ours.insert(place.clone(), value.clone());
            if old.is_some_and(|old| old != value) {
                note = "it is set twice, and the later one counts".to_owned();
            }
            (setting, vec![place], note)
        }
        Err(why) => (setting, Vec::new(), why),
    };
    let mut settings: Vec<_> = theirs.0.iter().map(translate).collect();
    // What the translated settings imply, unless the file sets it.
    for (setting, became, note) in settings.iter_mut().filter(|it| !it.1.is_empty()) {
        for (name, value) in setting.row.iter().flat_map(|row| &row.implied) {
            let place = setting.place(name);
            if !ours.contains_key(&place) {
                ours.insert(place.clone(), value.clone());
                became.push(place);
                if note.is_empty() {
                    *note = "the others are the defaults of the system beside it".to_owned();
                }
            }
        }
    }
    // What the file turns off by another setting.
    for (setting, became, note) in settings.iter_mut().filter(|it| !it.1.is_empty()) {
        let key = setting.row.and_then(|row| key(&row.ours));
        let get = |path: &str| ours.get(&setting.place(path)).cloned();
        if let Some((why, _)) = key.and_then(|key| lacks(&key.needs, get)) {
            became.drain(..).for_each(|place| _ = ours.remove(&place));
            *note = format!("it has no effect, because {why}");
        }
    }
    theirs.complete(&mut ours);
    let settings = settings.into_iter().map(|(setting, became, note)| {
        let shown = |(agent, path): &Place| {
            let begin = agent.map_or("", |_| "[[agents]] ");
            format!("{begin}{}", path.join("."))
        };
        ImportedSetting {
            name: setting.name.clone(),
            became: became.iter().map(shown).collect(),
            note: Some(note).filter(|note| !note.is_empty()),
        }
    });
    let settings: Vec<ImportedSetting> = settings.collect();
    let toml = toml(ours, &settings);
    Some(Import { toml, settings })
}

impl TheirSetting {
    fn is(&self, how: &str) -> bool {
        self.row.is_some_and(|row| row.how == how)
    }

    /// Returns the agent that the counterpart belongs to.
    fn target(&self, ours: &str) -> Option<usize> {
        let is_main = key(ours)?.is_of_one_agent || self.is("main");
        self.agent.or(is_main.then_some(MAIN))
    }

    /// Returns the place of one of our settings.
    fn place(&self, ours: &str) -> Place {
        let path = ours.split('.').map(str::to_owned);
        (self.target(ours), path.collect())
    }
}

impl TheirSettings {
    /// Adds the settings of a table, from its top. Its path is given in snake case and as written.
    fn collect(&mut self, table: &Json, [own, shown]: [&str; 2], agent: Option<usize>) {
        for (key, given) in table.as_object().into_iter().flatten() {
            let mut path = join(own, &snake(key));
            let rows = &ROWS.settings;
            if let Some(table) = rows.get(&path).filter(|row| row.how == "as") {
                path.clone_from(&table.ours);
            }
            let shown = join(shown, &clean(key));
            let row = rows.get(&path);
            let begin = format!("{path}.");
            let leads = || rows.keys().any(|row| row.starts_with(&begin));
            match given {
                // A YAML file has empty values.
                Json::Null => {}
                Json::Array(items) if row.is_some_and(|row| row.how == "each") => {
                    for (at, item) in items.iter().enumerate() {
                        let last = self.0.iter().filter_map(|it| it.agent).max();
                        let number = last.map_or(1, |last| last + 1);
                        let shown = format!("{shown}[{at}]");
                        self.collect(item, ["agents", &shown], Some(number));
                    }
                }
                Json::Object(table) if !table.is_empty() && leads() => {
                    self.collect(given, [&path, &shown], agent);
                }
                _ => self.0.push(TheirSetting {
                    row,
                    name: shown,
                    value: given.clone(),
                    agent,
                }),
            }
        }
    }

    /// Translates a setting. Returns the place and the value of the counterpart, with a note about the
    /// difference in meaning, or the reason why there is none.
    fn translate(&self, setting: &TheirSetting) -> Result<(Place, Json, String), String> {
        let row = setting.row.ok_or("it has no counterpart")?;
        let (mut value, note) = self.converted(setting, row)?;
        if let Some(key) = key(&row.ours) {
            value = accepted(key, value)?;
        }
        let (agent, mut path) = setting.place(&row.ours);
        for name in &mut path {
            match name.as_str() {
                "PROVIDER" => *name = self.provider(setting)?,
                "MODEL" => self.model(setting)?.clone_into(name),
                _ => {}
            }
        }
        Ok(((agent, path), value, note))
    }

    /// Converts a value. Returns it with a note about the difference in meaning.
    fn converted(&self, setting: &TheirSetting, row: &ImportRow) -> Result<(Json, String), String> {
        let value = &setting.value;
        let text = value.as_str().unwrap_or_default();
        let (value, note) = match (row.how.as_str(), value.as_u64()) {
            ("-", _) => return Err(row.ours.clone()),
            ("millis", Some(millis)) => (format!("{millis}ms").into(), ""),
            ("retries", Some(retries)) => {
                let attempts = retries.saturating_add(1).into();
                (attempts, "the first attempt counts here, too")
            }
            ("bytes", Some(bytes)) => {
                let tokens = bytes.div_ceil(4).max(1).into();
                (tokens, "it is in tokens here, four bytes to one")
            }
            ("effort", _) if text == "none" => ("off".into(), ""),
            ("tools", _) => {
                let names = texts(value).ok_or("give a list of names")?;
                let (tools, others) = own_tools(&names);
                let others: Vec<String> = others.into_iter().map(clean).collect();
                let note = format!("these tools are not known here: {}", others.join(", "));
                let note = Some(note).filter(|_| !others.is_empty());
                return Ok((tools.into(), note.unwrap_or_default()));
            }
            ("strategy" | "size", _) => (self.execution(setting)?, ""),
            ("provider" | "api" | "model", _) => {
                let name = format!("{}/{}", self.provider(setting)?, self.model(setting)?);
                (name.into(), "")
            }
            ("price", _) if Vendor::named(&self.provider(setting)?).is_err() => {
                return Err("the prices of this provider's models are not known".to_owned());
            }
            ("price", _) => {
                let dollars = number(value).ok_or("give dollars for a million tokens")?;
                (dollars.into(), "")
            }
            ("base_url", _) if !is_public(text) => {
                return Err("write an address without a password".to_owned());
            }
            ("key", _) => return Ok(key_variable(&self.provider(setting)?, text)),
            _ => (value.clone(), ""),
        };
        Ok((value, note.to_owned()))
    }

    /// Returns how tool calls are executed: by the strategy, and in batches of the size if that is `batched`.
    fn execution(&self, setting: &TheirSetting) -> Result<Json, String> {
        let part = |how| self.0.iter().find(|it| it.is(how)).map(|it| &it.value);
        let is_batched = part("strategy").is_none_or(|it| in_our_words(it) == "batched");
        match part("size").filter(|_| is_batched) {
            Some(size) => Ok(json!({ "batched": size })),
            None if setting.is("size") => {
                Err("it counts for the strategy `batched` only".to_owned())
            }
            None => Ok(setting.value.clone()),
        }
    }

    /// Returns a part of the model that a setting belongs to.
    fn part(&self, setting: &TheirSetting, how: &str) -> Option<&str> {
        let mut parts = self.0.iter();
        let part = parts.find(|it| it.agent == setting.agent && it.is(how));
        part?.value.as_str()
    }

    /// Returns the model that a setting belongs to, without its provider.
    fn model(&self, setting: &TheirSetting) -> Result<&str, String> {
        let model = self.part(setting, "model");
        let model = model.ok_or("the model that it belongs to is not stated")?;
        let begin = format!("{}/", self.provider(setting)?);
        Ok(model.strip_prefix(&begin).unwrap_or(model))
    }

    /// Returns the provider of the model that a setting belongs to: a known one, or one of the file's own
    /// with an address.
    fn provider(&self, setting: &TheirSetting) -> Result<String, String> {
        let part = |how| self.part(setting, how);
        let known = |name: &str| Some(Vendor::named(name).ok()?.name.to_owned());
        let has_address = part("base_url").is_some_and(is_public);
        let own = |name: &str| has_address.then(|| name.to_owned());
        // phi-core names a protocol, such as `openai_responses`.
        let protocol = || snake(part("api")?).split('_').next().map(str::to_owned);
        let provider = match part("provider").map(str::to_owned).or_else(protocol) {
            Some(name) => known(&name).or_else(|| own(&name)),
            None => {
                let model = part("model").unwrap_or_default();
                let mut families = ROWS.models.iter();
                let family = families.find(|(begin, _)| model.starts_with(begin.as_str()));
                let vendor = model.split_once('/').and_then(|(vendor, _)| known(vendor));
                let own = vendor.or_else(|| own(COMPATIBLE));
                own.or_else(|| Some(family?.1.clone()))
            }
        };
        provider.ok_or_else(|| {
            "the provider of the model is not stated; write PROVIDER/NAME into `model`".to_owned()
        })
    }

    /// Adds what is implicit in the other system: names, and the agents that the main one calls.
    fn complete(&self, ours: &mut OurSettings) {
        let begins = |it: &TheirSetting, begin| it.name.starts_with(begin);
        let has_main = self.0.iter().any(|it| begins(it, "orchestrator."));
        let mut agents = BTreeMap::new();
        for setting in &self.0 {
            if let Some(agent) = setting.agent {
                let is_called = agents.entry(agent).or_insert(has_main);
                *is_called |= begins(setting, "sub_agents.");
            }
        }
        let at = |agent, name: &str| (Some(agent), vec![name.to_owned()]);
        let mut called = Vec::new();
        for (agent, is_called) in agents {
            let name = ours.entry(at(agent, "name"));
            let name = name.or_insert_with(|| format!("agent-{agent}").into());
            // Two of one name are one fault, at their names.
            if is_called && !called.contains(name) {
                called.push(name.clone());
            }
        }
        if !called.is_empty() || ours.keys().any(|(agent, _)| *agent == Some(MAIN)) {
            let usual = if has_main { "orchestrator" } else { "main" };
            ours.entry(at(MAIN, "name")).or_insert(usual.into());
        }
        if !called.is_empty() {
            ours.insert(at(MAIN, "sub_agents"), called.into());
        }
    }
}

/// Returns the text of our file.
fn toml(ours: OurSettings, settings: &[ImportedSetting]) -> String {
    let mut tables: BTreeMap<Option<usize>, Json> = BTreeMap::new();
    for ((agent, path), value) in ours {
        let table = tables.entry(agent).or_default();
        put(table, path.iter().map(String::as_str), value);
    }
    let mut all = tables.remove(&None).unwrap_or_default();
    if !tables.is_empty() {
        put(
            &mut all,
            ["agents"].into_iter(),
            tables.into_values().collect(),
        );
    }
    let all = Table::try_from(all).unwrap_or_default();
    let lost = settings.iter().filter(|it| it.became.is_empty());
    let lost = lost.map(|it| format!("# {}: {}\n", it.name, it.note.as_deref().unwrap_or("")));
    let lost: String = lost.collect();
    let title = Some("\n# Not translated:\n").filter(|_| !lost.is_empty());
    let title = title.unwrap_or_default();
    format!("# Imported by `plimsoll config import`.\n{all}{title}{lost}")
}

/// Returns the value in the form that a setting accepts: names may differ in case, and whole numbers may be
/// written with a decimal point.
fn accepted(key: &SettingKey, value: Json) -> Result<Json, String> {
    let other = in_our_words(&value);
    let mut forms = [value, other].into_iter();
    match forms.find(|form| key.convert(form).is_some()) {
        // A value may be a misplaced secret, so it is not repeated.
        None => Err(format!("give {}", key.takes())),
        Some(Json::String(text)) if text.contains("${") => {
            Err("write the value of the variable yourself".to_owned())
        }
        Some(value) => Ok(value),
    }
}

/// Returns the variable that a text refers to; otherwise the usual one, to which the user must move the key.
fn key_variable(provider: &str, text: &str) -> (Json, String) {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
    if let Some(name) = name.filter(|name| !name.is_empty() && name.chars().all(is_good)) {
        return (name.into(), String::new());
    }
    let vendor = Vendor::named(provider).ok();
    let usual = vendor.and_then(|vendor| vendor.key_variables.first().copied());
    let own = provider.to_ascii_uppercase().replace(|c| !is_good(c), "_");
    let usual = usual.map_or(format!("{own}_API_KEY"), str::to_owned);
    let note = format!("a key is not written into a file: put it into ${usual}");
    (usual.into(), note)
}

/// Checks whether a text contains no password, query or variable.
fn is_public(text: &str) -> bool {
    BaseUrl::masked(text) == text && !text.contains("${")
}

/// Returns Plimsoll's tools for those of another system, or `none`, and the names that have none.
pub(in super::super) fn own_tools(names: &[String]) -> (Vec<&'static str>, Vec<&str>) {
    let (mut tools, mut others) = (BTreeSet::new(), Vec::new());
    for name in names {
        // Claude Code writes patterns of arguments, such as `Bash(git diff:*)`.
        let plain = snake(name.split('(').next().unwrap_or(name));
        let plain = plain.strip_suffix("_file").unwrap_or(&plain);
        let plain = plain.strip_prefix("file_").unwrap_or(plain);
        let ours = ROWS.tools.get(plain).map_or(plain, String::as_str);
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
fn in_our_words(value: &Json) -> Json {
    match value {
        Json::String(text) => snake(text).into(),
        Json::Object(table) => {
            let entries = table.iter();
            let entries = entries.map(|(name, it)| (snake(name), in_our_words(it)));
            entries.collect()
        }
        other => match other.as_f64() {
            Some(number) if number.fract() == 0.0 && number.abs() < 1e9 => (number as i64).into(),
            _ => other.clone(),
        },
    }
}

/// Returns a name of the file on one line, clipped.
fn clean(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    clip(&name, Bytes(80)).to_owned()
}
