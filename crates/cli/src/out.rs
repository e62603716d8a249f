//! Standard output, line by line. A reader that has gone away (`| head`) ends the command quietly;
//! nothing here panics.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

use crate::exit::{READER_GONE, Stop};

/// Writes one line to standard output, formatted like `println!`; ends the function where it fails.
macro_rules! out {
    ($($arg:tt)*) => {
        $crate::out::line(format_args!($($arg)*))?
    };
}
pub(crate) use out;

/// Writes one line to standard output.
pub(crate) fn line(text: Arguments<'_>) -> Result<(), Stop> {
    let mut out = io::stdout().lock();
    let written = out
        .write_fmt(text)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    written.map_err(|error| failed(&error))
}

/// Writes a text to standard output as it is, without a line's end of ours.
pub(crate) fn exactly(text: &str) -> Result<(), Stop> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| failed(&error))
}

/// Why standard output could not be written.
pub(crate) fn failed(error: &io::Error) -> Stop {
    match error.kind() {
        ErrorKind::BrokenPipe => Stop {
            code: READER_GONE,
            text: String::new(),
        },
        _ => Stop::failed(format!("the output cannot be written: {error}")),
    }
}
