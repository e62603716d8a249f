//! [`Observer`]: receives events live, but cannot influence the run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_agent::Event;

use crate::hooks::said_by;

/// Receives every event as it happens.
///
/// It is called on the driver's task, so it must be quick and must not block; hand slow work to a
/// channel. An observer that panics receives no more events, and a warning is sent to the others.
pub trait Observer: Send + Sync {
    /// Handles one event.
    fn see(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> Observer for F {
    fn see(&self, event: &Event) {
        self(event);
    }
}

/// The observers of an agent. Clones share the knowledge of which ones have panicked.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Seat>);

#[derive(Clone)]
struct Seat {
    observer: Arc<dyn Observer>,
    broken: Arc<AtomicBool>,
}

impl Observers {
    /// Adds an observer.
    pub(crate) fn push(&mut self, observer: Arc<dyn Observer>) {
        self.0.push(Seat {
            observer,
            broken: Arc::default(),
        });
    }

    /// Sends an event to all working observers. A panic of an observer never ends a run.
    pub(crate) fn tell(&self, event: &Event) {
        for seat in &self.0 {
            if seat.broken.load(Ordering::Relaxed) {
                continue;
            }
            let seen = catch_unwind(AssertUnwindSafe(|| seat.observer.see(event)));
            if let Err(panic) = seen
                && !seat.broken.swap(true, Ordering::Relaxed)
            {
                // Terminates, because each observer is disabled at most once.
                self.tell(&Event::Warning {
                    text: format!(
                        "an observer broke down and sees nothing more: {}",
                        said_by(&*panic)
                    ),
                });
            }
        }
    }
}
