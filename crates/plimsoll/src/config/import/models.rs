//! Translates models, their providers and tool servers. Keys and tokens are never written, only the
//! names of their variables.

use plimsoll_core::process::looks_secret;
use plimsoll_providers::{VENDORS, Vendor};
use toml::{Table, Value};

use super::super::document::quoted;
use super::super::form::texts;
use super::super::provider::COMPATIBLE;
use super::super::show::masked;
use super::lines::Section;
use super::rows::ImportRow;
use super::snake;
use super::translate::{Leaf, Translation, clean};

/// Prefixes of model names, and their vendors.
const FAMILIES: [(&str, &str); 4] = [
    ("claude", "anthropic"),
    ("gpt-", "openai"),
    ("o4-", "openai"),
    ("gemini", "gemini"),
];
/// Maximum length of the name of a tool server.
const MAX_NAME: usize = 24;

/// A part of the specification of a model, with its row and its index in the settings.
pub(super) type PartOfModel = (Leaf, ImportRow, usize);

impl Translation {
    /// Writes the models. Several settings of the other system make one of them.
    pub(super) fn put_models(&mut self) {
        for (agent, parts) in std::mem::take(&mut self.models) {
            let text = |how: &str| {
                let (leaf, ..) = parts.iter().find(|(_, row, _)| row.how == how)?;
                leaf.value.as_str()
            };
            let api = text("api").map(snake);
            let named = text("provider").or(api.as_deref().map(protocol));
            let model = text("model");
            let url = text("base_url").filter(|url| is_public(url));
            let provider = provider(named, model, url);
            for (leaf, row, now) in &parts {
                self.now = *now;
                match &provider {
                    Some(provider) => self.put_part(leaf, *row, provider, model, agent),
                    None => self.note(
                        "the provider of the model is not stated; write PROVIDER/NAME into `model`",
                    ),
                }
            }
        }
    }

    fn put_part(
        &mut self,
        leaf: &Leaf,
        row: ImportRow,
        provider: &str,
        model: Option<&str>,
        agent: Option<usize>,
    ) {
        let vendor = Vendor::named(provider).ok();
        let model = model.map(|model| {
            let bare = model.strip_prefix(provider);
            bare.and_then(|it| it.strip_prefix('/')).unwrap_or(model)
        });
        let section = Section::of(agent);
        let own = Section::Provider(provider.to_owned());
        match (row.how, model, leaf.value.as_str()) {
            ("provider" | "api", Some(_), _) => self.became(section.shown(row.ours)),
            ("model", Some(model), _) => {
                let model = format!("{provider}/{model}");
                self.set(leaf, row.ours, model.into(), &section);
            }
            ("base_url", _, Some(url)) if vendor.is_some_and(|vendor| is_at(vendor, url)) => {
                self.note("it is the provider's own address, which is known");
            }
            ("base_url", _, Some(url)) if is_public(url) && agent.is_none() => {
                self.put(leaf, row.ours, quoted(url), own);
            }
            ("base_url", _, Some(url)) if is_public(url) => {
                self.set(leaf, row.ours, url.into(), &section);
            }
            ("base_url", ..) => self.note("write an address without a password"),
            ("key", _, key) => {
                let usual = vendor.and_then(|vendor| vendor.key_variables.first());
                let usual = usual.map_or_else(
                    || format!("{}_API_KEY", shouted(provider)),
                    |name| (*name).to_owned(),
                );
                let name = self.variable(key.unwrap_or_default(), &usual);
                self.put(leaf, row.ours, quoted(&name), own);
            }
            ("price", Some(model), _) if vendor.is_some() => {
                let dollars = match &leaf.value {
                    Value::Float(number) if *number >= 0.0 => format!("{number:?}"),
                    Value::Integer(whole) if *whole >= 0 => format!("{whole}.0"),
                    _ => return self.note("give dollars for a million tokens"),
                };
                let section = Section::Model(provider.to_owned(), model.to_owned());
                self.put(leaf, row.ours, dollars, section);
            }
            _ => self.note("the model that it belongs to is not stated"),
        }
    }

    /// Returns the variable that a text refers to; otherwise the usual one, to which the user must
    /// move the key.
    fn variable(&mut self, text: &str, usual: &str) -> String {
        let name = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
        let is_good = |name: &&str| shouted(name) == name.to_ascii_uppercase() && !name.is_empty();
        if let Some(name) = name.filter(is_good) {
            return name.to_owned();
        }
        self.note(&format!(
            "a key is not written into a file: put it into ${usual}"
        ));
        usual.to_owned()
    }

    /// Writes tool servers. In the other system they are part of the agents that use them.
    pub(super) fn servers(&mut self, leaf: &Leaf) {
        let mut names = Vec::new();
        for server in leaf.value.as_array().into_iter().flatten() {
            let field = |name: &str| server.get(name)?.as_str();
            let url = server.as_str().or_else(|| field("url"));
            let path = if url.is_some() { "url" } else { "command" };
            let reach = url.or_else(|| field("command"));
            let Some(reach) = reach.filter(|reach| is_public(reach)) else {
                self.note("a server without a plain `url` or `command` is left out");
                continue;
            };
            let args = server.get("args").and_then(texts).unwrap_or_default();
            let key = format!("{reach} {args:?}");
            if let Some(name) = self.servers.get(&key) {
                if !names.contains(name) {
                    names.push(name.clone());
                }
                continue;
            }
            let name = self.new_name(reach);
            self.servers.insert(key, name.clone());
            let section = Section::Mcp(name.clone());
            self.put(leaf, "name", quoted(&name), section.clone());
            self.put(leaf, path, quoted(reach), section.clone());
            if !args.is_empty() {
                let args = Value::from(args).to_string();
                self.put(leaf, "args", args, section.clone());
            }
            if let Some(header) = field("auth_header") {
                let token = header.strip_prefix("Bearer ").unwrap_or(header);
                let variable = self.variable(token, &format!("{}_TOKEN", shouted(&name)));
                self.put(leaf, "bearer_env", quoted(&variable), section.clone());
            }
            let env = server.get("env").and_then(Value::as_table);
            let env = self.environment(env.into_iter().flatten());
            if !env.is_empty() {
                self.put(leaf, "env", Value::Table(env).to_string(), section);
            }
            names.push(name);
        }
        let section = Section::of(leaf.agent);
        self.put(leaf, "mcp", Value::from(names).to_string(), section);
    }

    /// Returns a new name for the server at an address or with a command.
    fn new_name(&self, reach: &str) -> String {
        let word = match reach.split_once("://") {
            Some((_, rest)) => rest.split(['/', ':']).next(),
            None => reach.rsplit(['/', '\\']).next(),
        };
        let word: String = shouted(word.unwrap_or_default())
            .chars()
            .take(MAX_NAME)
            .collect();
        let word = match word.trim_matches('_').to_ascii_lowercase() {
            word if word.is_empty() => "server".to_owned(),
            word => word,
        };
        let is_free = |name: &String| self.servers.values().all(|other| other != name);
        let mut names = (2..).map(|number| format!("{word}_{number}"));
        let name = Some(word.clone()).filter(is_free);
        name.or_else(|| names.find(is_free)).unwrap_or(word)
    }

    /// Returns the environment of a server without variables that look like keys, which it
    /// inherits.
    fn environment<'a>(&mut self, given: impl Iterator<Item = (&'a String, &'a Value)>) -> Table {
        let mut env = Table::new();
        for (name, value) in given {
            let name = clean(name);
            let is_open = |text: &&str| !looks_secret(&name) && !text.contains("${");
            match value.as_str().filter(is_open) {
                Some(text) => _ = env.insert(name, text.into()),
                None => {
                    self.note("keys are not written into a file: `pass_env` passes on those of the environment");
                    self.passed.insert(name);
                }
            }
        }
        env
    }
}

/// Returns the provider of a model: a known one, or one of the file's own with an address.
fn provider(named: Option<&str>, model: Option<&str>, url: Option<&str>) -> Option<String> {
    let known = |name: &str| Some(Vendor::named(name).ok()?.name.to_owned());
    let own = |name: &str| url.map(|_| name.to_owned());
    if let Some(name) = named {
        return known(name).or_else(|| own(name));
    }
    let mut vendors = VENDORS.iter();
    let at = vendors.find(|vendor| url.is_some_and(|url| is_at(vendor, url)));
    let prefix = model.and_then(|model| model.split_once('/'));
    let mut families = FAMILIES.iter();
    let family = families.find(|(begin, _)| model.is_some_and(|it| it.starts_with(begin)));
    at.map(|vendor| vendor.name.to_owned())
        .or_else(|| known(prefix?.0))
        .or_else(|| own(COMPATIBLE))
        .or_else(|| Some(family?.1.to_owned()))
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
    let known = vendor.base_url;
    known.is_some_and(|known| plain(known) == plain(url))
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
