//! [`Guard`]: keeps telling while it lives; at its end what is left is sent, within a bound. It never
//! ends a run.

use std::time::Duration;

/// How long the end waits for what is left to be sent, at most; what is not sent then is lost.
pub const FINISH_TIMEOUT: Duration = Duration::from_secs(3);

/// Keeps telling while it lives. Dropped, it sends what is left and blocks for that, as
/// [`finish`](Self::finish) does.
#[derive(Debug, Default)]
#[must_use = "what is told is sent when this ends; dropped at once, it sends nothing"]
pub struct Guard {
    #[cfg(feature = "otlp")]
    pub(super) sending: Option<super::export::Sending>,
}

impl Guard {
    /// Sends what is left. Where something could not be sent, now or before, one sentence for a person.
    ///
    /// It blocks its thread for [`FINISH_TIMEOUT`] at most, as does dropping it: within an async program
    /// call it where blocking is allowed, as in `tokio::task::spawn_blocking(move || guard.finish())`.
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
        // Who wants to know calls `finish`.
        let _ = self.end();
    }
}
