//! [`Group`]: a child with its descendants, in a session of their own, and their watchdog on Unix.
//!
//! It starts, signals and reaps processes. Timeouts and output are handled elsewhere.

use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use process_wrap::std::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::mark::Mark;
use super::{Command, GRACE, REAP_WAIT};

pub(super) use rustix::process::Signal;
/// The read end of a group's output.
pub(super) type Pipe = tokio::net::unix::pipe::Receiver;
/// The write end of a group's input.
pub(super) type Feed = tokio::net::unix::pipe::Sender;

/// The ends of a child's streams that this process keeps.
pub(super) struct Streams {
    /// Its output, with its errors unless those are apart.
    pub(super) output: Pipe,
    /// Its input and its errors, if they are pipes of their own.
    pub(super) apart: Option<(Feed, Pipe)>,
}

/// The watchdog script. It reads the id of the child's group. Its second `read` returns when the
/// other end of its input is closed, which the kernel does when this process ends in any way. Then
/// it ends the group, and kills the processes that bear the mark of the child.
const WATCHDOG: &str = "trap '' TERM INT HUP; read -r group; read -r _
kill -TERM \"-$group\"; sleep \"$1\"; kill -KILL \"-$group\"
for left in $(grep -lsF \"$2\" /proc/[0-9]*/environ); do
left=${left#/proc/}; kill -KILL \"${left%/environ}\"; done";

/// A child that leads a session of its own, without a terminal.
///
/// Its watchdog is started before it. Dropping the group kills all of its processes.
#[derive(Debug)]
pub(super) struct Group {
    child: Pid,
    watchdog: Pid,
    /// A thread waits for the child, and reaps both when this sender is dropped. It also works
    /// after the runtime has ended, so that no zombies remain.
    ///
    /// Until then the two, even if dead, reserve their ids, so that a signal never hits an unrelated
    /// process.
    _reaper: mpsc::Sender<Started>,
    exited: CancellationToken,
    status: oneshot::Receiver<io::Result<ExitStatus>>,
    /// Open as long as this process lives. The watchdog holds the other end.
    _lifeline: Option<ChildStdin>,
}

/// The processes of a group that this process has started itself.
#[derive(Debug)]
struct Started {
    id: Pid,
    child: Box<dyn ChildWrapper>,
    watchdog: Child,
}

impl Group {
    /// Starts a child. Without streams apart, it has no input, and its output contains its errors.
    pub(super) fn start(command: &Command, is_apart: bool) -> io::Result<(Self, Streams)> {
        let (output, stdout) = io::pipe()?;
        let mut streams = Streams {
            output: Pipe::from_owned_fd(output.into())?,
            apart: None,
        };
        let mut prepared = command.prepared();
        if is_apart {
            let (stdin, input) = io::pipe()?;
            let (errors, stderr) = io::pipe()?;
            let (input, errors) = (input.into(), errors.into());
            streams.apart = Some((Feed::from_owned_fd(input)?, Pipe::from_owned_fd(errors)?));
            prepared.stdin(stdin).stderr(stderr);
        } else {
            prepared.stdin(Stdio::null()).stderr(stdout.try_clone()?);
        }
        prepared.stdout(stdout);
        Ok((Self::watched(prepared)?, streams))
    }

    fn watched(mut prepared: std::process::Command) -> io::Result<Self> {
        let mark = Mark::new();
        let exited = CancellationToken::new();
        let (tell, status) = oneshot::channel();
        let (reaper, started) = mpsc::channel();
        let reap = {
            let (mark, exited) = (mark.clone(), exited.clone());
            move || reap(&started, &mark, &exited, tell)
        };
        let name = "plimsoll-reaper".to_owned();
        thread::Builder::new().name(name).spawn(reap)?;
        let mut watchdog = watchdog(&mark)?;
        prepared.env(Mark::VARIABLE, &mark.0);
        let mut session = CommandWrap::from(prepared);
        let child = match session.wrap(ProcessSession).spawn() {
            // The wrapper would wait for the whole group.
            Ok(child) => child.into_inner(),
            Err(error) => {
                watchdog.kill()?;
                watchdog.wait()?;
                return Err(error);
            }
        };
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let id = id.ok_or(io::ErrorKind::InvalidData)?;
        let mut lifeline = watchdog.stdin.take();
        if let Some(lifeline) = &mut lifeline {
            // Fails only if the watchdog was killed, which the child survives.
            let _ = writeln!(lifeline, "{}", id.as_raw_pid());
        }
        let group = Self {
            child: id,
            watchdog: Pid::from_child(&watchdog),
            _reaper: reaper.clone(),
            exited,
            status,
            _lifeline: lifeline,
        };
        // The thread receives until the last sender is dropped.
        let _ = reaper.send(Started {
            id,
            child,
            watchdog,
        });
        Ok(group)
    }

    /// Returns the process id of the child.
    pub(super) fn id(&self) -> u32 {
        self.child.as_raw_pid().unsigned_abs()
    }

    /// Waits until the child has ended. Its background processes may still run.
    pub(super) async fn exited(&self) {
        self.exited.cancelled().await;
    }

    /// Returns `true` if the child has ended.
    pub(super) fn has_exited(&self) -> bool {
        self.exited.is_cancelled()
    }

    /// Sends a signal to the whole group.
    pub(super) fn signal(&self, signal: Signal) {
        // Fails only if no process is left, which is fine.
        let _ = kill_process_group(self.child, signal);
    }

    /// Kills the remaining processes and returns the exit status of the child.
    pub(super) async fn end(mut self) -> io::Result<ExitStatus> {
        let status = std::mem::replace(&mut self.status, oneshot::channel().1);
        drop(self);
        match tokio::time::timeout(REAP_WAIT, status).await {
            Ok(Ok(status)) => status,
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Before the sender is dropped and the thread may reap.
        self.signal(Signal::KILL);
        let _ = kill_process(self.watchdog, Signal::KILL);
    }
}

/// Waits for the child, reports its end, and reaps it when the group is dropped.
fn reap(
    started: &mpsc::Receiver<Started>,
    mark: &Mark,
    exited: &CancellationToken,
    tell: oneshot::Sender<io::Result<ExitStatus>>,
) {
    let Ok(mut processes) = started.recv() else {
        return;
    };
    await_exit(processes.id);
    exited.cancel();
    // Nothing more is sent. This waits until the group has been killed.
    let _ = started.recv();
    mark.kill_all(processes.id);
    let status = processes.child.wait();
    let _ = processes.watchdog.wait();
    // If the group was dropped, nobody receives this.
    let _ = tell.send(status);
}

/// Returns the signal that ended a child.
pub(super) fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Starts the watchdog, which ends a group when this process dies.
fn watchdog(mark: &Mark) -> io::Result<Child> {
    // It needs neither the environment nor the working directory, and does not keep them in use.
    std::process::Command::new("/bin/sh")
        .args(["-c", WATCHDOG, "plimsoll-watchdog"])
        .arg(GRACE.as_secs().to_string())
        .arg(mark.entry())
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
fn await_exit(id: Pid) {
    let id = WaitId::Pid(id);
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(Errno::INTR) = waitid(id.clone(), options) {}
}
