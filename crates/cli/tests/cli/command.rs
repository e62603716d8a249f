//! The binary with its own home directory. It inherits only `PATH` from the environment.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use plimsoll::config::{ProjectFiles, TRUST_FILE, TrustStore};
use plimsoll_testkit::ChildGuard;
use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use super::fake::Fake;

/// A place for sessions and a workspace beside it; both go with the test.
pub(crate) struct Home {
    folder: TempDir,
    /// Whether the person trusts whatever is in the workspace when a command begins.
    trusts: bool,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// `None` where a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self {
            folder,
            trusts: true,
        }
    }

    /// One with a workspace of strangers.
    pub(crate) fn of_strangers() -> Self {
        Self {
            trusts: false,
            ..Self::new()
        }
    }

    /// One with a file that models read.
    pub(crate) fn with_notes() -> Self {
        let home = Self::new();
        home.file("notes.txt", "the number is forty-two\n");
        home
    }

    /// The directory of the sessions; the command makes it.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The directory in which commands run.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Puts a file into the workspace.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Trusts what a folder of the workspace has now.
    pub(crate) fn trust(&self, folder: &str) {
        let found = ProjectFiles::new(self.work().join(folder)).found();
        if !found.is_empty() {
            let store = TrustStore::new(self.data().join(TRUST_FILE));
            store.trust(&found).unwrap();
        }
    }

    pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> Command {
        if self.trusts {
            self.trust("");
        }
        let program = env!("CARGO_BIN_EXE_plimsoll");
        command(program, &self.work(), &self.data(), args)
    }

    /// A line for a shell, in which the binary is `plimsoll`.
    pub(crate) fn shell(&self, line: &str) -> Command {
        let mut shell = command("sh", &self.work(), &self.data(), ["-c", line]);
        let program = Path::new(env!("CARGO_BIN_EXE_plimsoll"));
        let folders = std::env::var("PATH").unwrap_or_default();
        shell.env(
            "PATH",
            format!("{}:{folders}", program.parent().unwrap().display()),
        );
        shell
    }

    /// Runs to the end with nothing on standard input.
    pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> CommandOutput {
        self.pipe(args, "")
    }

    /// Runs to the end with this on standard input.
    pub(crate) fn pipe<S: AsRef<std::ffi::OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        input: impl AsRef<[u8]>,
    ) -> CommandOutput {
        feed(self.command(args), input.as_ref())
    }
}

impl Home {
    /// An agent in the workspace, on this server.
    pub(crate) fn agent(&self, fake: &Fake, args: &[&str]) -> CommandOutput {
        self.run(with(fake, args))
    }

    /// The same, under way. It ends with its owner.
    pub(crate) fn start(&self, fake: &Fake, args: &[&str]) -> Under {
        let child = self
            .command(with(fake, args))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        Under(ChildGuard::new(child))
    }
}

/// A command under way.
pub(crate) struct Under(ChildGuard);

impl Under {
    /// What Ctrl-C at a terminal does.
    pub(crate) fn interrupt(&self) {
        let group = Pid::from_child(&self.0);
        rustix::process::kill_process_group(group, Signal::INT).unwrap();
    }

    pub(crate) fn kill(&self) {
        let group = Pid::from_child(&self.0);
        rustix::process::kill_process_group(group, Signal::KILL).unwrap();
    }

    pub(crate) fn end(self) -> CommandOutput {
        CommandOutput::of(self.0.release().wait_with_output().unwrap())
    }
}

/// The arguments of a run on this server.
pub(crate) fn with(fake: &Fake, args: &[&str]) -> Vec<String> {
    let url = fake.url();
    let model = ["run", "--model", "openai-compatible/m", "--base-url", &url];
    model
        .iter()
        .chain(args)
        .map(|arg| (*arg).to_owned())
        .collect()
}

impl CommandOutput {
    /// The session that the summary names.
    pub(crate) fn session(&self) -> String {
        let after = self.err.rsplit("session ").next().unwrap();
        after.split_whitespace().next().unwrap().to_owned()
    }

    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Done, with nothing to complain about.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        assert_eq!(self.code, Some(0), "{}\n{}", self.out, self.err);
        self
    }

    /// Failed with this code, and with one sentence on stderr that holds these words.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        let sentences: Vec<&str> = self
            .err
            .lines()
            .filter(|line| line.starts_with("plimsoll: "))
            // Where its settings are from, it says whatever happens.
            .filter(|line| !line.starts_with("plimsoll: using the settings of"))
            .collect();
        assert_eq!(sentences.len(), 1, "one sentence: {}", self.err);
        for word in words {
            assert!(sentences[0].contains(word), "no `{word}` in {}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }

    /// The parser of the arguments has refused it with these words.
    pub(crate) fn misspelled(&self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "no `{word}` in {}", self.err);
        }
    }
}

fn command<S: AsRef<std::ffi::OsStr>>(
    program: &str,
    work: &Path,
    data: &Path,
    args: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PLIMSOLL_HOME", data)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(work)
        .args(args);
    command
}

/// Runs to the end; what the command does not want to read is not an error.
pub(crate) fn feed(command: Command, input: &[u8]) -> CommandOutput {
    feed_from(command, input)
}

/// The same from a source that is never held whole.
pub(crate) fn feed_from(mut command: Command, mut input: impl Read + Send) -> CommandOutput {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut buffer = vec![0; 256 * 1024];
            while let Ok(count @ 1..) = input.read(&mut buffer) {
                if pipe.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
        });
        CommandOutput::of(child.wait_with_output().unwrap())
    })
}
