//! [`Effective`]: every setting with its effective value and its origin. Keys and secrets are never
//! included.

use plimsoll_providers::BaseUrl;
use serde_json::{Value as Json, json};

use super::agent::AgentConfig;
use super::fault::Origin;
use super::key::{SettingKey, keys, put};

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
    /// Returns all settings, in the order of the documentation. An address has no user, password and query.
    pub fn effective(&self) -> impl Iterator<Item = Effective> {
        keys().map(|key| {
            let found = self.layer.0.get(&key.path());
            let value = found.map(|found| found.written.clone());
            let value = match (value, key.name.as_str()) {
                (Some(Json::String(url)), "base_url") => Some(BaseUrl::masked(&url).into()),
                (value, _) => value.or_else(|| key.value.clone()),
            };
            let origin = found.map(|found| found.origin.clone());
            let origin = origin.unwrap_or_default();
            Effective { key, value, origin }
        })
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
        if self.value.is_none() {
            put(
                &mut shown,
                ["default"].into_iter(),
                self.key.default().into(),
            );
        }
        shown
    }
}
