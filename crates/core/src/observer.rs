//! [`Observer`]: sees what happens, live, and changes nothing.

use plimsoll_agent::Event;

/// Sees every event as it happens. It is called on the driver's task, so it must be quick and must
/// not block; hand slow work to a channel.
pub trait Observer: Send + Sync {
    /// Sees one event.
    fn see(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> Observer for F {
    fn see(&self, event: &Event) {
        self(event);
    }
}
