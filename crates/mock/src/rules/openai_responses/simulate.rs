//! Simulated encrypted content, for servers that only imitate OpenAI's.
//!
//! [`encrypt`] creates it. [`unreadable`] finds content that no such server created, or that belongs to
//! another item. OpenAI's real content is not judged. The simulated content hides nothing.

use plimsoll_wire::__internals::openai_responses::items;
use serde_json::Value;

use super::validate::TABLE;
use crate::rules::fault::Fault;
use crate::rules::table::{entries, text};

/// The prefix of our content, similar to OpenAI's.
const OURS: &str = "gAAAAsimulated";
/// The number of digits in each part of the content.
const DIGITS: usize = 16;
/// The number of characters of a content that an error repeats.
const SHOWN: usize = 4;

/// Returns the encrypted content of a reasoning item with that id.
#[must_use]
pub fn encrypt(id: &str, thinking: &str) -> String {
    let thinking_digits = digits(&[thinking]);
    let check_digits = digits(&[OURS, &thinking_digits]);
    let item_digits = digits(&[OURS, &thinking_digits, id]);
    format!("{OURS}-{thinking_digits}-{check_digits}-{item_digits}")
}

/// Returns a fault for the first reasoning or compaction item that cannot be decrypted, or that was
/// encrypted for another item. Items without an id are not compared.
#[must_use]
pub fn unreadable(request: &Value) -> Option<Fault> {
    let mut input = entries(request, "input").iter().enumerate();
    input.find_map(|(index, item)| {
        if !matches!(items::kind(item), "reasoning" | "compaction") {
            return None;
        }
        let content = item.get("encrypted_content").and_then(Value::as_str)?;
        let id = text(item, "id");
        let reason = match opened(content) {
            Some(digits) if id.is_empty() || digits == id_digits(content, id) => return None,
            Some(_) => "Encrypted content item_id did not match the target item id.",
            None => "Encrypted content could not be decrypted or parsed.",
        };
        let shown: String = content.chars().take(SHOWN).collect();
        let from_end = content.chars().count().saturating_sub(SHOWN);
        let end: String = content.chars().skip(from_end).collect();
        let place = format!("input[{index}].encrypted_content");
        Some(TABLE.fault("unreadable", place, &[&shown, &end, &reason]))
    })
}

/// Returns the part of a simulated content that identifies its item. `None` for other content.
fn opened(content: &str) -> Option<&str> {
    let mut parts = content.strip_prefix(OURS)?.strip_prefix('-')?.split('-');
    let (thinking_digits, check_digits, item_digits) =
        (parts.next()?, parts.next()?, parts.next()?);
    (parts.next().is_none() && check_digits == digits(&[OURS, thinking_digits]))
        .then_some(item_digits)
}

fn id_digits(content: &str, id: &str) -> String {
    let thinking_digits = content.split('-').nth(1).unwrap_or_default();
    digits(&[OURS, thinking_digits, id])
}

fn digits(texts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(text.as_bytes());
        hasher.update(b"\n");
    }
    let hex = hasher.finalize().to_hex();
    hex.as_str().get(..DIGITS).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fault_words(id: &str, content: &str) -> Option<String> {
        let item = json!({"type": "reasoning", "id": id, "summary": [],
            "encrypted_content": content});
        let fault = unreadable(&json!({"input": [{"role": "user", "content": "hi"}, item]}))?;
        assert_eq!(fault.place, "input[1].encrypted_content");
        Some(fault.words)
    }

    #[test]
    fn only_what_was_made_for_the_item_can_be_read() {
        let content = encrypt("rs_1", "hm");
        assert_eq!(fault_words("rs_1", &content), None);
        assert_eq!(fault_words("", &content), None);
        assert!(
            fault_words("rs_2", &content)
                .unwrap()
                .contains("item_id did not match")
        );
        for foreign in [
            "gAAAAB8=",
            "",
            &format!("{content}0"),
            &content.replace('a', "b"),
        ] {
            let words = fault_words("rs_1", foreign).unwrap();
            assert!(words.contains("could not be verified"), "{words}");
        }
        assert_eq!(unreadable(&json!({"input": "hi"})), None);
    }
}
