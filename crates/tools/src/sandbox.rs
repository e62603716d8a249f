//! [`Sandbox`]: restricts the files that commands of `bash` can write and their network access.
//!
//! The kernel enforces the restrictions (Landlock and seccomp on Linux, profiles of `sandbox-exec` on
//! macOS). File tools are not affected; they stay inside the workspace root by themselves.
//!
//! A process can only restrict itself. Therefore a command is started by a launcher, a program that
//! calls [`run_shell`]: it restricts itself and becomes the shell.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use plimsoll_core::process::Command;
use serde::Deserialize;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod system_calls;

/// The restrictions of commands. The strictest mode is the smallest value.
///
/// | mode | writes | network |
/// |---|---|---|
/// | `read-only` | nothing | refused |
/// | `workspace-write` | the workspace root and the temporary directory | refused |
/// | `off` | as the user may | as the user may |
///
/// Reading is never restricted. In `workspace-write` on Linux, the permissions, times and attributes
/// of the user's files elsewhere can be changed, but not their content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Commands cannot write files.
    ReadOnly,
    /// Commands can write below the workspace root and in the temporary directory.
    WorkspaceWrite,
    /// No sandbox. The default.
    #[default]
    Off,
}

/// The error for an unknown sandbox mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no sandbox mode; write read-only, workspace-write or off")]
pub struct NoSandboxMode(String);

/// The reason why commands cannot be restricted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The system has no supported sandbox.
    #[error(
        "this system offers no sandbox for commands, which needs Landlock in Linux 6.2 or newer on a 64-bit processor, or macOS; leave `sandbox` off, or offer no `bash`"
    )]
    NotOffered,
    /// The kernel rejected the restrictions.
    #[error("the sandbox cannot be entered: {0}")]
    Refused(String),
    /// No shell was found.
    #[error("no shell can be started: {0}")]
    Shell(std::io::Error),
}

/// A sandbox for commands, with the launcher that enters it.
#[derive(Debug, Clone)]
pub struct Sandbox {
    mode: SandboxMode,
    launcher: Vec<OsString>,
}

/// The shells for commands; the first available one is used.
pub(crate) const SHELLS: [&str; 2] = ["bash", "sh"];

impl SandboxMode {
    /// All names as used in configuration files.
    pub const NAMES: [&'static str; 3] = ["off", "workspace-write", "read-only"];

    /// Returns the name as used in configuration files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::Off => "off",
        }
    }

    /// Returns the sentence about the mode in the tool's description.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::ReadOnly => " It cannot write files or use the network.",
            Self::WorkspaceWrite => {
                " It can write only there and in the temporary directory, and cannot use the network."
            }
            Self::Off => "",
        }
    }
}

impl FromStr for SandboxMode {
    type Err = NoSandboxMode;

    fn from_str(word: &str) -> Result<Self, NoSandboxMode> {
        let modes = [Self::Off, Self::WorkspaceWrite, Self::ReadOnly];
        let mode = modes.into_iter().find(|mode| mode.name() == word);
        mode.ok_or_else(|| NoSandboxMode(word.to_owned()))
    }
}

impl Sandbox {
    /// Creates a sandbox that is entered by a launcher, given as a program and its first arguments. The
    /// launcher also receives `--mode MODE --root ROOT -- COMMAND`, and must call [`run_shell`] with
    /// these values.
    ///
    /// # Errors
    /// If the system has no supported sandbox and the mode is not [`SandboxMode::Off`].
    pub fn new(
        mode: SandboxMode,
        launcher: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self, SandboxError> {
        if mode != SandboxMode::Off && !kernel::denies_writes() {
            return Err(SandboxError::NotOffered);
        }
        Ok(Self {
            mode,
            launcher: launcher.into_iter().map(Into::into).collect(),
        })
    }

    pub(crate) fn mode(&self) -> SandboxMode {
        self.mode
    }

    /// Returns the launcher with a shell command. Returns `None` if there is no sandbox.
    pub(crate) fn command(&self, root: &Path, command: &str) -> Option<Command> {
        let (program, first) = self.launcher.split_first()?;
        (self.mode != SandboxMode::Off).then(|| {
            Command::new(program)
                .args(first)
                .args(["--mode", self.mode.name(), "--root"])
                .arg(root)
                .args(["--", command])
        })
    }
}

/// Restricts this process, which then becomes the shell that runs a command. Returns only on failure.
/// Launchers must call it before they start a thread.
///
/// # Errors
/// If the system has no supported sandbox, or if there is no shell. The command is not run then.
#[cfg(unix)]
pub fn run_shell(
    mode: SandboxMode,
    root: &Path,
    command: &str,
) -> Result<std::convert::Infallible, SandboxError> {
    use std::io::ErrorKind;
    use std::os::unix::process::CommandExt;
    let before = match mode {
        SandboxMode::Off => Vec::new(),
        mode => kernel::enter(mode, &writable(mode, root))?,
    };
    let mut why = std::io::Error::from(ErrorKind::NotFound);
    for shell in SHELLS {
        let shell = OsString::from(shell);
        let mut words = before.iter().chain([&shell]);
        let Some(program) = words.next() else { break };
        why = std::process::Command::new(program)
            .args(words)
            .args(["-c", command])
            .exec();
        if why.kind() != ErrorKind::NotFound {
            break;
        }
    }
    Err(SandboxError::Shell(why))
}

/// Always fails, because this system has no supported sandbox.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn run_shell(
    _mode: SandboxMode,
    _root: &Path,
    _command: &str,
) -> Result<std::convert::Infallible, SandboxError> {
    Err(SandboxError::NotOffered)
}

/// Returns the writable paths. Devices that store nothing are always writable. Terminals never are:
/// the user's own is among them.
#[cfg(unix)]
fn writable(mode: SandboxMode, root: &Path) -> Vec<PathBuf> {
    let devices = ["/dev/null", "/dev/zero", "/dev/full"];
    let mut paths: Vec<PathBuf> = devices.map(PathBuf::from).into();
    if mode == SandboxMode::WorkspaceWrite {
        paths.push(root.to_owned());
        paths.push(std::env::temp_dir());
        paths.push(PathBuf::from("/dev/shm"));
    }
    paths
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod kernel {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use landlock::{
        ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
        RulesetError, RulesetStatus, Scope, path_beneath_rules,
    };

    use super::{SandboxError, SandboxMode, system_calls};

    /// An older Landlock cannot deny all writes: files could be truncated.
    const NEEDED: ABI = ABI::V3;
    /// Restrictions that are added if the kernel supports them: devices, signals to other processes.
    const WANTED: ABI = ABI::V6;

    pub(super) fn denies_writes() -> bool {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let ruleset = ruleset.handle_access(AccessFs::from_write(NEEDED));
        ruleset.and_then(Ruleset::create).is_ok()
    }

    /// Restricts this process. Returns the words before the shell, which are empty on Linux.
    pub(super) fn enter(
        mode: SandboxMode,
        writable: &[PathBuf],
    ) -> Result<Vec<OsString>, SandboxError> {
        if !denies_writes() {
            return Err(SandboxError::NotOffered);
        }
        let status =
            restrict(writable).map_err(|error| SandboxError::Refused(error.to_string()))?;
        if status == RulesetStatus::NotEnforced {
            return Err(SandboxError::NotOffered);
        }
        system_calls::refuse(mode).map_err(SandboxError::Refused)?;
        Ok(Vec::new())
    }

    fn restrict(writable: &[PathBuf]) -> Result<RulesetStatus, RulesetError> {
        let status = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_write(NEEDED))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_write(WANTED))?
            .scope(Scope::from_all(WANTED))?
            .create()?
            .add_rules(path_beneath_rules(writable, AccessFs::from_write(WANTED)))?
            .restrict_self()?;
        Ok(status.ruleset)
    }
}

#[cfg(target_os = "macos")]
mod kernel {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use super::{SandboxError, SandboxMode, seatbelt};

    pub(super) fn denies_writes() -> bool {
        Path::new(seatbelt::PROGRAM).is_file()
    }

    /// Returns the words before the shell, which start it in the sandbox.
    pub(super) fn enter(
        _mode: SandboxMode,
        writable: &[PathBuf],
    ) -> Result<Vec<OsString>, SandboxError> {
        if denies_writes() {
            Ok(seatbelt::words(writable))
        } else {
            Err(SandboxError::NotOffered)
        }
    }
}

/// The sandbox of macOS: a profile with the restrictions, and parameters with the paths.
#[cfg(any(target_os = "macos", all(unix, test)))]
mod seatbelt {
    use std::ffi::OsString;
    use std::fmt::Write;
    use std::path::PathBuf;

    /// The full path, so that no other program of this name is started.
    pub(super) const PROGRAM: &str = "/usr/bin/sandbox-exec";

    /// Returns the words before a command that restrict it.
    pub(super) fn words(writable: &[PathBuf]) -> Vec<OsString> {
        let mut profile =
            String::from("(version 1)(allow default)(deny network*)(deny file-write*)");
        let mut words: Vec<OsString> = vec![PROGRAM.into()];
        for (at, path) in writable.iter().enumerate() {
            // The kernel compares paths without links: /tmp is /private/tmp.
            let path = path.canonicalize().unwrap_or_else(|_| path.clone());
            // Writing to a String cannot fail.
            let _ = write!(profile, "(allow file-write* (subpath (param \"W{at}\")))");
            let mut parameter = OsString::from(format!("W{at}="));
            parameter.push(path);
            words.extend(["-D".into(), parameter]);
        }
        words.extend(["-p".into(), profile.into()]);
        words
    }
}

#[cfg(not(any(
    all(target_os = "linux", target_pointer_width = "64"),
    target_os = "macos"
)))]
mod kernel {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use super::{SandboxError, SandboxMode};

    pub(super) fn denies_writes() -> bool {
        false
    }

    #[cfg_attr(not(unix), allow(dead_code))]
    pub(super) fn enter(
        _mode: SandboxMode,
        _writable: &[PathBuf],
    ) -> Result<Vec<OsString>, SandboxError> {
        Err(SandboxError::NotOffered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_names_and_an_order() {
        for name in SandboxMode::NAMES {
            assert_eq!(name.parse::<SandboxMode>().unwrap().name(), name);
        }
        let error = "on".parse::<SandboxMode>().unwrap_err().to_string();
        assert_eq!(
            error,
            "`on` is no sandbox mode; write read-only, workspace-write or off"
        );
        assert!(SandboxMode::ReadOnly < SandboxMode::WorkspaceWrite);
        assert!(SandboxMode::WorkspaceWrite < SandboxMode::Off);
    }

    #[cfg(unix)]
    #[test]
    fn the_profile_of_macos_denies_writes_but_for_the_paths_that_it_is_given() {
        let odd = PathBuf::from("/no/\"such\")/folder");
        let words = seatbelt::words(&[PathBuf::from("/dev/null"), odd]);
        let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
        let profile = "(version 1)(allow default)(deny network*)(deny file-write*)(allow file-write* \
                       (subpath (param \"W0\")))(allow file-write* (subpath (param \"W1\")))";
        let expected = [
            "/usr/bin/sandbox-exec",
            "-D",
            "W0=/dev/null",
            "-D",
            "W1=/no/\"such\")/folder",
            "-p",
            profile,
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn a_sandbox_that_the_system_does_not_offer_is_refused() {
        assert!(Sandbox::new(SandboxMode::Off, ["x"]).is_ok());
        match Sandbox::new(SandboxMode::ReadOnly, ["x"]) {
            Ok(_) => println!("skipped: this kernel offers a sandbox"),
            Err(error) => assert!(
                error.to_string().contains("Landlock in Linux 6.2"),
                "{error}"
            ),
        }
    }
}
