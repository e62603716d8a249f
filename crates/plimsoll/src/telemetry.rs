//! Sets up spans, metrics and a log for runs, configured by OpenTelemetry's environment variables.
//! The lower layers emit the events. A program with its own `tracing` subscriber does not need this
//! module.
//!
//! ```no_run
//! # async fn example(agent: plimsoll::Agent) -> Result<(), Box<dyn std::error::Error>> {
//! use plimsoll::telemetry::{self, Settings};
//!
//! let telemetry = telemetry::start(&Settings::from_environment("harbour-watch"))?;
//! agent.run("Which ships are in?").await?;
//! // Sends what is left, and blocks for 3 s at most; so does dropping it.
//! let warning = tokio::task::spawn_blocking(move || telemetry.finish()).await?;
//! if let Some(warning) = warning {
//!     eprintln!("{warning}");
//! }
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "otlp")]
mod carrier;
#[cfg(feature = "otlp")]
mod export;
mod guard;
mod log;
mod settings;
#[cfg(feature = "otlp")]
mod shape;
#[cfg(feature = "otlp")]
mod views;

use tracing::Dispatch;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

#[cfg(feature = "otlp")]
pub use carrier::MAX_ANSWER;
#[cfg(feature = "otlp")]
pub use export::{MAX_BATCH, MAX_QUEUE};
pub use guard::{FINISH_TIMEOUT, Guard};
pub use plimsoll_core::telemetry::{
    CAPTURE_VARIABLE, MAX_CONTENT, MAX_CONTENT_TEXT, METRICS_TARGET, ServerAddress, TARGET,
};
pub use settings::{EXPORT_TIMEOUT, LOG_VARIABLE, Settings};

/// The reasons why telemetry cannot be set up. They do not end a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// An address is invalid.
    #[error(
        "the address for {what} is not valid: write OTEL_EXPORTER_OTLP_ENDPOINT as http://host:4318"
    )]
    Address {
        /// Spans or metrics.
        what: &'static str,
    },
    /// The protocol is not supported.
    #[error(
        "OTEL_EXPORTER_OTLP_PROTOCOL is `{protocol}`, and only http/protobuf is spoken here: set that, and the collector's port for it, which is 4318 as a rule"
    )]
    Protocol {
        /// The configured protocol.
        protocol: String,
    },
    /// The log's filter cannot be parsed.
    #[error(
        "PLIMSOLL_LOG cannot be read ({why}): write a level, as in `info`, or targets with levels, as in `plimsoll=debug,hyper=info`"
    )]
    Filter {
        /// The reason.
        why: String,
    },
    /// An export is configured, but the build does not support it.
    #[error(
        "spans and metrics are not sent: this build has not the feature `otlp`; build it with `--features otlp`"
    )]
    NotBuilt,
    /// The process already has a `tracing` subscriber.
    #[error("this process has a subscriber of `tracing` already; add its own layers to that")]
    Taken,
    /// The exporter cannot be created.
    #[error("the exporter cannot be made: {why}")]
    Exporter {
        /// The reason.
        why: String,
    },
}

/// A layer over the registry.
type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Sets up telemetry for the whole process. If the settings ask for nothing, it sets up nothing and
/// costs nothing.
///
/// # Errors
/// If the settings cannot be followed, or the process already has a subscriber.
pub fn start(settings: &Settings) -> Result<Guard, TelemetryError> {
    if !settings.ask_for_something() {
        return Ok(Guard::default());
    }
    let (dispatch, guard) = dispatch(settings)?;
    tracing::dispatcher::set_global_default(dispatch).map_err(|_| TelemetryError::Taken)?;
    Ok(guard)
}

/// Creates a dispatcher with these settings, for example for one part of a process.
///
/// # Errors
/// If the settings cannot be followed.
pub fn dispatch(settings: &Settings) -> Result<(Dispatch, Guard), TelemetryError> {
    let mut layers: Vec<BoxedLayer> = Vec::new();
    if let Some(filter) = &settings.log {
        layers.push(log::layer(filter)?);
    }
    let guard = exported(settings, &mut layers)?;
    let subscriber = tracing_subscriber::registry().with(layers);
    Ok((Dispatch::new(subscriber), guard))
}

#[cfg(feature = "otlp")]
fn exported(settings: &Settings, layers: &mut Vec<BoxedLayer>) -> Result<Guard, TelemetryError> {
    export::begin(settings, layers)
}

#[cfg(not(feature = "otlp"))]
fn exported(settings: &Settings, _: &mut Vec<BoxedLayer>) -> Result<Guard, TelemetryError> {
    if settings.export() {
        Err(TelemetryError::NotBuilt)
    } else {
        Ok(Guard::default())
    }
}
