//! The telemetry of the program: a log on stderr, and spans for an OpenTelemetry collector, by the
//! variables of OpenTelemetry. The library emits spans and exports nothing.

mod export;
mod log;

use tracing::Dispatch;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

pub(crate) use export::Exporter;

/// A layer over the registry.
type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Sets up the telemetry that the environment requests. A failure is reported and does not affect
/// the command. If the environment asks for nothing, it costs nothing. Returns the exporter of spans.
pub(crate) fn begin() -> Option<Exporter> {
    let mut layers: Vec<BoxedLayer> = Vec::new();
    let log = variable("PLIMSOLL_LOG").map(|filter| log::layer(&filter));
    match log.transpose() {
        Ok(log) => layers.extend(log),
        Err(fault) => say!("{fault}"),
    }
    let exporter = export::begin(&mut layers).unwrap_or_else(|fault| {
        say!("{fault}");
        None
    });
    if layers.is_empty() {
        return None;
    }
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layers));
    if let Err(error) = tracing::dispatcher::set_global_default(dispatch) {
        say!("{error}");
    }
    exporter
}

/// Returns an environment variable. An empty one counts as unset.
fn variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}
