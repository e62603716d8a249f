//! [`Guard`]: keeps telemetry running while it exists. At its end it sends the remaining data,
//! within a time limit. It never ends a run.

use std::time::Duration;

/// The maximum time to send the remaining data at the end. Unsent data is lost.
pub const FINISH_TIMEOUT: Duration = Duration::from_secs(3);

/// Keeps telemetry running while it exists. Dropping it sends the remaining data and blocks, like
/// [`finish`](Self::finish).
#[derive(Debug, Default)]
#[must_use = "spans and metrics are sent when this guard is dropped; keep it until the program \
              ends"]
pub struct Guard {
    #[cfg(feature = "otlp")]
    pub(super) sending: Option<super::export::Exporters>,
}

impl Guard {
    /// Sends the remaining data. Returns a sentence for the user if an export failed, now or
    /// earlier.
    ///
    /// Blocks the thread for at most [`FINISH_TIMEOUT`], as does dropping the guard. In an async
    /// program, call it on a thread that may block, as in `tokio::task::spawn_blocking(move ||
    /// guard.finish())`.
    #[must_use]
    pub fn finish(mut self) -> Option<String> {
        self.end()
    }

    #[cfg(feature = "otlp")]
    fn end(&mut self) -> Option<String> {
        self.sending.take()?.end()
    }

    #[cfg(not(feature = "otlp"))]
    fn end(&mut self) -> Option<String> {
        None
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Callers that need the warning call `finish`.
        let _ = self.end();
    }
}
