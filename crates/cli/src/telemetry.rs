//! The telemetry of the program: a log on stderr, and spans for an OpenTelemetry collector, by the
//! variables of OpenTelemetry. The library emits spans and exports nothing.

#[cfg(feature = "otlp")]
mod export;
mod log;
mod settings;
#[cfg(test)]
#[cfg(feature = "otlp")]
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
    #[cfg(feature = "otlp")]
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
    let telemetry = match &settings.traces {
        Some(address) => exported(address, settings, &mut layers),
        None => Ok(Telemetry::default()),
    };
    let telemetry = telemetry.unwrap_or_else(|fault| {
        faults.push(fault);
        Telemetry::default()
    });
    let dispatch =
        (!layers.is_empty()).then(|| Dispatch::new(tracing_subscriber::registry().with(layers)));
    (dispatch, telemetry, faults)
}

#[cfg(feature = "otlp")]
fn exported(
    address: &str,
    settings: &Settings,
    layers: &mut Vec<BoxedLayer>,
) -> Result<Telemetry, String> {
    let exporter = Some(export::begin(address, settings, layers)?);
    Ok(Telemetry { exporter })
}

#[cfg(not(feature = "otlp"))]
fn exported(_: &str, _: &Settings, _: &mut Vec<BoxedLayer>) -> Result<Telemetry, String> {
    let fault = "spans are not sent: this build lacks the feature `otlp`; build it \
                 with `--features otlp`";
    Err(fault.to_owned())
}

impl Telemetry {
    /// Sends the remaining spans, for a few seconds at most. Returns a sentence for the user if an
    /// export failed, now or earlier.
    pub(crate) fn finish(self) -> Option<String> {
        #[cfg(feature = "otlp")]
        return self.exporter.and_then(export::Exporter::finish);
        #[cfg(not(feature = "otlp"))]
        None
    }
}
