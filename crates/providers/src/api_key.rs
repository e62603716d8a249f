//! Reads a provider's key and address from the environment. A key becomes a [`Secret`] as soon as
//! it is read.

use std::borrow::Cow;

use crate::error::ProviderError;
use crate::vendor::{ServerLocation, Vendor};
use plimsoll_core::Secret;

/// A lookup of environment variables. Passed as a parameter, so that tests and configurations can
/// supply their own variables.
pub type Variables<'a> = &'a (dyn Fn(&str) -> Option<String> + Send + Sync);

/// A key and the variable that contained it.
#[derive(Debug, Clone)]
pub struct ApiKey {
    /// The key.
    pub secret: Secret,
    /// The variable that contained it.
    pub variable: &'static str,
}

/// Looks up a variable of this process.
#[must_use]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the vendor's key, if there is one. An empty variable counts as unset.
#[must_use]
pub fn find_key(vendor: &Vendor, variables: Variables<'_>) -> Option<ApiKey> {
    let mut names = vendor.key_variables.iter();
    names.find_map(|variable| {
        let secret = Secret::new(&variables(variable)?).named(variable);
        (!secret.is_empty()).then_some(ApiKey { secret, variable })
    })
}

/// Returns the vendor's key, for requests to its usual address.
///
/// # Errors
/// [`ProviderError::NoKey`] if the key of a hosted vendor is missing.
pub fn need_key(
    vendor: &Vendor,
    variables: Variables<'_>,
) -> Result<Option<ApiKey>, ProviderError> {
    let key = find_key(vendor, variables);
    match (vendor.place, vendor.key_variables.first()) {
        (ServerLocation::Hosted, Some(variable)) if key.is_none() => Err(ProviderError::NoKey {
            provider: vendor.name,
            variable,
        }),
        _ => Ok(key),
    }
}

/// Returns the address that the environment sets for the vendor, if any.
#[must_use]
pub fn find_base_url(vendor: &Vendor, variables: Variables<'_>) -> Option<String> {
    let found = variables(vendor.base_variable?)?;
    let found = found.trim();
    (!found.is_empty()).then(|| found.to_owned())
}

/// Returns the vendor's usual address, with its blanks filled in from the environment.
///
/// # Errors
/// [`ProviderError::NoVariable`] if a required variable is not set.
pub(crate) fn usual_base_url(
    vendor: &Vendor,
    variables: Variables<'_>,
) -> Result<Option<Cow<'static, str>>, ProviderError> {
    let Some(address) = vendor.base_url else {
        return Ok(None);
    };
    let mut address = Cow::Borrowed(address);
    for blank in &vendor.blanks {
        let mut names = blank.variables.iter();
        let found = names.find_map(|name| {
            let found = variables(name)?.trim().to_owned();
            (!found.is_empty()).then_some(found)
        });
        let found = found.or_else(|| blank.usual.map(str::to_owned));
        let found = found.ok_or_else(|| ProviderError::NoVariable {
            provider: vendor.name,
            variable: blank.variables.first().copied().unwrap_or(blank.name),
        })?;
        // The name of Google's global host contains no location.
        let everywhere = format!("{}-", blank.name);
        if found == EVERYWHERE {
            address = address.replace(&everywhere, "").into();
        }
        address = address.replace(blank.name, &found).into();
    }
    Ok(Some(address))
}

/// The location without a region.
const EVERYWHERE: &str = "global";

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        let value = match name {
            "OPENAI_API_KEY" => "sk-first\n",
            "XAI_API_KEY" => "  ",
            "GROK_API_KEY" => "xai-second",
            "OLLAMA_HOST" => " 127.0.0.1:9999 ",
            "OPENAI_BASE_URL" => "",
            _ => return None,
        };
        Some(value.to_owned())
    }

    fn vendor(name: &str) -> &'static Vendor {
        Vendor::named(name).unwrap()
    }

    #[test]
    fn keys_are_found_under_all_their_names() {
        let key = find_key(vendor("openai"), &env).unwrap();
        assert_eq!(
            (key.secret.expose(), key.variable),
            ("sk-first", "OPENAI_API_KEY")
        );
        let key = find_key(vendor("xai"), &env).unwrap();
        assert_eq!(
            (key.secret.expose(), key.variable),
            ("xai-second", "GROK_API_KEY")
        );
        assert!(!format!("{key:?}").contains("second"));
    }

    #[test]
    fn a_hosted_provider_needs_its_key_and_a_server_here_does_not() {
        let missing = need_key(vendor("groq"), &env).unwrap_err();
        assert!(
            missing.to_string().contains("set GROQ_API_KEY"),
            "{missing}"
        );
        assert!(need_key(vendor("ollama"), &env).unwrap().is_none());
        assert!(
            need_key(vendor("openai-compatible"), &env)
                .unwrap()
                .is_none()
        );
        assert!(need_key(vendor("openai"), &env).unwrap().is_some());
    }

    #[test]
    fn what_is_left_blank_in_an_address_is_filled_in() {
        let usual = |name, variables: Variables<'_>| {
            usual_base_url(vendor(name), variables).map(Option::unwrap_or_default)
        };
        let none = |_: &str| None;
        let here = |name: &str| match name {
            "AWS_REGION" | "VERTEX_LOCATION" => Some(" eu-west-1".to_owned()),
            "AWS_DEFAULT_REGION" => Some("x".to_owned()),
            "GOOGLE_CLOUD_PROJECT" => Some("p-1".to_owned()),
            _ => None,
        };
        let project = |name: &str| (name == "VERTEX_PROJECT_ID").then(|| "p-1".to_owned());
        for (name, variables, address) in [
            (
                "openai",
                &none as Variables<'_>,
                "https://api.openai.com/v1",
            ),
            (
                "bedrock",
                &none,
                "https://bedrock-runtime.us-east-1.amazonaws.com",
            ),
            (
                "bedrock",
                &here,
                "https://bedrock-runtime.eu-west-1.amazonaws.com",
            ),
            (
                "vertex",
                &here,
                "https://eu-west-1-aiplatform.googleapis.com/v1/projects/p-1/locations/eu-west-1",
            ),
            (
                "vertex",
                &project,
                "https://aiplatform.googleapis.com/v1/projects/p-1/locations/global",
            ),
        ] {
            assert_eq!(usual(name, variables).unwrap(), address);
        }
        let missing = usual("vertex", &none).unwrap_err().to_string();
        assert!(missing.contains("set it") && missing.contains("VERTEX_PROJECT_ID"));
    }

    #[test]
    fn addresses_come_from_the_environment_too() {
        let found = |name| find_base_url(vendor(name), &env);
        assert_eq!(found("ollama").as_deref(), Some("127.0.0.1:9999"));
        assert_eq!(found("openai"), None);
        assert_eq!(found("groq"), None);
    }
}
