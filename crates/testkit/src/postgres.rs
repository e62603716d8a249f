//! A PostgreSQL server of its own for a test, in a temporary folder, reached by a socket there. It is
//! not the server of the machine.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

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
/// Maximum time until a server accepts connections, on a busy machine.
const START: Duration = Duration::from_secs(60);
/// Maximum time in which a server ends before it is killed.
const END: Duration = Duration::from_secs(5);
/// The time between two looks at a server that starts or ends.
const POLL: Duration = Duration::from_millis(20);

/// A server, running or not. It ends with the value.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    folder: TempDir,
    /// The user and group that the server runs as, if they differ from those of this process.
    user: Option<(u32, u32)>,
    child: Option<Child>,
}

impl PostgresServer {
    /// Starts a server that does not wait for the disk. Prints a note and returns `None` if
    /// PostgreSQL is not installed.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start() -> Option<Self> {
        let folder = tempfile::tempdir();
        Self::start_in(folder.unwrap_or_else(failed), false)
    }

    /// Starts a server in a folder. If `is_durable`, a commit waits for the disk. Prints a note and
    /// returns `None` if PostgreSQL is not installed.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_in(folder: TempDir, is_durable: bool) -> Option<Self> {
        let Some(mut server) = Self::create(folder).unwrap_or_else(failed) else {
            eprintln!("not tested with PostgreSQL: it is not installed (initdb was not found)");
            return None;
        };
        let sync = if is_durable { "fsync=on" } else { "fsync=off" };
        server.spawn(&[sync]).unwrap_or_else(failed);
        let since = Instant::now();
        while !server.is_ready() {
            assert!(since.elapsed() < START, "the server does not start");
            std::thread::sleep(POLL);
        }
        Some(server)
    }

    /// Creates a database in a folder. Returns `None` if PostgreSQL is not installed.
    ///
    /// # Errors
    /// If `initdb` fails.
    pub fn create(folder: TempDir) -> io::Result<Option<Self>> {
        let Some(programs) = programs() else {
            return Ok(None);
        };
        let user = if rustix::process::geteuid().is_root() {
            Some((id("-u")?, id("-g")?))
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
            .output()?;
        if made.status.success() {
            return Ok(Some(server));
        }
        let why = String::from_utf8_lossy(&made.stderr);
        Err(io::Error::other(format!("initdb failed: {why}")))
    }

    /// Starts the server with settings such as `fsync=on`. It accepts connections once
    /// [`Self::is_ready`] returns `true`.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn spawn(&mut self, settings: &[&str]) -> io::Result<()> {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))?;
        let mut command = self.command("postgres");
        for setting in ["listen_addresses="].iter().chain(settings) {
            command.args(["-c", setting]);
        }
        let child = command
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        self.child = Some(child);
        Ok(())
    }

    /// Returns `true` if the server accepts connections.
    pub fn is_ready(&self) -> bool {
        let Some(child) = &self.child else {
            return false;
        };
        // The first line is the process id, the last one the state. A killed server leaves the file
        // behind.
        let text = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let first = text.lines().next().unwrap_or_default();
        first == child.id().to_string() && text.contains("ready")
    }

    /// Returns `true` if the server has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        match &mut self.child {
            None => true,
            Some(child) => !matches!(child.try_wait(), Ok(None)),
        }
    }

    /// Kills all processes of the server.
    ///
    /// # Errors
    /// If the server cannot be waited for.
    pub fn kill(&mut self) -> io::Result<()> {
        self.signal(Signal::KILL);
        if let Some(mut child) = self.child.take() {
            child.wait()?;
        }
        Ok(())
    }

    /// Sends a signal to the server and to the processes that it has started.
    pub fn signal(&self, signal: Signal) {
        let Some(pid) = self.child.as_ref().map(Child::id) else {
            return;
        };
        for pid in std::iter::once(pid).chain(children(pid)) {
            send(pid, signal);
        }
    }

    /// Returns the server's address.
    pub fn url(&self) -> String {
        let folder = self.folder.path().display();
        format!("postgres:///postgres?host={folder}&user=postgres")
    }

    /// Returns the folder, which appears in the command lines of its processes.
    pub fn folder(&self) -> &Path {
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

impl Drop for PostgresServer {
    /// Ends the server at once, without a word to its clients. It removes its shared memory itself;
    /// if it takes too long, all its processes are killed.
    fn drop(&mut self) {
        self.signal(Signal::CONT);
        if let Some(child) = &self.child {
            send(child.id(), Signal::QUIT);
        }
        let since = Instant::now();
        while !self.has_ended() && since.elapsed() < END {
            std::thread::sleep(POLL);
        }
        if !self.has_ended() {
            let _ = self.kill();
        }
    }
}

/// Sends a signal to a process, if it still exists.
pub fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

fn failed<T>(error: io::Error) -> T {
    panic!("PostgreSQL: {error}")
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

/// Returns the id of the user or its group.
fn id(flag: &str) -> io::Result<u32> {
    let output = Command::new("id").args([flag, USER]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(io::Error::other)
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
