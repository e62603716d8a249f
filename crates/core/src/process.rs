//! The one place that starts child processes: bounded in time and output, killed as a group,
//! dead when this process is dead. Not a shell and not a sandbox: what a child may do with
//! files and network is the affair of the user who runs it.
//!
//! What holds for every child:
//! - It runs in a process group of its own and reads no input but what it is given. When it
//!   ends, is stopped or is dropped, its whole group ends: what a child leaves in the background
//!   does not outlive it. Only a process that leaves the group by itself (`setsid`) gets away;
//!   nobody waits for such a one.
//! - A watchdog leads the group, holds a pipe to this process and ends the group when the pipe
//!   closes, so that even after `kill -9` of this process nothing goes on. It is there first:
//!   also a child that has only just begun is ended.
//! - Whatever it prints is read, so that it never blocks; what is kept is bounded.
//! - Variables of the environment that look like secrets are not handed on, see
//!   [`looks_secret`]; [`deny_inspection`] keeps a child from reading them in this process. The
//!   watchdog has no variable but `PATH`.

mod capture;
mod environment;
#[cfg(unix)]
mod group;
#[cfg(not(unix))]
#[path = "process/group_elsewhere.rs"]
mod group;
mod server;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::ffi::OsString;
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitStatus;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::FusedFuture;
use plimsoll_context::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

pub use capture::{Captured, CapturedText};
pub use environment::{InheritedVariables, looks_secret};
pub use server::Server;

use capture::Capture;
use group::{Feed, Group, Pipe, Signal};

/// How long a group may take to end by itself after SIGTERM, before SIGKILL.
pub const GRACE: Duration = Duration::from_secs(1);
/// How long output is awaited after the child itself has ended, while something that it left
/// in the background still holds the pipe.
pub const DRAIN: Duration = Duration::from_millis(500);
/// How long a killed child is awaited. Only one stuck in the kernel takes longer; it is reaped
/// whenever it ends, but nobody waits for it.
pub const REAP_WAIT: Duration = Duration::from_secs(2);
/// How much is read from a pipe at once; the size of a pipe on Linux.
const READ_BUFFER: usize = 64 * 1024;

/// A program and how it is to be started.
#[derive(Debug, Clone)]
#[cfg_attr(not(unix), allow(dead_code))]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    cwd: Option<PathBuf>,
    base: Environment,
    inherited: InheritedVariables,
    env: Vec<(OsString, OsString)>,
    input: Option<Vec<u8>>,
}

/// Which of this process's variables a child gets, before those set one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Environment {
    /// All but those that look like secrets.
    #[default]
    WithoutSecrets,
    /// None.
    Empty,
}

/// The bounds of one child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// It is stopped after this; the whole takes [`GRACE`] and [`REAP_WAIT`] more at most.
    pub timeout: Duration,
    /// This much of its output is kept, half from the beginning, half from the end; as much of its
    /// standard error, where that is kept apart.
    pub max_output: Bytes,
}

/// What came of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessOutput {
    /// How it ended.
    pub ended: Ended,
    /// What it printed, standard output and standard error in the order in which they came.
    pub output: Captured,
    /// What it printed to standard error, where that was kept apart.
    pub errors: Captured,
    /// What became of those that it left in the background.
    pub left: LeftBehind,
}

/// The two ends by which a server is spoken with. What it prints waits in its pipe until it is read.
pub struct Talk {
    /// What it reads.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// What it prints.
    pub output: Pin<Box<dyn AsyncRead + Send>>,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal, which was not ours.
    Signalled(i32),
    /// It was stopped after its time.
    TimedOut,
    /// It was stopped because nobody wants the result any more.
    Cancelled,
}

/// Whether a child that ended by itself left something that held its output open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftBehind {
    /// No, or nothing that prints.
    Nothing,
    /// Yes; it was ended [`DRAIN`] later.
    Killed,
}

/// Why a child could not be started or followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The program could not be started.
    #[error("cannot start `{program}`: {source}; check that it is installed and on PATH")]
    Start {
        /// The program.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// The folder that it should start in is not there.
    #[error("cannot start `{program}` in {cwd}: no such folder")]
    NoFolder {
        /// The program.
        program: String,
        /// The folder.
        cwd: String,
    },
    /// The child was started, but its end or its output could not be had.
    #[error("lost track of `{program}`: {source}; it was killed")]
    Lost {
        /// The program.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// There are no process groups on this system.
    #[error("starting programs is not supported on this system: use Linux or macOS")]
    Unsupported,
}

/// Keeps other processes of the same user, children included, from reading the memory and the
/// environment of this process, and from attaching to it. Programs that hold keys call this first.
///
/// On Linux the process is marked as not dumpable, so that it leaves no core dump either. A process with
/// the capability `CAP_SYS_PTRACE`, as root has it outside of containers, still can. Elsewhere this does
/// nothing.
///
/// # Errors
/// The system refuses.
pub fn deny_inspection() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

impl Command {
    /// A program, by its path or by a name that is looked up in `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: None,
            base: Environment::default(),
            inherited: InheritedVariables::default(),
            env: Vec::new(),
            input: None,
        }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The folder that it starts in; else the one of this process.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Which variables of this process it gets.
    #[must_use]
    pub fn environment(mut self, base: Environment) -> Self {
        self.base = base;
        self
    }

    /// Which variables it gets besides what their names look like, unless it gets none.
    #[must_use]
    pub fn inherit(mut self, variables: &InheritedVariables) -> Self {
        self.inherited = variables.clone();
        self
    }

    /// A variable; given whatever its name looks like.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// What it reads, else nothing; its standard error is kept apart from its output then.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// Runs it to its end. If the future is dropped, the group is killed at once.
    ///
    /// # Errors
    /// It cannot be started. A child that fails, hangs or is cancelled is no error, see [`Ended`].
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O enabled.
    pub async fn run(
        &self,
        limits: ProcessLimits,
        cancel: CancellationToken,
    ) -> Result<ProcessOutput, ProcessError> {
        let (group, pipes) = match self.input {
            None => {
                let (group, output) = self.start()?;
                (group, Pipes::of(output))
            }
            Some(_) => {
                let (group, streams) = self.begin(Group::talk)?;
                let pipes = Pipes {
                    output: streams.output,
                    errors: Some(streams.errors),
                    input: Some(streams.input),
                };
                (group, pipes)
            }
        };
        let mut output = Capture::new(limits.max_output);
        let mut errors = Capture::new(limits.max_output);
        let mut reader = Reader::new(pipes.output);
        let mut other = pipes.errors.map(Reader::new);
        let both = async {
            let errors = async {
                if let Some(other) = &mut other {
                    other.read(|bytes| errors.push(bytes)).await;
                }
            };
            let input = feed(pipes.input, self.input.as_deref().unwrap_or_default());
            tokio::join!(reader.read(|bytes| output.push(bytes)), errors, input);
        };
        let mut both = Box::pin(both.fuse());
        let stopped = tokio::select! {
            biased;
            () = cancel.cancelled() => Some(Ended::Cancelled),
            () = tokio::time::sleep(limits.timeout) => Some(Ended::TimedOut),
            () = group.exited() => None,
            // A child may close its output and go on.
            () = (&mut both).then(|()| pending()) => None,
        };
        let mut left = LeftBehind::Nothing;
        let rest = async {
            if !both.is_terminated() {
                both.as_mut().await;
            }
        };
        if stopped.is_some() {
            group.signal(Signal::TERM);
            // In time or not: what is left is killed now.
            let all = async { tokio::join!(group.exited(), rest) };
            let _ = tokio::time::timeout(GRACE, all).await;
        } else if tokio::time::timeout(DRAIN, rest).await.is_err() {
            left = LeftBehind::Killed;
        }
        drop(both);
        let status = group.end().await;
        let ended = match stopped {
            Some(stopped) => stopped,
            None => Ended::of(status.map_err(|source| self.lost(source))?),
        };
        Ok(ProcessOutput {
            ended,
            output: output.finish(),
            errors: errors.finish(),
            left,
        })
    }

    /// Starts it as a server, which runs until it is stopped or dropped. The newest `log` bytes
    /// that it prints are kept.
    ///
    /// # Errors
    /// It cannot be started.
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O enabled.
    pub fn serve(&self, log: Bytes) -> Result<Server, ProcessError> {
        let (group, pipe) = self.start()?;
        Ok(Server::new(group, Reader::new(pipe), Capture::newest(log)))
    }

    /// Starts it as a server that is spoken with over its standard input and output. Of what it
    /// prints on standard error the newest `log` bytes are kept; [`input`](Self::input) is not used.
    ///
    /// # Errors
    /// It cannot be started.
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O enabled.
    pub fn talk(&self, log: Bytes) -> Result<(Server, Talk), ProcessError> {
        let (group, streams) = self.begin(Group::talk)?;
        let talk = Talk {
            input: Box::pin(streams.input),
            output: Box::pin(streams.output),
        };
        let errors = Reader::new(streams.errors);
        Ok((Server::new(group, errors, Capture::newest(log)), talk))
    }

    fn start(&self) -> Result<(Group, Pipe), ProcessError> {
        self.begin(Group::start)
    }

    fn begin<T>(&self, how: fn(&Self) -> io::Result<T>) -> Result<T, ProcessError> {
        how(self).map_err(|source| {
            let program = self.program();
            match &self.cwd {
                _ if source.kind() == io::ErrorKind::Unsupported => ProcessError::Unsupported,
                Some(cwd) if !cwd.is_dir() => ProcessError::NoFolder {
                    program,
                    cwd: cwd.display().to_string(),
                },
                _ => ProcessError::Start { program, source },
            }
        })
    }

    fn lost(&self, source: io::Error) -> ProcessError {
        ProcessError::Lost {
            program: self.program(),
            source,
        }
    }

    fn program(&self) -> String {
        self.program.display().to_string()
    }

    /// The program as the system wants it, its input and output still to be set.
    #[cfg(unix)]
    fn prepared(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.args).env_clear();
        if self.base == Environment::WithoutSecrets {
            command.envs(self.inherited.iter());
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command
    }
}

impl Ended {
    fn of(status: ExitStatus) -> Self {
        // A process that has ended has a code or a signal.
        status.code().map_or_else(
            || Self::Signalled(group::signal_of(status).unwrap_or_default()),
            Self::Exited,
        )
    }
}

/// The ends of a child's pipes that are ours.
struct Pipes {
    output: Pipe,
    errors: Option<Pipe>,
    input: Option<Feed>,
}

impl Pipes {
    fn of(output: Pipe) -> Self {
        Self {
            output,
            errors: None,
            input: None,
        }
    }
}

/// Writes all of it, as far as somebody reads it.
async fn feed(to: Option<Feed>, bytes: &[u8]) {
    if let Some(mut to) = to {
        // A child need not read what it is told.
        let _ = to.write_all(bytes).await;
        let _ = to.shutdown().await;
    }
}

/// Reads a pipe until its end.
struct Reader {
    pipe: Pipe,
    buffer: Vec<u8>,
}

impl Reader {
    fn new(pipe: Pipe) -> Self {
        Self {
            pipe,
            buffer: vec![0; READ_BUFFER],
        }
    }

    /// Hands on what comes until nobody holds the other end any more. Nothing is lost if the
    /// future is dropped.
    async fn read(&mut self, mut take: impl FnMut(&[u8])) {
        // A pipe that cannot be read has nothing more to say.
        while let Ok(read @ 1..) = self.pipe.read(&mut self.buffer).await {
            take(self.buffer.get(..read).unwrap_or_default());
        }
    }
}
