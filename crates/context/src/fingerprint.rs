//! [`Fingerprint`]: detects changes in the content of messages. For the identity of a message, see
//! the sequence number in `item.rs`.

use std::fmt;
use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::message::Message;

/// 128 bits of BLAKE3 over the JSON of messages: the chance that any two of 2³²
/// collide is 2⁻⁶⁴.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// Returns the fingerprint of messages, in order.
    #[must_use]
    pub fn of<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for message in messages {
            // Neither can fail: a message is plain data, and hashing accepts any bytes.
            let _ = serde_json::to_writer(&mut hasher, message);
            let _ = hasher.write_all(b"\n");
        }
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        Self(u128::from_be_bytes(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let text = String::deserialize(deserializer)?;
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(&text, 16).ok().filter(|_| is_hex);
        let wrong = || D::Error::custom("expected 32 hexadecimal digits");
        number.map(Self).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_apart_and_survives_json() {
        let one = Fingerprint::of([&Message::user("a"), &Message::user("b")]);
        assert_eq!(
            one,
            Fingerprint::of([&Message::user("a"), &Message::user("b")])
        );
        assert_ne!(one, Fingerprint::of([&Message::user("ab")]));
        assert_ne!(
            one,
            Fingerprint::of([&Message::user("b"), &Message::user("a")])
        );
        let json = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), one);
        assert!(serde_json::from_str::<Fingerprint>("\"zz\"").is_err());
    }
}
