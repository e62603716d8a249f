//! Starts child processes, with limits on time and output. All child processes are started here.
//!
//! A child is not sandboxed: it may use files and the network with the rights of its user. Every
//! child has these properties:
//! - It runs in its own session, without a terminal, and reads only the input that it is given.
//! - When it ends, is stopped or is dropped, its process group is killed, including background
//!   processes. On Linux, so are the other processes of its session, and descendants that have left
//!   it (`setsid`), which are found by a variable in their environment. A descendant that leaves the
//!   session *and* clears its environment or takes other rights survives. On other systems, one that
//!   leaves the group survives.
//! - A watchdog holds a pipe to this process. It kills the group and the marked descendants when the
//!   pipe closes, so that they do not survive even a `kill -9` of this process. It is started before
//!   the child.
//! - All output is read, so that the child never blocks; only a limited part of it is kept.
//! - Environment variables that look like secrets are withheld, see [`looks_secret`].
//!   [`deny_inspection`] keeps a child from reading them in this process. The watchdog has no
//!   variable except `PATH`.

mod capture;
mod environment;
#[cfg(unix)]
mod group;
#[cfg(not(unix))]
#[path = "process/group_elsewhere.rs"]
mod group;
#[cfg(unix)]
mod mark;
mod server;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_context::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub use capture::CapturedOutput;
pub(crate) use environment::has_password;
pub use environment::{InheritedVariables, looks_secret};
pub use server::ServerProcess;

use crate::error::lock;

use capture::Capture;
use group::{Feed, Group, Pipe, Signal, Streams};

/// How long a group may take to end after SIGTERM, before SIGKILL.
pub const GRACE: Duration = Duration::from_secs(1);
/// How long output is awaited after the child has ended, if a background process still holds the
/// pipe.
pub const DRAIN: Duration = Duration::from_millis(500);
/// How long a killed child is awaited. Only a process that is stuck in the kernel takes longer, or one on
/// an overloaded machine; it is reaped in the background.
pub const REAP_WAIT: Duration = Duration::from_secs(5);
/// How many bytes are read from a pipe at once; the size of a pipe on Linux.
const READ_BUFFER: usize = 64 * 1024;

/// A program and its settings.
#[derive(Debug, Clone)]
#[cfg_attr(not(unix), allow(dead_code))]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    cwd: Option<PathBuf>,
    inherited: InheritedVariables,
    env: Vec<(OsString, OsString)>,
    input: Option<Vec<u8>>,
}

/// The limits of one child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Time until the child is stopped. Stopping takes at most [`GRACE`] and [`REAP_WAIT`] more.
    pub timeout: Duration,
    /// Maximum size of the kept output, half from the beginning and half from the end. Applies
    /// separately to standard error if that is captured separately.
    pub max_output: Bytes,
}

/// The result of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessOutput {
    /// How the child ended.
    pub ended: ProcessEnd,
    /// Standard output and standard error in the order in which they arrived.
    pub output: CapturedOutput,
    /// Standard error, if it was captured separately.
    pub errors: CapturedOutput,
    /// `true` if the child exited and left background processes that held its output open. They were
    /// killed after [`DRAIN`].
    pub killed_background: bool,
}

/// The input and output of a server. Output waits in its pipe until it is read.
pub struct Talk {
    /// The input of the server.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// The output of the server.
    pub output: Pin<Box<dyn AsyncRead + Send>>,
}

/// The end of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal, which Plimsoll did not send.
    Signalled(i32),
    /// It was stopped at the timeout.
    TimedOut,
    /// It was stopped because the caller cancelled it.
    Cancelled,
}

/// The reason why a child could not be started or followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The program could not be started.
    #[error("cannot start `{program}`: {source}; check that it is installed and on PATH")]
    Start {
        /// The program.
        program: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The working directory does not exist.
    #[error("cannot start `{program}` in {cwd}: no such folder")]
    NoFolder {
        /// The program.
        program: String,
        /// The directory.
        cwd: String,
    },
    /// The child was started, but its exit status or output was lost.
    #[error(
        "lost track of `{program}`: {source}; it was killed, and it is not known whether it has done \
         its work"
    )]
    Lost {
        /// The program.
        program: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// This system has no process groups.
    #[error("starting programs is not supported on this system: use Linux or macOS")]
    Unsupported,
}

/// Keeps other processes of the same user, including children, from reading the memory and
/// environment of this process and from attaching to it. Programs that hold keys call this first.
///
/// On Linux, the process is marked as not dumpable, so that it leaves no core dump either. A
/// process with the capability `CAP_SYS_PTRACE`, such as root outside of containers, still has
/// access. On other systems this function does nothing.
///
/// # Errors
/// If the system refuses.
pub fn deny_inspection() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

impl Command {
    /// Creates a command for a program, given by its path or by a name to look up in `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: None,
            inherited: InheritedVariables::default(),
            env: Vec::new(),
            input: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds several arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the working directory. Default: that of this process.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets exceptions to the rule for inherited variables.
    #[must_use]
    pub fn inherit(mut self, variables: &InheritedVariables) -> Self {
        self.inherited = variables.clone();
        self
    }

    /// Sets a variable, even if its name looks like a secret.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the input. Standard error is then captured separately. Default: no input.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// Runs the command to its end. If the future is dropped, the group is killed immediately.
    ///
    /// # Errors
    /// If the command cannot be started. A child that fails, hangs or is cancelled is not an error;
    /// see [`ProcessEnd`].
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O enabled.
    pub async fn run(
        &self,
        limits: ProcessLimits,
        cancel: CancellationToken,
    ) -> Result<ProcessOutput, ProcessError> {
        let (group, streams) = self.begin(self.input.is_some())?;
        let (input, errors) = streams.apart.unzip();
        let captured = |pipe| CapturedPipe::new(pipe, Capture::new(limits.max_output));
        let pipes = [Some(streams.output), errors].into_iter().flatten();
        let mut pipes: Vec<CapturedPipe> = pipes.map(captured).collect();
        let input = feed(input, self.input.clone().unwrap_or_default());
        let _feeding = AbortOnDropHandle::new(tokio::spawn(input));
        let stopped = tokio::select! {
            biased;
            () = cancel.cancelled() => Some(ProcessEnd::Cancelled),
            () = tokio::time::sleep(limits.timeout) => Some(ProcessEnd::TimedOut),
            () = group.exited() => None,
        };
        let rest = async {
            for pipe in &mut pipes {
                pipe.ended().await;
            }
        };
        let mut killed_background = false;
        if stopped.is_some() {
            group.signal(Signal::TERM);
            // After this, the rest is killed, whether or not it ended in time.
            let all = async { tokio::join!(group.exited(), rest) };
            let _ = tokio::time::timeout(GRACE, all).await;
        } else {
            killed_background = tokio::time::timeout(DRAIN, rest).await.is_err();
        }
        let status = group.end().await;
        let ended = match stopped {
            Some(stopped) => stopped,
            None => ProcessEnd::of(status.map_err(|source| self.lost(source))?),
        };
        let mut captured = pipes.iter().map(CapturedPipe::so_far);
        Ok(ProcessOutput {
            ended,
            output: captured.next().unwrap_or_default(),
            errors: captured.next().unwrap_or_default(),
            killed_background,
        })
    }

    /// Starts the command as a server, which runs until it is stopped or dropped. The newest `log`
    /// bytes of its output are kept.
    ///
    /// # Errors
    /// If the command cannot be started.
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O enabled.
    pub fn serve(&self, log: Bytes) -> Result<ServerProcess, ProcessError> {
        let (group, streams) = self.begin(false)?;
        let log = CapturedPipe::new(streams.output, Capture::newest(log));
        Ok(ServerProcess { group, log })
    }

    /// Starts the command as a server with its standard input and output connected to the caller.
    /// The newest `log` bytes of its standard error are kept. [`input`](Self::input) is ignored.
    ///
    /// # Errors
    /// If the command cannot be started.
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O enabled.
    pub fn talk(&self, log: Bytes) -> Result<(ServerProcess, Talk), ProcessError> {
        let (group, streams) = self.begin(true)?;
        let Some((input, errors)) = streams.apart else {
            return Err(ProcessError::Unsupported);
        };
        let talk = Talk {
            input: Box::pin(input),
            output: Box::pin(streams.output),
        };
        let log = CapturedPipe::new(errors, Capture::newest(log));
        Ok((ServerProcess { group, log }, talk))
    }

    fn begin(&self, is_apart: bool) -> Result<(Group, Streams), ProcessError> {
        Group::start(self, is_apart).map_err(|source| {
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

    /// Returns the system's command, without its input and output.
    #[cfg(unix)]
    fn prepared(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.args).env_clear();
        command.envs(self.inherited.iter());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command
    }
}

impl ProcessEnd {
    fn of(status: ExitStatus) -> Self {
        // A process that has ended has an exit code or a signal.
        status.code().map_or_else(
            || Self::Signalled(group::signal_of(status).unwrap_or_default()),
            Self::Exited,
        )
    }
}

/// Writes all bytes, unless the reader stops.
async fn feed(to: Option<Feed>, bytes: Vec<u8>) {
    if let Some(mut to) = to {
        // A child need not read its input.
        let _ = to.write_all(&bytes).await;
        let _ = to.shutdown().await;
    }
}

/// A pipe that is read to its end in the background, while the handle exists.
#[derive(Debug)]
struct CapturedPipe {
    read: Arc<Mutex<Capture>>,
    task: AbortOnDropHandle<()>,
}

impl CapturedPipe {
    fn new(mut pipe: Pipe, capture: Capture) -> Self {
        let read = Arc::new(Mutex::new(capture));
        let shared = Arc::clone(&read);
        let task = tokio::spawn(async move {
            let mut buffer = vec![0; READ_BUFFER];
            // A pipe that cannot be read has ended.
            while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
                lock(&shared).push(buffer.get(..read).unwrap_or_default());
            }
        });
        Self {
            read,
            task: AbortOnDropHandle::new(task),
        }
    }

    /// Waits for the end of the pipe. A background process may hold it open.
    async fn ended(&mut self) {
        if !self.task.is_finished() {
            // Fails only if the runtime ends.
            let _ = (&mut self.task).await;
        }
    }

    fn so_far(&self) -> CapturedOutput {
        lock(&self.read).so_far()
    }
}
