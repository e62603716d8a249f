//! Where a provider's key and address come from: the environment. Never what they are; a key
//! is a [`Secret`] from the moment on at which it is read.

use crate::error::ProviderError;
use crate::secret::Secret;
use crate::vendor::{Place, Vendor};

/// How a variable of the environment is looked up. Given, not reached for, so that a test or a
/// configuration can be one.
pub type Variables<'a> = &'a (dyn Fn(&str) -> Option<String> + Send + Sync);

/// A key and the variable that it stood in.
#[derive(Debug, Clone)]
pub struct Key {
    /// The key.
    pub secret: Secret,
    /// Where it comes from.
    pub variable: &'static str,
}

/// The variables of this process.
#[must_use]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The vendor's key; an empty variable counts as none.
#[must_use]
pub fn find_key(vendor: &Vendor, variables: Variables<'_>) -> Option<Key> {
    let mut names = vendor.key_variables.iter();
    names.find_map(|variable| {
        let secret = Secret::new(&variables(variable)?);
        (!secret.is_empty()).then_some(Key { secret, variable })
    })
}

/// The vendor's key, at its usual address.
///
/// # Errors
/// [`ProviderError::NoKey`] where a hosted vendor's is missing.
pub fn need_key(vendor: &Vendor, variables: Variables<'_>) -> Result<Option<Key>, ProviderError> {
    let key = find_key(vendor, variables);
    match (vendor.place, vendor.key_variables.first()) {
        (Place::Hosted, Some(variable)) if key.is_none() => Err(ProviderError::NoKey {
            provider: vendor.name,
            variable,
        }),
        _ => Ok(key),
    }
}

/// Another address for the vendor, where the environment has one.
#[must_use]
pub fn find_base_url(vendor: &Vendor, variables: Variables<'_>) -> Option<String> {
    let found = variables(vendor.base_variable?)?;
    let found = found.trim();
    (!found.is_empty()).then(|| found.to_owned())
}

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
    fn addresses_come_from_the_environment_too() {
        let found = |name| find_base_url(vendor(name), &env);
        assert_eq!(found("ollama").as_deref(), Some("127.0.0.1:9999"));
        assert_eq!(found("openai"), None);
        assert_eq!(found("groq"), None);
    }
}
