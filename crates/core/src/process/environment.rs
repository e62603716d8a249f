//! The environment variables that child processes inherit: all except those whose names look
//! secret, or whose values are addresses with a password.

use std::ffi::OsString;
use std::sync::Arc;

/// Names that contain one of these are secret.
const ANYWHERE: [&str; 8] = [
    "AUTHORIZATION",
    "COOKIE",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
];
/// Names with one of these among their words, separated by `_` or `-`, are secret. `TOKENS` and
/// `TOKENIZERS` do not match.
const WORDS: [&str; 4] = ["KEY", "TOKEN", "PAT", "AUTH"];
/// Secret names without a typical word. The address of a worker's session store contains a
/// password.
const ADDRESSES: [&str; 1] = ["PLIMSOLL_STORE"];
/// Harmless names with a typical word. This one is the socket of an agent, which keeps its keys
/// private.
const HARMLESS: [&str; 1] = ["SSH_AUTH_SOCK"];

/// Checks whether a variable or header of this name is withheld from children: `…_API_KEY`,
/// `…_ACCESS_KEY_ID`, `…_TOKEN`, `…SECRET…`, `…PASSWORD…` and similar names, ignoring case.
///
/// To pass such a variable to a child, use [`Command::env`](super::Command::env).
#[must_use]
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let has_word = || name.split(['_', '-']).any(|word| WORDS.contains(&word));
    !HARMLESS.contains(&name.as_str())
        && (ANYWHERE.iter().any(|part| name.contains(part))
            || ADDRESSES.contains(&name.as_str())
            || has_word())
}

/// Exceptions to the rule for inherited variables.
#[derive(Debug, Clone, Default)]
pub struct InheritedVariables {
    passed: Arc<[String]>,
    withheld: Arc<[String]>,
}

impl InheritedVariables {
    /// Creates exceptions: `passed` variables are inherited although they look secret, and
    /// `withheld` ones are not, although they do not. A name in both lists is passed on.
    pub fn new(
        passed: impl IntoIterator<Item = String>,
        withheld: impl IntoIterator<Item = String>,
    ) -> Self {
        Self {
            passed: passed.into_iter().collect(),
            withheld: withheld.into_iter().collect(),
        }
    }

    /// Returns `true` if children get a variable of this name and value.
    #[must_use]
    pub fn includes(&self, name: &str, value: &str) -> bool {
        let has = |names: &[String]| names.iter().any(|it| it == name);
        let is_secret = looks_secret(name) || has_password(value);
        has(&self.passed) || !(is_secret || has(&self.withheld))
    }

    /// Returns the variables that children get.
    #[cfg(unix)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (OsString, OsString)> {
        std::env::vars_os().filter(|(name, value)| {
            self.includes(&name.to_string_lossy(), &value.to_string_lossy())
        })
    }
}

/// Checks whether a value contains an address with a password, as in `postgres://user:password@host`.
pub(crate) fn has_password(value: &str) -> bool {
    let mut addresses = value.split("://").skip(1);
    addresses.any(|address| {
        let authority = address.split(['/', '?', '#', ' ']).next();
        let user = authority.and_then(|authority| authority.rsplit_once('@'));
        let password = user.and_then(|(user, _)| user.split_once(':'));
        password.is_some_and(|(_, password)| !password.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_decides_over_what_a_name_looks_like() {
        let list = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let inherited =
            InheritedVariables::new(list(&["GH_TOKEN", "BOTH"]), list(&["MINE", "BOTH"]));
        for (name, included) in [
            ("GH_TOKEN", true),
            ("GITHUB_TOKEN", false),
            ("MINE", false),
            ("BOTH", true),
            ("PATH", true),
        ] {
            assert_eq!(inherited.includes(name, "x"), included, "{name}");
        }
        for (value, included) in [
            ("postgres://bo:hush@host/db", false),
            ("jdbc:mysql://bo:hush@host", false),
            ("a b redis://:hush@host:1", false),
            ("postgres://bo@host/db", true),
            ("http://host:8080/a@b", true),
            ("ssh://git@host/x:y", true),
            ("a:b@c", true),
        ] {
            assert_eq!(inherited.includes("URL", value), included, "{value}");
            assert!(inherited.includes("GH_TOKEN", value));
        }
    }

    #[test]
    fn names_of_secrets() {
        for (name, secret) in [
            ("OPENAI_API_KEY", true),
            ("anthropic_api_key", true),
            ("AWS_ACCESS_KEY_ID", true),
            ("AWS_SECRET_ACCESS_KEY", true),
            ("GITHUB_TOKEN", true),
            ("TOKEN", true),
            ("GH_PAT", true),
            ("DB_PASSWORD_FILE", true),
            ("PGPASSWORD", true),
            ("PLIMSOLL_STORE", true),
            ("CLIENTSECRET", true),
            ("OPENAI_APIKEY", true),
            ("NPM_AUTH", true),
            ("x-api-key", true),
            ("Authorization", true),
            ("content-type", false),
            ("GOOGLE_APPLICATION_CREDENTIALS", true),
            ("PATH", false),
            ("PWD", false),
            ("HOME", false),
            ("MAX_TOKENS", false),
            ("TOKENIZERS_PARALLELISM", false),
            ("KEYBOARD", false),
            ("GIT_AUTHOR_NAME", false),
            ("SSH_AUTH_SOCK", false),
            ("", false),
        ] {
            assert_eq!(looks_secret(name), secret, "{name}");
        }
    }
}
