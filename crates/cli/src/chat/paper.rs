//! [`Paper`]: the one place where `run` and `chat` write.
//!
//! On a terminal, the last rows are a live region: the unfinished row of a streamed text, and a status
//! line below it. The region is erased before whole lines are written and drawn again below them, so
//! text and status never share a row. Without a terminal, whole lines are written. What is written is
//! decided elsewhere.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use console::measure_text_width;
use rustyline::ExternalPrinter;

use crate::exit::Stop;
use crate::out;

/// The width that is written to where the terminal does not say its own.
const COLUMNS: u16 = 80;
/// Columns of a terminal, at least: of a narrower one nothing can be read anyway.
const LEAST_COLUMNS: usize = 20;
/// What stands for a tab, whose width depends on where it stands.
const TAB: &str = "    ";
/// Up one row, to its beginning, and empty it.
const OVERWRITE: &str = "\u{1b}[1A\r\u{1b}[2K";

/// Writings that wait for the editor, at most: it takes none while it shows completions or searches
/// the history, and a run must not wait for that. What is beyond is lost, which is said.
const WAITING: usize = 4_096;
/// So long the end of a chat waits for what it has written.
const FLUSH: Duration = Duration::from_secs(2);
/// How often the spinner of a status line turns.
const TICK: Duration = Duration::from_millis(120);
/// The frames of the spinner.
const SPINNER: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Where `run` and `chat` write.
pub(crate) struct Paper {
    sheet: Option<SyncSender<Op>>,
    /// Whether answers are written to the sheet; otherwise they go to standard output.
    answers: bool,
    /// Whether notes are written to the sheet; otherwise they go to standard error.
    notes: bool,
    colours: Colours,
    says: Says,
    /// A line was sent since something was written. No lock: who writes may wait for the editor, and
    /// the editor must not wait for who writes.
    entered: Arc<AtomicBool>,
    /// Writings that there was no room for.
    lost: AtomicUsize,
    /// Whether any writing was lost so far.
    incomplete: AtomicBool,
    failed: Mutex<Option<Stop>>,
}

/// A question that waits for its answer. Nothing else is written meanwhile.
pub(crate) struct Asking(Option<Sender<()>>);

/// What is written, in order, by a thread of its own.
enum Op {
    Lines(String),
    Stream(String),
    Status(Option<String>),
    EndRow,
    /// A question, the cursor staying behind it; nothing more is written until it is answered or
    /// dropped.
    Ask(String, Receiver<()>),
    /// Answered once all before it is written.
    Flush(SyncSender<()>),
}

/// What a sheet is written with.
enum Printer {
    /// Above the line that is being edited.
    Above(Box<dyn ExternalPrinter + Send>),
    /// At the cursor.
    Direct(Stream),
}

/// A standard stream that is a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

/// Whether there are any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    None,
    Ansi,
}

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    Everything,
    /// Answers, and what was asked for.
    Answers,
}

/// The rows of a terminal, up to the prompt if there is one.
struct Sheet {
    printer: Printer,
    /// Streamed text whose row is not full.
    row: String,
    /// What is under way, below that row.
    status: Option<String>,
    /// How many of the last rows are these two, to be written over.
    shown: usize,
    /// Which frame of the spinner is drawn next.
    frame: usize,
    entered: Arc<AtomicBool>,
}

impl Paper {
    /// Plain lines: what is asked for to standard output, the rest to standard error.
    pub(crate) fn plain(says: Says) -> Self {
        Self {
            sheet: None,
            answers: false,
            notes: false,
            colours: Colours::None,
            says,
            entered: Arc::default(),
            lost: AtomicUsize::new(0),
            incomplete: AtomicBool::new(false),
            failed: Mutex::default(),
        }
    }

    /// The rows above the line that is being edited.
    pub(crate) fn above(
        printer: Box<dyn ExternalPrinter + Send>,
        colours: Colours,
        says: Says,
    ) -> Self {
        let plain = Self::plain(says);
        let printer = Printer::Above(printer);
        Self {
            sheet: Some(Sheet::start(printer, Arc::clone(&plain.entered))),
            answers: true,
            notes: true,
            colours,
            ..plain
        }
    }

    /// The terminal of a command that reads no lines, as far as standard output and standard error
    /// are one; plain lines otherwise.
    pub(crate) fn direct(colours: Colours) -> Self {
        let plain = Self::plain(Says::Everything);
        let answers = can_redraw(&console::Term::stdout());
        let notes = can_redraw(&console::Term::stderr());
        let stream = match (answers, notes) {
            (false, false) => return plain,
            (true, _) => Stream::Out,
            (false, true) => Stream::Err,
        };
        let printer = Printer::Direct(stream);
        Self {
            sheet: Some(Sheet::start(printer, Arc::clone(&plain.entered))),
            answers,
            notes,
            colours: if notes { colours } else { Colours::None },
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

    /// Whole lines of what else there is to know.
    pub(crate) fn note(&self, text: &str) {
        if self.says == Says::Answers {
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

    /// A piece of text as it comes; only where it [`is_live`](Self::is_live).
    pub(crate) fn stream(&self, text: &str) {
        self.op(Op::Stream(clean(text)));
    }

    /// What is under way, in a row that the next one takes; `None` where nothing is.
    pub(crate) fn status(&self, text: Option<&str>) {
        if self.says == Says::Answers || !self.notes {
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
    pub(crate) fn end_row(&self) {
        self.op(Op::EndRow);
    }

    /// Somebody has sent a line: what stands above it stays as it is.
    pub(crate) fn entered(&self) {
        self.entered.store(true, Ordering::SeqCst);
    }

    /// Waits until all of it is written, for a while.
    pub(crate) fn flush(&self) {
        let Some(sheet) = self.sheet.clone() else {
            return;
        };
        let (written, is_written) = sync_channel(1);
        // There may be no room for that, either.
        std::thread::spawn(move || sheet.send(Op::Flush(written)));
        if is_written.recv_timeout(FLUSH).is_err() {
            self.incomplete.store(true, Ordering::SeqCst);
        }
    }

    /// Why nothing more can be written, if that is so; said once.
    pub(crate) fn failed(&self) -> Option<Stop> {
        lock(&self.failed).take()
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.painted("2", text)
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.painted("1", text)
    }

    fn painted(&self, code: &str, text: &str) -> String {
        match self.colours {
            Colours::Ansi => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Colours::None => text.to_owned(),
        }
    }

    fn keep(&self, written: Result<(), Stop>) {
        if let Err(stop) = written {
            lock(&self.failed).get_or_insert(stop);
        }
    }

    fn op(&self, op: Op) {
        let Some(sheet) = &self.sheet else {
            return;
        };
        let lost = self.lost.swap(0, Ordering::SeqCst);
        if lost > 0 {
            let text = format!("(there was no room for {lost} pieces of what was said here)");
            if sheet.try_send(Op::Lines(text)).is_err() {
                self.lost.fetch_add(lost, Ordering::SeqCst);
            }
        }
        if sheet.try_send(op).is_err() {
            self.lost.fetch_add(1, Ordering::SeqCst);
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

impl Printer {
    /// Writes rows. A terminal that has gone away is no fault of ours.
    fn print(&mut self, text: &str) {
        let stream = match self {
            Self::Above(printer) => {
                if printer.print(text.to_owned()).is_ok() {
                    return;
                }
                // If nobody edits a line any more, the terminal is ours.
                Stream::Out
            }
            Self::Direct(stream) => *stream,
        };
        let _ = match stream {
            Stream::Out => write_to(&mut io::stdout().lock(), text),
            Stream::Err => write_to(&mut io::stderr().lock(), text),
        };
    }

    /// The columns that are written to: one less than there are, since terminals differ in what they
    /// do after the last.
    fn columns(&self) -> usize {
        columns(&match self {
            Self::Direct(Stream::Err) => console::Term::stderr(),
            _ => console::Term::stdout(),
        })
    }
}

fn columns(terminal: &console::Term) -> usize {
    let columns = terminal
        .size_checked()
        .map_or(COLUMNS, |(_, columns)| columns);
    usize::from(columns).saturating_sub(1).max(LEAST_COLUMNS)
}

/// Breaks a text between words, so that it fits the terminal that is standard error.
pub(crate) fn wrapped(text: &str) -> String {
    let mut text = format!("{text}\n");
    full_rows(&mut text, columns(&console::Term::stderr())).join("\n")
}

/// Returns `true` if a stream is a terminal whose rows can be written over.
fn can_redraw(terminal: &console::Term) -> bool {
    if cfg!(windows) {
        // Asking also switches the console to escape sequences.
        return terminal.features().colors_supported();
    }
    terminal.is_term() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn write_to(stream: &mut impl Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

impl Sheet {
    /// Writes what it is sent, on a thread of its own: a terminal may take its time. It ends with its
    /// sender.
    fn start(printer: Printer, entered: Arc<AtomicBool>) -> SyncSender<Op> {
        let mut sheet = Self {
            printer,
            row: String::new(),
            status: None,
            shown: 0,
            frame: 0,
            entered,
        };
        let (operations, waiting) = sync_channel(WAITING);
        std::thread::spawn(move || {
            loop {
                match sheet.next(&waiting) {
                    Ok(op) => sheet.does(op),
                    Err(RecvTimeoutError::Timeout) => sheet.print(Vec::new()),
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        operations
    }

    /// The next operation. While a spinner is drawn, it is waited for until the spinner has to turn.
    fn next(&self, waiting: &Receiver<Op>) -> Result<Op, RecvTimeoutError> {
        if self.spins() && self.status.is_some() {
            return waiting.recv_timeout(TICK);
        }
        waiting.recv().map_err(|_| RecvTimeoutError::Disconnected)
    }

    /// Whether the status line has a spinner: above a prompt, each frame would draw the prompt anew.
    fn spins(&self) -> bool {
        matches!(self.printer, Printer::Direct(_))
    }

    fn does(&mut self, op: Op) {
        if self.entered.swap(false, Ordering::SeqCst) {
            self.row.clear();
            self.shown = 0;
        }
        match op {
            Op::Lines(text) => self.lines(&text),
            Op::Stream(text) => self.stream(&text),
            Op::Status(text) => {
                if self.status != text {
                    self.status = text;
                    self.print(Vec::new());
                }
            }
            Op::EndRow => self.end_row(),
            Op::Ask(text, answered) => self.ask(&text, &answered),
            // Whoever waited may have given up.
            Op::Flush(written) => drop(written.try_send(())),
        }
    }

    fn lines(&mut self, text: &str) {
        let mut lines = self.take_row();
        let text = text.strip_suffix('\n').unwrap_or(text);
        lines.extend(full_rows(&mut format!("{text}\n"), self.printer.columns()));
        self.print(lines);
    }

    fn end_row(&mut self) {
        let lines = self.take_row();
        if !lines.is_empty() {
            self.print(lines);
        }
    }

    fn take_row(&mut self) -> Vec<String> {
        let row = std::mem::take(&mut self.row);
        match row.is_empty() {
            true => Vec::new(),
            false => vec![row],
        }
    }

    fn stream(&mut self, text: &str) {
        self.row.push_str(text);
        let lines = full_rows(&mut self.row, self.printer.columns());
        self.print(lines);
    }

    /// Writes whole lines in place of the live region.
    fn write(&mut self, lines: &[String]) -> String {
        let mut text = OVERWRITE.repeat(std::mem::take(&mut self.shown));
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// Writes whole lines and, below them, the live region.
    fn print(&mut self, lines: Vec<String>) {
        let had = self.shown;
        let mut text = self.write(&lines);
        let mut region = Vec::new();
        if !self.row.is_empty() {
            region.push(self.row.trim_end_matches(' ').to_owned());
        }
        if let Some(status) = &self.status {
            let spinner = self.spins().then(|| self.spinner());
            let status = format!("{}{status}", spinner.unwrap_or_default());
            region.push(clip(&status, self.printer.columns()));
        }
        // A row above a prompt that is no longer needed is emptied, and taken by what comes next.
        if region.is_empty() && lines.is_empty() && had > 0 && !self.spins() {
            region.push(String::new());
        }
        self.shown = region.len();
        for row in region {
            text.push_str(&row);
            text.push('\n');
        }
        if !text.is_empty() {
            self.printer.print(&text);
        }
        self.frame = self.frame.wrapping_add(1);
    }

    fn spinner(&self) -> String {
        let frame = SPINNER.get(self.frame % SPINNER.len());
        frame.map(|frame| format!("{frame} ")).unwrap_or_default()
    }

    /// Asks in place of the live region, and waits until that is answered.
    fn ask(&mut self, question: &str, answered: &Receiver<()>) {
        let row = self.take_row();
        let mut text = self.write(&row);
        text.push_str(question);
        self.printer.print(&text);
        if answered.recv().is_err() {
            self.printer.print("\n");
        }
        self.print(Vec::new());
    }
}

/// Takes the rows out of a text that are full or ended; the rest of it stays.
fn full_rows(text: &mut String, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    loop {
        let (line, ended) = match text.split_once('\n') {
            Some((line, _)) => (line, true),
            None => (text.as_str(), false),
        };
        let cut = cut_at(line, width);
        let (row, used) = match (cut, ended) {
            (Some(at), _) => {
                let (row, rest) = line.split_at_checked(at).unwrap_or((line, ""));
                let spaces = rest.len() - rest.trim_start_matches(' ').len();
                (row.trim_end_matches(' ').to_owned(), at + spaces)
            }
            (None, true) => (line.to_owned(), line.len() + 1),
            (None, false) => return rows,
        };
        rows.push(row);
        text.drain(..used);
    }
}

/// Returns where a line that is wider than the terminal has to be broken: after the last word that
/// fits.
fn cut_at(line: &str, width: usize) -> Option<usize> {
    let visible = line.trim_end_matches(' ');
    if visible.len() <= width || measure_text_width(visible) <= width {
        return None;
    }
    let (mut taken, mut fits, mut word) = (0, 0, None);
    let mut is_escape = false;
    for (at, c) in line.char_indices() {
        // Colours take no room: `ESC [ … m`.
        if is_escape || c == '\u{1b}' {
            is_escape = c != 'm';
            fits = at + c.len_utf8();
            continue;
        }
        taken += measure_text_width(c.encode_utf8(&mut [0; 4]));
        if taken > width {
            // A space that does not fit ends the last word that does.
            word = if c == ' ' { Some(at) } else { word };
            break;
        }
        fits = at + c.len_utf8();
        if c == ' ' && at > 0 {
            word = Some(fits);
        }
    }
    // A single character that is wider than the terminal takes a row all the same.
    let first = line.chars().next().map_or(0, char::len_utf8);
    Some(word.unwrap_or(fits).max(first))
}

/// As much of a text as one row takes.
fn clip(text: &str, width: usize) -> String {
    console::truncate_str(text, width, "…").into_owned()
}

/// Invisible characters that may change how a text reads: format characters (category Cf of Unicode
/// 17, such as U+202E, which turns the direction, and U+200B, which has no width) and the line and
/// paragraph separators U+2028 and U+2029.
const INVISIBLE: [(char, char); 20] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0001}', '\u{e0001}'),
    ('\u{e0020}', '\u{e007f}'),
];

/// Makes a text that others wrote safe to print on a terminal.
///
/// Control characters, which could move the cursor, colour the screen or ring the bell, are replaced
/// by U+FFFD. [Invisible](INVISIBLE) characters are shown as escapes such as `\u{202e}`, so that a
/// person reads what would run. Tabs become blanks, and carriage returns are removed.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => clean.push(c),
            '\t' => clean.push_str(TAB),
            '\r' => {}
            c if c.is_control() => clean.push('\u{fffd}'),
            c if is_invisible(c) => clean.extend(c.escape_unicode()),
            c => clean.push(c),
        }
    }
    clean
}

fn is_invisible(c: char) -> bool {
    !c.is_ascii()
        && INVISIBLE
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&c))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

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

    fn paper() -> (Paper, Rows) {
        let rows = Rows::default();
        let paper = Paper::above(Box::new(rows.clone()), Colours::None, Says::Everything);
        (paper, rows)
    }

    #[test]
    fn text_streams_into_one_row_after_the_other() {
        let (paper, rows) = paper();
        for piece in ["It is", " forty-", "two.\nAnd", " so on"] {
            paper.stream(piece);
        }
        paper.flush();
        assert_eq!(*rows.0.lock().unwrap(), ["It is forty-two.", "And so on"]);
        paper.note("done");
        paper.stream("x");
        paper.flush();
        assert_eq!(
            *rows.0.lock().unwrap(),
            ["It is forty-two.", "And so on", "done", "x"]
        );
    }

    #[test]
    fn a_status_is_written_over_and_leaves_nothing_behind() {
        let (paper, rows) = paper();
        paper.status(Some("read runs"));
        paper.status(Some("bash runs"));
        paper.flush();
        assert_eq!(*rows.0.lock().unwrap(), ["bash runs"]);
        paper.note("· bash → 2 lines");
        paper.flush();
        assert_eq!(*rows.0.lock().unwrap(), ["· bash → 2 lines", "bash runs"]);
        paper.stream("It ");
        paper.flush();
        assert_eq!(
            *rows.0.lock().unwrap(),
            ["· bash → 2 lines", "It", "bash runs"]
        );
        paper.status(None);
        paper.stream("passes.");
        paper.flush();
        assert_eq!(*rows.0.lock().unwrap(), ["· bash → 2 lines", "It passes."]);
    }

    #[test]
    fn what_stands_above_a_sent_line_is_not_written_over() {
        let (paper, rows) = paper();
        paper.stream("It is for");
        paper.flush();
        rows.0.lock().unwrap().push("> hurry".to_owned());
        paper.entered();
        paper.stream("ty-two.");
        paper.flush();
        assert_eq!(*rows.0.lock().unwrap(), ["It is for", "> hurry", "ty-two."]);
    }

    /// One that takes nothing until it is told to.
    struct Stuck(std::sync::mpsc::Receiver<()>, Rows);

    impl ExternalPrinter for Stuck {
        fn print(&mut self, text: String) -> rustyline::Result<()> {
            // An error: whoever would tell is gone, and it takes everything.
            let _ = self.0.recv();
            self.1.print(text)
        }
    }

    #[test]
    fn who_writes_never_waits_and_is_told_what_was_lost() {
        let (go, waits) = std::sync::mpsc::channel();
        let rows = Rows::default();
        let stuck = Box::new(Stuck(waits, rows.clone()));
        let paper = Paper::above(stuck, Colours::None, Says::Everything);
        for n in 0..2 * WAITING {
            paper.note(&format!("line {n}"));
        }
        drop(go);
        // Whoever reads has them all after a while, and then there is room again.
        paper.flush();
        paper.note("the end");
        paper.flush();
        let rows = rows.0.lock().unwrap();
        assert_eq!(rows[0], "line 0");
        assert_eq!(rows.last().unwrap(), "the end");
        assert!(rows.len() <= WAITING + 3, "{}", rows.len());
        assert!(
            rows[rows.len() - 2].starts_with("(there was no room for "),
            "{rows:?}"
        );
    }

    #[test]
    fn rows_break_between_words_and_count_columns() {
        for (text, width, full, rest) in [
            ("one two three", 8, vec!["one two"], "three"),
            ("one two", 8, vec![], "one two"),
            ("abcdefghij", 4, vec!["abcd", "efgh"], "ij"),
            ("汉字汉字", 5, vec!["汉字"], "汉字"),
            ("a\n\nb", 8, vec!["a", ""], "b"),
            ("汉", 1, vec!["汉"], ""),
            ("x   y", 3, vec!["x"], "y"),
            ("ab cde fg", 6, vec!["ab cde"], "fg"),
            ("ab cde ", 6, vec![], "ab cde "),
            (
                "\u{1b}[2mab cd\u{1b}[0m",
                3,
                vec!["\u{1b}[2mab"],
                "cd\u{1b}[0m",
            ),
        ] {
            let mut left = text.to_owned();
            assert_eq!(full_rows(&mut left, width), full, "{text}");
            assert_eq!(left, rest, "{text}");
        }
    }

    #[test]
    fn nothing_a_model_says_reaches_the_terminal_as_a_command() {
        assert_eq!(clean("a\u{1b}[2Jb\u{7}\r\n\tc"), "a�[2Jb�\n    c");
        assert_eq!(
            clean("rm \u{202e}x\u{2066}\u{200b}\u{2028}é"),
            r"rm \u{202e}x\u{2066}\u{200b}\u{2028}é"
        );
    }

    #[test]
    fn every_format_character_is_invisible() {
        // An unassigned character between two blocks of them is treated like its neighbours.
        let pattern = regex::Regex::new(r"^[\p{Cf}\p{Zl}\p{Zp}\u{2065}]$").unwrap();
        for c in '\0'..=char::MAX {
            assert_eq!(
                pattern.is_match(c.encode_utf8(&mut [0; 4])),
                is_invisible(c),
                "{c:?}"
            );
        }
    }
}
