//! [`Translation`]: translates the settings of another system. The correspondence is data; see
//! [`super::rows`]. Keys are never written, only the names of their variables.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_context::{Bytes, clip, snake_case as snake};
use plimsoll_providers::Vendor;
use serde_json::{Value as Json, json};
use toml::Table;

use super::super::document::parse_value;
use super::super::key::{join, key, put};
use super::super::kind::{number, texts};
use super::super::provider::COMPATIBLE;
use super::super::show::masked;
use super::ImportedSetting;
use super::rows::{ImportRow, MODELS, SETTINGS, TOOLS, row, rows};

/// The conversions of the parts of a model. Several settings of the other system make one of them.
pub(super) const OF_MODELS: [&str; 6] = ["provider", "api", "model", "base_url", "key", "price"];

/// The number of the agent that calls the others. Those of the other file begin at 1.
const MAIN: usize = 0;

/// A setting of the other system.
#[derive(Debug)]
struct TheirSetting {
    row: Option<ImportRow>,
    /// Its path as written.
    name: String,
    value: Json,
    /// The agent that it belongs to, by its number in the file.
    agent: Option<usize>,
}

/// A value with a note about the difference in meaning, or the reason why there is none.
type Converted = Result<(Json, Option<String>), String>;

/// The result of a translation.
pub(super) struct Translation {
    /// The translation of each setting.
    pub(super) settings: Vec<ImportedSetting>,
    /// The settings of each agent by its number, and of the whole file.
    tables: BTreeMap<Option<usize>, Json>,
}

/// Adds the settings of a table, from its top. Its path is given in snake case and as written.
fn collect(
    table: &Json,
    [own, shown]: [&str; 2],
    agent: Option<usize>,
    found: &mut Vec<TheirSetting>,
) {
    for (key, given) in table.as_object().into_iter().flatten() {
        let mut path = join(own, &snake(key));
        if let Some(table) = row(SETTINGS, &path).filter(|row| row.how == "as") {
            table.ours.clone_into(&mut path);
        }
        let shown = join(shown, &clean(key));
        let row = row(SETTINGS, &path);
        let begin = format!("{path}.");
        let leads = || rows(SETTINGS).any(|(row, _)| row.starts_with(&begin));
        match given {
            // A YAML file has empty values.
            Json::Null => {}
            Json::Array(items) if row.is_some_and(|row| row.how == "each") => {
                for (at, item) in items.iter().enumerate() {
                    let last = found.iter().filter_map(|it| it.agent).max();
                    let number = last.map_or(1, |last| last + 1);
                    let shown = format!("{shown}[{at}]");
                    collect(item, ["agents", &shown], Some(number), found);
                }
            }
            Json::Object(table) if !table.is_empty() && leads() => {
                collect(given, [&path, &shown], agent, found);
            }
            _ => found.push(TheirSetting {
                row,
                name: shown,
                value: given.clone(),
                agent,
            }),
        }
    }
}

impl TheirSetting {
    fn is(&self, how: &str) -> bool {
        self.row.is_some_and(|row| row.how == how)
    }

    /// Returns the agent that the counterpart belongs to.
    fn target(&self, ours: &str) -> Option<usize> {
        let is_of_one = key(ours).is_some_and(|key| key.is_of_one_agent);
        let main = (is_of_one || self.is("main")).then_some(MAIN);
        self.agent.or(main)
    }
}

impl Translation {
    /// Returns `None` if no setting is known.
    pub(super) fn of(document: &Json) -> Option<Self> {
        let mut theirs = Vec::new();
        collect(document, ["", ""], None, &mut theirs);
        theirs.iter().find(|setting| setting.row.is_some())?;
        let mut it = Self {
            settings: Vec::new(),
            tables: BTreeMap::new(),
        };
        for setting in &theirs {
            let became = match setting.row {
                None => Err("it has no counterpart".to_owned()),
                Some(row) if OF_MODELS.contains(&row.how) => it.put_part(&theirs, setting, row),
                Some(row) => it.put_setting(&theirs, setting, row),
            };
            let (became, note) = match became {
                Ok((ours, note)) => (vec![ours], note),
                Err(why) => (Vec::new(), Some(why)),
            };
            let name = setting.name.clone();
            it.settings.push(ImportedSetting { name, became, note });
        }
        it.imply(&theirs);
        it.complete(&theirs);
        Some(it)
    }

    fn put_setting(
        &mut self,
        theirs: &[TheirSetting],
        setting: &TheirSetting,
        row: ImportRow,
    ) -> Result<(String, Option<String>), String> {
        let (value, mut note) = match row.how {
            "strategy" | "size" => (execution(theirs, setting)?, None),
            _ => converted(row, &setting.value)?,
        };
        let value = accepted(row.ours, value)?;
        let agent = setting.target(row.ours);
        if self.get(agent, row.ours).is_some_and(|old| *old != value) {
            note = Some("it is set twice, and the later one counts".to_owned());
        }
        Ok((self.set(agent, row.ours.split('.'), value), note))
    }

    /// Writes a part of a model.
    fn put_part(
        &mut self,
        theirs: &[TheirSetting],
        setting: &TheirSetting,
        row: ImportRow,
    ) -> Result<(String, Option<String>), String> {
        let part = |how: &str| {
            let mut parts = theirs.iter();
            let part = parts.find(|it| it.agent == setting.agent && it.is(how));
            part?.value.as_str()
        };
        let provider = provider(&part)
            .ok_or("the provider of the model is not stated; write PROVIDER/NAME into `model`")?;
        let is_known = Vendor::named(&provider).is_ok();
        let begin = format!("{provider}/");
        let model = part("model").map(|model| model.strip_prefix(&begin).unwrap_or(model));
        let model = model.ok_or("the model that it belongs to is not stated");
        let text = setting.value.as_str().unwrap_or_default();
        let (value, note) = match row.how {
            "price" if is_known => {
                let dollars = number(&setting.value).ok_or("give dollars for a million tokens")?;
                (dollars.into(), None)
            }
            "price" => return Err("the prices of this provider's models are not known".to_owned()),
            "base_url" if is_public(text) => (text.into(), None),
            "base_url" => return Err("write an address without a password".to_owned()),
            "key" => key_variable(&provider, text),
            _ => (
                accepted("model", format!("{begin}{}", model?).into())?,
                None,
            ),
        };
        let path = row.ours.split('.').map(|name| match name {
            "PROVIDER" => Ok(provider.as_str()),
            "MODEL" => model,
            name => Ok(name),
        });
        let path: Vec<&str> = path.collect::<Result<_, _>>()?;
        let agent = setting.agent.filter(|_| path == ["model"]);
        Ok((self.set(agent, path, value), note))
    }

    /// Sets what the translated settings imply, unless the file sets it.
    fn imply(&mut self, theirs: &[TheirSetting]) {
        let mut settings = std::mem::take(&mut self.settings);
        for (theirs, setting) in theirs.iter().zip(&mut settings) {
            let row = theirs.row.filter(|_| !setting.became.is_empty());
            for (ours, value) in row.into_iter().flat_map(ImportRow::implied) {
                let agent = theirs.target(ours);
                if self.get(agent, ours).is_none() {
                    let ours = self.set(agent, ours.split('.'), parse_value(value));
                    setting.became.push(ours);
                    let note = "the others are the defaults of the system beside it";
                    setting.note.get_or_insert_with(|| note.to_owned());
                }
            }
        }
        self.settings = settings;
    }

    /// Returns one of Plimsoll's settings, if it is set.
    fn get(&self, agent: Option<usize>, ours: &str) -> Option<&Json> {
        let table = self.tables.get(&agent)?;
        ours.split('.')
            .try_fold(table, |table, name| table.get(name))
    }

    /// Sets one of Plimsoll's settings. Returns its full name.
    fn set<'a>(
        &mut self,
        agent: Option<usize>,
        path: impl IntoIterator<Item = &'a str>,
        value: Json,
    ) -> String {
        let path: Vec<&str> = path.into_iter().collect();
        let shown = path.join(".");
        put(
            self.tables.entry(agent).or_default(),
            path.into_iter(),
            value,
        );
        match agent {
            Some(_) => format!("[[agents]] {shown}"),
            None => shown,
        }
    }

    /// Adds what is implicit in the other system: names, and the agents that the main one calls.
    fn complete(&mut self, theirs: &[TheirSetting]) {
        let has_main = theirs.iter().any(|it| it.name.starts_with("orchestrator."));
        let mut called: Vec<Json> = Vec::new();
        for setting in theirs {
            let Some(agent) = setting.agent else { continue };
            let name = self.name(agent, &format!("agent-{agent}"));
            let is_called = has_main || setting.name.starts_with("sub_agents.");
            if is_called && !called.contains(name) {
                called.push(name.clone());
            }
        }
        if !called.is_empty() || self.tables.contains_key(&Some(MAIN)) {
            self.name(MAIN, if has_main { "orchestrator" } else { "main" });
        }
        if !called.is_empty() {
            self.set(Some(MAIN), ["sub_agents"], called.into());
        }
    }

    /// Returns the name of an agent. One without a name gets this one.
    fn name(&mut self, agent: usize, usual: &str) -> &Json {
        let name = &mut self.tables.entry(Some(agent)).or_default()["name"];
        if name.is_null() {
            *name = usual.into();
        }
        name
    }

    /// Returns the text of the result.
    pub(super) fn toml(&self) -> String {
        let mut agents = self.tables.clone();
        let mut all = agents.remove(&None).unwrap_or_default();
        if !agents.is_empty() {
            put(
                &mut all,
                ["agents"].into_iter(),
                agents.into_values().collect(),
            );
        }
        let all = Table::try_from(all).unwrap_or_default();
        let mut text = format!("# Imported by `plimsoll config import`.\n{all}");
        let mut title = "\n# Not translated:\n";
        for lost in self.settings.iter().filter(|it| it.became.is_empty()) {
            let note = lost.note.as_deref().unwrap_or_default();
            text.push_str(&format!("{title}# {}: {note}\n", lost.name));
            title = "";
        }
        text
    }
}

/// Returns how tool calls are executed: by the strategy, and in batches of the size if that is `batched`.
fn execution(theirs: &[TheirSetting], setting: &TheirSetting) -> Result<Json, String> {
    let part = |how: &str| Some(&theirs.iter().find(|it| it.is(how))?.value);
    let is_batched = |strategy: &Json| strategy.as_str().map(snake).as_deref() == Some("batched");
    match (part("strategy"), part("size")) {
        (strategy, Some(size)) if strategy.is_none_or(is_batched) => Ok(json!({ "batched": size })),
        _ if setting.is("size") => Err("it counts for the strategy `batched` only".to_owned()),
        _ => Ok(setting.value.clone()),
    }
}

/// Converts a value.
fn converted(row: ImportRow, value: &Json) -> Converted {
    let noted = |value: Json, note: &str| Ok((value, Some(note.to_owned())));
    match (row.how, value.as_u64()) {
        ("-", _) => Err(row.ours.to_owned()),
        ("millis", Some(millis)) => Ok((format!("{millis}ms").into(), None)),
        ("retries", Some(retries)) => {
            let attempts = retries.saturating_add(1).into();
            noted(attempts, "the first attempt counts here, too")
        }
        ("bytes", Some(bytes)) => {
            let tokens = bytes.div_ceil(4).max(1).into();
            noted(tokens, "it is in tokens here, four bytes to one")
        }
        ("effort", _) if value == "none" => Ok(("off".into(), None)),
        ("tools", _) => {
            let names = texts(value).ok_or("give a list of names")?;
            let (tools, others) = own_tools(&names);
            let others: Vec<String> = others.into_iter().map(clean).collect();
            let note = format!("these tools are not known here: {}", others.join(", "));
            Ok((tools.into(), (!others.is_empty()).then_some(note)))
        }
        _ => Ok((value.clone(), None)),
    }
}

/// Returns the value in the form that a setting accepts: names may differ in case, and whole numbers may be
/// written with a decimal point.
fn accepted(ours: &str, value: Json) -> Result<Json, String> {
    let key = key(ours).ok_or("there is no such setting")?;
    let other = in_our_words(&value);
    let mut forms = [value, other].into_iter();
    match forms.find(|form| key.convert(form).is_some()) {
        // A value may be a misplaced secret, so it is not repeated.
        None => Err(format!("give {}", key.kind.takes())),
        Some(Json::String(text)) if text.contains("${") => {
            Err("write the value of the variable yourself".to_owned())
        }
        Some(value) => Ok(value),
    }
}

/// Returns the provider of a model with these parts: a known one, or one of the file's own with an address.
fn provider<'a>(part: &dyn Fn(&str) -> Option<&'a str>) -> Option<String> {
    let known = |name: &str| Some(Vendor::named(name).ok()?.name.to_owned());
    let url = part("base_url").filter(|url| is_public(url));
    let own = |name: &str| url.map(|_| name.to_owned());
    // phi-core names a protocol, such as `openai_responses`.
    let protocol = || snake(part("api")?).split('_').next().map(str::to_owned);
    if let Some(name) = part("provider").map(str::to_owned).or_else(protocol) {
        return known(&name).or_else(|| own(&name));
    }
    let model = part("model").unwrap_or_default();
    let family = rows(MODELS).find(|(begin, _)| model.starts_with(begin));
    let vendor = model.split_once('/').and_then(|(vendor, _)| known(vendor));
    vendor
        .or_else(|| own(COMPATIBLE))
        .or_else(|| Some(family?.1.ours.to_owned()))
}

/// Returns the variable that a text refers to; otherwise the usual one, to which the user must move the key.
fn key_variable(provider: &str, text: &str) -> (Json, Option<String>) {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
    if let Some(name) = name.filter(|name| !name.is_empty() && name.chars().all(is_good)) {
        return (name.into(), None);
    }
    let vendor = Vendor::named(provider).ok();
    let usual = vendor.and_then(|vendor| vendor.key_variables.first().copied());
    let own = provider.to_ascii_uppercase().replace(|c| !is_good(c), "_");
    let usual = usual.map_or(format!("{own}_API_KEY"), str::to_owned);
    let note = format!("a key is not written into a file: put it into ${usual}");
    (usual.into(), Some(note))
}

/// Checks whether a text contains no password, query or variable.
fn is_public(text: &str) -> bool {
    masked(text) == text && !text.contains("${")
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
