//! Translates models, their providers and tool servers. Keys and tokens are never written, only the
//! names of their variables.

use plimsoll_context::snake_case as snake;
use plimsoll_providers::Vendor;
use toml::{Table, Value};

use super::super::form::{number, texts};
use super::super::provider::COMPATIBLE;
use super::super::show::masked;
use super::rows::{ImportRow, MODELS, rows};
use super::translate::{TheirSetting, Translation};

/// The conversions of parts of a model, of its provider or its prices.
pub(super) const OF_MODELS: [&str; 6] = ["provider", "api", "model", "base_url", "key", "price"];

/// The fields of a tool server that are translated.
const OF_SERVERS: [&str; 3] = ["url", "command", "args"];

impl Translation {
    /// Writes a part of a model. Several settings of the other system make one of them.
    pub(super) fn put_part(&mut self, setting: &TheirSetting, row: ImportRow) {
        let Some(provider) = self.provider(setting.agent) else {
            return self
                .note("the provider of the model is not stated; write PROVIDER/NAME into `model`");
        };
        let model = self.part(setting.agent, "model").and_then(Value::as_str);
        let model = model.map(|model| {
            let bare = model.strip_prefix(&provider);
            let bare = bare.and_then(|it| it.strip_prefix('/'));
            bare.unwrap_or(model).to_owned()
        });
        let vendor = Vendor::named(&provider).ok();
        let own = ["providers", &provider, row.ours];
        match (row.how, model, setting.value.as_str()) {
            ("provider" | "api", Some(_), _) => self.became(row.ours),
            ("model", Some(model), _) => {
                let model = format!("{provider}/{model}");
                self.set(setting.agent, row.ours, model.into());
            }
            ("base_url", _, Some(url)) if is_public(url) => {
                self.put(None, &own, url.into());
            }
            ("base_url", ..) => self.note("write an address without a password"),
            ("key", _, key) => {
                let usual = vendor.and_then(|vendor| vendor.key_variables.first());
                let usual = usual.map_or_else(
                    || format!("{}_API_KEY", shouted(&provider)),
                    |name| (*name).to_owned(),
                );
                let name = self.variable(key.unwrap_or_default(), usual);
                self.put(None, &own, name.into());
            }
            ("price", Some(model), _) if vendor.is_some() => match number(&setting.value) {
                Some(dollars) => {
                    let path = ["models", &provider, &model, row.ours];
                    self.put(None, &path, dollars.into());
                }
                None => self.note("give dollars for a million tokens"),
            },
            _ => self.note("the model that it belongs to is not stated"),
        }
    }

    /// Returns the provider of an agent's model: a known one, or one of the file's own with an address.
    fn provider(&self, agent: Option<usize>) -> Option<String> {
        let text = |how: &str| self.part(agent, how)?.as_str();
        let known = |name: &str| Some(Vendor::named(name).ok()?.name.to_owned());
        let url = text("base_url").filter(|url| is_public(url));
        let own = |name: &str| url.map(|_| name.to_owned());
        let api = text("api").map(snake);
        if let Some(name) = text("provider").or(api.as_deref().map(protocol)) {
            return known(name).or_else(|| own(name));
        }
        let model = text("model");
        let prefix = model.and_then(|model| model.split_once('/'));
        let family = rows(MODELS).find(|(begin, _)| model.is_some_and(|it| it.starts_with(begin)));
        prefix
            .and_then(|(vendor, _)| known(vendor))
            .or_else(|| own(COMPATIBLE))
            .or_else(|| Some(family?.1.ours.to_owned()))
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
            let name = self.server(server).map(Value::from);
            names.extend(name.filter(|name| !names.contains(name)));
        }
        names.into()
    }

    fn server(&mut self, server: &Value) -> Option<String> {
        let known = self.servers.iter().position(|(other, _)| other == server);
        let name = format!("server{}", known.unwrap_or(self.servers.len()) + 1);
        if known.is_some() {
            return Some(name);
        }
        let field = |name: &str| server.get(name)?.as_str();
        let url = server.as_str().or_else(|| field("url"));
        let path = if url.is_some() { "url" } else { "command" };
        let Some(reach) = url.or(field("command")).filter(|reach| is_public(reach)) else {
            self.note("a server without a plain `url` or `command` is left out");
            return None;
        };
        let args = server.get("args").and_then(texts);
        let fields = [("name", name.as_str().into()), (path, reach.into())];
        let fields = fields
            .into_iter()
            .chain(args.map(|args| ("args", args.into())));
        let fields = fields.map(|(name, value): (&str, Value)| (name.to_owned(), value));
        self.servers
            .push((server.clone(), Table::from_iter(fields)));
        let mut fields = server.as_table().into_iter().flat_map(Table::keys);
        if fields.any(|key| !OF_SERVERS.contains(&key.as_str())) {
            self.note("write `env`, headers and tokens of the server yourself: they may be keys");
        }
        Some(name)
    }
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

/// Converts a name to the form of environment variables.
fn shouted(name: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric();
    name.to_ascii_uppercase().replace(|c| !is_good(c), "_")
}
