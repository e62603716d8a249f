//! A PostgreSQL server for one test, in its own folder, reached by a socket there. It is not the
//! server of the machine.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Where Debian and others put the programs, the newest version last.
const FOLDERS: [&str; 3] = [
    "/usr/lib/postgresql",
    "/usr/pgsql",
    "/opt/homebrew/opt/postgresql",
];

/// Names a folder of programs to be used in place of those that are installed.
const VARIABLE: &str = "PLIMSOLL_TEST_POSTGRES";

/// Who the server runs as if the tests run as root, which it refuses.
const USER: &str = "nobody";

/// Longer than a busy machine takes.
const START: Duration = Duration::from_secs(60);

/// A running server, which ends with the value.
pub(crate) struct TestServer {
    child: Child,
    folder: TempDir,
}

impl TestServer {
    /// Starts one that does not wait for the disk, in a folder for things that pass. Says so and returns
    /// `None` if PostgreSQL is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_in(tempfile::tempdir().unwrap(), false)
    }

    /// Starts one in a folder. `is_durable`: a commit waits for the disk.
    pub(crate) fn start_in(folder: TempDir, is_durable: bool) -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("not tested with PostgreSQL: it is not installed (initdb was not found)");
            return None;
        };
        let data = folder.path().join("data");
        if is_root() {
            let owned = Command::new("chown").arg(USER).arg(folder.path()).status();
            assert!(owned.unwrap().success());
        }
        let made = as_user(&programs.join("initdb"))
            .args([
                "--auth",
                "trust",
                "--username",
                "postgres",
                "--no-sync",
                "-D",
            ])
            .arg(&data)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let child = as_user(&programs.join("postgres"))
            .args(["-c", "listen_addresses=", "-c"])
            .arg(if is_durable { "fsync=on" } else { "fsync=off" })
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, folder };
        let since = Instant::now();
        let pid = data.join("postmaster.pid");
        // Its last line is the state of the server.
        let ready = || std::fs::read_to_string(&pid).is_ok_and(|text| text.contains("ready"));
        while !ready() {
            assert!(since.elapsed() < START, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        let folder = self.folder.path().display();
        format!("postgres:///postgres?host={folder}&user=postgres")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // Its first line is the process of the server itself, not of what started it as another user.
        let pid = self.folder.path().join("data/postmaster.pid");
        let pid = std::fs::read_to_string(pid).unwrap_or_default();
        if let Some(pid) = pid.lines().next() {
            // At once, without a word to clients.
            let _ = Command::new("kill").args(["-QUIT", pid]).status();
        }
        let _ = self.child.wait();
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
    let mut found: Vec<PathBuf> = folders
        .chain(
            std::env::var_os("PATH")
                .iter()
                .flat_map(std::env::split_paths),
        )
        .filter(|folder| folder.join("initdb").exists())
        .collect();
    found.sort();
    found.pop()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn as_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", USER, "--"]).arg(program);
    command
}
