//! The telemetry of the program: a log on stderr, and spans for an OpenTelemetry collector, by the
//! variables of OpenTelemetry. The library emits spans and exports nothing.

mod export;
mod log;
mod settings;

use tracing::Dispatch;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

pub(crate) use export::Exporter;
use settings::Settings;

/// A layer over the registry.
type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Sets up the telemetry that the environment requests. A failure is reported and does not affect
/// the command. If the environment asks for nothing, it costs nothing. Returns the exporter of spans.
pub(crate) fn begin() -> Option<Exporter> {
    let settings = Settings::from_environment();
    let mut exporter = None;
    let mut layers: Vec<BoxedLayer> = Vec::new();
    match settings.log.as_deref().map(log::layer).transpose() {
        Ok(log) => layers.extend(log),
        Err(fault) => say!("{fault}"),
    }
    if let Some(address) = &settings.traces {
        match export::begin(address, &settings, &mut layers) {
            Ok(started) => exporter = Some(started),
            Err(fault) => say!("{fault}"),
        }
    }
    if layers.is_empty() {
        return exporter;
    }
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layers));
    if let Err(error) = tracing::dispatcher::set_global_default(dispatch) {
        say!("{error}");
    }
    exporter
}
