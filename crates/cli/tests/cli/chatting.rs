//! A running chat, driven line by line. It ends when dropped.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use plimsoll_testkit::ChildGuard;
use rustix::process::{Pid, Signal};

use super::command::{CommandOutput, Home, with};
use super::fake::Fake;

/// A line that has not come by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// A chat under way.
pub(crate) struct Chat {
    child: ChildGuard,
    stdin: Option<ChildStdin>,
    out: Receiver<String>,
    err: Receiver<String>,
    /// What was read of each.
    seen: (String, String),
}

impl Chat {
    /// A chat with this server.
    pub(crate) fn start(home: &Home, fake: &Fake, args: &[&str]) -> Self {
        let mut args = with(fake, args);
        args[0] = "chat".to_owned();
        let mut child = home
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            out: lines(child.stdout.take().unwrap()),
            err: lines(child.stderr.take().unwrap()),
            child: ChildGuard::new(child),
            seen: Default::default(),
        }
    }

    /// One more line.
    pub(crate) fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
    }

    /// The next line of standard output.
    pub(crate) fn out(&mut self) -> String {
        let line = self.out.recv_timeout(PATIENCE);
        let line = line.unwrap_or_else(|_| panic!("no further line: {:?}", self.seen));
        self.seen.0 += &format!("{line}\n");
        line
    }

    /// The next line of standard error that has these words.
    pub(crate) fn err_until(&mut self, words: &str) -> String {
        loop {
            let line = self.err.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no `{words}`: {:?}", self.seen));
            self.seen.1 += &format!("{line}\n");
            if line.contains(words) {
                return line;
            }
        }
    }

    /// What Ctrl-C at a terminal does.
    pub(crate) fn interrupt(&self) {
        let group = Pid::from_child(&self.child);
        rustix::process::kill_process_group(group, Signal::INT).unwrap();
    }

    /// These lines, and their end.
    pub(crate) fn lines(mut self, lines: impl AsRef<[u8]>) -> CommandOutput {
        let mut stdin = self.stdin.take().unwrap();
        // A chat that has ended need not read them.
        let _ = stdin.write_all(lines.as_ref());
        drop(stdin);
        self.wait()
    }

    /// The end of the lines.
    pub(crate) fn end(mut self) -> CommandOutput {
        self.stdin = None;
        self.wait()
    }

    /// What it came to; it ends by itself.
    pub(crate) fn wait(mut self) -> CommandOutput {
        let (mut out, mut err) = std::mem::take(&mut self.seen);
        for line in self.out.iter() {
            out += &format!("{line}\n");
        }
        for line in self.err.iter() {
            err += &format!("{line}\n");
        }
        let code = self.child.wait().unwrap().code();
        CommandOutput { code, out, err }
    }
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
