//! [`Observer`]: receives events live, but cannot influence the run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plimsoll_agent::{Event, SessionEvent};

use crate::error::panic_message;

/// Receives every event of all sessions of an agent, as it happens.
///
/// It is called on the task of the run, which waits until it returns: hand slow work to a channel or
/// thread of your own. Sessions that run at the same time may call it at the same time.
/// An observer that panics receives no more events, and a warning is sent to the others.
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

/// The observers of an agent, and the session whose events they receive.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    all: Vec<Arc<RegisteredObserver>>,
    session: Arc<str>,
    run: Arc<AtomicU64>,
}

struct RegisteredObserver {
    observer: Arc<dyn Observer>,
    has_panicked: AtomicBool,
}

impl Observers {
    /// Adds an observer.
    pub(crate) fn push(&mut self, observer: Arc<dyn Observer>) {
        self.all.push(Arc::new(RegisteredObserver {
            observer,
            has_panicked: AtomicBool::new(false),
        }));
    }

    /// Returns the same observers for the events of a session with this number of runs.
    pub(crate) fn of_session(&self, session: &str, runs: u64) -> Self {
        Self {
            all: self.all.clone(),
            session: session.into(),
            run: Arc::new(runs.into()),
        }
    }

    /// Sets the number of the session's newest run.
    pub(crate) fn set_run(&self, run: u64) {
        self.run.store(run, Ordering::Relaxed);
    }

    /// Sends an event to all observers. No panic of one ends a run.
    pub(crate) fn tell(&self, event: Event) {
        if self.all.is_empty() {
            return;
        }
        let seen = SessionEvent {
            session: Arc::clone(&self.session),
            run: self.run.load(Ordering::Relaxed),
            event,
        };
        for registered in &self.all {
            if registered.has_panicked.load(Ordering::Relaxed) {
                continue;
            }
            let see = AssertUnwindSafe(|| registered.observer.see(&seen));
            if let Err(panic) = catch_unwind(see) {
                registered.has_panicked.store(true, Ordering::Relaxed);
                let why = panic_message(&*panic);
                self.tell(Event::Warning {
                    text: format!("an observer panicked and receives no more events: {why}"),
                });
            }
        }
    }
}
