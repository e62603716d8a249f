//! [`events`]: what the SSE reader makes of bytes that arrive in pieces. Not the reader; that is
//! `crates/providers/src/sse.rs`, taken in as it is.

use crate::sse::{EventKind, ServerSentEvent, SseReader};

/// What came of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The text of each event; one that the server calls an error has a mark.
    pub events: Vec<(bool, String)>,
    /// Whether it was too much.
    pub too_large: bool,
}

/// Reads bytes that arrive cut at these places.
pub fn events(bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Seen {
    let mut reader = SseReader::default();
    let mut events = Vec::new();
    let mut rest = bytes;
    let mut failed = false;
    for cut in cuts {
        let (piece, behind) = rest.split_at(cut.min(rest.len()));
        rest = behind;
        failed = failed || reader.push(piece, &mut events).is_err();
    }
    failed = failed || reader.push(rest, &mut events).is_err();
    if !failed {
        events.extend(reader.finish());
    }
    let seen = |event: ServerSentEvent| (event.kind == EventKind::Error, event.data);
    Seen {
        events: events.into_iter().map(seen).collect(),
        too_large: failed,
    }
}
