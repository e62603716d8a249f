//! [`Terminal`]: the output of `run` and `chat`.
//!
//! On a terminal, the last rows are a live region: the block of Markdown that is still growing, and
//! a status line below it. See `screen.rs` for the drawing. Without a terminal, whole lines are
//! written.

mod markdown;
mod queue;
mod screen;
mod stream;
pub(crate) mod style;
mod table;
pub(crate) mod text;

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use console::Term;

use crate::error::CliError;
use crate::lock;
use crate::stdout;
use crate::terminal::queue::{Op, Queue};
use crate::terminal::screen::{LinePrinter, Screen};
use crate::terminal::style::use_colours;
use crate::terminal::text::clean;

pub(crate) use screen::{columns, fitted};

/// How long the end of a chat waits for its pending output.
const FLUSH: Duration = Duration::from_secs(2);

/// The output of `run` and `chat`: a terminal, or plain lines: answers on standard output, notes on
/// standard error.
pub(crate) struct Terminal {
    /// The queue of the screen's thread. `None` for plain lines.
    queue: Option<Queue>,
    /// Whether notes and the status are left out.
    is_quiet: bool,
    /// Whether the user entered a line since the last output. An atomic instead of a lock: a thread
    /// that writes may wait for the editor, so the editor must never wait for that thread.
    entered: Arc<AtomicBool>,
    failed: Mutex<Option<CliError>>,
}

impl Terminal {
    /// Creates an output of plain lines.
    pub(crate) fn plain(is_quiet: bool) -> Self {
        Self {
            queue: None,
            is_quiet,
            entered: Arc::default(),
            failed: Mutex::default(),
        }
    }

    /// Creates an output that writes rows above the line that is being edited.
    pub(crate) fn above(printer: LinePrinter, is_quiet: bool) -> Self {
        Self::plain(is_quiet).drawn(Some(printer))
    }

    /// Creates the output of a command that reads no lines: plain lines unless both standard streams are
    /// terminals, or if only answers are printed.
    pub(crate) fn direct(is_quiet: bool) -> Self {
        let plain = Self::plain(is_quiet);
        if is_quiet || !can_redraw(&Term::stdout()) || !can_redraw(&Term::stderr()) {
            return plain;
        }
        plain.drawn(None)
    }

    fn drawn(self, printer: Option<LinePrinter>) -> Self {
        use_colours();
        let entered = Arc::clone(&self.entered);
        Self {
            queue: Some(Screen::start(Term::stdout(), printer, entered)),
            ..self
        }
    }

    /// Returns `true` if the output is a terminal, on which text streams.
    pub(crate) fn is_live(&self) -> bool {
        self.queue.is_some()
    }

    /// Writes requested output as whole lines.
    pub(crate) fn say(&self, text: &str) {
        if self.is_live() {
            self.say_styled(&clean(text));
        } else {
            self.say_styled(text);
        }
    }

    /// Writes requested output as whole lines, without cleaning it. The caller must have
    /// [cleaned](clean) all foreign text in it.
    pub(crate) fn say_styled(&self, text: &str) {
        if self.is_live() {
            self.push(Op::Lines(text.to_owned()));
        } else if let Err(stop) = stdout::line(format_args!("{text}")) {
            lock(&self.failed).get_or_insert(stop);
        }
    }

    /// Writes a note as whole lines.
    pub(crate) fn note(&self, text: &str) {
        if !self.is_quiet {
            self.must(text);
        }
    }

    /// Writes a note that is never suppressed, such as a warning or a question.
    pub(crate) fn must(&self, text: &str) {
        if self.is_live() {
            self.push(Op::Lines(text.to_owned()));
        } else {
            // If nobody reads standard error, the note is lost.
            let _ = writeln!(io::stderr().lock(), "{text}");
        }
    }

    /// Reports a problem after the program's name. The text may be a server's.
    pub(crate) fn complain(&self, text: impl Display) {
        self.must(&clean(&format!("plimsoll: {text}")));
    }

    /// Writes the next piece of streamed Markdown. Only if [`is_live`](Self::is_live).
    pub(crate) fn stream(&self, text: &str) {
        self.push(Op::Markdown(clean(text)));
    }

    /// Sets the status line. `None` removes it.
    pub(crate) fn status(&self, text: Option<&str>) {
        if !self.is_quiet {
            self.push(Op::Status(text.map(clean)));
        }
    }

    /// Ends the streamed text.
    pub(crate) fn end_text(&self) {
        self.push(Op::End);
    }

    /// Notes that the user entered a line. The rows above it are not redrawn any more.
    pub(crate) fn entered(&self) {
        self.entered.store(true, Ordering::SeqCst);
    }

    /// Waits until all output is written, at most for [`FLUSH`].
    pub(crate) fn flush(&self) {
        if let Some(queue) = &self.queue {
            queue.flush(FLUSH);
        }
    }

    /// Takes the first error that occurred while writing, if any.
    pub(crate) fn failed(&self) -> Option<CliError> {
        lock(&self.failed).take()
    }

    fn push(&self, op: Op) {
        if let Some(queue) = &self.queue {
            queue.push(op);
        }
    }
}

/// Breaks a text between words, so that it fits a terminal. Returns it unchanged if the output is not
/// one. A line with a word that is wider than the terminal, such as a path, is left to the terminal,
/// which keeps it whole for copying.
pub(crate) fn wrapped(text: &str, terminal: &Term) -> String {
    let Some(width) = columns(terminal) else {
        return text.to_owned();
    };
    let is_long = |word: &str| console::measure_text_width(word) > width;
    let lines = text.split('\n').map(|line| {
        if line.split(' ').any(is_long) {
            line.to_owned()
        } else {
            text::rows_of(line, width).join("\n")
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns `true` if a stream is a terminal whose rows can be overwritten.
fn can_redraw(terminal: &Term) -> bool {
    if cfg!(windows) {
        // On Windows, this call also switches the console to escape sequences.
        return terminal.features().colors_supported();
    }
    terminal.is_term() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {

    use rustyline::ExternalPrinter;

    use super::*;
    use crate::terminal::queue::MAX_WAITING;
    use crate::terminal::screen::OVERWRITE;

    /// The rows that a terminal would show.
    #[derive(Clone, Default)]
    struct Rows(Arc<Mutex<Vec<String>>>);

    impl ExternalPrinter for Rows {
        fn print(&mut self, text: String) -> rustyline::Result<()> {
            assert!(text.ends_with('\n'), "{text:?}");
            let mut rows = self.0.lock().unwrap();
            let mut text = text.as_str();
            while let Some(rest) = text.strip_prefix(OVERWRITE) {
                rows.pop().unwrap();
                text = rest;
            }
            assert!(!text.contains(OVERWRITE));
            rows.extend(text.lines().map(str::to_owned));
            Ok(())
        }
    }

    fn terminal() -> (Terminal, Rows) {
        let rows = Rows::default();
        let terminal = Terminal::above(Box::new(rows.clone()), false);
        (terminal, rows)
    }

    #[test]
    fn text_streams_into_one_row_after_the_other() {
        let (terminal, rows) = terminal();
        for piece in ["It is", " forty-", "two.\nAnd", " so on"] {
            terminal.stream(piece);
        }
        terminal.flush();
        assert_eq!(*rows.0.lock().unwrap(), ["It is forty-two.", "And so on"]);
        terminal.note("done");
        terminal.stream("x");
        terminal.flush();
        assert_eq!(
            *rows.0.lock().unwrap(),
            ["It is forty-two.", "And so on", "", "done", "", "x"]
        );
    }

    #[test]
    fn a_status_is_written_over_and_leaves_nothing_behind() {
        let (terminal, rows) = terminal();
        terminal.status(Some("read runs"));
        terminal.status(Some("bash runs"));
        terminal.flush();
        assert_eq!(*rows.0.lock().unwrap(), ["bash runs"]);
        terminal.note("· bash → 2 lines");
        terminal.flush();
        assert_eq!(*rows.0.lock().unwrap(), ["· bash → 2 lines", "bash runs"]);
        terminal.stream("It ");
        terminal.flush();
        assert_eq!(
            *rows.0.lock().unwrap(),
            ["· bash → 2 lines", "", "It", "", "bash runs"]
        );
        terminal.status(None);
        terminal.stream("passes.");
        terminal.flush();
        assert_eq!(
            *rows.0.lock().unwrap(),
            ["· bash → 2 lines", "", "It passes."]
        );
    }

    #[test]
    fn what_stands_above_a_sent_line_is_not_written_over() {
        let (terminal, rows) = terminal();
        terminal.stream("It is for");
        terminal.flush();
        rows.0.lock().unwrap().push("> hurry".to_owned());
        terminal.entered();
        terminal.stream("ty-two.");
        terminal.flush();
        assert_eq!(*rows.0.lock().unwrap(), ["It is for", "> hurry", "ty-two."]);
    }

    /// A printer that reports its first call and then blocks until the other channel closes.
    struct Stuck {
        called: std::sync::mpsc::Sender<()>,
        go: std::sync::mpsc::Receiver<()>,
        rows: Rows,
    }

    impl ExternalPrinter for Stuck {
        fn print(&mut self, text: String) -> rustyline::Result<()> {
            // Errors mean that the test has closed its end; everything is accepted then.
            let _ = self.called.send(());
            let _ = self.go.recv();
            self.rows.print(text)
        }
    }

    #[test]
    fn who_writes_never_waits_and_is_told_what_was_lost() {
        let (go, waits) = std::sync::mpsc::channel();
        let (called, is_called) = std::sync::mpsc::channel();
        let rows = Rows::default();
        let stuck = Box::new(Stuck {
            called,
            go: waits,
            rows: rows.clone(),
        });
        let terminal = Terminal::above(stuck, false);
        terminal.note("line 0");
        // Otherwise the queue is emptied in the middle, and only later lines are lost.
        is_called.recv().unwrap();
        for _ in 0..2 * MAX_WAITING {
            terminal.note("x");
        }
        drop(go);
        // The screen writes all waiting rows after a while, and then the queue has space again.
        terminal.flush();
        terminal.note("the end");
        terminal.flush();
        let rows = rows.0.lock().unwrap();
        assert_eq!(rows[0], "line 0");
        assert_eq!(rows.last().unwrap(), "the end");
        // The rows that were being written, and the rows that waited.
        assert!(rows.len() <= MAX_WAITING + 3, "{}", rows.len());
        assert!(
            rows[rows.len() - 2].contains(" pieces of output were dropped "),
            "{rows:?}"
        );
    }
}
