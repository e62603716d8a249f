//! Signatures for servers that only look like the API: [`sign`] makes one, [`check`] verifies it as
//! the API does its own (AM10), so that a test can tell whether thinking came back byte for byte and
//! under what it was written. Signatures of the API are not ours to judge.

use plimsoll_wire::__internals::anthropic::MARK;
use plimsoll_wire::__internals::anthropic::calls_server;
use serde_json::Value;

use super::validate::{Check, content, is_thinking, kind, text};
use crate::fault::{Fault, Rule};

/// How our signatures begin.
const OURS: &str = "simulated";
/// Digits of each of their two parts.
const DIGITS: usize = 16;
/// Places in one message where a reply may have gone on that are tried, at most: the API itself pauses
/// a turn less often, and each costs a hash for every thinking block behind it.
const MAX_PAUSES: usize = 32;

/// The signature of a thinking text in the reply to a request; for redacted thinking, whose text
/// nobody sees, the data of a block without one.
#[must_use]
pub fn sign(request: &Value, thinking: &str) -> String {
    let mut said = Said::before(request);
    let messages = request.get("messages").and_then(Value::as_array);
    for message in messages.into_iter().flatten() {
        said.message(message);
    }
    signature(thinking, &said)
}

/// AM10 as a server judges it that signs all its thinking with [`sign`]: the first thinking of a
/// request that it never signed. What it did sign is judged by [`validate`](super::validate).
#[must_use]
pub fn unsigned(request: &Value) -> Option<Fault> {
    let messages = request.get("messages").and_then(Value::as_array)?;
    messages.iter().enumerate().find_map(|(index, message)| {
        let mut blocks = content(message).iter();
        let at = blocks.position(|block| is_thinking(block) && !given(block).starts_with(OURS))?;
        let place = format!("messages.{index}.content.{at}");
        Some(Fault {
            rule: Rule::Am10,
            words: format!("{place}: Invalid `signature` in `thinking` block"),
            place,
        })
    })
}

/// AM10: judges all simulated signatures of a request.
pub(super) fn check(check: &mut Check<'_>, request: &Value, messages: &[Value]) {
    let blocks = messages.iter().flat_map(content);
    if !blocks.map(given).any(|given| given.starts_with(OURS)) {
        return;
    }
    let mut said = Said::before(request);
    for (index, message) in messages.iter().enumerate() {
        // Where the reply may have begun that a block is of: with the message or, where its turn was
        // paused and went on, behind a call of the provider's own tool.
        let mut begun = vec![said.clone()];
        let mut so_far = said.clone();
        so_far.take(message.get("role").unwrap_or(&Value::Null));
        for (at, block) in content(message).iter().enumerate() {
            if is_thinking(block) {
                let place = format!("messages.{index}.content.{at}");
                verify(check, place, block, &begun);
                continue;
            }
            so_far.take(block);
            if calls_server(kind(block)) {
                begun.push(so_far.clone());
                if begun.len() > MAX_PAUSES {
                    begun.remove(1);
                }
            }
        }
        said.message(message);
    }
}

fn verify(check: &mut Check<'_>, place: String, block: &Value, begun: &[Said]) {
    let given = given(block);
    if !given.starts_with(OURS) {
        return;
    }
    let expected = begun
        .iter()
        .map(|said| signature(text(block, "thinking"), said));
    let expected: Vec<String> = expected.collect();
    let own = |signature: &str| signature.rsplit_once('-').map(|(own, _)| own.to_owned());
    if expected.iter().all(|expected| own(given) != own(expected)) {
        let words = format!("{place}: Invalid `signature` in `thinking` block");
        check.fault(Rule::Am10, place, words);
    } else if check.profile.binds_prefix && expected.iter().all(|expected| given != expected) {
        // tidy:allow(conversation)
        let bound = "The block is bound to a different conversation";
        let words = format!("{place}: Invalid `signature` in `thinking` block. {bound}");
        check.fault(Rule::Am10, place, words);
    }
}

/// What a thinking block was signed with.
fn given(block: &Value) -> &str {
    match kind(block) {
        "thinking" => text(block, "signature"),
        "redacted_thinking" => text(block, "data"),
        _ => "",
    }
}

fn signature(thinking: &str, said: &Said) -> String {
    let own = blake3::hash(thinking.as_bytes()).to_hex();
    let prefix = said.0.finalize().to_hex();
    let digits = |hex: &str| hex.get(..DIGITS).unwrap_or_default().to_owned();
    format!(
        "{OURS}-{}-{}",
        digits(own.as_str()),
        digits(prefix.as_str())
    )
}

/// What a request says up to some message, whatever its breakpoints, and without its thinking.
#[derive(Clone)]
struct Said(blake3::Hasher);

impl Said {
    fn before(request: &Value) -> Self {
        let mut said = Self(blake3::Hasher::new());
        for key in ["tools", "system"] {
            said.take(request.get(key).unwrap_or(&Value::Null));
        }
        said
    }

    fn message(&mut self, message: &Value) {
        self.take(message.get("role").unwrap_or(&Value::Null));
        match message.get("content") {
            Some(Value::Array(blocks)) => {
                for block in blocks.iter().filter(|block| !is_thinking(block)) {
                    self.take(block);
                }
            }
            Some(Value::String(text)) => {
                self.take(&serde_json::json!({"type": "text", "text": text}));
            }
            _ => {}
        }
    }

    fn take(&mut self, value: &Value) {
        let mut value = value.clone();
        unmark(&mut value);
        self.0.update(value.to_string().as_bytes());
        self.0.update(b"\n");
    }
}

/// Takes all breakpoints out.
fn unmark(value: &mut Value) {
    match value {
        Value::Object(keys) => {
            keys.shift_remove(MARK);
            keys.values_mut().for_each(unmark);
        }
        Value::Array(list) => list.iter_mut().for_each(unmark),
        _ => {}
    }
}
