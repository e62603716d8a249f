//! [`Effective`]: every setting with its effective value and its origin. Keys and secrets are never
//! included.

use serde_json::{Map, json};

use super::agent::AgentConfig;
use super::document::parse_value;
use super::key::{Preset, SettingKey};
use super::keys;
use super::kind::SettingValue;
use super::layer::Origin;

/// A setting with its effective value.
#[derive(Debug, Clone)]
pub struct Effective {
    /// The key.
    pub key: &'static SettingKey,
    /// The value. `None` if the default is not a value; [`Preset::Words`] describes it.
    pub value: Option<SettingValue>,
    /// The origin of the value.
    pub origin: Origin,
}

impl AgentConfig {
    /// Returns all settings, in the order of the table.
    pub fn effective(&self) -> impl Iterator<Item = Effective> {
        keys::all().map(|key| match self.set(&key.path()) {
            Some((value, origin)) => Effective {
                key,
                value: Some(shown(key, value)),
                origin: origin.clone(),
            },
            None => Effective {
                key,
                value: key.preset(),
                origin: Origin::Default,
            },
        })
    }
}

/// Returns a value without secrets: an address loses its user, password and query.
fn shown(key: &SettingKey, value: &SettingValue) -> SettingValue {
    match value {
        SettingValue::Text(url) if key.name == "base_url" => SettingValue::Text(masked(url)),
        other => other.clone(),
    }
}

/// Returns an address without its user, password and query.
pub(super) fn masked(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    // A password may contain any character, so everything up to the last `@` may belong to it.
    let (who, rest) = match rest.rsplit_once('@') {
        Some((_, rest)) => ("***@", rest),
        None => ("", rest),
    };
    let cut = rest
        .find(['?', '#'])
        .and_then(|at| rest.split_at_checked(at));
    match cut {
        Some((place, _)) => format!("{scheme}{who}{place}?***"),
        None => format!("{scheme}{who}{rest}"),
    }
}

impl SettingKey {
    /// Returns the default as a value, if it is one.
    #[must_use]
    pub fn preset(&self) -> Option<SettingValue> {
        match self.default {
            Preset::Value(text) => self.kind.read(&parse_value(text)).ok(),
            Preset::Words(_) => None,
        }
    }
}

impl Effective {
    /// Returns a line of TOML. Defaults are comments, so that all lines together reproduce the
    /// configuration.
    #[must_use]
    pub fn line(&self) -> String {
        let path = self.key.path();
        match (&self.value, &self.origin, self.key.default) {
            (Some(value), Origin::Default, _) => format!("# {path} = {value}"),
            (Some(value), ..) => format!("{path} = {value}"),
            (None, _, Preset::Words(words)) => format!("# {path}: {words}"),
            (None, ..) => format!("# {path}"),
        }
    }

    /// Returns the setting as JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let mut object = Map::new();
        object.insert("key".to_owned(), self.key.path().into());
        let value = self.value.as_ref().map(SettingValue::json);
        object.insert("value".to_owned(), value.unwrap_or_default());
        if let (None, Preset::Words(words)) = (&self.value, self.key.default) {
            object.insert("default".to_owned(), words.into());
        }
        let origin = match &self.origin {
            Origin::Flag(flag) => json!({ "flag": flag }),
            Origin::Variable(name) => json!({ "environment": name }),
            Origin::File(path, line) => {
                json!({ "file": path.display().to_string(), "line": line })
            }
            Origin::Default => json!("default"),
        };
        object.insert("origin".to_owned(), origin);
        object.into()
    }
}

impl SettingValue {
    /// Returns the value as JSON: times in seconds, money in dollars.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        match self {
            Self::Flag(flag) => (*flag).into(),
            Self::Whole(whole) => (*whole).into(),
            Self::Share(share) => (share.0 as f64 / 1e6).into(),
            Self::Number(number) => (*number).into(),
            Self::Dollars(money) => (money.0 as f64 / 1e9).into(),
            Self::Time(time) => match time.subsec_nanos() {
                0 => time.as_secs().into(),
                _ => time.as_secs_f64().into(),
            },
            Self::Text(text) => text.as_str().into(),
            Self::Path(path) => path.display().to_string().into(),
            Self::Choice(name) => (*name).into(),
            Self::Paths(paths) => paths
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
            Self::Texts(texts) => texts.clone().into(),
            Self::Counts(counts) => json!(counts),
            Self::None => "none".into(),
            Self::Unknown => "unknown".into(),
            Self::Earlier(scope) => json!(scope),
            Self::Execution(execution) => json!(execution),
            Self::Rules(rules) => rules
                .iter()
                .map(|rule| {
                    json!({ "tool": rule.tool, "arguments": rule.arguments, "then": rule.then.name() })
                })
                .collect(),
            Self::Hooks(hooks) => json!(hooks),
            Self::Hosted(tools) => json!(tools),
        }
    }
}
