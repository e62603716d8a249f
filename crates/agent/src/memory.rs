//! [`RunMemory`]: the memory of the current run's messages in this process.
//!
//! It is a running sum that is read in O(1). Messages from before the run do not count.

use plimsoll_context::{Bytes, Item, Message, Seq, Transcript};

/// The memory of the current run's messages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunMemory {
    /// The number of the run's first message; `None` between runs.
    from: Option<Seq>,
    held: Bytes,
    /// The additional memory of the driver.
    beside: Bytes,
    /// The highest total so far.
    peak: Bytes,
}

impl RunMemory {
    /// Starts counting for a new run.
    pub(crate) fn begin(&mut self, next: Seq) {
        *self = Self {
            from: Some(next),
            ..Self::default()
        };
    }

    /// Stops counting. The peak is kept until the next run starts.
    pub(crate) fn end(&mut self) {
        *self = Self {
            peak: self.peak,
            ..Self::default()
        };
    }

    /// Adds a message.
    pub(crate) fn takes(&mut self, message: &Message) {
        if self.from.is_some() {
            self.held = Bytes(self.held.0.saturating_add(weight(message).0));
            self.peak = self.peak.max(self.held());
        }
    }

    /// Sets the driver's additional memory.
    pub(crate) fn set_beside(&mut self, bytes: Bytes) {
        if self.from.is_some() {
            self.beside = bytes;
            self.peak = self.peak.max(self.held());
        }
    }

    /// Updates the sum after a plan. `before` contains the affected items in their old form.
    pub(crate) fn planned(&mut self, before: &[Item], view: &Transcript) {
        let Some(from) = self.from else { return };
        for item in before.iter().filter(|item| item.seq >= from) {
            self.held = Bytes(self.held.0.saturating_sub(weight(&item.message).0));
            if let Some(now) = view.get(item.seq) {
                self.takes(&now.message);
            }
        }
    }

    /// Returns the current total.
    pub(crate) fn held(&self) -> Bytes {
        Bytes(self.held.0.saturating_add(self.beside.0))
    }

    /// Returns the highest total.
    pub(crate) fn peak(&self) -> Bytes {
        self.peak
    }
}

/// Returns the memory of a message in the view: its allocation and its slot.
fn weight(message: &Message) -> Bytes {
    let counts = 2 * size_of::<usize>();
    let bytes = counts + message.allocated() + size_of::<Item>();
    Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
}
