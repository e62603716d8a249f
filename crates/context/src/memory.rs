//! Measures the memory that messages take in this process.

use crate::message::{Message, Opaque, Part, Source, ToolCall};

impl Message {
    /// Returns the memory that the message takes in bytes, itself included: its texts and data with
    /// their full allocations.
    ///
    /// ```
    /// use plimsoll_context::Message;
    /// let mut text = String::with_capacity(1_000);
    /// text.push_str("short");
    /// let message = Message::user(text);
    /// assert!(message.allocated() >= 1_000);
    /// // A clone has exactly the memory that it needs.
    /// assert!(message.clone().allocated() < 400);
    /// ```
    #[must_use]
    pub fn allocated(&self) -> usize {
        let heap = match self {
            Self::System { parts } | Self::User { parts } | Self::Assistant { parts } => {
                all_of(parts)
            }
            Self::ToolResult(result) => result.call.0.capacity() + all_of(&result.parts),
            Self::Notice { text } | Self::Summary { text } => text.capacity(),
        };
        size_of::<Self>() + heap
    }
}

fn all_of(parts: &Vec<Part>) -> usize {
    let heap: usize = parts.iter().map(heap_of).sum();
    parts.capacity() * size_of::<Part>() + heap
}

fn heap_of(part: &Part) -> usize {
    let of_source = |source: &Source| match source {
        Source::Url { url } => url.capacity(),
        Source::Data { media_type, base64 } => media_type.capacity() + base64.capacity(),
    };
    let of_opaque = |opaque: &Opaque| opaque.origin.capacity() + opaque.data.capacity();
    let of_option = |opaque: &Option<Opaque>| opaque.as_ref().map_or(0, of_opaque);
    match part {
        Part::Text { text } => text.capacity(),
        Part::Image(image) => {
            let detail = image.detail.as_ref().map_or(0, String::capacity);
            of_source(&image.source) + detail
        }
        Part::File(file) => {
            let name = file.name.as_ref().map_or(0, String::capacity);
            of_source(&file.source) + name
        }
        Part::Thinking(thinking) => thinking.text.capacity() + of_option(&thinking.opaque),
        Part::ToolCall(ToolCall {
            id,
            name,
            arguments,
            opaque,
        }) => id.0.capacity() + name.capacity() + arguments.capacity() + of_option(opaque),
        Part::Opaque(opaque) => of_opaque(opaque),
    }
}
