//! `cargo xtask dist`: packages the program for users without a Rust toolchain, and tries the
//! packages in empty folders.
//!
//! Writes to `target/dist`: a `.tar.gz` for the install script and Homebrew, the npm packages, and
//! the Python wheel. Each call builds for one system; the release workflow calls it on each system.

mod archive;
mod systems;
mod trial;

use std::path::{Path, PathBuf};

use flate2::Compression;
use serde_json::json;

use crate::command::Job;
use crate::error::Error;
use crate::tools::{python, target};
use archive::{PackageFile, sha256, tar_gz, wheel};
use systems::{SYSTEMS, System};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const HOME_PAGE: &str = env!("CARGO_PKG_REPOSITORY");
const SUMMARY: &str = "Run LLM agents inside hard limits without losing anything.";

/// The system, the binary and the steps of packaging.
pub(crate) struct Options {
    /// The system, by its Rust name. `None` means the host.
    pub(crate) triple: Option<String>,
    /// An existing binary. `None` builds one.
    pub(crate) binary: Option<PathBuf>,
    /// Whether to install the packages into empty folders and run them.
    pub(crate) trial: bool,
}

/// The files of one release on one system.
struct Packages {
    archive: PathBuf,
    npm: PathBuf,
    npm_system: PathBuf,
    wheel: PathBuf,
}

/// Builds the program if needed, writes the packages, prints their sizes, and tries them if
/// requested.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), Error> {
    let triple = match &options.triple {
        Some(triple) => triple.clone(),
        None => host(root)?,
    };
    let system = System::of(&triple).ok_or_else(|| {
        let known: Vec<&str> = SYSTEMS.iter().map(|system| system.triple).collect();
        Error::Missing(format!(
            "there are no releases for `{triple}`, only for {}",
            known.join(", ")
        ))
    })?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => build(root, system)?,
    };
    // A given binary is only packaged for a trial, so fast compression is enough.
    let level = match options.binary {
        Some(_) => Compression::fast(),
        None => Compression::best(),
    };
    let folder = target(root).join("dist");
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    let packages = write(root, system, &binary, &folder, level)?;
    for file in [
        &binary,
        &packages.archive,
        &packages.npm_system,
        &packages.npm,
        &packages.wheel,
    ] {
        let size = std::fs::metadata(file).map_err(Error::file(file))?.len();
        println!("{:>7.2} MB  {}", size as f64 / 1e6, file.display());
    }
    if options.trial {
        trial::run(root, &folder, &packages)?;
    }
    Ok(())
}

/// Packages the program that the tests have built, and tries the packages.
pub(crate) fn try_packages(root: &Path) -> Result<(), Error> {
    let name = format!("plimsoll{}", std::env::consts::EXE_SUFFIX);
    let options = Options {
        triple: None,
        binary: Some(target(root).join("debug").join(name)),
        trial: true,
    };
    run(root, &options)
}

/// Writes the Homebrew formula from the archives of all systems, for a release.
pub(crate) fn formula(root: &Path) -> Result<(), Error> {
    let folder = target(root).join("dist");
    let template = root.join("packaging/plimsoll.rb.in");
    let mut text = std::fs::read_to_string(&template).map_err(Error::file(&template))?;
    text = text.replace("@VERSION@", VERSION);
    for system in &SYSTEMS {
        let mark = format!("@{}@", system.triple);
        if text.contains(&mark) {
            text = text.replace(&mark, &sha256(&folder.join(archive_name(system)))?);
        }
    }
    let file = folder.join("plimsoll.rb");
    std::fs::write(&file, text).map_err(Error::file(&file))?;
    println!("{}", file.display());
    Ok(())
}

/// Builds the release binary. With zig and `cargo zigbuild` (`pip install -r packaging/zig.txt`),
/// it runs on old versions of glibc, otherwise only on this system's and newer ones.
fn build(root: &Path, system: &System) -> Result<PathBuf, Error> {
    let linux = system.os == "linux";
    let zig = linux
        && Job::new("cargo-zigbuild", root)
            .args(["--version"])
            .succeeds();
    if linux && !zig {
        println!(
            "cargo-zigbuild is not on the PATH: the binary will need this machine's C library"
        );
    }
    let name = match system.glibc {
        glibc if zig && !glibc.is_empty() => format!("{}.{glibc}", system.triple),
        _ => system.triple.to_owned(),
    };
    let job = Job::cargo(root).args([if zig { "zigbuild" } else { "build" }]);
    job.args([
        "--release",
        "--locked",
        "--package",
        "plimsoll-cli",
        "--target",
        &name,
    ])
    .run()?;
    let folder = target(root).join(system.triple).join("release");
    Ok(folder.join(system.program()))
}

fn write(
    root: &Path,
    system: &System,
    binary: &Path,
    folder: &Path,
    level: Compression,
) -> Result<Packages, Error> {
    let read = |path: &Path| std::fs::read(path).map_err(Error::file(path));
    let program = read(binary)?;
    let readme = read(&root.join("README.md"))?;
    let licenses = ["LICENSE-APACHE", "LICENSE-MIT"]
        .map(|name| read(&root.join(name)).map(|text| PackageFile::text(name, text)));
    let [apache, mit] = licenses;
    let texts = [
        PackageFile::text("README.md", readme.clone()),
        apache?,
        mit?,
    ];
    let with = |entry: PackageFile| [vec![entry], texts.to_vec()].concat();

    let archive = folder.join(archive_name(system));
    let unpacked = format!("plimsoll-{}", system.triple);
    tar_gz(
        &archive,
        &unpacked,
        &with(PackageFile::program(system.program(), program.clone())),
        level,
    )?;
    let sum = format!("{}  {}\n", sha256(&archive)?, archive_name(system));
    let sums = folder.join(format!("{}.sha256", archive_name(system)));
    std::fs::write(&sums, sum).map_err(Error::file(&sums))?;

    let name = system.npm_package();
    let npm_system = folder.join(format!(
        "{}-{VERSION}.tgz",
        name.replace('@', "").replace('/', "-")
    ));
    let mut entries = with(PackageFile::program(system.program(), program.clone()));
    entries.insert(
        0,
        PackageFile::text("package.json", system_manifest(system)),
    );
    tar_gz(&npm_system, "package", &entries, level)?;

    let npm = folder.join(format!("plimsoll-{VERSION}.tgz"));
    let launcher = read(&root.join("packaging/npm/plimsoll.js"))?;
    let mut entries = with(PackageFile::program("plimsoll.js", launcher));
    entries.insert(0, PackageFile::text("package.json", npm_manifest()));
    tar_gz(&npm, "package", &entries, level)?;

    // The name `plimsoll` belongs to another project on PyPI.
    let wheel_file = folder.join(format!(
        "plimsoll_cli-{VERSION}-py3-none-{}.whl",
        system.wheel
    ));
    let data = format!("plimsoll_cli-{VERSION}.data/scripts/{}", system.program());
    let info = format!("plimsoll_cli-{VERSION}.dist-info");
    let script = read(&root.join("packaging/plimsoll_cli.py"))?;
    let [_, apache, mit] = texts;
    let license = |entry: PackageFile| {
        PackageFile::text(format!("{info}/licenses/{}", entry.path), entry.bytes)
    };
    let entries = [
        PackageFile::program(data, program),
        PackageFile::text("plimsoll_cli.py", script),
        PackageFile::text(
            format!("{info}/entry_points.txt"),
            "[console_scripts]\nplimsoll-cli = plimsoll_cli:main\n",
        ),
        license(apache),
        license(mit),
        PackageFile::text(format!("{info}/METADATA"), metadata(&readme)),
        PackageFile::text(format!("{info}/WHEEL"), wheel_text(system)),
    ];
    wheel(&wheel_file, &info, &entries, level)?;
    Ok(Packages {
        archive,
        npm,
        npm_system,
        wheel: wheel_file,
    })
}

/// Returns the name of the archive. It has no version, so one address always leads to the newest
/// release.
fn archive_name(system: &System) -> String {
    format!("plimsoll-{}.tar.gz", system.triple)
}

/// Returns the manifest of the main npm package: a launcher, with the package of every system as an
/// optional dependency.
fn npm_manifest() -> String {
    let systems: serde_json::Map<String, serde_json::Value> = SYSTEMS
        .iter()
        .map(|system| (system.npm_package(), json!(VERSION)))
        .collect();
    manifest(
        "plimsoll",
        SUMMARY,
        [
            ("bin", json!({ "plimsoll": "plimsoll.js" })),
            ("optionalDependencies", json!(systems)),
            ("engines", json!({ "node": ">=18" })),
            (
                "keywords",
                json!([
                    "llm",
                    "agent",
                    "context-window",
                    "compaction",
                    "claude-code"
                ]),
            ),
        ],
    )
}

/// Returns the manifest of the npm package with one system's binary.
fn system_manifest(system: &System) -> String {
    let about = format!("The binary of plimsoll for {}.", system.triple);
    let libc = (!system.libc.is_empty()).then(|| ("libc", json!([system.libc])));
    let fits = [("os", json!([system.os])), ("cpu", json!([system.cpu]))];
    manifest(&system.npm_package(), &about, fits.into_iter().chain(libc))
}

fn manifest(
    name: &str,
    about: &str,
    more: impl IntoIterator<Item = (&'static str, serde_json::Value)>,
) -> String {
    let common = [
        ("name", json!(name)),
        ("version", json!(VERSION)),
        ("description", json!(about)),
        ("license", json!(env!("CARGO_PKG_LICENSE"))),
        (
            "repository",
            json!({ "type": "git", "url": format!("git+{HOME_PAGE}.git") }),
        ),
    ];
    let keys = common.into_iter().chain(more);
    let manifest: serde_json::Map<String, serde_json::Value> =
        keys.map(|(key, value)| (key.to_owned(), value)).collect();
    format!("{:#}\n", serde_json::Value::Object(manifest))
}

fn metadata(readme: &[u8]) -> Vec<u8> {
    let license = env!("CARGO_PKG_LICENSE");
    let head = format!(
        "Metadata-Version: 2.4\nName: plimsoll-cli\nVersion: {VERSION}\nSummary: {SUMMARY}\n\
         License-Expression: {license}\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n\
         Project-URL: Source, {HOME_PAGE}\nRequires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n"
    );
    [head.into_bytes(), readme.to_vec()].concat()
}

fn wheel_text(system: &System) -> String {
    let mut text =
        "Wheel-Version: 1.0\nGenerator: plimsoll-xtask\nRoot-Is-Purelib: false\n".to_owned();
    for platform in system.wheel.split('.') {
        text.push_str(&format!("Tag: py3-none-{platform}\n"));
    }
    text
}

/// Returns the Rust name of the host.
fn host(root: &Path) -> Result<String, Error> {
    let text = Job::new("rustc", root).args(["-vV"]).read()?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).ok_or_else(|| Error::Unreadable {
        what: "rustc -vV".to_owned(),
        why: "it names no host".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_has_a_package_of_its_own() {
        let mut names: Vec<String> = SYSTEMS.iter().map(System::npm_package).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), SYSTEMS.len());
        let manifest: serde_json::Value = serde_json::from_str(&npm_manifest()).unwrap();
        let options = manifest["optionalDependencies"].as_object().unwrap();
        assert_eq!(options.len(), SYSTEMS.len());
        assert!(options.values().all(|version| version == VERSION));
    }

    #[test]
    fn the_install_script_and_the_formula_name_only_systems_that_are_built() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let formula = std::fs::read_to_string(root.join("packaging/plimsoll.rb.in")).unwrap();
        let mut rest = formula.replace("@VERSION@", VERSION);
        for system in &SYSTEMS {
            rest = rest.replace(&format!("@{}@", system.triple), "");
        }
        assert!(!rest.contains('@'), "{rest}");
        let workflow = std::fs::read_to_string(root.join(".github/workflows/release.yml")).unwrap();
        for system in &SYSTEMS {
            assert!(workflow.contains(system.triple), "{}", system.triple);
        }
    }

    #[test]
    fn the_same_contents_give_the_same_package() {
        let folder = std::env::temp_dir().join(format!("plimsoll-dist-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let entries = [
            PackageFile::program("plimsoll", *b"binary"),
            PackageFile::text("README.md", *b"text"),
        ];
        let write = |name: &str| {
            let (tar, whl) = (
                folder.join(format!("{name}.tgz")),
                folder.join(format!("{name}.whl")),
            );
            tar_gz(&tar, "package", &entries, Compression::fast()).unwrap();
            wheel(&whl, "x.dist-info", &entries, Compression::fast()).unwrap();
            (sha256(&tar).unwrap(), sha256(&whl).unwrap())
        };
        assert_eq!(write("one"), write("two"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
