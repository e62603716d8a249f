//! [`Group`]: a child, its descendants and their watchdog as a process group on Unix.
//!
//! It starts, signals and reaps processes. Timeouts and output are handled elsewhere.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Command, GRACE, REAP_WAIT};

pub(super) use rustix::process::Signal;
/// The read end of a group's output.
pub(super) type Pipe = tokio::net::unix::pipe::Receiver;
/// The write end of a group's input.
pub(super) type Feed = tokio::net::unix::pipe::Sender;

/// The three streams of a child.
pub(super) struct Streams {
    pub(super) input: Feed,
    pub(super) output: Pipe,
    pub(super) errors: Pipe,
}

/// The watchdog script. Its `read` returns when the other end of its input is closed, which the
/// kernel does when this process ends in any way. It ignores the signals that it sends to end the
/// others.
const WATCHDOG: &str = "trap '' TERM INT HUP; read -r _; kill -TERM 0; sleep \"$1\"; kill -KILL 0";

/// A process group led by its watchdog.
///
/// The watchdog is started before the child, so that the child cannot survive this process at any
/// moment. Dropping the group kills it.
#[derive(Debug)]
pub(super) struct Group {
    child: Pid,
    watch: Watch,
}

/// The watchdog of a group, and a thread that reaps the group's children.
///
/// A thread also works after the runtime has ended, so that no zombies remain. Dropping this kills
/// the group.
#[derive(Debug)]
struct Watch {
    group: Pid,
    /// Sends the watchdog, then the child, to the thread, which reaps them when this sender is
    /// dropped.
    ///
    /// Until then the watchdog, even if dead, reserves the id of the group, so that a signal never
    /// hits an unrelated process.
    children: mpsc::Sender<Child>,
    exited: CancellationToken,
    status: Option<oneshot::Receiver<io::Result<ExitStatus>>>,
    /// Open as long as this process lives. The watchdog holds the other end.
    _lifeline: Option<ChildStdin>,
}

impl Group {
    /// Starts a child in a new group.
    pub(super) fn start(command: &Command) -> io::Result<(Self, Pipe)> {
        let (reader, writer) = io::pipe()?;
        let pipe = Pipe::from_owned_fd(reader.into())?;
        let mut prepared = command.prepared();
        prepared
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let group = Self::watched(prepared)?;
        Ok((group, pipe))
    }

    /// Like [`Self::start`], with a separate pipe for each of the three streams.
    pub(super) fn talk(command: &Command) -> io::Result<(Self, Streams)> {
        let (stdin, input) = io::pipe()?;
        let (output, stdout) = io::pipe()?;
        let (errors, stderr) = io::pipe()?;
        let streams = Streams {
            input: Feed::from_owned_fd(input.into())?,
            output: Pipe::from_owned_fd(output.into())?,
            errors: Pipe::from_owned_fd(errors.into())?,
        };
        let mut prepared = command.prepared();
        prepared.stdin(stdin).stdout(stdout).stderr(stderr);
        Ok((Self::watched(prepared)?, streams))
    }

    fn watched(mut prepared: std::process::Command) -> io::Result<Self> {
        let watch = Watch::start()?;
        let child = prepared.process_group(watch.group.as_raw_pid()).spawn()?;
        let id = Pid::from_child(&child);
        watch.take(child);
        Ok(Self { child: id, watch })
    }

    /// Returns the process id of the child.
    pub(super) fn id(&self) -> u32 {
        self.child.as_raw_pid().unsigned_abs()
    }

    /// Waits until the child has ended. Its background processes may still run.
    pub(super) async fn exited(&self) {
        self.watch.exited.cancelled().await;
    }

    /// Returns `true` if the child has ended.
    pub(super) fn has_exited(&self) -> bool {
        self.watch.exited.is_cancelled()
    }

    /// Sends a signal to the whole group.
    pub(super) fn signal(&self, signal: Signal) {
        self.watch.signal(signal);
    }

    /// Kills the remaining processes and returns the exit status of the child.
    pub(super) async fn end(mut self) -> io::Result<ExitStatus> {
        let status = self.watch.status.take();
        drop(self);
        let late = || Err(io::ErrorKind::TimedOut.into());
        let Some(status) = status else {
            return late();
        };
        match tokio::time::timeout(REAP_WAIT, status).await {
            Ok(Ok(status)) => status,
            _ => late(),
        }
    }
}

impl Watch {
    fn start() -> io::Result<Self> {
        let exited = CancellationToken::new();
        let (children, taken) = mpsc::channel::<Child>();
        let (tell, status) = oneshot::channel();
        let tell_exit = exited.clone();
        let reap = move || {
            let Ok(mut watchdog) = taken.recv() else {
                return;
            };
            // `None` if the child could not be started.
            let child = taken.recv().ok();
            if let Some(child) = &child {
                await_exit(child);
            }
            tell_exit.cancel();
            // Nothing more is sent. This waits until the group has been killed.
            let _ = taken.recv();
            let status = child.map(|mut child| child.wait());
            let _ = watchdog.wait();
            if let Some(status) = status {
                // If the group was dropped, nobody receives this.
                let _ = tell.send(status);
            }
        };
        let name = "plimsoll-reaper".to_owned();
        thread::Builder::new().name(name).spawn(reap)?;
        let mut watchdog = watchdog()?;
        let watch = Self {
            group: Pid::from_child(&watchdog),
            children,
            exited,
            status: Some(status),
            _lifeline: watchdog.stdin.take(),
        };
        watch.take(watchdog);
        Ok(watch)
    }

    fn take(&self, child: Child) {
        // The thread receives until this sender is dropped.
        let _ = self.children.send(child);
    }

    fn signal(&self, signal: Signal) {
        // Fails only if no process is left, which is fine.
        let _ = kill_process_group(self.group, signal);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Before the sender is dropped and the thread may reap.
        self.signal(Signal::KILL);
    }
}

/// Returns the signal that ended a child.
pub(super) fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Starts the watchdog, which leads a group and ends it when this process dies.
fn watchdog() -> io::Result<Child> {
    // It needs neither the environment nor the working directory, and does not keep them in use.
    std::process::Command::new("/bin/sh")
        .args(["-c", WATCHDOG, "plimsoll-watchdog"])
        .arg(GRACE.as_secs().to_string())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// Blocks until the process has ended, without reaping it.
fn await_exit(child: &Child) {
    let id = WaitId::Pid(Pid::from_child(child));
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(Errno::INTR) = waitid(id.clone(), options) {}
}
