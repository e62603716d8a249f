//! The telemetry of the program: a log on stderr, and spans and metrics for an OpenTelemetry
//! collector, by the variables of OpenTelemetry. The library emits spans and exports nothing.

#[cfg(feature = "otlp")]
mod export;
mod log;
#[cfg(feature = "otlp")]
mod metrics;
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
    exporters: Option<export::Exporters>,
}

/// Sets up the telemetry that the environment requests. A failure is reported and does not affect
/// the command.
pub(crate) fn begin() -> Telemetry {
    let settings = Settings::from_environment();
    start(&settings).unwrap_or_else(|error| {
        say!("{error}");
        // The log does not need a collector.
        start(&settings.without_export()).unwrap_or_default()
    })
}

/// Sets up telemetry for the whole process. If the settings ask for nothing, it costs nothing.
fn start(settings: &Settings) -> Result<Telemetry, String> {
    if !settings.exports() && settings.log.is_none() {
        return Ok(Telemetry::default());
    }
    let (dispatch, telemetry) = dispatch(settings)?;
    tracing::dispatcher::set_global_default(dispatch).map_err(|error| error.to_string())?;
    Ok(telemetry)
}

/// Creates a dispatcher with these settings.
fn dispatch(settings: &Settings) -> Result<(Dispatch, Telemetry), String> {
    let mut layers: Vec<BoxedLayer> = Vec::new();
    if let Some(filter) = &settings.log {
        layers.push(log::layer(filter)?);
    }
    let telemetry = exported(settings, &mut layers)?;
    let subscriber = tracing_subscriber::registry().with(layers);
    Ok((Dispatch::new(subscriber), telemetry))
}

#[cfg(feature = "otlp")]
fn exported(settings: &Settings, layers: &mut Vec<BoxedLayer>) -> Result<Telemetry, String> {
    let exporters = settings.exports().then(|| export::begin(settings, layers));
    let exporters = exporters.transpose()?;
    Ok(Telemetry { exporters })
}

#[cfg(not(feature = "otlp"))]
fn exported(settings: &Settings, _: &mut Vec<BoxedLayer>) -> Result<Telemetry, String> {
    if settings.exports() {
        return Err(
            "spans and metrics are not sent: this build has not the feature `otlp`; build it \
                    with `--features otlp`"
                .to_owned(),
        );
    }
    Ok(Telemetry::default())
}

impl Telemetry {
    /// Sends the remaining data, for a few seconds at most. Returns a sentence for the user if an
    /// export failed, now or earlier.
    pub(crate) fn finish(self) -> Option<String> {
        #[cfg(feature = "otlp")]
        return self.exporters.and_then(export::Exporters::finish);
        #[cfg(not(feature = "otlp"))]
        None
    }
}
