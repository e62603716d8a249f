//! A PostgreSQL server in a folder of its own, reached by a socket there, that can be killed with
//! all its processes. Commits wait for the disk.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::Failure;

/// Folders in which Debian and other systems install the programs, the newest version last.
const FOLDERS: [&str; 3] = [
    "/usr/lib/postgresql",
    "/usr/pgsql",
    "/opt/homebrew/opt/postgresql",
];
/// Names a folder of programs to use instead of the installed ones.
const VARIABLE: &str = "PLIMSOLL_TEST_POSTGRES";
/// The user that the server runs as if this program runs as root, which PostgreSQL refuses.
const USER: &str = "nobody";

/// A server, running or not.
pub(crate) struct Postgres {
    programs: PathBuf,
    folder: TempDir,
    /// The user and group that the server runs as, if they differ from those of this process.
    user: Option<(u32, u32)>,
    child: Option<Child>,
}

impl Postgres {
    /// Creates a database. Returns `None` if PostgreSQL is not installed.
    pub(crate) async fn create() -> Result<Option<Self>, Failure> {
        let Some(programs) = programs() else {
            return Ok(None);
        };
        let folder = TempDir::with_prefix(crate::PREFIX)?;
        let user = if rustix::process::geteuid().is_root() {
            Some((id("-u").await?, id("-g").await?))
        } else {
            None
        };
        if let Some((user, group)) = user {
            std::os::unix::fs::chown(folder.path(), Some(user), Some(group))?;
        }
        let server = Self {
            programs,
            folder,
            user,
            child: None,
        };
        let made = server
            .command("initdb")
            .args(["--auth", "trust", "--username", "postgres", "--no-sync"])
            .arg("-D")
            .arg(server.data())
            .output()
            .await?;
        if made.status.success() {
            return Ok(Some(server));
        }
        let why = String::from_utf8_lossy(&made.stderr).into_owned();
        Err(Failure(format!("initdb failed: {why}")))
    }

    /// Starts the server. It accepts connections once [`Self::is_ready`] returns `true`.
    pub(crate) fn start(&mut self) -> Result<(), Failure> {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))?;
        let child = self
            .command("postgres")
            .args(["-c", "listen_addresses=", "-c", "fsync=on"])
            .args(["-c", "max_connections=200"])
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        self.child = Some(child);
        Ok(())
    }

    /// Returns `true` if the server accepts connections.
    pub(crate) fn is_ready(&self) -> bool {
        let Some(pid) = self.child.as_ref().and_then(Child::id) else {
            return false;
        };
        // The first line is the process id, the last one the state. A killed server leaves the file
        // behind.
        let text = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let first = text.lines().next().unwrap_or_default();
        first == pid.to_string() && text.contains("ready")
    }

    /// Returns `true` if the server has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        match &mut self.child {
            None => true,
            Some(child) => !matches!(child.try_wait(), Ok(None)),
        }
    }

    /// Kills all processes of the server.
    pub(crate) async fn kill(&mut self) -> Result<(), Failure> {
        self.signal(Signal::KILL);
        if let Some(mut child) = self.child.take() {
            child.wait().await?;
        }
        Ok(())
    }

    /// Sends a signal to the server and to the processes that it has started.
    pub(crate) fn signal(&self, signal: Signal) {
        let Some(pid) = self.child.as_ref().and_then(Child::id) else {
            return;
        };
        let own = children(pid);
        for pid in std::iter::once(pid).chain(own) {
            send(pid, signal);
        }
    }

    /// Returns the server's address.
    pub(crate) fn url(&self) -> String {
        let folder = self.folder.path().display();
        format!("postgres:///postgres?host={folder}&user=postgres")
    }

    /// Returns the folder, which appears in the command lines of its processes.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Sends a signal to a process, if it still exists.
pub(crate) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

fn programs() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(VARIABLE) {
        return Some(folder.into());
    }
    let versions = FOLDERS
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok());
    let folders = versions
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"));
    let path = std::env::var_os("PATH");
    let mut found: Vec<PathBuf> = folders
        .chain(path.iter().flat_map(std::env::split_paths))
        .filter(|folder| folder.join("initdb").exists())
        .collect();
    found.sort();
    found.pop()
}

async fn id(flag: &str) -> Result<u32, Failure> {
    let output = Command::new("id").args([flag, USER]).output().await?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.trim().parse()?)
}

/// Returns the child processes of a process, from `/proc`, or from `pgrep` on systems without it.
fn children(parent: u32) -> Vec<u32> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        let parent = parent.to_string();
        let found = std::process::Command::new("pgrep")
            .args(["-P", &parent])
            .output();
        let text = found.map(|output| output.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        return text.lines().filter_map(|line| line.parse().ok()).collect();
    };
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The process name before it may contain any characters.
        let rest = stat.rsplit_once(')').map(|(_, rest)| rest);
        let of = rest.and_then(|rest| rest.split_whitespace().nth(1));
        of.is_some_and(|of| of == parent.to_string())
    };
    let pids = processes.flatten();
    let pids = pids.filter_map(|process| process.file_name().to_str()?.parse().ok());
    pids.filter(is_child).collect()
}
