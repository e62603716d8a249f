//! A terminal, in as much as a chat uses one: what is written to it is a screen of rows, and what is
//! typed reaches the command as keys. Everything it is told is checked to be something it knows.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::command::{Home, with};
use super::fake::Fake;

/// What has not come by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ctrl-C, Ctrl-D and the arrow up, as a terminal sends them.
pub(crate) const INTERRUPT: &str = "\u{3}";
pub(crate) const END: &str = "\u{4}";
pub(crate) const UP: &str = "\u{1b}[A";

/// A command in a terminal. It ends with its owner.
pub(crate) struct Terminal {
    child: Child,
    master: File,
    slave: OwnedFd,
    pieces: Receiver<Vec<u8>>,
    /// All that was written.
    pub(crate) raw: String,
    columns: usize,
}

impl Terminal {
    /// A chat with this server in a terminal of so many columns.
    pub(crate) fn chat(
        home: &Home,
        fake: &Fake,
        args: &[&str],
        variables: &[(&str, &str)],
        columns: u16,
    ) -> Self {
        Self::of("chat", home, fake, args, variables, columns)
    }

    /// A run likewise. It writes more than [`screen`](Self::screen) knows; see what is
    /// [`raw`](Self::raw).
    pub(crate) fn run(home: &Home, fake: &Fake, args: &[&str]) -> Self {
        Self::of("run", home, fake, args, &[], 80)
    }

    fn of(
        command: &str,
        home: &Home,
        fake: &Fake,
        args: &[&str],
        variables: &[(&str, &str)],
        columns: u16,
    ) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let open = || {
            File::options()
                .read(true)
                .write(true)
                .open(name.to_str().unwrap())
        };
        let slave = open().unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size).unwrap();
        let mut args = with(fake, args);
        args[0] = command.to_owned();
        let mut command = home.command(args);
        command
            .env("TERM", "xterm-256color")
            .envs(variables.iter().copied())
            .stdin(open().unwrap())
            .stdout(open().unwrap())
            .stderr(open().unwrap());
        let child = command.spawn().unwrap();
        drop(command);
        let master = File::from(master);
        let mut reads = master.try_clone().unwrap();
        let (sender, pieces) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4_096];
            // A terminal that nobody has open any more is an error, not an end.
            while let Ok(count @ 1..) = reads.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            master,
            slave: slave.into(),
            pieces,
            raw: String::new(),
            columns: usize::from(columns),
        }
    }

    /// Types.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen has these words.
    pub(crate) fn until(&mut self, words: &str) {
        self.until_is(words, |screen| screen.contains(words));
    }

    /// Waits until the screen has these words so often.
    pub(crate) fn until_times(&mut self, words: &str, times: usize) {
        self.until_is(words, |screen| screen.matches(words).count() >= times);
    }

    /// Waits until the prompt, behind how full the window is, is this.
    pub(crate) fn until_prompt(&mut self, prompt: &str) {
        let end = format!(" % {prompt}");
        let is = |screen: &str| screen.lines().last().is_some_and(|row| row.ends_with(&end));
        self.until_is(prompt, is);
    }

    fn until_is(&mut self, what: &str, is: impl Fn(&str) -> bool) {
        let mut bytes = Vec::new();
        while !is(&self.screen()) {
            let piece = self.pieces.recv_timeout(PATIENCE);
            bytes.extend(piece.unwrap_or_else(|_| panic!("no `{what}`:\n{}", self.screen())));
            // A character may come in two pieces.
            if let Ok(text) = std::str::from_utf8(&bytes) {
                self.raw.push_str(text);
                bytes.clear();
            }
        }
        assert!(bytes.is_empty(), "half a character");
    }

    /// Waits until the chat has ended, and gives its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let code = self.child.wait().unwrap().code();
        // What it had written is there by now.
        while let Ok(piece) = self.pieces.recv_timeout(Duration::from_millis(100)) {
            self.raw.push_str(&String::from_utf8_lossy(&piece));
        }
        code
    }

    /// Whether the terminal reads lines and shows what is typed, as a shell wants it.
    pub(crate) fn is_as_it_was(&self) -> bool {
        let modes = tcgetattr(&self.slave).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// What stands there: all rows, those that a real one would have scrolled away among them.
    pub(crate) fn screen(&self) -> String {
        let (mut rows, mut row, mut column): (Vec<Vec<char>>, usize, usize) = (vec![vec![]], 0, 0);
        let mut chars = self.raw.chars();
        while let Some(c) = chars.next() {
            match c {
                '\r' => column = 0,
                '\n' => row += 1,
                '\u{7}' => {}
                '\u{1b}' => {
                    match chars.next() {
                        Some(kind) => assert_eq!(kind, '[', "an escape of another kind"),
                        // The rest of it comes with the next piece.
                        None => break,
                    }
                    let mut code = String::new();
                    let end = loop {
                        match chars.next() {
                            Some(c @ ('0'..='9' | ';' | '?')) => code.push(c),
                            Some(end) => break end,
                            None => break 'm',
                        }
                    };
                    let count = code.parse().unwrap_or(1);
                    match (end, code.as_str()) {
                        ('A', _) => row = row.checked_sub(count).expect("above the top"),
                        ('C', _) => column += count,
                        ('D', _) => column -= count,
                        ('K', "2") => rows[row].clear(),
                        ('K', _) => rows[row].truncate(column),
                        ('J', _) => {
                            rows[row].truncate(column);
                            rows.truncate(row + 1);
                        }
                        ('h' | 'l' | 'm', _) => {}
                        other => panic!("not known to this terminal: {other:?}"),
                    }
                }
                c => {
                    if column == self.columns {
                        (row, column) = (row + 1, 0);
                    }
                    if rows.len() <= row {
                        rows.resize(row + 1, Vec::new());
                    }
                    let cells = &mut rows[row];
                    if cells.len() <= column {
                        cells.resize(column + 1, ' ');
                    }
                    cells[column] = c;
                    column += 1;
                }
            }
            if rows.len() <= row {
                rows.resize(row + 1, Vec::new());
            }
        }
        let rows: Vec<String> = rows.iter().map(|row| row.iter().collect()).collect();
        let rows: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
        rows.join("\n")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
