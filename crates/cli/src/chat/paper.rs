//! [`Paper`]: where a chat writes: above the line that is being edited, or plain lines where there is
//! no terminal. What it says is decided elsewhere.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
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

/// Where a chat writes.
pub(crate) struct Paper {
    sheet: Option<SyncSender<Op>>,
    colours: Colours,
    says: Says,
    /// A line was sent since something was written. No lock: who writes may wait for the editor, and
    /// the editor must not wait for who writes.
    entered: Arc<AtomicBool>,
    /// Writings that there was no room for.
    lost: AtomicUsize,
    failed: Mutex<Option<Stop>>,
}

/// What is written, in order, by a thread of its own.
enum Op {
    Lines(String),
    Stream(String),
    Status(Option<String>),
    EndRow,
    /// Answered once all before it is written.
    Flush(SyncSender<()>),
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

/// The rows above the prompt.
struct Sheet {
    printer: Box<dyn ExternalPrinter + Send>,
    /// Streamed text whose row is not full.
    row: String,
    /// What stands there while nothing is streamed.
    status: Option<String>,
    /// Whether the last row above the prompt is one of these two, to be written over.
    shown: bool,
    entered: Arc<AtomicBool>,
}

impl Paper {
    /// Plain lines: what is asked for to standard output, the rest to standard error.
    pub(crate) fn plain(says: Says) -> Self {
        Self {
            sheet: None,
            colours: Colours::None,
            says,
            entered: Arc::default(),
            lost: AtomicUsize::new(0),
            failed: Mutex::default(),
        }
    }

    /// The rows above the line that is being edited.
    pub(crate) fn above(
        printer: Box<dyn ExternalPrinter + Send>,
        colours: Colours,
        says: Says,
    ) -> Self {
        let entered = Arc::new(AtomicBool::new(false));
        let mut sheet = Sheet {
            printer,
            row: String::new(),
            status: None,
            shown: false,
            entered: Arc::clone(&entered),
        };
        let (operations, does) = sync_channel(WAITING);
        // It ends with the paper; a write that waits for the editor ends with that.
        std::thread::spawn(move || does.iter().for_each(|op| sheet.does(op)));
        Self {
            sheet: Some(operations),
            colours,
            says,
            entered,
            lost: AtomicUsize::new(0),
            failed: Mutex::default(),
        }
    }

    /// Whether it is a terminal, on which text streams.
    pub(crate) fn is_live(&self) -> bool {
        self.sheet.is_some()
    }

    /// Whole lines of what was asked for.
    pub(crate) fn say(&self, text: &str) {
        match self.is_live() {
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
        match self.is_live() {
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
        if self.says == Says::Answers {
            return;
        }
        self.op(Op::Status(text.map(clean)));
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
        let _ = is_written.recv_timeout(FLUSH);
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
        }
    }
}

impl Sheet {
    fn does(&mut self, op: Op) {
        if self.entered.swap(false, Ordering::SeqCst) {
            self.row.clear();
            self.shown = false;
        }
        match op {
            Op::Lines(text) => self.lines(&text),
            Op::Stream(text) => self.stream(&text),
            Op::Status(text) => {
                self.status = text;
                if self.row.is_empty() {
                    self.print(Vec::new());
                }
            }
            Op::EndRow => self.end_row(),
            // Whoever waited may have given up.
            Op::Flush(written) => drop(written.try_send(())),
        }
    }

    fn lines(&mut self, text: &str) {
        let mut lines = self.take_row();
        let width = columns();
        for line in text.lines() {
            // What is coloured is broken by the terminal, which knows what takes no room.
            match line.contains('\u{1b}') {
                true => lines.push(line.to_owned()),
                false => lines.extend(full_rows(&mut format!("{line}\n"), width)),
            }
        }
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
        let lines = full_rows(&mut self.row, columns());
        self.print(lines);
    }

    /// Writes whole lines and, below them, what is not whole yet.
    fn print(&mut self, lines: Vec<String>) {
        let mut text = String::new();
        if self.shown {
            text.push_str(OVERWRITE);
        }
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        let row = match (self.row.is_empty(), &self.status) {
            (false, _) => Some(self.row.clone()),
            (true, Some(status)) => Some(clip(status, columns())),
            // The row that was there is emptied, and taken by whatever comes next.
            (true, None) if self.shown && lines.is_empty() => Some(String::new()),
            (true, None) => None,
        };
        self.shown = row.is_some();
        if let Some(row) = row {
            text.push_str(&row);
            text.push('\n');
        }
        if text.is_empty() {
            return;
        }
        // Where nobody edits a line any more, the terminal is ours.
        if self.printer.print(text.clone()).is_err() {
            let mut out = io::stdout().lock();
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
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

/// Where a line has to be broken that is wider than the terminal: after the last word that fits.
fn cut_at(line: &str, width: usize) -> Option<usize> {
    // No character is narrower than its bytes are many, escapes aside, of which there are none.
    if line.len() <= width || measure_text_width(line) <= width {
        return None;
    }
    let (mut taken, mut fits, mut word) = (0, 0, None);
    for (at, c) in line.char_indices() {
        taken += measure_text_width(c.encode_utf8(&mut [0; 4]));
        if taken > width {
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

/// The columns that are written to: one less than there are, since terminals differ in what they do
/// after the last.
fn columns() -> usize {
    let size = console::Term::stdout().size_checked();
    let columns = size.map_or(COLUMNS, |(_, columns)| columns);
    usize::from(columns).saturating_sub(1).max(LEAST_COLUMNS)
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
            let text = match text.strip_prefix(OVERWRITE) {
                Some(rest) => {
                    rows.pop().unwrap();
                    rest.to_owned()
                }
                None => text,
            };
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
        paper.status(None);
        paper.stream("It passes.");
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
