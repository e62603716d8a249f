//! [`BodyChunks`]: a body that shares the bytes of older messages with earlier and later bodies.

use std::ops::Range;

use bytes::Bytes;

/// The minimum size of a shared range, in bytes. Smaller ranges are copied, so that a body has few
/// chunks.
const LEAST_SHARED: usize = 4 * 1024;
/// The minimum size of a new chunk, in bytes. Less than that is copied into each body.
const CHUNK: usize = 32 * 1024;

/// The body of a request in chunks.
///
/// Requests of a session that grows share the chunks of their older messages, so that a body costs as much
/// as its new messages, however long it is.
#[derive(Debug, Clone, Default)]
pub struct BodyChunks {
    chunks: Vec<Bytes>,
    /// The bytes behind the chunks.
    open: Vec<u8>,
}

impl BodyChunks {
    /// Returns the size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks_len() + self.open.len()
    }

    /// Returns `true` if the body is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.open.is_empty()
    }

    /// Returns the chunks in their order. Most have 32 KiB or more.
    #[must_use]
    pub fn into_chunks(mut self) -> Vec<Bytes> {
        self.seal();
        self.chunks
    }

    /// Returns the body in one piece. Copies nothing if it has no chunks yet.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<u8> {
        if self.chunks.is_empty() {
            return self.open;
        }
        self.seal();
        self.chunks.concat()
    }

    /// Returns the buffer of the bytes behind the chunks, and the number of bytes before it.
    pub(crate) fn open(&mut self) -> (&mut Vec<u8>, usize) {
        let before = self.chunks_len();
        (&mut self.open, before)
    }

    /// Appends a copy of these bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.open.extend_from_slice(bytes);
    }

    /// Appends a range of another body. Its chunks are shared.
    pub(crate) fn share(&mut self, from: &Self, range: Range<usize>) {
        let mut at = 0;
        for chunk in &from.chunks {
            let start = range.start.max(at) - at;
            let end = range.end.clamp(at, at + chunk.len()) - at;
            at += chunk.len();
            if start >= end {
                continue;
            }
            if end - start < LEAST_SHARED {
                self.push(chunk.get(start..end).unwrap_or_default());
            } else {
                self.seal();
                self.chunks.push(chunk.slice(start..end));
            }
        }
        let open = range.start.max(at) - at..range.end.max(at) - at;
        self.push(from.open.get(open).unwrap_or_default());
    }

    /// Turns the open bytes into a chunk if they are many, so that the next body shares them.
    pub(crate) fn seal_if_large(&mut self) {
        if self.open.len() >= CHUNK {
            self.seal();
        }
    }

    fn seal(&mut self) {
        if !self.open.is_empty() {
            self.chunks.push(std::mem::take(&mut self.open).into());
        }
    }

    fn chunks_len(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum()
    }
}

impl From<Vec<u8>> for BodyChunks {
    fn from(open: Vec<u8>) -> Self {
        Self {
            chunks: Vec::new(),
            open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_is_shared_as_it_was_written() {
        let bytes: Vec<u8> = (0..3 * CHUNK + 100).map(|n| (n % 251) as u8).collect();
        let mut written = BodyChunks::default();
        for piece in bytes.chunks(1_000) {
            written.push(piece);
            written.seal_if_large();
        }
        assert!(!written.chunks.is_empty() && !written.open.is_empty());
        let len = bytes.len();
        let ends = [
            0,
            1,
            LEAST_SHARED,
            CHUNK - 1,
            CHUNK,
            2 * CHUNK + 7,
            len - 1,
            len,
        ];
        for start in ends {
            for end in ends.into_iter().filter(|end| *end >= start) {
                let mut body = BodyChunks::from(b"[".to_vec());
                body.share(&written, start..end);
                body.push(b"]");
                assert_eq!(body.len(), end - start + 2);
                let chunks = body.clone().into_chunks();
                assert_eq!(chunks.concat(), body.into_vec());
                let whole = [b"[", &bytes[start..end], b"]"].concat();
                assert_eq!(chunks.concat(), whole, "{start}..{end}");
                assert!(chunks.len() <= 6, "{}", chunks.len());
            }
        }
    }
}
