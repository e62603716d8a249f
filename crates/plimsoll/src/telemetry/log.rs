//! The log: events and ended spans as lines on stderr, for those who look for a fault. Off unless
//! somebody asks for it; not what the command line prints.

use std::io::stderr;

use plimsoll_core::telemetry::METRICS_TARGET;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::Layer;

use super::{Layered, TelemetryError};

/// Crates whose lower levels tell what is said in requests and answers: they are heard from a warning
/// on, unless the filter names them.
const QUIET: [&str; 5] = ["rmcp", "genai", "hyper", "hyper_util", "h2"];

/// The log's layer.
pub(super) fn layer(filter: &str) -> Result<Layered, TelemetryError> {
    let filter = targets(filter)?;
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(stderr)
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE);
    Ok(layer.with_filter(filter).boxed())
}

/// What the filter asks for, and less of those that are better quiet.
fn targets(filter: &str) -> Result<Targets, TelemetryError> {
    let asked: Targets = filter.parse().map_err(|error| TelemetryError::Filter {
        why: format!("{error}"),
    })?;
    let mut targets = Targets::new();
    // Metrics are numbers for a collector, and would be most of the log.
    targets = targets.with_target(METRICS_TARGET, LevelFilter::OFF);
    for quiet in QUIET {
        targets = targets.with_target(quiet, LevelFilter::WARN);
    }
    if let Some(level) = asked.default_level() {
        targets = targets.with_default(level);
    }
    Ok(targets.with_targets(asked.iter()))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn those_that_tell_what_is_said_are_quiet_unless_they_are_named() {
        let all = targets("trace").unwrap();
        assert!(all.would_enable("plimsoll", &Level::TRACE));
        for quiet in [
            "rmcp::service",
            "rmcp",
            "hyper::proto",
            "hyper_util::client",
            "h2",
        ] {
            assert!(!all.would_enable(quiet, &Level::INFO), "{quiet}");
            assert!(all.would_enable(quiet, &Level::WARN), "{quiet}");
        }
        assert!(!all.would_enable(METRICS_TARGET, &Level::ERROR));
        let named = targets("plimsoll=debug,rmcp=trace").unwrap();
        assert!(named.would_enable("rmcp::service", &Level::TRACE));
        assert!(!named.would_enable("hyper", &Level::INFO));
        assert!(!named.would_enable("elsewhere", &Level::ERROR));
        assert!(targets("plimsoll=loud").is_err());
    }
}
