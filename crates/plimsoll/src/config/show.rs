//! [`Effective`]: every setting with its effective value and its origin. Keys and secrets are never
//! included.

use serde_json::{Value as Json, json};

use super::agent::AgentConfig;
use super::fault::Origin;
use super::key::{SettingKey, keys};

/// A setting with its effective value.
#[derive(Debug, Clone)]
pub struct Effective {
    /// The key.
    pub key: &'static SettingKey,
    /// The value. `None` if the default is not a value; [`SettingKey::default()`] describes it.
    value: Option<Json>,
    /// The origin of the value.
    pub origin: Origin,
}

impl AgentConfig {
    /// Returns all settings, in the order of the documentation.
    pub fn effective(&self) -> impl Iterator<Item = Effective> {
        keys().map(|key| match self.layer.0.get(&key.path()) {
            Some(found) => Effective {
                key,
                value: Some(shown(key, found.given.value())),
                origin: found.given.origin.clone(),
            },
            None => Effective {
                key,
                value: key.value.clone(),
                origin: Origin::Default,
            },
        })
    }
}

/// Returns a value without secrets: an address loses its user, password and query.
fn shown(key: &SettingKey, value: Json) -> Json {
    match value {
        Json::String(url) if key.name == "base_url" => masked(&url).into(),
        other => other,
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

impl Effective {
    /// Returns a line of TOML. Defaults are comments, so that all lines together reproduce the
    /// configuration.
    #[must_use]
    pub fn line(&self) -> String {
        let (path, default) = (self.key.path(), self.key.default());
        let value = self.value.as_ref();
        let value = value.and_then(|value| toml::Value::try_from(value).ok());
        match (value, &self.origin) {
            (Some(value), Origin::Default) => format!("# {path} = {value}"),
            (Some(value), _) => format!("{path} = {value}"),
            (None, _) => format!("# {path}: {default}"),
        }
    }

    /// Returns the setting as JSON.
    #[must_use]
    pub fn json(&self) -> Json {
        let origin = match &self.origin {
            Origin::Flag(flag) => json!({ "flag": flag }),
            Origin::Variable(name) => json!({ "environment": name }),
            Origin::File(path, place) => json!({
                "file": path, "line": place.line, "column": place.column,
            }),
            Origin::Default => json!("default"),
        };
        let mut shown = json!({ "key": self.key.path(), "value": self.value, "origin": origin });
        if let (None, Some(shown)) = (&self.value, shown.as_object_mut()) {
            shown.insert("default".to_owned(), self.key.default().into());
        }
        shown
    }
}
