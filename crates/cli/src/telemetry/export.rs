//! [`Exporter`]: exports spans to a collector in the background, with bounded memory. It does not
//! retry, because the next export follows soon and no run waits for it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opentelemetry::Key;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    self, BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, SpanData,
};
use plimsoll::providers::tls;
use plimsoll::telemetry::TARGET;
use reqwest::blocking::{Client, ClientBuilder};
use reqwest::{Url, redirect};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::Layer;

use super::BoxedLayer;
use super::settings::Settings;

/// The default of `OTEL_BSP_MAX_EXPORT_BATCH_SIZE`: the number of spans in one export. With
/// captured contents a span has up to 150 KB, and collectors accept a few MB.
const MAX_BATCH: usize = 64;
/// The maximum time to send the remaining spans at the end. Unsent ones are lost.
const FINISH_TIMEOUT: Duration = Duration::from_secs(3);
/// The name of the service, unless the environment has another.
const SERVICE: &str = "plimsoll";

/// The reason of the first failed export.
type FirstFault = Arc<OnceLock<String>>;

/// The exporter of spans.
#[derive(Debug)]
pub(crate) struct Exporter {
    traces: SdkTracerProvider,
    fault: FirstFault,
}

/// Starts the export of spans to this address.
pub(super) fn begin(
    address: &str,
    settings: &Settings,
    layers: &mut Vec<BoxedLayer>,
) -> Result<Exporter, String> {
    if let Some(protocol) = &settings.protocol
        && protocol != "http/protobuf"
    {
        return Err(format!(
            "OTEL_EXPORTER_OTLP_PROTOCOL is `{protocol}`, and only http/protobuf is spoken here: \
             set that, and the collector's port for it, which is 4318 as a rule"
        ));
    }
    let url = Url::parse(address).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let to = url.ok_or(
        "the address for spans is not valid: write OTEL_EXPORTER_OTLP_ENDPOINT as \
         http://host:4318",
    )?;
    let fault = FirstFault::default();
    let batches = batches(&to, settings.timeout, &fault)
        .map_err(|why| format!("the exporter cannot be made: {why}"))?;
    let traces = SdkTracerProvider::builder()
        .with_span_processor(batches)
        .with_resource(resource())
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(traces.tracer("plimsoll"))
        .with_location(false)
        .with_threads(false)
        .with_level(false)
        .with_target(false)
        .with_tracked_inactivity(false);
    // Only our own spans: other crates would export the content of requests and replies.
    let ours = Targets::new().with_target(TARGET, LevelFilter::INFO);
    layers.push(layer.with_filter(ours).boxed());
    Ok(Exporter { traces, fault })
}

impl Exporter {
    /// Sends the remaining spans, within [`FINISH_TIMEOUT`]. Returns a sentence if something could
    /// not be sent.
    pub(crate) fn finish(self) -> Option<String> {
        let in_time = self.traces.shutdown_with_timeout(FINISH_TIMEOUT).is_ok();
        let why = match (self.fault.get(), in_time) {
            (Some(why), _) => why.clone(),
            (None, false) => format!("no answer within {} s", FINISH_TIMEOUT.as_secs()),
            (None, true) => return None,
        };
        Some(format!(
            "not all spans were sent ({why}); the run is not affected"
        ))
    }
}

fn batches(to: &Url, timeout: Duration, fault: &FirstFault) -> Result<BatchSpanProcessor, String> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(to.as_str())
        .with_http_client(client(to, timeout)?)
        .with_timeout(timeout)
        .build();
    let watched = Watched {
        exporter: exporter.map_err(|error| error.to_string())?,
        to: to.origin().ascii_serialization(),
        fault: Arc::clone(fault),
    };
    let mut batches = BatchConfigBuilder::default();
    if std::env::var_os("OTEL_BSP_MAX_EXPORT_BATCH_SIZE").is_none() {
        batches = batches.with_max_export_batch_size(MAX_BATCH);
    }
    let processor = BatchSpanProcessor::builder(watched);
    Ok(processor.with_batch_config(batches.build()).build())
}

/// Returns the resource of the process, with the service name of the environment or else ours.
fn resource() -> Resource {
    let resource = Resource::builder().build();
    let name = resource.get(&Key::from_static_str("service.name"));
    match name {
        Some(name) if !name.as_str().starts_with("unknown_service") => resource,
        _ => Resource::builder().with_service_name(SERVICE).build(),
    }
}

/// Sends spans, and keeps the reason of the first failure.
#[derive(Debug)]
struct Watched {
    exporter: SpanExporter,
    /// The collector's scheme, host and port, without a path or a key.
    to: String,
    fault: FirstFault,
}

impl trace::SpanExporter for Watched {
    async fn export(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        let exported = self.exporter.export(spans).await;
        exported.inspect_err(|error| {
            self.fault.get_or_init(|| format!("{}: {error}", self.to));
        })
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Creates the client for an address.
fn client(to: &Url, timeout: Duration) -> Result<Client, String> {
    let client = if to.scheme() == "http" {
        tls::plain_client()
    } else {
        tls::client()
    };
    let client = ClientBuilder::from(client.map_err(|error| error.to_string())?)
        .timeout(timeout)
        .redirect(redirect::Policy::none());
    client.build().map_err(|error| error.to_string())
}
