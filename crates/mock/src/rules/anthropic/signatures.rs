//! Simulated signatures of thinking blocks, for servers that only imitate the API.
//!
//! [`sign`] creates a signature. [`signatures`] verifies it as the API verifies its own (AM10), so a test
//! can detect whether thinking came back unchanged and after the same messages. The API's real
//! signatures are not judged.

use plimsoll_wire::__internals::anthropic::{MARK, calls_server};
use serde_json::{Value, json};

use super::thinking::is_thinking;
use super::validate::{MessagesCheck, TABLE};
use crate::rules::fault::Fault;
use crate::rules::json_path::JsonPath;
use crate::rules::table::{content, entries, kind, text};

/// The prefix of our signatures.
const OURS: &str = "simulated";
/// The number of digits in each of the two parts of a signature.
const DIGITS: usize = 16;

/// Returns the signature of a thinking text in the reply to a request. For redacted thinking, the
/// result is the `data` of the block, and `thinking` is empty because its text is not visible.
#[must_use]
pub fn sign(request: &Value, thinking: &str) -> String {
    let mut hash = PrefixHash::before(request);
    for message in entries(request, "messages") {
        hash.message(message);
    }
    signature(thinking, &hash)
}

/// Returns a fault if a request contains tool calls and declares no tools, which servers refuse. A
/// repair cannot know the tools, so [`validate`](super::validate) does not judge this.
#[must_use]
pub fn undeclared(request: &Value) -> Option<Fault> {
    let messages = entries(request, "messages").iter();
    let mut blocks = messages.flat_map(content);
    let uses = |block: &Value| matches!(text(block, "type"), "tool_use" | "tool_result");
    let is_fault = entries(request, "tools").is_empty() && blocks.any(uses);
    is_fault.then(|| TABLE.fault("undeclared", "tools", &[]))
}

/// AM10 for a server that signs all its thinking with [`sign`]: returns a fault for the first thinking
/// block of a request that has no such signature.
///
/// Existing signatures are judged by [`validate`](super::validate).
#[must_use]
pub fn unsigned(request: &Value) -> Option<Fault> {
    let messages = entries(request, "messages").iter();
    messages.enumerate().find_map(|(index, message)| {
        let mut blocks = content(message).iter();
        let at = blocks
            .position(|block| is_thinking(block) && !signature_of(block).starts_with(OURS))?;
        Some(TABLE.fault("signature", format!("messages.{index}.content.{at}"), &[]))
    })
}

/// Judges all simulated signatures of a request (AM10).
pub(super) fn signatures(check: &mut MessagesCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let messages = entries(request, "messages");
    let mut blocks = messages.iter().flat_map(content);
    if !blocks.any(|block| signature_of(block).starts_with(OURS)) {
        return;
    }
    let mut hash = PrefixHash::before(request);
    for (index, message) in messages.iter().enumerate() {
        // The states at which the reply of a block may have begun: at the start of the message or, if
        // the turn was paused and continued, behind a call of one of the provider's own tools.
        let mut begun = vec![hash.clone()];
        let mut so_far = hash.clone();
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
            }
        }
        hash.message(message);
    }
}

fn verify(check: &mut MessagesCheck<'_>, place: String, block: &Value, begun: &[PrefixHash]) {
    let found = signature_of(block);
    if !found.starts_with(OURS) {
        return;
    }
    let thinking = text(block, "thinking");
    let mut expected = begun.iter().map(|hash| signature(thinking, hash));
    // The part of the thinking alone is the same after any messages.
    let own = |signature: &str| signature.rsplit_once('-').map(|(own, _)| own.to_owned());
    let is_own = begun
        .first()
        .is_some_and(|hash| own(found) == own(&signature(thinking, hash)));
    if !is_own {
        check.report("signature", place, &[]);
    } else if check.profile.binds_prefix && expected.all(|expected| found != expected) {
        check.report("signature-elsewhere", place, &[]);
    }
}

/// Returns the signature of a thinking block.
fn signature_of(block: &Value) -> &str {
    match kind(block) {
        "thinking" => text(block, "signature"),
        "redacted_thinking" => text(block, "data"),
        _ => "",
    }
}

fn signature(thinking: &str, hash: &PrefixHash) -> String {
    let own = blake3::hash(thinking.as_bytes()).to_hex();
    let prefix = hash.0.finalize().to_hex();
    let [own, prefix] = [&own, &prefix].map(|hex| hex.as_str().get(..DIGITS).unwrap_or_default());
    format!("{OURS}-{own}-{prefix}")
}

/// A hash of a request up to some message, without breakpoints and thinking.
#[derive(Clone)]
struct PrefixHash(blake3::Hasher);

impl PrefixHash {
    fn before(request: &Value) -> Self {
        let mut hash = Self(blake3::Hasher::new());
        for key in ["tools", "system"] {
            hash.take(request.get(key).unwrap_or(&Value::Null));
        }
        hash
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
                self.take(&json!({"type": "text", "text": text}));
            }
            _ => {}
        }
    }

    fn take(&mut self, value: &Value) {
        self.0.update(unmarked(value).to_string().as_bytes());
        self.0.update(b"\n");
    }
}

/// Returns a block without its breakpoints.
pub(crate) fn unmarked(block: &Value) -> Value {
    let mut block = block.clone();
    unmark(&mut block);
    block
}

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
