//! [`ProviderSettings`]: the connection to a provider, from `[providers.NAME]`. Keys are read here
//! and never printed.

use std::collections::BTreeMap;

use plimsoll_providers::{BaseUrl, ModelClient, ModelClientBuilder, ModelRef, Secret, Vendor};
use serde::Deserialize;

use super::document::Located;
use super::fault::Faults;
use super::layer::Layer;

/// The provider for servers with an OpenAI-compatible API.
pub(super) const COMPATIBLE: &str = "openai-compatible";

/// The settings of the connection to a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ProviderSettings {
    /// The name, which is the part of a model's name before the first slash.
    #[serde(skip)]
    pub name: String,
    /// The address of the API.
    pub base_url: Option<String>,
    /// The environment variable with the key.
    pub api_key_env: Option<String>,
    /// The key, if it is in the file.
    pub api_key: Option<Secret>,
    /// Additional headers.
    pub headers: BTreeMap<String, Secret>,
}

impl ProviderSettings {
    /// Reads the settings of a provider. Reports their faults.
    pub(crate) fn of(name: &str, given: &Located, faults: &mut Faults) -> Self {
        let shown = format!("[providers.{name}]");
        let table = Layer::of_table("[providers.NAME]", given, faults);
        let mut settings: Self = serde_json::from_value(table.object()).unwrap_or_default();
        let vendor = Vendor::named(name);
        let usual = vendor.as_ref().ok().and_then(|vendor| vendor.base_url);
        if given.get("base_url").is_none() && vendor.is_err() {
            let text =
                format!("{shown} needs a `base_url`: there is no provider `{name}` that we know");
            faults.push(given.origin(), text);
        }
        let url = settings.base_url.as_ref();
        if let Some(Err(error)) = url.map(|url| BaseUrl::parse(url, usual)) {
            faults.push(given.origin_of("base_url"), error.to_string());
        }
        if settings.api_key.is_some() {
            let text = format!(
                "`api_key` of {shown} is a key in a file; put it into the environment and name \
                 the variable with `api_key_env`"
            );
            faults.warn(given.origin_of("api_key"), text);
        }
        name.clone_into(&mut settings.name);
        settings
    }

    /// Returns its keys, if they are set.
    pub(crate) fn secrets(&self, variables: &dyn Fn(&str) -> Option<String>) -> Vec<Secret> {
        let mut keys = keys_of(self.api_key_env.as_deref(), &self.headers, variables);
        keys.extend(self.api_key.clone());
        keys
    }

    /// Returns a client builder for a model of this provider.
    pub(crate) fn chat(
        &self,
        model: &str,
        variables: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(ModelRef, ModelClientBuilder), String> {
        let model = match Vendor::named(&self.name) {
            Ok(vendor) => format!("{}/{model}", vendor.name),
            Err(_) => format!("{COMPATIBLE}/{model}"),
        };
        let model = ModelRef::parse(&model).map_err(|error| error.to_string())?;
        let mut builder = ModelClient::builder(model.clone());
        if let Some(url) = &self.base_url {
            builder = builder.base_url(url);
        }
        if let Some(key) = &self.api_key {
            builder = builder.key(key.clone());
        }
        if let Some(variable) = &self.api_key_env {
            let key = variables(variable).filter(|key| !key.trim().is_empty());
            let key = key.ok_or_else(|| {
                format!(
                    "the key of [providers.{}] is to be in ${variable}, which is not set",
                    self.name
                )
            })?;
            builder = builder.key_of(variable, Secret::new(&key).named(variable));
        }
        for (name, value) in &self.headers {
            builder = builder.header(name, value.clone());
        }
        Ok((model, builder))
    }
}

/// Returns the key in a variable, and those among values whose names suggest keys.
pub(crate) fn keys_of(
    variable: Option<&str>,
    named: &BTreeMap<String, Secret>,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Vec<Secret> {
    let key = variable.and_then(|name| Some(Secret::new(&variables(name)?).named(name)));
    let named = named.iter();
    let named = named.filter_map(|(name, value)| Secret::of_header(name, value.expose()));
    named.chain(key).collect()
}
