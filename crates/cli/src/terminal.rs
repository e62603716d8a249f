//! [`Terminal`]: the one place where `run` and `chat` write.
//!
//! On a terminal, the last rows are a live region: the block of Markdown that is still growing, and a
//! status line below it. See `screen.rs` for how it is drawn. Without a terminal, whole lines are
//! written. What is written is decided elsewhere.

mod highlight;
mod markdown;
mod queue;
mod screen;
mod stream;
pub(crate) mod style;
mod table;
pub(crate) mod text;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustyline::ExternalPrinter;

use crate::exit::Stop;
use crate::out;
use crate::terminal::queue::Op;
use crate::terminal::screen::{Printer, Screen, Stream};
use crate::terminal::style::{Colours, Style};
use crate::terminal::text::clean;

pub(crate) use screen::columns;

/// So long the end of a chat waits for what it has written.
const FLUSH: Duration = Duration::from_secs(2);

/// Where `run` and `chat` write.
pub(crate) struct Terminal {
    /// `None` if nothing is written to a terminal.
    queue: Option<queue::Sender>,
    /// Whether answers are written to the terminal; otherwise they go to standard output.
    answers: bool,
    /// Whether notes are written to the terminal; otherwise they go to standard error.
    notes: bool,
    /// The colours of notes.
    colours: Colours,
    /// The colours of answers, if those are written to the terminal.
    answers_in: Colours,
    verbosity: Verbosity,
    /// A line was sent since something was written. No lock: who writes may wait for the editor, and
    /// the editor must not wait for who writes.
    entered: Arc<AtomicBool>,
    /// Whether any writing was lost so far.
    incomplete: AtomicBool,
    failed: Mutex<Option<Stop>>,
}

/// A question that waits for its answer. Nothing else is written meanwhile.
pub(crate) struct Asking(Option<Sender<()>>);

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Everything,
    /// Answers, and what was asked for.
    Answers,
}

impl Terminal {
    /// Plain lines: what is asked for to standard output, the rest to standard error.
    pub(crate) fn plain(verbosity: Verbosity) -> Self {
        Self {
            queue: None,
            answers: false,
            notes: false,
            colours: Colours::None,
            answers_in: Colours::None,
            verbosity,
            entered: Arc::default(),
            incomplete: AtomicBool::new(false),
            failed: Mutex::default(),
        }
    }

    /// The rows above the line that is being edited.
    pub(crate) fn above(
        printer: Box<dyn ExternalPrinter + Send>,
        colours: Colours,
        verbosity: Verbosity,
    ) -> Self {
        let plain = Self::plain(verbosity);
        let printer = Printer::Above(printer);
        let queue = Screen::start(printer, colours, Arc::clone(&plain.entered));
        Self {
            queue: Some(queue),
            answers: true,
            notes: true,
            colours,
            answers_in: colours,
            ..plain
        }
    }

    /// The terminal of a command that reads no lines, as far as standard output and standard error
    /// are one; plain lines otherwise.
    pub(crate) fn direct(colours: Colours) -> Self {
        let plain = Self::plain(Verbosity::Everything);
        let answers = can_redraw(&console::Term::stdout());
        let notes = can_redraw(&console::Term::stderr());
        let stream = match (answers, notes) {
            (false, false) => return plain,
            (true, _) => Stream::Out,
            (false, true) => Stream::Err,
        };
        let printer = Printer::Direct(stream);
        let queue = Screen::start(printer, colours, Arc::clone(&plain.entered));
        Self {
            queue: Some(queue),
            answers,
            notes,
            colours: if notes { colours } else { Colours::None },
            answers_in: if answers { colours } else { Colours::None },
            ..plain
        }
    }

    /// Whether it is a terminal, on which text streams.
    pub(crate) fn is_live(&self) -> bool {
        self.answers
    }

    /// Whether some of what was written is missing on the terminal, which did not take it in time.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.incomplete.load(Ordering::SeqCst)
    }

    /// Whole lines of what was asked for.
    pub(crate) fn say(&self, text: &str) {
        match self.answers {
            true => self.op(Op::Lines(clean(text))),
            false => self.keep(out::line(format_args!("{text}"))),
        }
    }

    /// Whole lines of what was asked for, which hold nothing that others wrote but what is [clean].
    pub(crate) fn say_styled(&self, text: &str) {
        match self.answers {
            true => self.op(Op::Lines(text.to_owned())),
            false => self.keep(out::line(format_args!("{text}"))),
        }
    }

    /// Whole lines of what else there is to know.
    pub(crate) fn note(&self, text: &str) {
        if self.verbosity == Verbosity::Answers {
            return;
        }
        self.must(text);
    }

    /// The same, but never left out: something is wrong, or somebody is asked.
    pub(crate) fn must(&self, text: &str) {
        match self.notes {
            true => self.op(Op::Lines(text.to_owned())),
            // What a person should know is lost with its reader.
            false => drop(writeln!(io::stderr().lock(), "{text}")),
        }
    }

    /// A piece of Markdown as it comes; only where it [`is_live`](Self::is_live).
    pub(crate) fn stream(&self, text: &str) {
        self.op(Op::Markdown(clean(text)));
    }

    /// What is under way, in a row that the next one takes; `None` where nothing is.
    pub(crate) fn status(&self, text: Option<&str>) {
        if self.verbosity == Verbosity::Answers || !self.notes {
            return;
        }
        self.op(Op::Status(text.map(clean)));
    }

    /// Whether there is a row for what is under way.
    pub(crate) fn has_status(&self) -> bool {
        self.notes
    }

    /// Asks something on the terminal. What else is written waits for the answer.
    pub(crate) fn ask(&self, text: &str) -> Asking {
        if !self.notes {
            let mut err = io::stderr().lock();
            let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
            return Asking(None);
        }
        let (answered, waits) = channel();
        self.op(Op::Ask(text.to_owned(), waits));
        Asking(Some(answered))
    }

    /// Streamed text ends here.
    pub(crate) fn end_text(&self) {
        self.op(Op::End);
    }

    /// Somebody has sent a line: what stands above it stays as it is.
    pub(crate) fn entered(&self) {
        self.entered.store(true, Ordering::SeqCst);
    }

    /// Waits until all of it is written, for a while.
    pub(crate) fn flush(&self) {
        if self.queue.is_none() {
            return;
        }
        let (written, is_written) = sync_channel(1);
        self.op(Op::Flush(written));
        if is_written.recv_timeout(FLUSH).is_err() {
            self.incomplete.store(true, Ordering::SeqCst);
        }
    }

    /// Why nothing more can be written, if that is so; said once.
    pub(crate) fn failed(&self) -> Option<Stop> {
        lock(&self.failed).take()
    }

    /// The colours of notes.
    pub(crate) fn colours(&self) -> Colours {
        self.colours
    }

    /// The colours of answers, and of what was asked for.
    pub(crate) fn answer_colours(&self) -> Colours {
        self.answers_in
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.colours.paint(Style::DIM, text)
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.colours.paint(Style::BOLD, text)
    }

    fn keep(&self, written: Result<(), Stop>) {
        if let Err(stop) = written {
            lock(&self.failed).get_or_insert(stop);
        }
    }

    fn op(&self, op: Op) {
        let Some(queue) = &self.queue else {
            return;
        };
        if !queue.push(op) {
            self.incomplete.store(true, Ordering::SeqCst);
        }
    }
}

impl Asking {
    /// Tells that a line was entered. If this is never said, a new row is begun.
    pub(crate) fn answered(mut self) {
        if let Some(waits) = self.0.take() {
            let _ = waits.send(());
        }
    }
}

/// Breaks a text between words, so that it fits the terminal that is standard error.
pub(crate) fn wrapped(text: &str) -> String {
    text::rows_of(text, screen::columns(&console::Term::stderr())).join("\n")
}

/// Returns `true` if a stream is a terminal whose rows can be written over.
fn can_redraw(terminal: &console::Term) -> bool {
    if cfg!(windows) {
        // Asking also switches the console to escape sequences.
        return terminal.features().colors_supported();
    }
    terminal.is_term() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::terminal::queue::MAX_WAITING;
    use crate::terminal::screen::OVERWRITE;

    /// Rows as a terminal would have them.
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
        let terminal =
            Terminal::above(Box::new(rows.clone()), Colours::None, Verbosity::Everything);
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

    /// A printer that says when it is first called and then blocks until the other channel closes.
    struct Stuck {
        called: std::sync::mpsc::Sender<()>,
        go: std::sync::mpsc::Receiver<()>,
        rows: Rows,
    }

    impl ExternalPrinter for Stuck {
        fn print(&mut self, text: String) -> rustyline::Result<()> {
            // Errors: the test has closed its end, and everything is taken.
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
        let terminal = Terminal::above(stuck, Colours::None, Verbosity::Everything);
        // Each takes a thousandth of what there is room for.
        let long = format!("{}\n", "x".repeat(70)).repeat(MAX_WAITING / 71_000);
        terminal.note("line 0");
        // Else the queue is emptied in the middle, and only what follows is lost.
        is_called.recv().unwrap();
        for _ in 0..4_000 {
            terminal.note(&long);
        }
        drop(go);
        // Whoever reads has them all after a while, and then there is room again.
        terminal.flush();
        terminal.note("the end");
        terminal.flush();
        let rows = rows.0.lock().unwrap();
        assert_eq!(rows[0], "line 0");
        assert_eq!(rows.last().unwrap(), "the end");
        // As much as was being written, and as much as waited.
        assert!(rows.len() <= 2 * MAX_WAITING / 71 + 3, "{}", rows.len());
        assert!(
            rows[rows.len() - 2].starts_with("(there was no room for "),
            "{rows:?}"
        );
    }
}
