//! A terminal: output is rendered like by a real one, and typed text reaches the command as keys.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use plimsoll_testkit::ChildGuard;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::command::{Home, with};
use super::fake::Fake;

/// What has not come by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// Rows of a screen that nothing scrolls away from.
const ROWS: u16 = 500;

/// Ctrl-C, Ctrl-D and the arrow up, as a terminal sends them.
pub(crate) const INTERRUPT: &str = "\u{3}";
pub(crate) const END: &str = "\u{4}";
pub(crate) const UP: &str = "\u{1b}[A";

/// A command in a terminal. It ends with its owner.
pub(crate) struct Terminal {
    child: ChildGuard,
    master: File,
    slave: OwnedFd,
    pieces: Receiver<Vec<u8>>,
    /// All that was written.
    raw: Vec<u8>,
    screen: vt100::Parser,
    columns: u16,
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

    /// A run likewise.
    pub(crate) fn run(home: &Home, fake: &Fake, args: &[&str], columns: u16) -> Self {
        Self::of("run", home, fake, args, &[], columns)
    }

    /// A run with these variables.
    pub(crate) fn run_with(
        home: &Home,
        fake: &Fake,
        args: &[&str],
        variables: &[(&str, &str)],
        columns: u16,
    ) -> Self {
        Self::of("run", home, fake, args, variables, columns)
    }

    fn of(
        command: &str,
        home: &Home,
        fake: &Fake,
        args: &[&str],
        variables: &[(&str, &str)],
        columns: u16,
    ) -> Self {
        let mut args = with(fake, args);
        args[0] = command.to_owned();
        Self::start(home.command(args), variables, columns)
    }

    /// Any command.
    pub(crate) fn start(mut command: Command, variables: &[(&str, &str)], columns: u16) -> Self {
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
        tcsetwinsize(&slave, size(columns)).unwrap();
        command
            .env("TERM", "xterm-256color")
            .envs(variables.iter().copied())
            .stdin(open().unwrap())
            .stdout(open().unwrap())
            .stderr(open().unwrap());
        let child = ChildGuard::new(command.spawn().unwrap());
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
            raw: Vec::new(),
            screen: blank(columns),
            columns,
        }
    }

    /// The characters on the screen, with their colours.
    pub(crate) fn cells(&self) -> &vt100::Screen {
        self.screen.screen()
    }

    /// Types.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Makes it so wide. What a narrower one has no room for stays on the screen.
    pub(crate) fn resize(&mut self, columns: u16) {
        tcsetwinsize(&self.slave, size(columns)).unwrap();
        let size = |of| NonZeroU16::new(of).unwrap();
        let columns = columns.max(self.columns);
        self.screen.screen_mut().set_size(size(ROWS), size(columns));
    }

    /// Does what Ctrl-C does where the terminal does not read keys one by one.
    pub(crate) fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
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
        while !is(&self.screen()) {
            let piece = self.pieces.recv_timeout(PATIENCE);
            let piece = piece.unwrap_or_else(|_| panic!("no `{what}`:\n{}", self.screen()));
            self.write(&piece);
        }
    }

    fn write(&mut self, piece: &[u8]) {
        self.raw.extend(piece);
        self.screen.process(piece);
    }

    /// Waits until the command has ended, and gives its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let code = self.child.wait().unwrap().code();
        // What it had written is there by now.
        while let Ok(piece) = self.pieces.recv_timeout(Duration::from_millis(100)) {
            self.write(&piece);
        }
        code
    }

    /// All that was written, with its escapes.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }

    /// The screen after each line feed, and at the end.
    pub(crate) fn frames(&self) -> impl Iterator<Item = String> {
        let mut screen = blank(self.columns);
        self.raw
            .split_inclusive(|byte| *byte == b'\n')
            .map(move |piece| {
                screen.process(piece);
                rows(&screen)
            })
    }

    /// Whether the terminal reads lines and shows what is typed, as a shell wants it.
    pub(crate) fn is_as_it_was(&self) -> bool {
        let modes = tcgetattr(&self.slave).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// All rows up to the last that is not empty.
    pub(crate) fn screen(&self) -> String {
        rows(&self.screen)
    }
}

/// Compares a screen with the file of this name in `screens/`. With `PLIMSOLL_BLESS=1`, the file is
/// written anew.
#[track_caller]
pub(crate) fn assert_screen(name: &str, screen: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/screens");
    let file = folder.join(name).with_extension("txt");
    let screen = format!("{screen}\n");
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(&file, &screen).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(screen, expected, "{}", file.display());
}

fn size(columns: u16) -> Winsize {
    Winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

fn blank(columns: u16) -> vt100::Parser {
    let size = |of| NonZeroU16::new(of).unwrap();
    vt100::Parser::new(size(ROWS), size(columns), 0)
}

fn rows(screen: &vt100::Parser) -> String {
    let screen = screen.screen();
    let (_, columns) = screen.size();
    let rows = screen.rows(0, columns.get());
    let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
    rows.join("\n").trim_end_matches('\n').to_owned()
}
