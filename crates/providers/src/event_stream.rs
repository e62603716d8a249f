//! [`EventStreamReader`]: the binary messages of `application/vnd.amazon.eventstream`.
//!
//! A message consists of its length, the length of its headers and a CRC-32 of both, the headers, the
//! payload, and a CRC-32 of everything before. A header consists of its name, a type and a value. The
//! payload of an event is JSON; here it becomes the JSON object `{"NAME": PAYLOAD}` with the name of the
//! event. An exception becomes an error, with its name as the `code`.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::sse::{EventKind, ServerSentEvent};

/// Maximum length of a message, as AWS defines it.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// The length of the two lengths and their checksum.
const PRELUDE: usize = 12;
/// The length of a checksum.
const CHECKSUM: usize = 4;
/// The lengths of the values, by header type. A value of any other type begins with its length.
const FIXED: [(u8, usize); 8] = [
    (0, 0),
    (1, 0),
    (2, 1),
    (3, 2),
    (4, 4),
    (5, 8),
    (8, 8),
    (9, 16),
];
/// The types whose values begin with their length: bytes and text.
const SIZED: [u8; 2] = [6, 7];

/// Splits bytes into messages.
#[derive(Debug, Default)]
pub(crate) struct EventStreamReader {
    buffer: Vec<u8>,
}

impl EventStreamReader {
    /// Reads bytes and appends the events of all messages that they complete.
    ///
    /// # Errors
    /// If a message is malformed. Reading cannot continue after it.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        events: &mut Vec<ServerSentEvent>,
    ) -> Result<(), String> {
        self.buffer.extend_from_slice(bytes);
        let mut read = 0;
        while let Some(rest) = self.buffer.get(read..)
            && let Some(length) = message_length(rest)?
            && let Some(message) = rest.get(..length)
        {
            events.extend(event(message)?);
            read += length;
        }
        self.buffer.drain(..read);
        Ok(())
    }
}

/// Returns the length of the message that begins here, or `None` if more bytes are needed.
fn message_length(bytes: &[u8]) -> Result<Option<usize>, String> {
    let (Some(length), Some(sum)) = (number(bytes, 0), number(bytes, 8)) else {
        return Ok(None);
    };
    if bytes.get(..8).map(crc32fast::hash) != Some(sum) {
        return Err("a message of the stream has a wrong checksum".into());
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if (PRELUDE + CHECKSUM..=MAX_MESSAGE).contains(&length) {
        Ok(Some(length))
    } else {
        Err(format!(
            "a message of the stream cannot have {length} bytes"
        ))
    }
}

/// Decodes a whole message. Returns `None` if it is not an event.
fn event(message: &[u8]) -> Result<Option<ServerSentEvent>, String> {
    let broken = || "a message of the stream cannot be read".to_owned();
    let (checked, sum) = message
        .split_at_checked(message.len().saturating_sub(CHECKSUM))
        .ok_or_else(broken)?;
    if number(sum, 0) != Some(crc32fast::hash(checked)) {
        return Err("a message of the stream has a wrong checksum".into());
    }
    let headers = number(checked, 4).and_then(|length| usize::try_from(length).ok());
    let content = checked.get(PRELUDE..).ok_or_else(broken)?;
    let (headers, payload) = headers
        .and_then(|length| content.split_at_checked(length))
        .ok_or_else(broken)?;
    let headers = Headers::read(headers).ok_or_else(broken)?;
    let payload = match payload {
        [] => "{}",
        payload => std::str::from_utf8(payload).map_err(|_| broken())?,
    };
    if let Some(code) = headers.error {
        let mut error: Map<String, Value> = serde_json::from_str(payload).map_err(|_| broken())?;
        error.insert("code".into(), code.into());
        if let Some(message) = headers.message {
            error.insert("message".into(), message.into());
        }
        return Ok(Some(ServerSentEvent {
            kind: EventKind::Error,
            data: Value::Object(error).to_string(),
        }));
    }
    let Some(name) = headers.event else {
        return Ok(None);
    };
    let payload: &RawValue = serde_json::from_str(payload).map_err(|_| broken())?;
    let event = BTreeMap::from([(name, payload)]);
    Ok(Some(ServerSentEvent {
        kind: EventKind::Message,
        data: serde_json::to_string(&event).map_err(|_| broken())?,
    }))
}

/// The headers that determine the kind of a message.
#[derive(Debug, Default)]
struct Headers<'m> {
    event: Option<&'m str>,
    error: Option<&'m str>,
    message: Option<&'m str>,
}

impl<'m> Headers<'m> {
    /// Reads headers. Returns `None` if they are broken.
    fn read(mut rest: &'m [u8]) -> Option<Self> {
        let mut headers = Self::default();
        while let Some((length, after)) = rest.split_first() {
            let (name, after) = after.split_at_checked(usize::from(*length))?;
            let (kind, after) = after.split_first()?;
            let fixed = FIXED.iter().find(|(fixed, _)| fixed == kind);
            let (length, after) = match fixed {
                Some((_, length)) => (*length, after),
                None if SIZED.contains(kind) => {
                    let (length, after) = after.split_first_chunk::<2>()?;
                    (usize::from(u16::from_be_bytes(*length)), after)
                }
                None => return None,
            };
            let (value, after) = after.split_at_checked(length)?;
            let found = match name {
                b":event-type" => Some(&mut headers.event),
                b":exception-type" | b":error-code" => Some(&mut headers.error),
                b":error-message" => Some(&mut headers.message),
                _ => None,
            };
            if let Some(found) = found {
                *found = Some(std::str::from_utf8(value).ok()?);
            }
            rest = after;
        }
        Some(headers)
    }
}

/// Returns the big-endian number at this place.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: (&[u8], &[u8]) = (b":event-type", b"\x07\x00\x11contentBlockDelta");

    fn message(headers: &[(&[u8], &[u8])], payload: &[u8]) -> Vec<u8> {
        let mut head = Vec::new();
        for (name, value) in headers {
            head.push(name.len() as u8);
            head.extend(*name);
            head.extend(*value);
        }
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
        let read = event(&bytes).unwrap().unwrap();
        assert_eq!(read.kind, EventKind::Error);
        assert_eq!(read.data, r#"{"message":"slow","code":"throttlingError"}"#);
        let headers: [(&[u8], &[u8]); 2] = [
            (b":error-code", b"\x07\x00\x03500"),
            (b":error-message", b"\x07\x00\x04oops"),
        ];
        let read = event(&message(&headers, b"")).unwrap().unwrap();
        assert_eq!(read.data, r#"{"code":"500","message":"oops"}"#);
    }

    #[test]
    fn no_broken_message_is_accepted() {
        let good = message(&[NAME], b"{}");
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                assert!(read(&bad, bad.len()).is_err(), "{at} {bit}");
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
            let _ = event(&bytes);
            let _ = Headers::read(&bytes);
        }
    }
}
