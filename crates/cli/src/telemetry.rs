//! Sets up spans, metrics and the log if the environment requests them. Failures are reported and
//! do not affect the command.

use plimsoll::telemetry::{self, Guard, Settings};

/// The service name unless `OTEL_SERVICE_NAME` is set.
const SERVICE: &str = "plimsoll";

/// Sets up the telemetry that the environment requests.
pub(crate) fn begin() -> Guard {
    let settings = Settings::from_environment(SERVICE);
    let begun = telemetry::start(&settings).or_else(|error| {
        say!("{error}");
        // The log does not need a collector.
        telemetry::start(&Settings {
            traces: None,
            metrics: None,
            ..settings
        })
    });
    begun.unwrap_or_default()
}

/// Sends the remaining telemetry, and reports a failure.
pub(crate) fn end(telemetry: Guard) {
    if let Some(warning) = telemetry.finish() {
        crate::say(&warning);
    }
}
