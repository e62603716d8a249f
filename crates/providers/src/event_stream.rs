//! [`EventStreamReader`]: the binary messages of `application/vnd.amazon.eventstream`.
//!
//! AWS's own crate decodes and checks a message. The payload of an event is JSON; here it becomes the
//! JSON object `{"NAME": PAYLOAD}` with the name of the event. An exception becomes an error, with its
//! name as the `code`.

use std::collections::BTreeMap;
use std::fmt::Display;

use aws_smithy_eventstream::frame::read_message_from;
use aws_smithy_types::event_stream::Message;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::sse::{EventKind, ServerSentEvent};

/// Maximum length of a message, as AWS defines it.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// Splits bytes into messages.
#[derive(Debug, Default)]
pub(crate) struct EventStreamReader {
    buffer: Vec<u8>,
}

impl EventStreamReader {
    /// Reads bytes and appends the events of all messages that they complete.
    ///
    /// # Errors
    /// If a message is malformed or too long. Reading cannot continue after it.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        events: &mut Vec<ServerSentEvent>,
    ) -> Result<(), String> {
        self.buffer.extend_from_slice(bytes);
        let mut rest = self.buffer.as_slice();
        while let Some(length) = rest.first_chunk::<4>() {
            let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
            if length > MAX_MESSAGE {
                return Err(broken(format!("it cannot have {length} bytes")));
            }
            let Some((message, next)) = rest.split_at_checked(length) else {
                break;
            };
            events.extend(event(&read_message_from(message).map_err(broken)?)?);
            rest = next;
        }
        let read = self.buffer.len() - rest.len();
        self.buffer.drain(..read);
        Ok(())
    }
}

fn broken(why: impl Display) -> String {
    format!("a message of the stream is broken: {why}")
}

/// Reads a message. Returns `None` if it is not an event.
fn event(message: &Message) -> Result<Option<ServerSentEvent>, String> {
    let header = |name: &str| {
        let mut headers = message.headers().iter();
        let header = headers.find(|header| header.name().as_str() == name)?;
        header.value().as_string().ok().map(|text| text.as_str())
    };
    let payload = match message.payload().as_ref() {
        [] => b"{}",
        payload => payload,
    };
    let code = header(":exception-type").or_else(|| header(":error-code"));
    if let Some(code) = code {
        let error = serde_json::from_slice::<Map<String, Value>>(payload);
        let mut error = error.map_err(broken)?;
        error.insert("code".into(), code.into());
        if let Some(message) = header(":error-message") {
            error.insert("message".into(), message.into());
        }
        return Ok(Some(ServerSentEvent {
            kind: EventKind::Error,
            data: Value::Object(error).to_string(),
        }));
    }
    let Some(name) = header(":event-type") else {
        return Ok(None);
    };
    let payload = serde_json::from_slice::<&RawValue>(payload).map_err(broken)?;
    let event = BTreeMap::from([(name, payload)]);
    let data = serde_json::to_string(&event).map_err(broken)?;
    Ok(Some(ServerSentEvent {
        kind: EventKind::Message,
        data,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths and their checksum, and the checksum at the end.
    const PRELUDE: usize = 12;
    const CHECKSUM: usize = 4;
    const NAME: (&[u8], &[u8]) = (b":event-type", b"\x07\x00\x11contentBlockDelta");

    fn message(headers: &[(&[u8], &[u8])], payload: &[u8]) -> Vec<u8> {
        let mut head = Vec::new();
        for (name, value) in headers {
            head.push(name.len() as u8);
            head.extend(*name);
            head.extend(*value);
        }
        framed(&head, payload)
    }

    /// Returns a message with valid lengths and checksums.
    fn framed(head: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut message = Vec::new();
        let length = PRELUDE + head.len() + payload.len() + CHECKSUM;
        message.extend((length as u32).to_be_bytes());
        message.extend((head.len() as u32).to_be_bytes());
        message.extend(crc32fast::hash(&message).to_be_bytes());
        message.extend(head);
        message.extend(payload);
        message.extend(crc32fast::hash(&message).to_be_bytes());
        message
    }

    fn read(bytes: &[u8], size: usize) -> Result<Vec<String>, String> {
        let mut reader = EventStreamReader::default();
        let mut events = Vec::new();
        for piece in bytes.chunks(size) {
            reader.push(piece, &mut events)?;
        }
        Ok(events.into_iter().map(|event| event.data).collect())
    }

    #[test]
    fn messages_are_read_however_they_are_cut() {
        let mut bytes = message(
            &[(b":date", b"\x08\0\0\0\0\0\0\0\x01"), NAME],
            b"{\"a\": 1.0}",
        );
        bytes.extend(message(&[(b"x", b"\x00")], b"{}"));
        bytes.extend(message(&[NAME], b""));
        for size in 1..=bytes.len() {
            let events = read(&bytes, size).unwrap();
            assert_eq!(
                events,
                [
                    "{\"contentBlockDelta\":{\"a\": 1.0}}",
                    "{\"contentBlockDelta\":{}}"
                ]
            );
        }
    }

    #[test]
    fn an_exception_is_an_error_with_its_name() {
        let exception: (&[u8], &[u8]) = (b":exception-type", b"\x07\x00\x0fthrottlingError");
        let bytes = message(&[exception], b"{\"message\":\"slow\"}");
        let read = |bytes: &[u8]| {
            let message = read_message_from(bytes).unwrap();
            event(&message).unwrap().unwrap()
        };
        let exception = read(&bytes);
        assert_eq!(exception.kind, EventKind::Error);
        assert_eq!(
            exception.data,
            r#"{"message":"slow","code":"throttlingError"}"#
        );
        let headers: [(&[u8], &[u8]); 2] = [
            (b":error-code", b"\x07\x00\x03500"),
            (b":error-message", b"\x07\x00\x04oops"),
        ];
        let error = read(&message(&headers, b""));
        assert_eq!(error.data, r#"{"code":"500","message":"oops"}"#);
    }

    #[test]
    fn no_broken_message_is_accepted() {
        let good = message(&[NAME], b"{}");
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                // A longer length waits for more bytes.
                let read = read(&bad, bad.len()).unwrap_or_default();
                assert!(read.is_empty(), "{at} {bit}");
            }
        }
        for bad in [
            message(&[NAME], b"{"),
            message(&[NAME], b"\xff"),
            message(&[(b"x", b"\x63")], b"{}"),
            message(&[(b":event-type", b"\x07\x00\xff")], b"{}"),
        ] {
            assert!(read(&bad, bad.len()).is_err());
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            let _ = read(&bytes, 7);
        }

        #[test]
        fn no_headers_are_a_panic(
            head in proptest::collection::vec(0u8..12, 0..24),
            payload in proptest::collection::vec(0u8..12, 0..8),
        ) {
            let _ = read(&framed(&head, &payload), 64);
        }
    }
}
