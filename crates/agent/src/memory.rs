//! [`RunMemory`]: the memory of the current run's messages in this process.
//!
//! It is a running sum that is read in O(1). Messages from before the run do not count.

use plimsoll_context::{
    Bytes, File, Image, Item, Message, Part, Seq, Source, ToolResult, Transcript, shorten_bytes,
};

/// The memory of the current run's messages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunMemory {
    /// The number of the run's first message; `None` between runs.
    from: Option<Seq>,
    held: Bytes,
    /// The additional memory of the driver.
    beside: Bytes,
    /// The most memory that the driver will need for one more result.
    copy_of_result: Bytes,
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

    /// Handles a restored view: the run's messages are no longer held.
    pub(crate) fn rewound(&mut self) {
        self.held = Bytes(0);
    }

    /// Adds a message.
    pub(crate) fn takes(&mut self, message: &Message) {
        if self.from.is_some() {
            self.held = Bytes(self.held.0.saturating_add(weight(message).0));
            self.peak = self.peak.max(self.held());
        }
    }

    /// Sets the driver's additional memory, and the most that it will need for one more result.
    pub(crate) fn set_beside(&mut self, bytes: Bytes, copy_of_result: Bytes) {
        if self.from.is_some() {
            self.beside = bytes;
            self.copy_of_result = copy_of_result;
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

    /// Shortens a result to the memory left below the limit. Texts keep their beginning and end; images
    /// and files that do not fit are replaced by a line that says so.
    pub(crate) fn within(&self, limit: Option<Bytes>, mut result: ToolResult) -> ToolResult {
        let Some(limit) = limit else {
            return result;
        };
        let left = limit.0.saturating_sub(self.held().0);
        let copy = self.copy_of_result.0;
        let sizes: u64 = result.parts.iter().map(size_of_part).sum();
        if sizes.saturating_add(copy.min(sizes)) <= left {
            return result;
        }
        let copy = copy.min(left / 2);
        let mut left = left.saturating_sub(copy).max(LEAST_RESULT.0);
        for part in &mut result.parts {
            let size = size_of_part(part);
            if size > left {
                *part = shortened(part, size, Bytes(left));
            }
            left = left.saturating_sub(size_of_part(part)).max(LEAST_RESULT.0);
        }
        result
    }
}

/// Each part of a shortened result keeps at least this size.
const LEAST_RESULT: Bytes = Bytes(512);

/// Returns the size of a part's content.
fn size_of_part(part: &Part) -> u64 {
    let bytes = match part {
        Part::Text { text } => text.len(),
        Part::Image(Image { source, .. }) | Part::File(File { source, .. }) => match source {
            Source::Url { url } => url.len(),
            Source::Data { base64, .. } => base64.len(),
        },
        _ => 0,
    };
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn shortened(part: &Part, size: u64, left: Bytes) -> Part {
    let text = part.as_text().unwrap_or_default();
    let short = shorten_bytes(text, left);
    Part::text(short.unwrap_or_else(|| {
        format!("[{size} bytes are left out: the memory of this run is used up]")
    }))
}

/// Returns the memory of a message in the view: its allocation and its slot.
fn weight(message: &Message) -> Bytes {
    let counts = 2 * size_of::<usize>();
    let bytes = counts + message.allocated() + size_of::<Item>();
    Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
}
