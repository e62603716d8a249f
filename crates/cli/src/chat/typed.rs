//! [`Typed`]: what comes in: lines and their end, from a terminal or a pipe, read by a thread of its
//! own, and Ctrl-C beside them. What they mean is decided elsewhere.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::chat::interrupts::{Interrupts, Press, Prompt};
use crate::exit::Stop;
use crate::input;

/// Lines that wait for the chat, at most; a pipe waits beyond that, and a terminal says so.
pub(crate) const WAITING: usize = 64;
/// Presses of Ctrl-C that wait, at most: the second leaves, so no further one says anything new.
pub(crate) const PRESSES: usize = 4;

/// What comes in.
#[derive(Debug)]
pub(crate) enum Typed {
    /// A line, without its end.
    Line(String),
    /// A line that cannot be read, and why.
    Bad(String),
    /// Something that was typed cannot be done now, and what can.
    Hint(String),
    /// Nothing follows.
    End,
}

/// What a Ctrl-C means, wherever it is noticed.
pub(crate) type Keys = Arc<Mutex<Interrupts>>;

/// The keys, for a look or a press.
pub(crate) fn keys(keys: &Keys) -> MutexGuard<'_, Interrupts> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lines of a pipe.
pub(crate) fn piped() -> Receiver<Typed> {
    let (lines, receiver) = channel(WAITING);
    // It ends with the process: nobody can end a read from a pipe.
    std::thread::spawn(move || {
        let mut input: Box<dyn io::BufRead> = Box::new(io::BufReader::new(io::stdin()));
        loop {
            let typed = match input::line(&mut input) {
                None => Typed::End,
                Some(Ok(line)) => Typed::Line(line),
                Some(Err(Stop { text, .. })) => Typed::Bad(text),
            };
            let ends = matches!(typed, Typed::End);
            if lines.blocking_send(typed).is_err() || ends {
                return;
            }
        }
    });
    receiver
}

/// Ctrl-C where no line is being edited, and signals from elsewhere. From when this returns, none is
/// missed. They go beside the lines: a pipe may be full of those.
pub(crate) fn signals(presses: Sender<Press>, of: Keys) -> io::Result<()> {
    let mut signals = Signals::listen()?;
    tokio::spawn(async move {
        while signals.next().await {
            let press = keys(&of).press(Instant::now(), Prompt::Empty);
            if presses.send(press).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Interrupts by signal.
#[cfg(unix)]
struct Signals(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Signals {
    fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::interrupt()).map(Self)
    }

    /// Whether there was one; false where none will come.
    async fn next(&mut self) -> bool {
        self.0.recv().await.is_some()
    }
}

/// Interrupts by signal.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> bool {
        tokio::signal::ctrl_c().await.is_ok()
    }
}
