//! [`SseReader`]: parses server-sent events from bytes as they arrive. Memory is bounded, time is
//! linear in the number of bytes however they are split, and common deviations of servers are
//! accepted.

use thiserror::Error;

/// The maximum size of an event: the longest reply in one piece, including JSON escapes.
pub(crate) const MAX_EVENT: usize = 32 * 1024 * 1024;

/// A line or an event exceeds [`MAX_EVENT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("one event of the stream exceeds {MAX_EVENT} bytes")]
pub(crate) struct EventTooLarge;

/// A server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerSentEvent {
    pub(crate) kind: EventKind,
    /// The text of its `data` fields.
    pub(crate) data: String,
}

/// The `event` field. Names other than `error` carry no meaning in these protocols.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum EventKind {
    #[default]
    Message,
    Error,
}

/// Splits bytes into events.
#[derive(Debug, Default)]
pub(crate) struct SseReader {
    line: Vec<u8>,
    data: Option<String>,
    kind: EventKind,
    last: u8,
}

impl SseReader {
    /// Reads bytes and appends the events that they complete.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        events: &mut Vec<ServerSentEvent>,
    ) -> Result<(), EventTooLarge> {
        while let Some(at) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(at);
            let Some((end, rest)) = rest.split_first() else {
                break;
            };
            // The line feed of CR LF does not end another line.
            let half = *end == b'\n' && line.is_empty() && self.last == b'\r';
            if !half {
                self.keep(line)?;
                self.end_of_line(events)?;
            }
            self.last = *end;
            bytes = rest;
        }
        if let Some(last) = bytes.last() {
            self.last = *last;
        }
        self.keep(bytes)
    }

    /// Returns the events that the end of the stream completes. Some servers leave out the last
    /// empty line or the last line feed. The caller must detect a truncated event.
    pub(crate) fn finish(mut self) -> Vec<ServerSentEvent> {
        let mut events = Vec::new();
        if !self.line.is_empty() && self.end_of_line(&mut events).is_err() {
            return events;
        }
        events.extend(self.event());
        events
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        if self.line.len().saturating_add(bytes.len()) > MAX_EVENT {
            return Err(EventTooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_of_line(&mut self, events: &mut Vec<ServerSentEvent>) -> Result<(), EventTooLarge> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
        if line.is_empty() {
            events.extend(self.event());
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                // Some servers leave out the empty line between events. No JSON contains a line
                // that ends with a brace before a line that begins with one.
                let over = self.data.as_ref().is_some_and(|data| data.ends_with('}'));
                if over && (value.starts_with('{') || value == "[DONE]") {
                    events.extend(self.event());
                }
                self.data(value)?;
            }
            "event" if value == "error" => self.kind = EventKind::Error,
            // Comments have an empty field name. Ids and retry times are not used.
            _ => {}
        }
        Ok(())
    }

    fn data(&mut self, value: &str) -> Result<(), EventTooLarge> {
        let Some(data) = &mut self.data else {
            self.data = Some(value.to_owned());
            return Ok(());
        };
        if data.len().saturating_add(value.len()) >= MAX_EVENT {
            return Err(EventTooLarge);
        }
        data.push('\n');
        data.push_str(value);
        Ok(())
    }

    fn event(&mut self) -> Option<ServerSentEvent> {
        let kind = std::mem::take(&mut self.kind);
        let data = self.data.take()?;
        Some(ServerSentEvent { kind, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the events of a stream that arrives in these pieces, with errors in brackets.
    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut reader = SseReader::default();
        let mut events = Vec::new();
        for piece in pieces {
            reader.push(piece, &mut events).unwrap();
        }
        events.extend(reader.finish());
        let text = |event: ServerSentEvent| match event.kind {
            EventKind::Message => event.data,
            EventKind::Error => format!("[{}]", event.data),
        };
        events.into_iter().map(text).collect()
    }

    #[test]
    fn streams_are_read() {
        for (stream, events) in [
            ("data: a\n\ndata: b\n\n", vec!["a", "b"]),
            ("data:a\r\n\r\ndata:  b\r\n\r\n", vec!["a", " b"]),
            ("data: a\r\rdata: b\r\r", vec!["a", "b"]),
            (": hello\n\ndata: a\n: ping\n\n\n\n: ping\n\n", vec!["a"]),
            ("event: error\ndata: a\n\ndata: b\n\n", vec!["[a]", "b"]),
            ("id: 1\nretry: 5\nevent: x\ndata: a\nodd\n\n", vec!["a"]),
            ("data: a\ndata: b\n\n", vec!["a\nb"]),
            ("data\n\n", vec![""]),
            // Deviating servers.
            ("\u{feff}data: a\n\n", vec!["a"]),
            (
                "data: {}\ndata: {\"b\":1}\ndata: [DONE]\n\n",
                vec!["{}", "{\"b\":1}", "[DONE]"],
            ),
            ("data: {\ndata: }\n\n", vec!["{\n}"]),
            ("data: a\n\ndata: b\n", vec!["a", "b"]),
            ("data: a\n\ndata: b", vec!["a", "b"]),
            ("", vec![]),
            ("event: error\n\n: x", vec![]),
        ] {
            assert_eq!(read([stream.as_bytes()]), events, "{stream:?}");
        }
    }

    #[test]
    fn what_is_not_utf8_is_replaced_and_not_lost() {
        assert_eq!(read([b"data: a\xffb\n\n".as_slice()]), ["a\u{fffd}b"]);
    }

    #[test]
    fn a_line_and_an_event_are_bounded() {
        let mut events = Vec::new();
        let piece = vec![b'x'; MAX_EVENT / 2];
        let mut reader = SseReader::default();
        reader.push(&piece, &mut events).unwrap();
        reader.push(&piece, &mut events).unwrap();
        assert_eq!(reader.push(b"x", &mut events), Err(EventTooLarge));

        let mut reader = SseReader::default();
        let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
        reader.push(&line, &mut events).unwrap();
        assert_eq!(reader.push(&line, &mut events), Err(EventTooLarge));
    }

    proptest! {
        #[test]
        fn how_a_stream_is_cut_changes_nothing(
            stream in "((data: ?|event: error|: |id:)?[a{}é🦀]{0,3}(\n|\r|\r\n)){0,12}",
            cuts in prop::collection::vec(0usize..64, 0..8),
        ) {
            let whole = read([stream.as_bytes()]);
            let bytes = stream.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
            prop_assert_eq!(read(pieces), whole);
        }
    }
}
