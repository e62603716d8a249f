//! [`RunMemory`]: what the messages of the run under way take of this process's memory. A running sum,
//! read in O(1). Not the session's; what was said before the run is not the run's.

use plimsoll_context::{
    Bytes, File, Image, Item, Message, Part, Seq, Source, ToolResult, Transcript, shorten_bytes,
};

use crate::run::Run;

/// What the messages of the run under way take.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunMemory {
    /// The run's messages have this number or a later one; `None` between runs.
    from: Option<Seq>,
    held: Bytes,
    /// What the driver holds besides.
    beside: Bytes,
    /// What the driver will hold of one more result, at most.
    copy_of_result: Bytes,
    /// The most that was held at once.
    peak: Bytes,
}

impl RunMemory {
    /// A run begins.
    pub(crate) fn begin(&mut self, next: Seq) {
        *self = Self {
            from: Some(next),
            ..Self::default()
        };
    }

    /// A run has ended. The most that it held is known until the next begins.
    pub(crate) fn end(&mut self) {
        *self = Self {
            peak: self.peak,
            ..Self::default()
        };
    }

    /// The view was put back: what the run has said is not held any more.
    pub(crate) fn rewound(&mut self) {
        self.held = Bytes(0);
    }

    /// A message is held from now on.
    pub(crate) fn takes(&mut self, message: &Message) {
        if self.from.is_some() {
            self.held = Bytes(self.held.0.saturating_add(weight(message).0));
            self.peak = self.peak.max(self.held());
        }
    }

    /// The driver holds so much for the run besides its messages, and of one more result at most
    /// `copy_of_result`.
    pub(crate) fn set_beside(&mut self, bytes: Bytes, copy_of_result: Bytes) {
        if self.from.is_some() {
            self.beside = bytes;
            self.copy_of_result = copy_of_result;
            self.peak = self.peak.max(self.held());
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

    /// Returns what is held.
    pub(crate) fn held(&self) -> Bytes {
        Bytes(self.held.0.saturating_add(self.beside.0))
    }

    /// Returns the most that was held at once.
    pub(crate) fn peak(&self) -> Bytes {
        self.peak
    }
}

impl Run {
    /// Returns a result that fits into what is left of `max_memory`: a larger one keeps the beginning and
    /// the end of its texts, and images and files that do not fit become a line that says so.
    pub(crate) fn within_memory(&self, mut result: ToolResult) -> ToolResult {
        let Some(limit) = self.setup.limits.max_memory else {
            return result;
        };
        let left = limit.0.saturating_sub(self.state.memory.held().0);
        let copy = self.state.memory.copy_of_result.0;
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

/// A result that exceeds the memory of a run keeps at least so much of each part.
const LEAST_RESULT: Bytes = Bytes(512);

/// Returns the size of what a part says.
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

/// Returns what a message takes in the view: its allocation and its place there.
fn weight(message: &Message) -> Bytes {
    let counts = 2 * size_of::<usize>();
    let bytes = counts + message.allocated() + size_of::<Item>();
    Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
}
