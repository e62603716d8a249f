//! [`Observer`]: receives events live, but cannot influence the run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_agent::{Event, SessionEvent};

use crate::panic_guard::panic_message;
use crate::run_stream::Reader;

/// Receives every event of all sessions of an agent, as it happens.
///
/// It is called on the driver's task, so it must be quick and must not block; hand slow work to a
/// channel. An observer that panics receives no more events, and a warning is sent to the others.
/// To follow a single run, use [`Session::start`](crate::Session::start) instead.
///
/// ```
/// use plimsoll_agent::SessionEvent;
/// use plimsoll_core::Agent;
/// use plimsoll_core::testing::ScriptedProvider;
///
/// let agent = Agent::builder(ScriptedProvider::new([]))
///     .observer(|seen: &SessionEvent| println!("{} {}: {:?}", seen.session, seen.run, seen.event))
///     .build()?;
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
pub trait Observer: Send + Sync {
    /// Handles one event.
    fn see(&self, seen: &SessionEvent);
}

impl<F: Fn(&SessionEvent) + Send + Sync> Observer for F {
    fn see(&self, seen: &SessionEvent) {
        self(seen);
    }
}

/// The observers of an agent, and the session whose events they receive. Clones share the knowledge
/// of which observers have panicked.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    seats: Vec<ObserverSlot>,
    source: Arc<EventSource>,
}

#[derive(Clone)]
struct ObserverSlot {
    observer: Arc<dyn Observer>,
    broken: Arc<AtomicBool>,
}

/// The session that events come from.
#[derive(Default)]
struct EventSource {
    session: Arc<str>,
    run: AtomicU64,
    /// The reader of the current run, if there is one.
    reader: Mutex<Reader>,
}

impl Observers {
    /// Adds an observer.
    pub(crate) fn push(&mut self, observer: Arc<dyn Observer>) {
        self.seats.push(ObserverSlot {
            observer,
            broken: Arc::default(),
        });
    }

    /// Returns the same observers for the events of a session with this number of runs.
    pub(crate) fn of_session(&self, session: &str, runs: u64) -> Self {
        Self {
            seats: self.seats.clone(),
            source: Arc::new(EventSource {
                session: session.into(),
                run: runs.into(),
                reader: Mutex::default(),
            }),
        }
    }

    /// Sets the number of the session's newest run.
    pub(crate) fn set_run(&self, run: u64) {
        self.source.run.store(run, Ordering::Relaxed);
    }

    /// Sends the events of the next run to a reader as well, as long as it exists.
    pub(crate) fn stream_to(&self, reader: Reader) {
        *self.reader() = reader;
    }

    fn reader(&self) -> MutexGuard<'_, Reader> {
        let reader = self.source.reader.lock();
        reader.unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an event to all working observers, and to the reader of the run. A panic of an observer
    /// never ends a run.
    pub(crate) fn tell(&self, event: Event) {
        let reader = self.reader().upgrade();
        if self.seats.is_empty() {
            if let Some(reader) = reader {
                reader.push(event);
            }
            return;
        }
        let seen = SessionEvent {
            session: Arc::clone(&self.source.session),
            run: self.source.run.load(Ordering::Relaxed),
            event,
        };
        for seat in &self.seats {
            if seat.broken.load(Ordering::Relaxed) {
                continue;
            }
            let result = catch_unwind(AssertUnwindSafe(|| seat.observer.see(&seen)));
            if let Err(panic) = result
                && !seat.broken.swap(true, Ordering::Relaxed)
            {
                // Terminates, because each observer is disabled at most once.
                self.tell(Event::Warning {
                    text: format!(
                        "an observer panicked and receives no more events: {}",
                        panic_message(&*panic)
                    ),
                });
            }
        }
        if let Some(reader) = reader {
            reader.push(seen.event);
        }
    }
}
