//! What a child gets of this process's environment: everything but what looks like a secret.
//! A name is all that is looked at; a password inside an address, say, is not found.

use std::ffi::OsString;
use std::sync::Arc;

/// A name with one of these in it is a secret's.
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
/// A name with one of these among its words (parted by `_` or `-`) is a secret's. `TOKENS` and
/// `TOKENIZERS` are not among them.
const WORDS: [&str; 4] = ["KEY", "TOKEN", "PAT", "AUTH"];
/// Names that do not look it and have passwords in them: where a worker's sessions are.
const ADDRESSES: [&str; 1] = ["PLIMSOLL_STORE"];
/// Names that look it and are none: where an agent listens that keeps its keys to itself.
const HARMLESS: [&str; 1] = ["SSH_AUTH_SOCK"];

/// Whether a variable of this name is kept from children: `…_API_KEY`, `…_ACCESS_KEY_ID`,
/// `…_TOKEN`, `…SECRET…`, `…PASSWORD…` and the like, in any case. Names of headers are read alike. What a child needs all the
/// same is given to it by [`Command::env`](super::Command::env).
#[must_use]
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let has_word = || name.split(['_', '-']).any(|word| WORDS.contains(&word));
    !HARMLESS.contains(&name.as_str())
        && (ANYWHERE.iter().any(|part| name.contains(part))
            || ADDRESSES.contains(&name.as_str())
            || has_word())
}

/// Which of this process's variables children get, besides what their names look like.
#[derive(Debug, Clone, Default)]
pub struct InheritedVariables {
    passed: Arc<[String]>,
    withheld: Arc<[String]>,
}

impl InheritedVariables {
    /// Variables that children get although they look like secrets, and others that they do not get
    /// although they do not look like it. A name in both lists is passed on.
    pub fn new(
        passed: impl IntoIterator<Item = String>,
        withheld: impl IntoIterator<Item = String>,
    ) -> Self {
        Self {
            passed: passed.into_iter().collect(),
            withheld: withheld.into_iter().collect(),
        }
    }

    /// Returns `true` if children get a variable of this name.
    #[must_use]
    pub fn includes(&self, name: &str) -> bool {
        let has = |names: &[String]| names.iter().any(|it| it == name);
        has(&self.passed) || !(looks_secret(name) || has(&self.withheld))
    }

    /// The variables that children get.
    #[cfg(unix)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (OsString, OsString)> {
        std::env::vars_os().filter(|(name, _)| self.includes(&name.to_string_lossy()))
    }
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
            assert_eq!(inherited.includes(name), included, "{name}");
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
