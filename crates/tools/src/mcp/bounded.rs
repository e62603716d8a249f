//! [`Bounded`]: what a server prints, up to a line that is longer than any message may be, or more
//! lines than anybody asked for: there it ends. It reads bytes; what they say is the SDK's.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use plimsoll_context::Bytes;
use tokio::io::{AsyncRead, ReadBuf};

use super::ear::{Heard, Misuse};

/// One message of a server, at most: as much as one result of a tool may be at all. The SDK has the
/// same bound for HTTP.
pub const MCP_MESSAGE_MAX: Bytes = Bytes(16 * 1024 * 1024);

/// A reader that ends where a line is too long.
pub(super) struct Bounded<R> {
    inner: R,
    heard: Arc<Heard>,
    /// How long the line is so far.
    line: usize,
    has_ended: bool,
}

impl<R> Bounded<R> {
    pub(super) fn new(inner: R, heard: Arc<Heard>) -> Self {
        Self {
            inner,
            heard,
            line: 0,
            has_ended: false,
        }
    }

    /// Whether the line is still short enough.
    fn takes(&mut self, bytes: &[u8]) -> bool {
        let max = usize::try_from(MCP_MESSAGE_MAX.0).unwrap_or(usize::MAX);
        // A buffer is far smaller than a line may be, so only the first line of it can be too long.
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
        let misuse = match (self.takes(new), lines == 0 || self.heard.reads(lines)) {
            (false, _) => Some(Misuse::TooLong),
            (true, false) => Some(Misuse::Flood),
            (true, true) => None,
        };
        if let Some(misuse) = misuse {
            self.has_ended = true;
            self.heard.misused(misuse);
            buf.set_filled(before);
        }
        Poll::Ready(Ok(()))
    }
}
