//! [`Bounded`]: limits the output of a server.
//!
//! The output ends at a line that is too long for any message, or after too many unrequested lines. The
//! SDK parses the messages.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use plimsoll_context::Bytes;
use tokio::io::{AsyncRead, ReadBuf};

use super::transport_tap::{Misuse, ServerActivity};

/// Maximum size of a server's message, equal to the maximum size of a tool result. The SDK has the same
/// limit for HTTP.
pub const MCP_MESSAGE_MAX: Bytes = Bytes(16 * 1024 * 1024);

/// A reader that ends at a line that is too long.
pub(super) struct Bounded<R> {
    inner: R,
    activity: Arc<ServerActivity>,
    /// The length of the current line so far.
    line: usize,
    has_ended: bool,
}

impl<R> Bounded<R> {
    pub(super) fn new(inner: R, activity: Arc<ServerActivity>) -> Self {
        Self {
            inner,
            activity,
            line: 0,
            has_ended: false,
        }
    }

    /// Counts the bytes, and returns `false` if the line is too long.
    fn takes(&mut self, bytes: &[u8]) -> bool {
        let max = usize::try_from(MCP_MESSAGE_MAX.0).unwrap_or(usize::MAX);
        // A buffer is much smaller than the maximum line, so only its first line can be too long.
        let first = bytes.iter().position(|byte| *byte == b'\n');
        let longest = self.line.saturating_add(first.unwrap_or(bytes.len()));
        self.line = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => bytes.len() - last - 1,
            None => longest,
        };
        longest <= max
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.has_ended {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let (_, new) = buf.filled().split_at(before);
        let lines = new.iter().filter(|byte| **byte == b'\n').count();
        let misuse = match (self.takes(new), lines == 0 || self.activity.reads(lines)) {
            (false, _) => Some(Misuse::TooLong),
            (true, false) => Some(Misuse::Flood),
            (true, true) => None,
        };
        if let Some(misuse) = misuse {
            self.has_ended = true;
            self.activity.misused(misuse);
            buf.set_filled(before);
        }
        Poll::Ready(Ok(()))
    }
}
