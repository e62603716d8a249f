//! [`Screen`]: the rows of a terminal above the prompt, if there is one. A thread of its own writes
//! them.
//!
//! The last rows are a live region: the open block of a text, and the status line. Only rows that
//! change are written again, so text and status never share a row.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use console::{Term, measure_text_width};
use rustyline::ExternalPrinter;

use crate::terminal::queue::{MAX_WAITING, Op, Queue};
use crate::terminal::stream::MarkdownStream;
use crate::terminal::text::{COLUMNS, clip, rows_of};

/// Minimum width in columns. Nothing is readable on a narrower terminal.
const LEAST_COLUMNS: usize = 20;
/// Minimum number of rows shown of an open block.
const LEAST_ROWS: usize = 2;
/// Moves up one row, to its beginning, and empties the row.
pub(crate) const OVERWRITE: &str = "\u{1b}[1A\r\u{1b}[2K";
/// How long each frame of the spinner is shown.
const TICK: Duration = Duration::from_millis(120);
/// Minimum time between two drawings of the region.
const FRAME: Duration = Duration::from_millis(15);
/// The frames of the spinner.
const SPINNER: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Writes above the line that is being edited.
pub(crate) type LinePrinter = Box<dyn ExternalPrinter + Send>;

/// The rows of a terminal, up to the prompt if there is one.
pub(crate) struct Screen {
    terminal: Term,
    /// `None` if no line is edited.
    printer: Option<LinePrinter>,
    text: MarkdownStream,
    /// The status line, below the open block.
    status: Option<String>,
    /// Final rows that are not yet written.
    done: Vec<String>,
    /// The live region as it is shown on the terminal.
    shown: Vec<String>,
    /// The width of the terminal, in columns.
    width: usize,
    /// The number of rows of the open block that do not fit the region.
    hidden: usize,
    /// The next frame of the spinner.
    frame: usize,
    /// The kind of the last row.
    last: Option<RowKind>,
    entered: Arc<AtomicBool>,
}

/// The kind of a row. An empty row separates rows of different kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowKind {
    Text,
    Note,
}

impl Screen {
    /// Starts a thread that performs the operations of the queue until that is closed.
    pub(crate) fn start(
        terminal: Term,
        printer: Option<LinePrinter>,
        entered: Arc<AtomicBool>,
    ) -> Queue {
        let mut screen = Self {
            width: columns(&terminal).unwrap_or(COLUMNS),
            terminal,
            printer,
            text: MarkdownStream::default(),
            status: None,
            done: Vec::new(),
            shown: Vec::new(),
            hidden: 0,
            frame: 0,
            last: None,
            entered,
        };
        let (queue, pending) = Queue::new();
        std::thread::spawn(move || {
            loop {
                let first = match pending.recv_timeout(TICK) {
                    Ok(op) => Some(op),
                    Err(RecvTimeoutError::Timeout) if screen.printer.is_some() => continue,
                    Err(RecvTimeoutError::Timeout) => {
                        screen.frame = screen.frame.wrapping_add(1);
                        None
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                };
                screen.resized();
                for op in first
                    .into_iter()
                    .chain(pending.try_iter().take(MAX_WAITING))
                {
                    screen.perform(op);
                }
                screen.draw();
                std::thread::sleep(FRAME);
            }
        });
        queue
    }

    fn perform(&mut self, op: Op) {
        if self.entered.swap(false, Ordering::SeqCst) {
            self.leave();
            self.last = None;
        }
        let width = self.width;
        match op {
            Op::Lines(text) => {
                self.end_text();
                self.begin(RowKind::Note);
                let text = text.strip_suffix('\n').unwrap_or(&text);
                self.done.extend(rows_of(text, width));
            }
            Op::Markdown(text) => {
                let rows = self.text.push(&text, width);
                self.text_rows(rows);
            }
            Op::Status(status) => self.status = status,
            Op::End => self.end_text(),
            Op::Flush(written) => {
                self.draw();
                // The waiting side may have given up.
                let _ = written.try_send(());
            }
        }
    }

    /// Leaves the region as it is on the terminal. New rows are written below it.
    fn leave(&mut self) {
        self.shown.clear();
        // Rows that were never shown must not be lost.
        if std::mem::take(&mut self.hidden) == 0 {
            self.text.cut();
        }
    }

    fn end_text(&mut self) {
        let rows = self.text.end(self.width);
        self.text_rows(rows);
    }

    fn text_rows(&mut self, rows: Vec<String>) {
        if !rows.is_empty() {
            self.begin(RowKind::Text);
            self.done.extend(rows);
        }
    }

    /// Begins rows of a kind, after an empty row if the kind changes.
    fn begin(&mut self, kind: RowKind) {
        if self.last.replace(kind).is_some_and(|last| last != kind) {
            self.done.push(String::new());
        }
    }

    /// Writes the final rows and, below them, the live region. Skips rows that are already there.
    fn draw(&mut self) {
        let mut region = self.region();
        let had = std::mem::take(&mut self.shown);
        let all = self.done.iter().chain(&region);
        let kept = had.iter().zip(all).take_while(|(old, new)| old == new);
        let mut kept = kept.count();
        // Above a prompt, the written text must end with a line break.
        let shrinks = kept < had.len() && kept == self.done.len() + region.len();
        if shrinks && self.printer.is_some() {
            match kept.checked_sub(1) {
                Some(less) => kept = less,
                None => region.push(String::new()),
            }
        }
        let mut text = OVERWRITE.repeat(had.len() - kept);
        for row in self.done.iter().chain(&region).skip(kept) {
            text.push_str(row);
            text.push('\n');
        }
        self.done.clear();
        self.shown = region;
        if !text.is_empty() {
            self.print(&text);
        }
    }

    /// Writes rows. Errors are ignored: a closed terminal is no fault of Plimsoll.
    fn print(&mut self, text: &str) {
        let printer = self.printer.as_mut();
        // If no line is being edited any more, the rows are written at the cursor.
        if printer.is_none_or(|printer| printer.print(text.to_owned()).is_err()) {
            let _ = self.terminal.write_str(text);
        }
    }

    /// Returns the current rows of the region.
    fn region(&mut self) -> Vec<String> {
        let width = self.width;
        let open = self.text.open(width).into_iter();
        let mut region: Vec<String> = open.map(|row| clip(&row, width)).collect();
        if !region.is_empty() && self.last.is_some_and(|last| last != RowKind::Text) {
            region.insert(0, String::new());
        }
        // The other half is for the editor and the user's input.
        let (rows, _) = self.terminal.size();
        let most = usize::from(rows / 2).max(LEAST_ROWS);
        self.hidden = region.len().saturating_sub(most);
        region.drain(..self.hidden);
        if let Some(status) = &self.status {
            let spinner = self.spinner();
            if !region.is_empty() || self.last == Some(RowKind::Text) {
                region.push(String::new());
            }
            region.push(clip(&format!("{spinner}{status}"), width));
        }
        region
    }

    /// Checks the width of the terminal. If it has become narrower than a row of the region, only
    /// the terminal knows how many rows the text now takes: the text is left in place, and only the
    /// status line is overwritten.
    fn resized(&mut self) {
        let width = columns(&self.terminal).unwrap_or(self.width);
        let fits = |row: &String| measure_text_width(row) <= width;
        if width < self.width && !self.shown.iter().all(fits) {
            let status = self.status.is_some().then(|| self.shown.pop()).flatten();
            self.leave();
            self.shown.extend(status);
        }
        self.width = width;
    }

    /// Returns the spinner before the status line. There is none above a prompt, which each frame would
    /// draw anew.
    fn spinner(&self) -> String {
        let frame = SPINNER.get(self.frame % SPINNER.len());
        let frame = frame.filter(|_| self.printer.is_none());
        frame.map(|frame| format!("{frame} ")).unwrap_or_default()
    }
}

/// Cuts a line to the width of a terminal. Returns the whole line if the output is no terminal.
pub(crate) fn fitted(line: &str, terminal: &Term) -> String {
    columns(terminal).map_or_else(|| line.to_owned(), |width| clip(line, width))
}

/// Returns the number of usable columns: one less than the terminal has, because terminals differ
/// in their behaviour after the last column. Returns `None` if the output is no terminal.
pub(crate) fn columns(terminal: &Term) -> Option<usize> {
    let (_, columns) = terminal.size();
    let columns = usize::from(columns).saturating_sub(1).max(LEAST_COLUMNS);
    terminal.is_term().then_some(columns)
}
