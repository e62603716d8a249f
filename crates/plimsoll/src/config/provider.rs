//! [`ProviderSettings`]: the connection to a provider, from `[providers.NAME]`. Keys are read here
//! and never printed.

use plimsoll_providers::{BaseUrl, ModelClient, ModelClientBuilder, ModelRef, Secret, Vendor};
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::Located;
use super::fault::Faults;
use super::fields::Fields;
use super::form::{Filled, Secrets, Set};

/// The provider for servers with an OpenAI-compatible API.
pub(super) const COMPATIBLE: &str = "openai-compatible";

/// `[providers.NAME]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct ProviderTable {
    /// The address of its API. Required if NAME is not a built-in provider.
    base_url: Set<Filled>,
    /// The environment variable that contains its key.
    api_key_env: Set<Filled>,
    /// Its key itself: read, but better kept out of files; never printed.
    #[schemars(extend("x-secret" = true))]
    api_key: Set<Filled>,
    /// Further headers of every request; never printed.
    headers: Set<Secrets>,
}

/// The settings of the connection to a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    /// The name, which is the part of a model's name before the first slash.
    pub name: String,
    /// The address of the API.
    pub base_url: Option<String>,
    /// The environment variable with the key.
    pub api_key_env: Option<String>,
    /// The key, if it is in the file.
    pub api_key: Option<Secret>,
    /// Additional headers.
    pub headers: Vec<(String, Secret)>,
}

impl ProviderSettings {
    pub(crate) fn of(
        name: &str,
        given: &Located,
        faults: &mut Faults,
        warnings: &mut Faults,
    ) -> Self {
        let place = format!("[providers.{name}]");
        let fields = Fields::<ProviderTable>::read(&place, given, faults);
        let table = &fields.value;
        match &table.base_url.0 {
            None if Vendor::named(name).is_err() => {
                let text = format!(
                    "{place} needs a `base_url`: there is no provider `{name}` that we know"
                );
                faults.push(fields.place, text);
            }
            Some(url) => {
                if let Err(error) = BaseUrl::parse(url, None) {
                    faults.push(fields.place_of("base_url"), error.to_string());
                }
            }
            None => {}
        }
        if fields.has("api_key") && fields.has("api_key_env") {
            let text =
                "`api_key` and `api_key_env` are two settings of one thing; keep `api_key_env`";
            faults.push(fields.place_of("api_key"), text);
        } else if fields.has("api_key") {
            let text = format!(
                "`api_key` of {place} is a key in a file; put it into the environment and name \
                 the variable with `api_key_env`"
            );
            warnings.push(fields.place_of("api_key"), text);
        }
        if let Some(variable) = &table.api_key_env.0 {
            let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if !variable.chars().all(good) {
                // It may be the key itself, so it is not printed.
                let text = "`api_key_env` is not the name of an environment variable; name the variable \
                     that contains the key";
                faults.push(fields.place_of("api_key_env"), text);
            }
        }
        let headers = table.headers.0.iter().flatten();
        Self {
            name: name.to_owned(),
            base_url: table.base_url.0.clone(),
            api_key_env: table.api_key_env.0.clone(),
            api_key: table.api_key.0.as_deref().map(Secret::new),
            headers: headers
                .map(|(name, value)| (name.clone(), Secret::new(value)))
                .collect(),
        }
    }

    /// Returns its keys, if they are set.
    pub(crate) fn secrets(&self, variables: &dyn Fn(&str) -> Option<String>) -> Vec<Secret> {
        let variable = self.api_key_env.as_deref();
        let key = variable.and_then(|name| Some(Secret::new(&variables(name)?).named(name)));
        let headers = self.headers.iter();
        let headers = headers.filter_map(|(name, value)| Secret::of_header(name, value.expose()));
        let keys = self.api_key.iter().cloned().chain(key);
        keys.chain(headers).collect()
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
