//! The system calls that commands in a sandbox must not use. They do what Landlock cannot refuse.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use super::SandboxMode;

/// Calls that are refused in every mode.
const REFUSED: [i64; 2] = [
    // It performs other calls, unseen.
    libc::SYS_io_uring_setup,
    // Processes that leave the session of the command would outlive it.
    libc::SYS_setsid,
];
/// Calls that change the owner, the permissions, the times or the attributes of a file.
const METADATA: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
    libc::SYS_utimensat,
    // fchmodat2, setxattrat, removexattrat and file_setattr, which libc does not name everywhere.
    // They have the same numbers on all processors.
    452,
    463,
    466,
    469,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
];
/// Requests of `ioctl` that type into a terminal: TIOCSTI and TIOCLINUX.
const TYPING: [u64; 2] = [0x5412, 0x541c];
/// A second set of numbers for the same calls, on kernels that support it.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Refuses the system calls to this thread and its children.
pub(super) fn refuse(mode: SandboxMode) -> Result<(), String> {
    let filter = filter(mode).map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&filter).map_err(|error| error.to_string())
}

fn filter(mode: SandboxMode) -> Result<BpfProgram, BackendError> {
    let argument = |index: u8, is: SeccompCmpOp, value: u64| {
        let condition = SeccompCondition::new(index, SeccompCmpArgLen::Dword, is, value);
        SeccompRule::new(vec![condition?])
    };
    let metadata = match mode {
        SandboxMode::ReadOnly => METADATA,
        // The path of a call cannot be seen here.
        SandboxMode::WorkspaceWrite | SandboxMode::Off => &[],
    };
    // A call without rules is refused whatever its arguments are.
    let calls = REFUSED.iter().chain(metadata);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        calls.map(|call| (*call, Vec::new())).collect();
    let not_unix = argument(0, SeccompCmpOp::Ne, libc::AF_UNIX.unsigned_abs().into())?;
    rules.insert(libc::SYS_socket, vec![not_unix]);
    let typing = TYPING.map(|request| argument(1, SeccompCmpOp::Eq, request));
    rules.insert(
        libc::SYS_ioctl,
        typing.into_iter().collect::<Result<_, _>>()?,
    );
    #[cfg(target_arch = "x86_64")]
    rules.extend(
        rules
            .clone()
            .into_iter()
            .map(|(call, rules)| (call | X32, rules)),
    );
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let target = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, refused, target)?.try_into()
}
