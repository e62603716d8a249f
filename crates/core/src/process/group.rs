//! [`Group`]: a child, all that it starts, and their watchdog, as one process group on Unix.
//! It starts, signals and reaps; it knows nothing of time or of what is printed.

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
/// Where a group's output is read.
pub(super) type Pipe = tokio::net::unix::pipe::Receiver;
/// Where a group's input is written.
pub(super) type Feed = tokio::net::unix::pipe::Sender;

/// The three streams of a child.
pub(super) struct Streams {
    pub(super) input: Feed,
    pub(super) output: Pipe,
    pub(super) errors: Pipe,
}

/// What waits for this process to die: `read` returns when the other end of its input is
/// closed, which the kernel does for whoever held it, however that one ended. It ignores the
/// signals that ask the rest to end, so that it is there for the one that makes them.
const WATCHDOG: &str = "trap '' TERM INT HUP; read -r _; kill -TERM 0; sleep \"$1\"; kill -KILL 0";

/// A process group, led by its watchdog: that one is there before the child is, so there is no
/// moment at which this process may die and leave the child behind. Dropping the group kills it.
#[derive(Debug)]
pub(super) struct Group {
    child: Pid,
    watch: Watch,
}

/// The watchdog of a group, and a thread that reaps the group's children. A thread and no task:
/// it also does so after the runtime has ended, so no zombie is ever left. Dropping it kills the
/// group.
#[derive(Debug)]
struct Watch {
    group: Pid,
    /// The watchdog, then the child. It reaps when this is dropped. Until then the watchdog, dead
    /// or alive, keeps the group's id from being given to another, so that a signal never hits a
    /// stranger.
    children: mpsc::Sender<Child>,
    exited: CancellationToken,
    status: Option<oneshot::Receiver<io::Result<ExitStatus>>>,
    /// Open as long as this process lives; the watchdog has the other end.
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

    /// The same with each of its three streams in a pipe of its own.
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

    /// The process id of the child.
    pub(super) fn id(&self) -> u32 {
        self.child.as_raw_pid().unsigned_abs()
    }

    /// Returns once the child has ended; what it left behind may still run.
    pub(super) async fn exited(&self) {
        self.watch.exited.cancelled().await;
    }

    /// Whether the child has ended.
    pub(super) fn has_exited(&self) -> bool {
        self.watch.exited.is_cancelled()
    }

    /// Sends a signal to all.
    pub(super) fn signal(&self, signal: Signal) {
        self.watch.signal(signal);
    }

    /// Kills all that is left and says how the child ended.
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
            // None where the child could not be started.
            let child = taken.recv().ok();
            if let Some(child) = &child {
                await_exit(child);
            }
            tell_exit.cancel();
            // Nobody sends any more: this waits until the group has been killed.
            let _ = taken.recv();
            let status = child.map(|mut child| child.wait());
            let _ = watchdog.wait();
            if let Some(status) = status {
                // Nobody listens where the group was dropped.
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
        // The thread listens until this sender is dropped.
        let _ = self.children.send(child);
    }

    fn signal(&self, signal: Signal) {
        // Where there is nobody left to hear it, all is well.
        let _ = kill_process_group(self.group, signal);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Before the thread may reap, which is when the sender is dropped.
        self.signal(Signal::KILL);
    }
}

/// The signal that ended a child.
pub(super) fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Starts the process that leads a group, and ends it when this process has died.
fn watchdog() -> io::Result<Child> {
    // Of the environment and the folder it needs nothing, and holds nothing.
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

/// Blocks until the process has ended, and leaves it to be reaped.
fn await_exit(child: &Child) {
    let id = WaitId::Pid(Pid::from_child(child));
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(Errno::INTR) = waitid(id.clone(), options) {}
}
