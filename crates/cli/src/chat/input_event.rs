//! The user's input: lines from a terminal or a pipe, read by a thread of its own, and Ctrl-C.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::chat::prompt::{Gauge, Press};
use crate::error::CliError;
use crate::input;

/// Maximum number of waiting lines. Beyond it, a pipe waits and a terminal rejects the line.
pub(crate) const WAITING: usize = 64;
/// Maximum number of waiting presses of Ctrl-C. The second one leaves, so more are not needed.
pub(crate) const PRESSES: usize = 4;

/// A line without its line break, or the reason why it cannot be read. The input ends with its channel.
pub(crate) type InputLine = Result<String, CliError>;

/// Starts a thread that reads the lines of a pipe.
pub(crate) fn piped() -> Receiver<InputLine> {
    let (lines, receiver) = channel(WAITING);
    // The thread ends with the process: a blocking read from a pipe cannot be interrupted.
    std::thread::spawn(move || {
        let mut input: Box<dyn io::BufRead> = Box::new(io::BufReader::new(io::stdin()));
        while let Some(line) = input::line(&mut input) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Listens for Ctrl-C outside the line editor and for interrupt signals. They have a channel of their own,
/// because a pipe may fill that of the lines.
pub(crate) fn signals(presses: Sender<Press>, gauge: Arc<Gauge>) {
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            if presses.send(gauge.press(Instant::now())).await.is_err() {
                return;
            }
        }
    });
}
