//! [`RequestPiece`]: a part of a request in prompt order, with its size. The simulated caches
//! compare pieces. Each protocol splits its own requests.

use plimsoll_context::{TokenCounter, Tokens};
use serde_json::Value;

/// The minimum size of a compared chunk in bytes: about the 128 tokens of OpenAI's cache steps.
const CHUNK: usize = 512;
/// The maximum number of chunks in one piece; a larger piece has larger chunks.
const MAX_CHUNKS: usize = 1_024;
/// The tokens of an image of a million pixels.
const IMAGE: Tokens = Tokens(1_400);
/// Bytes of a file's base64 per token.
const FILE_BYTES: u64 = 8;

/// The fingerprint of a stretch of a prompt, for comparison.
pub(crate) type Print = [u8; 16];

/// One piece of a request.
#[derive(Debug, Clone)]
pub(crate) struct RequestPiece {
    /// The fingerprint of the whole piece.
    pub(crate) print: Print,
    pub(crate) tokens: Tokens,
    /// The chunks of the piece, each with its size.
    pub(crate) chunks: Vec<(Print, Tokens)>,
    /// The breakpoint at the end of the piece, if there is one.
    pub(crate) mark: Option<Mark>,
}

/// The lifetime of a cache entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    FiveMinutes,
    Hour,
}

impl RequestPiece {
    /// Creates a piece. `text` is only compared, and does not determine the number of tokens.
    pub(crate) fn new(text: &str, tokens: Tokens) -> Self {
        let length = text.len().max(1) as u64;
        let size = CHUNK.max(text.len().div_ceil(MAX_CHUNKS));
        let up_to = |bytes: u64| tokens.0.saturating_mul(bytes) / length;
        let mut chunks = Vec::new();
        let mut before: u64 = 0;
        for chunk in text.as_bytes().chunks(size) {
            let after = before + chunk.len() as u64;
            let weight = up_to(after) - up_to(before);
            chunks.push((print(&[chunk]), Tokens(weight)));
            before = after;
        }
        let prints: Vec<&[u8]> = chunks.iter().map(|(print, _)| print.as_slice()).collect();
        Self {
            print: print(&prints),
            tokens,
            chunks,
            mark: None,
        }
    }

    pub(crate) fn marked(mut self, mark: Option<Mark>) -> Self {
        self.mark = mark;
        self
    }
}

/// Returns the fingerprint of a sequence of stretches.
pub(crate) fn print(stretches: &[&[u8]]) -> Print {
    let mut hasher = blake3::Hasher::new();
    for stretch in stretches {
        hasher.update(stretch);
    }
    let mut print = Print::default();
    hasher.finalize_xof().fill(&mut print);
    print
}

/// Counts the tokens of a content: a text, or a list of parts in any protocol.
pub(crate) fn weigh(content: &Value, counter: &dyn TokenCounter) -> Tokens {
    match content {
        Value::String(text) => counter.text(text),
        Value::Array(parts) => parts.iter().map(|part| weigh_part(part, counter)).sum(),
        Value::Null => Tokens::ZERO,
        other => weigh_part(other, counter),
    }
}

fn weigh_part(part: &Value, counter: &dyn TokenCounter) -> Tokens {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    let of = |key: &str| part.get(key).map(|value| weigh(value, counter));
    match kind {
        "image" | "image_url" | "input_image" => IMAGE,
        "document" | "file" | "input_file" => {
            // The data of the file, or its URL.
            Tokens(part.to_string().len() as u64 / FILE_BYTES)
        }
        "text" | "input_text" | "output_text" => of("text").unwrap_or_default(),
        "thinking" => of("thinking").unwrap_or_default(),
        "redacted_thinking" => Tokens(part.to_string().len() as u64 / FILE_BYTES),
        "tool_result" => of("content").unwrap_or_default(),
        "tool_use" => {
            let input = part
                .get("input")
                .map(|input| counter.text(&input.to_string()));
            of("name").unwrap_or_default() + input.unwrap_or_default()
        }
        _ => counter.text(&part.to_string()),
    }
}
