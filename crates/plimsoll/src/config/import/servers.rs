//! Translates models, their providers, tools and tool servers. Keys and tokens are never written,
//! only the names of their variables.

use std::str::FromStr;

use plimsoll_agent::Permission;
use plimsoll_core::process::looks_secret;
use plimsoll_providers::{VENDORS, Vendor};

use toml::{Table, Value};

use super::super::document::quoted;
use super::super::form::texts;
use super::super::permission::Rule;
use super::super::provider::COMPATIBLE;
use super::super::show::masked;
use super::rows::{ImportRow, ModelField};
use super::snake;
use super::text::LinePosition;
use super::translate::{Leaf, PartOfModel, Translation, clean};

/// Tool names of other systems, and Plimsoll's.
const TOOLS: [(&str, &str); 8] = [
    ("shell", "bash"),
    ("patch", "edit"),
    ("ls", "list"),
    ("list_files", "list"),
    ("list_directory", "list"),
    ("search", "grep"),
    ("web_fetch", ""),
    ("web_search", ""),
];
/// Prefixes of model names, and their vendors.
const FAMILIES: [(&str, &str); 4] = [
    ("claude", "anthropic"),
    ("gpt-", "openai"),
    ("o4-", "openai"),
    ("gemini", "gemini"),
];

type Parts = [PartOfModel];

impl Translation {
    /// Writes the settings of models.
    pub(super) fn put_models(&mut self) {
        for (agent, parts) in std::mem::take(&mut self.models) {
            let place = agent.map_or(LinePosition::Top, LinePosition::Agent);
            let url = field_text(&parts, ModelField::BaseUrl).filter(|url| is_public(url));
            let model = field_text(&parts, ModelField::Model);
            let api = field_text(&parts, ModelField::Api).map(snake);
            let named = field_text(&parts, ModelField::Provider).or(api.as_deref().map(protocol));
            let provider = provider(named, model, url);
            for (part, leaf, row, now) in &parts {
                self.now = *now;
                match &provider {
                    Some(provider) => self.put_part(*part, leaf, *row, provider, &parts, &place),
                    None => self.note(
                        "the provider of the model is not stated; write PROVIDER/NAME into \
                               `model`",
                    ),
                }
            }
        }
    }

    fn put_part(
        &mut self,
        part: ModelField,
        leaf: &Leaf,
        row: ImportRow,
        provider: &str,
        parts: &Parts,
        place: &LinePosition,
    ) {
        let vendor = Vendor::named(provider).ok();
        let own = LinePosition::Provider(provider.to_owned());
        let model = field_text(parts, ModelField::Model).map(|model| {
            let name = model
                .strip_prefix(provider)
                .and_then(|rest| rest.strip_prefix('/'));
            name.unwrap_or(model)
        });
        match (
            part,
            model,
            field_text(std::slice::from_ref(&(part, leaf.clone(), row, 0)), part),
        ) {
            (ModelField::Provider | ModelField::Api, Some(_), _) => {
                self.became(place.shown(row.ours))
            }
            (ModelField::Model, Some(model), _) => {
                let model = format!("{provider}/{model}");
                self.set(leaf, row.ours, model.into(), place);
            }
            (ModelField::BaseUrl, _, Some(url))
                if vendor.is_some_and(|vendor| is_at(vendor, url)) =>
            {
                self.note("it is the provider's own address, which is known");
            }
            (ModelField::BaseUrl, _, Some(url)) if is_public(url) => match place {
                LinePosition::Top => self.put(leaf, row.ours, quoted(url), own),
                place => _ = self.set(leaf, row.ours, leaf.value.clone(), place),
            },
            (ModelField::BaseUrl, ..) => self.note("write an address without a password"),
            (ModelField::Key, _, key) => {
                let usual = vendor.and_then(|vendor| vendor.key_variables.first());
                let usual = usual.map_or_else(
                    || format!("{}_API_KEY", shouted(provider)),
                    |name| (*name).to_owned(),
                );
                let name = self.variable(key.unwrap_or_default(), &usual);
                self.put(leaf, row.ours, quoted(&name), own);
            }
            (ModelField::Price, Some(model), _) if vendor.is_some() => {
                let dollars = match &leaf.value {
                    Value::Float(number) if *number >= 0.0 => format!("{number:?}"),
                    Value::Integer(whole) if *whole >= 0 => format!("{whole}.0"),
                    _ => return self.note("give dollars for a million tokens"),
                };
                let place = LinePosition::Model(provider.to_owned(), model.to_owned());
                self.put(leaf, row.ours, dollars, place);
            }
            _ => self.note("the model that it belongs to is not stated"),
        }
    }

    /// Returns the variable that a text refers to; otherwise the usual one, to which the user must
    /// move the key.
    fn variable(&mut self, text: &str, usual: &str) -> String {
        let name = text
            .strip_prefix("${")
            .and_then(|name| name.strip_suffix('}'));
        let is_good = |name: &&str| shouted(name) == name.to_ascii_uppercase() && !name.is_empty();
        match name.filter(is_good) {
            Some(name) => name.to_owned(),
            None => {
                self.note(&format!(
                    "a key is not written into a file: put it into ${usual}"
                ));
                usual.to_owned()
            }
        }
    }

    /// Writes the tools of an agent with Plimsoll's names.
    pub(super) fn tools(&mut self, leaf: &Leaf) {
        let Some(names) = texts(&leaf.value) else {
            return self.note("give a list of names");
        };
        let ours = |name: &String| {
            let name = snake(name);
            let known = TOOLS.iter().find(|(theirs, _)| *theirs == name);
            let name = known.map_or(name.as_str(), |(_, ours)| ours);
            let mut words = plimsoll_tools::NAMES.into_iter();
            words.find(|ours| name == *ours || name.split('_').any(|word| word == *ours))
        };
        let (known, others): (Vec<&String>, Vec<&String>) =
            names.iter().partition(|name| ours(name).is_some());
        let mut tools: Vec<&str> = known.into_iter().filter_map(ours).collect();
        tools.sort_unstable();
        tools.dedup();
        if tools.is_empty() {
            tools.push("none");
        }
        let place = leaf.agent.map_or(LinePosition::Top, LinePosition::Agent);
        self.set(leaf, "tools", tools.into(), &place);
        if !others.is_empty() {
            let others: Vec<String> = others.into_iter().map(|name| clean(name)).collect();
            self.note(&format!(
                "these tools are not known here: {}",
                others.join(", ")
            ));
        }
    }

    /// Writes permission rules.
    pub(super) fn permissions(&mut self, leaf: &Leaf) {
        let Value::Array(tables) = &leaf.value else {
            return self.note("give a list of rules, each in [[permissions]]");
        };
        let mut rules = Vec::new();
        for node in tables {
            let then = field(node, "action").and_then(|then| Permission::from_str(&then).ok());
            match (field(node, "tool"), then) {
                (Some(tool), Some(then)) => {
                    let arguments = field(node, "pattern").filter(|pattern| pattern != "*");
                    rules.push(Rule {
                        tool,
                        arguments,
                        then,
                    });
                }
                _ => self.note("a rule without `tool` or `action` is left out"),
            }
        }
        let rules = Value::Array(rules.iter().map(Rule::table).collect());
        self.put(leaf, "permissions", rules.to_string(), LinePosition::Top);
    }

    /// Writes tool servers. In the other system they are part of the agents that use them.
    pub(super) fn servers(&mut self, leaf: &Leaf) {
        let mut names = Vec::new();
        for node in leaf.value.as_array().into_iter().flatten() {
            let url = node.as_str().map(str::to_owned);
            let url = url.or_else(|| field(node, "url"));
            let path = if url.is_some() { "url" } else { "command" };
            let reach = url.or_else(|| field(node, "command"));
            let Some(reach) = reach.filter(|reach| is_public(reach)) else {
                self.note("a server without a plain `url` or `command` is left out");
                continue;
            };
            let args = node.get("args").and_then(texts);
            let args = args
                .map(|args| Value::from(args).to_string())
                .unwrap_or_default();
            let (name, is_new) = self.text.server(&format!("{reach} {args}"), &reach);
            names.push(name.clone());
            if is_new {
                let place = LinePosition::Mcp(name.clone());
                self.put(leaf, path, quoted(&reach), place.clone());
                if !args.is_empty() {
                    self.put(leaf, "args", args, place.clone());
                }
                if let Some(header) = field(node, "auth_header") {
                    let token = header.strip_prefix("Bearer ").unwrap_or(&header);
                    let variable = self.variable(token, &format!("{}_TOKEN", shouted(&name)));
                    self.put(leaf, "bearer_env", quoted(&variable), place.clone());
                }
                self.environment(leaf, node, place);
            }
        }
        let place = leaf.agent.map_or(LinePosition::Top, LinePosition::Agent);
        self.put(leaf, "mcp", Value::from(names).to_string(), place);
    }

    /// Writes the environment of a server. Variables that look like keys are inherited instead.
    fn environment(&mut self, leaf: &Leaf, node: &Value, place: LinePosition) {
        let mut env = Table::new();
        for (name, value) in node
            .get("env")
            .and_then(Value::as_table)
            .into_iter()
            .flatten()
        {
            let name = clean(name);
            let is_open = |text: &&str| !looks_secret(&name) && !text.contains("${");
            match value.as_str().filter(is_open) {
                Some(text) => _ = env.insert(name, text.into()),
                None => {
                    self.note("keys are not written into a file: `pass_env` passes on those of the environment");
                    self.text.passed.insert(name);
                }
            }
        }
        if !env.is_empty() {
            self.put(leaf, "env", Value::Table(env).to_string(), place);
        }
    }
}

/// Returns the text of a part.
fn field_text(parts: &Parts, part: ModelField) -> Option<&str> {
    let (_, leaf, ..) = parts.iter().find(|(other, ..)| *other == part)?;
    leaf.value.as_str()
}

/// Returns the provider of a model: a known one, or one of the file's own with an address.
fn provider(named: Option<&str>, model: Option<&str>, url: Option<&str>) -> Option<String> {
    let known = |name: &str| {
        Vendor::named(name)
            .ok()
            .map(|vendor| vendor.name.to_owned())
    };
    let own = |name: &str| url.map(|_| name.to_owned());
    if let Some(name) = named {
        return known(name).or_else(|| own(name));
    }
    let at = VENDORS
        .iter()
        .find(|vendor| url.is_some_and(|url| is_at(vendor, url)));
    let prefix = model.and_then(|model| model.split_once('/'));
    let families = || {
        FAMILIES
            .iter()
            .find(|(begin, _)| model.is_some_and(|it| it.starts_with(begin)))
    };
    at.map(|vendor| vendor.name.to_owned())
        .or_else(|| prefix.and_then(|(name, _)| known(name)))
        .or_else(|| own(COMPATIBLE))
        .or_else(|| families().map(|(_, vendor)| (*vendor).to_owned()))
}

/// Returns the provider for phi-core's name of a protocol.
fn protocol(api: &str) -> &str {
    match api {
        "openai_responses" => "openai-responses",
        "google_vertex" => "vertex",
        api => api.split('_').next().unwrap_or(api),
    }
}

/// Checks whether an address is the vendor's own.
fn is_at(vendor: &Vendor, url: &str) -> bool {
    let plain = |url: &str| {
        let url = url.trim_end_matches('/').trim_end_matches("/v1");
        url.replace("localhost", "127.0.0.1")
    };
    vendor
        .base_url
        .is_some_and(|known| plain(known) == plain(url))
}

/// Checks whether a text contains no password, query or variable.
fn is_public(text: &str) -> bool {
    masked(text) == text && !text.contains("${")
}

/// Converts a name to the form of environment variables.
fn shouted(name: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric();
    name.to_ascii_uppercase().replace(|c| !is_good(c), "_")
}

fn field(table: &Value, name: &str) -> Option<String> {
    table.get(name)?.as_str().map(str::to_owned)
}
