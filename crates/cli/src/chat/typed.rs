//! [`Typed`]: what comes in: lines, Ctrl-C and the end, from a terminal or a pipe, each read by a
//! thread of its own. What they mean is decided elsewhere.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::chat::interrupts::{Interrupts, Press, Prompt};
use crate::exit::Stop;
use crate::input;

/// Lines that wait for the chat, at most; a pipe waits beyond that, and a terminal says so.
pub(crate) const WAITING: usize = 64;

/// What comes in.
#[derive(Debug)]
pub(crate) enum Typed {
    /// A line, without its end.
    Line(String),
    /// Ctrl-C, and what it means.
    Press(Press),
    /// A line that cannot be read, and why.
    Bad(String),
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
pub(crate) fn piped() -> (Sender<Typed>, Receiver<Typed>) {
    let (sender, receiver) = channel(WAITING);
    let lines = sender.clone();
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
    (sender, receiver)
}

/// Ctrl-C where no line is being edited, and signals from elsewhere. From when this returns, none is
/// missed.
pub(crate) fn signals(typed: Sender<Typed>, of: Keys) -> io::Result<()> {
    let mut signals = Signals::listen()?;
    tokio::spawn(async move {
        while signals.next().await {
            let press = keys(&of).press(Instant::now(), Prompt::Empty);
            if typed.send(Typed::Press(press)).await.is_err() {
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
