//! [`Bounded`]: a reader that ends at a line that is too long for a message. The SDK would skip such a
//! line, and the call would wait for its answer in vain.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use plimsoll_context::Bytes;
use tokio::io::{AsyncRead, ReadBuf};

/// Maximum size of a server's message, equal to the maximum size of a tool result. The SDK has the same
/// limit for HTTP.
pub const MCP_MESSAGE_MAX: Bytes = Bytes(16 * 1024 * 1024);

/// A reader that ends at a line that is too long.
pub(crate) struct Bounded<R> {
    inner: R,
    /// The length of the current line so far.
    line: u64,
    /// Set once a line was too long.
    too_long: Arc<AtomicBool>,
}

impl<R> Bounded<R> {
    pub(crate) fn new(inner: R, too_long: Arc<AtomicBool>) -> Self {
        Self {
            inner,
            line: 0,
            too_long,
        }
    }

    /// Counts the bytes of each line. Returns `false` if one is too long.
    fn count(&mut self, bytes: &[u8]) -> bool {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default().len() as u64;
        let longest = self.line.saturating_add(first);
        // A buffer is much smaller than the maximum, so only its first line can be too long.
        self.line = lines.next_back().map_or(longest, |last| last.len() as u64);
        longest <= MCP_MESSAGE_MAX.0
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.too_long.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let (_, new) = buf.filled().split_at(before);
        if !self.count(new) {
            self.too_long.store(true, Ordering::Release);
            buf.set_filled(before);
        }
        Poll::Ready(Ok(()))
    }
}
