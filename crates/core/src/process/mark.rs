//! [`Mark`]: a variable in the environment of a child, by which its descendants are found even if
//! they have left its session.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Pid;

/// The number of marks of this process.
static MARKS: AtomicU64 = AtomicU64::new(0);

/// The mark of one child, which its descendants inherit.
///
/// A process group and a session end everything except a descendant that starts a session of its own
/// (`setsid`, daemons). Nothing else that needs no rights finds such a process:
/// - As a child subreaper (`PR_SET_CHILD_SUBREAPER`), this process would inherit it, but could not tell
///   to which child it belongs, would take orphans from the host program, and is gone after `kill -9`,
///   when the watchdog has to find it.
/// - A control group or a namespace of processes needs rights that containers and many machines do not
///   give.
///
/// The kernel hides the environment of some processes, such as programs with other rights.
#[derive(Debug, Clone)]
pub(super) struct Mark(pub(super) String);

impl Mark {
    /// The name of the variable.
    pub(super) const VARIABLE: &str = "PLIMSOLL_CHILD";

    pub(super) fn new() -> Self {
        let number = MARKS.fetch_add(1, Ordering::Relaxed);
        // The end makes sure that no mark is the beginning of another.
        Self(format!("{}-{number}.", process::id()))
    }

    /// Returns the variable with its value, as it stands in an environment.
    pub(super) fn entry(&self) -> String {
        format!("{}={}", Self::VARIABLE, self.0)
    }

    /// Kills all processes that bear the mark or are in the session of the child, which has ended.
    /// Does nothing on systems other than Linux.
    #[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
    pub(super) fn kill_all(&self, session: Pid) {
        #[cfg(target_os = "linux")]
        linux::kill_all(&self.entry(), session);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io::Read;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    /// How often the processes are listed: one that was just started may have been missed.
    const ROUNDS: usize = 8;
    /// How much of an environment is read. The mark stands among the first variables.
    const MAX_ENVIRONMENT: u64 = 1024 * 1024;

    pub(super) fn kill_all(entry: &str, session: Pid) {
        for _ in 0..ROUNDS {
            if !kill_listed(entry, session) {
                return;
            }
        }
    }

    /// Returns `true` if there was one.
    fn kill_listed(entry: &str, session: Pid) -> bool {
        let Ok(processes) = fs::read_dir("/proc") else {
            return false;
        };
        let ids = processes.flatten().filter_map(|process| {
            let id = process.file_name().to_str()?.parse().ok()?;
            Pid::from_raw(id)
        });
        let others = ids.filter(|id| *id != session);
        others.filter(|id| kill(*id, entry, session)).count() > 0
    }

    /// Kills a process that bears the mark or is in the session.
    fn kill(id: Pid, entry: &str, session: Pid) -> bool {
        // Opened before it is looked at, so that its id cannot have passed to another process.
        let Ok(process) = pidfd_open(id, PidfdFlags::empty()) else {
            return false;
        };
        let belongs = session_of(id) == Some(session) || bears(id, entry);
        belongs && pidfd_send_signal(&process, Signal::KILL).is_ok()
    }

    /// Returns the session of a process. Threads of the kernel are in none.
    fn session_of(id: Pid) -> Option<Pid> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", id.as_raw_pid())).ok()?;
        // The name in parentheses may contain anything.
        let (_, fields) = stat.rsplit_once(')')?;
        let session: i32 = fields.split_whitespace().nth(3)?.parse().ok()?;
        // A process that has ended may have -1.
        Pid::from_raw(session.max(0))
    }

    fn bears(id: Pid, entry: &str) -> bool {
        let mut environment = Vec::new();
        let path = format!("/proc/{}/environ", id.as_raw_pid());
        let read = fs::File::open(path)
            .and_then(|file| file.take(MAX_ENVIRONMENT).read_to_end(&mut environment));
        let mut variables = environment.split(|byte| *byte == 0);
        read.is_ok() && variables.any(|variable| variable == entry.as_bytes())
    }
}
