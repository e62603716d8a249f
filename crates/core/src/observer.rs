//! [`Observer`]: sees what happens, live, and changes nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_agent::Event;

use crate::hooks::said_by;

/// Sees every event as it happens. It is called on the driver's task, so it must be quick and must
/// not block; hand slow work to a channel. One that panics sees nothing more, and the others are told.
pub trait Observer: Send + Sync {
    /// Sees one event.
    fn see(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> Observer for F {
    fn see(&self, event: &Event) {
        self(event);
    }
}

/// Those that see what an agent does. Clones know of each other which of them are out of order.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Seat>);

#[derive(Clone)]
struct Seat {
    observer: Arc<dyn Observer>,
    broken: Arc<AtomicBool>,
}

impl Observers {
    /// One more.
    pub(crate) fn push(&mut self, observer: Arc<dyn Observer>) {
        self.0.push(Seat {
            observer,
            broken: Arc::default(),
        });
    }

    /// Tells all that are in order. An observer changes nothing, so its panic ends no run.
    pub(crate) fn tell(&self, event: &Event) {
        for seat in &self.0 {
            if seat.broken.load(Ordering::Relaxed) {
                continue;
            }
            let seen = catch_unwind(AssertUnwindSafe(|| seat.observer.see(event)));
            if let Err(panic) = seen
                && !seat.broken.swap(true, Ordering::Relaxed)
            {
                // Each may break once, so this ends.
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
