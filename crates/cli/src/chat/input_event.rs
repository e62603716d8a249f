//! [`InputEvent`]: the user's input: lines from a terminal or a pipe, read by a thread of its own,
//! and Ctrl-C.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::chat::interrupts::{Interrupts, Press};
use crate::error::CliError;
use crate::input;

/// Maximum number of waiting lines. Beyond it, a pipe waits and a terminal rejects the line.
pub(crate) const WAITING: usize = 64;
/// Maximum number of waiting presses of Ctrl-C. The second one leaves, so more are not needed.
pub(crate) const PRESSES: usize = 4;

/// An event of the input.
#[derive(Debug)]
pub(crate) enum InputEvent {
    /// A line, without its line break.
    Line(String),
    /// The reason why a line cannot be read.
    Bad(String),
    /// The end of the input.
    End,
}

/// Starts a thread that reads the lines of a pipe.
pub(crate) fn piped() -> Receiver<InputEvent> {
    let (lines, receiver) = channel(WAITING);
    // The thread ends with the process: a blocking read from a pipe cannot be interrupted.
    std::thread::spawn(move || {
        let mut input: Box<dyn io::BufRead> = Box::new(io::BufReader::new(io::stdin()));
        loop {
            let typed = match input::line(&mut input) {
                None => InputEvent::End,
                Some(Ok(line)) => InputEvent::Line(line),
                Some(Err(CliError { text, .. })) => InputEvent::Bad(text),
            };
            let ends = matches!(typed, InputEvent::End);
            if lines.blocking_send(typed).is_err() || ends {
                return;
            }
        }
    });
    receiver
}

/// Listens for Ctrl-C outside the line editor and for interrupt signals. No signal is missed after
/// this returns. They have a channel of their own, because a pipe may fill that of the lines. `idle` is the
/// meaning of a signal if no run is under way.
pub(crate) fn signals(presses: Sender<Press>, of: Arc<Interrupts>, idle: Press) -> io::Result<()> {
    #[cfg(unix)]
    let mut interrupts = {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::interrupt())?
    };
    #[cfg(windows)]
    let mut interrupts = tokio::signal::windows::ctrl_c()?;
    tokio::spawn(async move {
        while interrupts.recv().await.is_some() {
            let press = of.press(Instant::now(), idle);
            if presses.send(press).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}
