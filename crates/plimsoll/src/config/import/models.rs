//! Translates models, their providers and tool servers. Keys and tokens are never written, only the
//! names of their variables.

use plimsoll_context::snake_case as snake;
use plimsoll_providers::Vendor;
use toml::Value;

use super::super::document::quoted;
use super::super::form::texts;
use super::super::provider::COMPATIBLE;
use super::super::show::masked;
use super::rows::ImportRow;
use super::translate::{Section, Translation};

/// Prefixes of model names, and their vendors.
const FAMILIES: [(&str, &str); 4] = [
    ("claude", "anthropic"),
    ("gpt-", "openai"),
    ("o4-", "openai"),
    ("gemini", "gemini"),
];

/// The fields of a tool server that are translated.
const OF_SERVERS: [&str; 3] = ["url", "command", "args"];

/// A part of the specification of a model.
pub(super) struct PartOfModel {
    /// The index of the setting.
    pub(super) at: usize,
    pub(super) row: ImportRow,
    pub(super) value: Value,
}

impl Translation {
    /// Writes a model. Several settings of the other system make one of them.
    pub(super) fn put_model(&mut self, agent: Option<usize>, parts: &[PartOfModel]) {
        let text = |how: &str| {
            let part = parts.iter().find(|part| part.row.how == how)?;
            part.value.as_str()
        };
        let api = text("api").map(snake);
        let named = text("provider").or(api.as_deref().map(protocol));
        let url = text("base_url").filter(|url| is_public(url));
        let provider = provider(named, text("model"), url);
        for part in parts {
            self.now = part.at;
            match &provider {
                Some(provider) => self.put_part(part, provider, text("model"), agent),
                None => self.note(
                    "the provider of the model is not stated; write PROVIDER/NAME into `model`",
                ),
            }
        }
    }

    fn put_part(
        &mut self,
        part: &PartOfModel,
        provider: &str,
        model: Option<&str>,
        agent: Option<usize>,
    ) {
        let vendor = Vendor::named(provider).ok();
        let model = model.map(|model| {
            let bare = model.strip_prefix(provider);
            bare.and_then(|it| it.strip_prefix('/')).unwrap_or(model)
        });
        let own = format!("providers.{}.{}", bare(provider), part.row.ours);
        match (part.row.how, model, part.value.as_str()) {
            ("provider" | "api", Some(_), _) => self.became(part.row.ours),
            ("model", Some(model), _) => {
                let section = agent.map_or(Section::All, Section::Agent);
                let model = format!("{provider}/{model}");
                self.set(section, part.row.ours, model.into());
            }
            ("base_url", _, Some(url)) if is_public(url) => {
                self.put(Section::All, &own, url.into());
            }
            ("base_url", ..) => self.note("write an address without a password"),
            ("key", _, key) => {
                let usual = vendor.and_then(|vendor| vendor.key_variables.first());
                let usual = usual.map_or_else(
                    || format!("{}_API_KEY", shouted(provider)),
                    |name| (*name).to_owned(),
                );
                let name = self.variable(key.unwrap_or_default(), usual);
                self.put(Section::All, &own, name.into());
            }
            ("price", Some(model), _) if vendor.is_some() => {
                let dollars = match part.value {
                    Value::Integer(whole) => whole as f64,
                    Value::Float(number) => number,
                    _ => f64::NAN,
                };
                let path = format!("models.{provider}.{}.{}", bare(model), part.row.ours);
                if dollars >= 0.0 {
                    self.put(Section::All, &path, dollars.into());
                } else {
                    self.note("give dollars for a million tokens");
                }
            }
            _ => self.note("the model that it belongs to is not stated"),
        }
    }

    /// Returns the variable that a text refers to; otherwise the usual one, to which the user must
    /// move the key.
    fn variable(&mut self, text: &str, usual: String) -> String {
        let name = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
        let is_good = |name: &&str| shouted(name) == name.to_ascii_uppercase() && !name.is_empty();
        if let Some(name) = name.filter(is_good) {
            return name.to_owned();
        }
        self.note(format!(
            "a key is not written into a file: put it into ${usual}"
        ));
        usual
    }

    /// Writes tool servers, which are part of the agents that use them in the other system. Returns
    /// their names.
    pub(super) fn servers(&mut self, given: &Value) -> Value {
        let mut names: Vec<Value> = Vec::new();
        for server in given.as_array().into_iter().flatten() {
            let known = self.servers.iter().find(|(other, _)| other == server);
            let name = match known.map(|(_, name)| name.clone()) {
                Some(name) => Some(name),
                None => self.server(server),
            };
            let name = name.map(Value::from);
            names.extend(name.filter(|name| !names.contains(name)));
        }
        names.into()
    }

    fn server(&mut self, server: &Value) -> Option<String> {
        let field = |name: &str| server.get(name)?.as_str();
        let url = server.as_str().or_else(|| field("url"));
        let path = if url.is_some() { "url" } else { "command" };
        let Some(reach) = url.or(field("command")).filter(|reach| is_public(reach)) else {
            self.note("a server without a plain `url` or `command` is left out");
            return None;
        };
        let number = self.servers.len() + 1;
        let (name, section) = (format!("server{number}"), Section::Server(number));
        self.servers.push((server.clone(), name.clone()));
        self.put(section, "name", name.as_str().into());
        self.put(section, path, reach.into());
        if let Some(args) = server.get("args").and_then(texts) {
            self.put(section, "args", args.into());
        }
        if server
            .as_table()
            .is_some_and(|it| it.keys().any(|key| !OF_SERVERS.contains(&key.as_str())))
        {
            self.note("write `env`, headers and tokens of the server yourself: they may be keys");
        }
        Some(name)
    }
}

/// Returns the provider of a model: a known one, or one of the file's own with an address.
fn provider(named: Option<&str>, model: Option<&str>, url: Option<&str>) -> Option<String> {
    let known = |name: &str| Some(Vendor::named(name).ok()?.name.to_owned());
    let own = |name: &str| url.map(|_| name.to_owned());
    if let Some(name) = named {
        return known(name).or_else(|| own(name));
    }
    let prefix = model.and_then(|model| model.split_once('/'));
    let mut families = FAMILIES.iter();
    let family = families.find(|(begin, _)| model.is_some_and(|it| it.starts_with(begin)));
    prefix
        .and_then(|(vendor, _)| known(vendor))
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

/// Checks whether a text contains no password, query or variable.
fn is_public(text: &str) -> bool {
    masked(text) == text && !text.contains("${")
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

/// Converts a name to the form of environment variables.
fn shouted(name: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric();
    name.to_ascii_uppercase().replace(|c| !is_good(c), "_")
}
