//! The telemetry of the program: a log on stderr, and spans for an OpenTelemetry collector, by the
//! variables of OpenTelemetry. The library emits spans and exports nothing.

mod export;
mod log;
mod settings;
#[cfg(test)]
mod tests;

use tracing::Dispatch;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

use settings::Settings;

/// A layer over the registry.
type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// The running telemetry of the process.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    exporter: Option<export::Exporter>,
}

/// Sets up the telemetry that the environment requests. A failure is reported and does not affect
/// the command. If the environment asks for nothing, it costs nothing.
pub(crate) fn begin() -> Telemetry {
    let (dispatch, telemetry, faults) = dispatch(&Settings::from_environment());
    for fault in faults {
        say!("{fault}");
    }
    if let Some(dispatch) = dispatch
        && let Err(error) = tracing::dispatcher::set_global_default(dispatch)
    {
        say!("{error}");
    }
    telemetry
}

/// Creates a dispatcher with these settings. Returns the reasons for the parts that it lacks because
/// they cannot be set up.
fn dispatch(settings: &Settings) -> (Option<Dispatch>, Telemetry, Vec<String>) {
    let mut layers: Vec<BoxedLayer> = Vec::new();
    let mut faults = Vec::new();
    let log = settings.log.as_deref().map(log::layer).transpose();
    match log {
        Ok(log) => layers.extend(log),
        Err(fault) => faults.push(fault),
    }
    let exporter = match &settings.traces {
        Some(address) => export::begin(address, settings, &mut layers).map(Some),
        None => Ok(None),
    };
    let exporter = exporter.unwrap_or_else(|fault| {
        faults.push(fault);
        None
    });
    let dispatch =
        (!layers.is_empty()).then(|| Dispatch::new(tracing_subscriber::registry().with(layers)));
    (dispatch, Telemetry { exporter }, faults)
}

impl Telemetry {
    /// Sends the remaining spans, for a few seconds at most. Returns a sentence for the user if an
    /// export failed, now or earlier.
    pub(crate) fn finish(self) -> Option<String> {
        self.exporter.and_then(export::Exporter::finish)
    }
}
