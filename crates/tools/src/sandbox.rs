//! [`Sandbox`]: restricts the files that commands of `bash` can write and their network access.
//!
//! The kernel enforces the restrictions (Landlock on Linux, profiles of `sandbox-exec` on macOS). File
//! tools are not affected; they stay inside the workspace root by themselves.
//!
//! A process can only restrict itself. Therefore a command is started by a launcher, a program that
//! calls [`run_shell`]: it restricts itself and becomes the shell.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use plimsoll_core::process::Command;

/// The restrictions of commands. The strictest mode is the smallest value.
///
/// | mode | writes | TCP connections |
/// |---|---|---|
/// | `read-only` | nothing | refused |
/// | `workspace-write` | the workspace root and the temporary directory | refused |
/// | `off` | as the user may | as the user may |
///
/// Reading is never restricted. Connections are refused if the kernel supports it, see
/// [`denies_network`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
        "this system offers no sandbox for commands, which needs Landlock in Linux 6.2 or newer, or macOS; leave `sandbox` off, or offer no `bash`"
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
        match word {
            "read-only" => Ok(Self::ReadOnly),
            "workspace-write" => Ok(Self::WorkspaceWrite),
            "off" => Ok(Self::Off),
            other => Err(NoSandboxMode(other.to_owned())),
        }
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

/// Returns `true` if the kernel can refuse TCP connections in a sandbox: Landlock in Linux 6.7 or
/// newer, and macOS, which refuses connections of every kind.
#[must_use]
pub fn denies_network() -> bool {
    kernel::denies_network()
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
        mode => kernel::enter(&writable(mode, root))?,
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

/// Returns the writable paths. Devices that store nothing are always writable.
#[cfg(unix)]
fn writable(mode: SandboxMode, root: &Path) -> Vec<PathBuf> {
    let devices = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];
    let mut paths: Vec<PathBuf> = devices.map(PathBuf::from).into();
    if mode == SandboxMode::WorkspaceWrite {
        paths.push(root.to_owned());
        paths.push(std::env::temp_dir());
        paths.extend(["/dev/shm", "/dev/ptmx", "/dev/pts"].map(PathBuf::from));
    }
    paths
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
        RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
    };

    use super::SandboxError;

    /// An older Landlock cannot deny all writes: files could be truncated.
    const NEEDED: ABI = ABI::V3;
    /// Restrictions that are added if the kernel supports them: connections, signals to other
    /// processes.
    const WANTED: ABI = ABI::V6;

    pub(super) fn denies_writes() -> bool {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let ruleset = ruleset.handle_access(AccessFs::from_write(NEEDED));
        ruleset.and_then(Ruleset::create).is_ok()
    }

    pub(super) fn denies_network() -> bool {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4));
        ruleset.and_then(Ruleset::create).is_ok()
    }

    /// Restricts this process. Returns the words before the shell, which are empty on Linux.
    pub(super) fn enter(writable: &[PathBuf]) -> Result<Vec<OsString>, SandboxError> {
        if !denies_writes() {
            return Err(SandboxError::NotOffered);
        }
        let status =
            restrict(writable).map_err(|error| SandboxError::Refused(error.to_string()))?;
        match status {
            RulesetStatus::NotEnforced => Err(SandboxError::NotOffered),
            _ => Ok(Vec::new()),
        }
    }

    fn restrict(writable: &[PathBuf]) -> Result<RulesetStatus, RulesetError> {
        let status = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_write(NEEDED))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_write(WANTED))?
            .handle_access(AccessNet::from_all(WANTED))?
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

    use super::{SandboxError, seatbelt};

    pub(super) fn denies_writes() -> bool {
        Path::new(seatbelt::PROGRAM).is_file()
    }

    pub(super) fn denies_network() -> bool {
        denies_writes()
    }

    /// Returns the words before the shell, which start it in the sandbox.
    pub(super) fn enter(writable: &[PathBuf]) -> Result<Vec<OsString>, SandboxError> {
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

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod kernel {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use super::SandboxError;

    pub(super) fn denies_writes() -> bool {
        false
    }

    pub(super) fn denies_network() -> bool {
        false
    }

    #[cfg_attr(not(unix), allow(dead_code))]
    pub(super) fn enter(_writable: &[PathBuf]) -> Result<Vec<OsString>, SandboxError> {
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
