//! Standard output, line by line. If the reader closes it (`| head`), the command ends quietly
//! instead of panicking. Texts are [cleaned](clean) for a terminal and unchanged in a pipe, except in
//! lists and sentences.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};

use crate::error::{CliError, READER_GONE};
use crate::terminal::text::clean;
use crate::terminal::wrapped;

/// Writes one line to standard output, formatted like `println!`. Returns from the function on an
/// error.
macro_rules! out {
    ($($arg:tt)*) => {
        $crate::stdout::line(format_args!($($arg)*))?
    };
}

/// Reports a problem or a decision on standard error, after the program's name.
macro_rules! say {
    ($($arg:tt)*) => {
        $crate::say(&format!($($arg)*))
    };
}

/// Writes a line to standard error.
macro_rules! note {
    ($($arg:tt)*) => {
        $crate::note(&format!($($arg)*))
    };
}

/// Writes one line to standard output.
pub(crate) fn line(text: Arguments<'_>) -> Result<(), CliError> {
    exactly(&format!("{text}\n"))
}

/// Writes a line for people to standard output, also [cleaned](clean) in a pipe. It is broken between
/// words on a terminal.
pub(crate) fn prose(text: &str) -> Result<(), CliError> {
    let text = clean(text);
    line(format_args!("{}", wrapped(&text, &console::Term::stdout())))
}

/// Writes a text to standard output without adding a line break, and flushes it.
pub(crate) fn exactly(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    let text = if out.is_terminal() {
        Cow::Owned(clean(text))
    } else {
        Cow::Borrowed(text)
    };
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| failed(&error))
}

/// Converts an error of standard output.
pub(crate) fn failed(error: &io::Error) -> CliError {
    match error.kind() {
        ErrorKind::BrokenPipe => CliError {
            code: READER_GONE,
            text: String::new(),
        },
        _ => CliError::failed(format!("the output cannot be written: {error}")),
    }
}
