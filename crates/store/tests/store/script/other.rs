//! A second process that holds a session: this test program, started again. It obeys the lines on
//! its stdin.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStderr, ChildStdin, Command, Stdio};

use plimsoll_testkit::ChildGuard;
use rustix::process::{Pid, Signal, kill_process};

/// Says to a started program that it is the other process, and which store to use.
pub(crate) const PLACE: &str = "PLIMSOLL_STORE_TEST_PLACE";

#[cfg(feature = "postgres")]
/// The error of a process that has lost the session `s`.
pub(crate) const LOST: &str = "session s was taken over by another process while this one was paused: nothing of this step was written; open the session again to continue";

/// A second process that holds the session `s` and obeys the test.
pub(crate) struct Other {
    pub(crate) child: ChildGuard,
    told: ChildStdin,
    says: Lines<BufReader<ChildStderr>>,
}

impl Other {
    pub(crate) fn start(test: &str, place: impl AsRef<OsStr>) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads", "1"])
            .env(PLACE, place)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let told = child.stdin.take().unwrap();
        let says = BufReader::new(child.stderr.take().unwrap()).lines();
        let child = ChildGuard::new(child);
        let mut other = Self { child, told, says };
        assert_eq!(other.next(), "held");
        other
    }

    fn next(&mut self) -> String {
        self.says.next().unwrap().unwrap()
    }

    /// Tells it to do something, and returns what came of it.
    pub(crate) fn ask(&mut self, what: &str) -> String {
        writeln!(self.told, "{what}").unwrap();
        self.next()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }
}
