//! The log: writes events and ended spans to stderr as lines, for debugging. Off by default and
//! independent of the command line's output.

use std::io::stderr;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::Layer;

use super::BoxedLayer;

/// The prefix of our own targets. A level without a target applies to them.
const OURS: &str = "plimsoll";
/// The most verbose level of all other crates, unless the filter names them. Below it, HTTP and MCP
/// libraries log the content of requests and replies.
const OTHERS: LevelFilter = LevelFilter::WARN;

/// Creates the layer of the log.
pub(super) fn layer(filter: &str) -> Result<BoxedLayer, String> {
    let filter = targets(filter)?;
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(stderr)
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE);
    Ok(layer.with_filter(filter).boxed())
}

/// Parses the filter: the requested levels for our own and the named targets, and warnings of all
/// others.
fn targets(filter: &str) -> Result<Targets, String> {
    let wanted: Targets = filter.parse().map_err(|error| {
        format!(
            "PLIMSOLL_LOG cannot be read ({error}): write a level, as in `info`, or targets with \
             levels, as in `plimsoll=debug,hyper=info`"
        )
    })?;
    let mut targets = Targets::new();
    let mut others = OTHERS;
    if let Some(level) = wanted.default_level() {
        targets = targets.with_target(OURS, level);
        others = others.min(level);
    }
    Ok(targets.with_default(others).with_targets(wanted.iter()))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_is_for_our_own_and_others_are_quiet_unless_they_are_named() {
        let all = targets("trace").unwrap();
        for ours in ["plimsoll", "plimsoll::run", "plimsoll_core::driver"] {
            assert!(all.would_enable(ours, &Level::TRACE), "{ours}");
        }
        for other in [
            "rmcp::service",
            "hyper_util::client",
            "reqwest::connect",
            "rustls::client",
            "elsewhere",
        ] {
            assert!(!all.would_enable(other, &Level::INFO), "{other}");
            assert!(all.would_enable(other, &Level::WARN), "{other}");
        }
        let named = targets("plimsoll=debug,rmcp=trace").unwrap();
        assert!(named.would_enable("plimsoll", &Level::DEBUG));
        assert!(!named.would_enable("plimsoll", &Level::TRACE));
        assert!(named.would_enable("rmcp::service", &Level::TRACE));
        assert!(!named.would_enable("elsewhere", &Level::INFO));
        assert!(named.would_enable("elsewhere", &Level::WARN));
        let both = targets("info,rmcp=debug,plimsoll::run=error").unwrap();
        assert!(both.would_enable("plimsoll", &Level::INFO));
        assert!(!both.would_enable("plimsoll::run", &Level::WARN));
        assert!(both.would_enable("rmcp", &Level::DEBUG));
        assert!(targets("plimsoll=loud").is_err());
    }

    #[test]
    fn who_wants_less_than_warnings_has_less_of_others_too() {
        let off = targets("off").unwrap();
        assert!(!off.would_enable("plimsoll", &Level::ERROR));
        assert!(!off.would_enable("elsewhere", &Level::ERROR));
        let errors = targets("error").unwrap();
        assert!(!errors.would_enable("elsewhere", &Level::WARN));
        assert!(errors.would_enable("elsewhere", &Level::ERROR));
    }
}
