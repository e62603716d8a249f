//! [`RunMemory`]: what the messages of the run under way take of this process's memory. A running sum,
//! read in O(1). Not the session's; what was said before the run is not the run's.

use plimsoll_context::{Bytes, Item, Message, Part, Seq, Transcript};

/// What the messages of the run under way take.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunMemory {
    /// The run's messages have this number or a later one; `None` between runs.
    from: Option<Seq>,
    held: Bytes,
}

impl RunMemory {
    /// A run begins.
    pub(crate) fn begin(&mut self, next: Seq) {
        *self = Self {
            from: Some(next),
            held: Bytes(0),
        };
    }

    /// A run has ended.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }

    /// The view was put back: what the run has said is not held any more.
    pub(crate) fn rewound(&mut self) {
        self.held = Bytes(0);
    }

    /// A message is held from now on.
    pub(crate) fn takes(&mut self, message: &Message) {
        if self.from.is_some() {
            self.held = Bytes(self.held.0.saturating_add(weight(message).0));
        }
    }

    /// A plan was applied: `before` are the items that it touched, as they stood.
    pub(crate) fn planned(&mut self, before: &[Item], view: &Transcript) {
        let Some(from) = self.from else { return };
        for item in before.iter().filter(|item| item.seq >= from) {
            self.held = Bytes(self.held.0.saturating_sub(weight(&item.message).0));
            if let Some(now) = view.get(item.seq) {
                self.takes(&now.message);
            }
        }
    }

    /// What is held.
    pub(crate) fn held(&self) -> Bytes {
        self.held
    }
}

/// What a message takes: its texts and data.
fn weight(message: &Message) -> Bytes {
    let parts = message.parts().iter().map(|part| match part {
        Part::Text { text } => text.len(),
        other => serde_json::to_vec(other).map_or(0, |bytes| bytes.len()),
    });
    let frame = size_of::<Message>() + size_of_val(message.parts());
    let bytes = frame + parts.sum::<usize>();
    Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
}
