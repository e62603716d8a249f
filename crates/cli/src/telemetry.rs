//! Spans, metrics and the log, where the environment asks for them. None of it changes what a command
//! does: what cannot be set up or sent is said, and the command goes on.

use plimsoll::telemetry::{self, Guard, Settings};

/// What the command is called where `OTEL_SERVICE_NAME` says nothing else.
const SERVICE: &str = "plimsoll";

/// Sets up what the environment asks for.
pub(crate) fn begin() -> Guard {
    let settings = Settings::from_environment(SERVICE);
    let begun = telemetry::start(&settings).or_else(|error| {
        crate::say(&error.to_string());
        // The log does not need a collector.
        telemetry::start(&Settings {
            traces: None,
            metrics: None,
            ..settings
        })
    });
    begun.unwrap_or_default()
}

/// Sends what is left, and says so where that was not possible.
pub(crate) fn end(telemetry: Guard) {
    if let Some(warning) = telemetry.finish() {
        crate::say(&warning);
    }
}
