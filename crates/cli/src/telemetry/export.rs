//! [`Exporter`]: exports spans to a collector in the background, with bounded memory. The exporter
//! of OpenTelemetry reads its variables itself.

use std::time::Duration;

use opentelemetry::Key;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider};
use plimsoll::providers::tls;
use plimsoll::telemetry::TARGET;
use reqwest::blocking::{Client, ClientBuilder};
use reqwest::redirect;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::Layer;

use super::{BoxedLayer, variable};

/// The variables that contain the address of a collector.
const ADDRESSES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];
/// The default of `OTEL_EXPORTER_OTLP_TIMEOUT`: the timeout of one export. The value is the default
/// of OpenTelemetry's specification.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// The default of `OTEL_BSP_MAX_EXPORT_BATCH_SIZE`: the number of spans in one export. With
/// captured contents a span has up to 150 KB, and collectors accept a few MB.
const MAX_BATCH: usize = 64;
/// The name of the service, unless the environment has another.
const SERVICE: &str = "plimsoll";

/// The exporter of spans.
#[derive(Debug)]
pub(crate) struct Exporter(SdkTracerProvider);

/// Starts the export of spans, if the environment names a collector.
pub(super) fn begin(layers: &mut Vec<BoxedLayer>) -> Result<Option<Exporter>, String> {
    let is =
        |name: &str, value: &str| variable(name).is_some_and(|set| set.eq_ignore_ascii_case(value));
    let address = ADDRESSES.into_iter().find_map(variable);
    let is_off = is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none");
    let Some(address) = address.filter(|_| !is_off) else {
        return Ok(None);
    };
    if variable("OTEL_EXPORTER_OTLP_PROTOCOL").is_some_and(|set| set != "http/protobuf") {
        return Err(
            "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf; the collector's port for it is \
             4318 as a rule"
                .to_owned(),
        );
    }
    // The error may contain the address, and that a key.
    let exporter = exporter(&address).ok_or(
        "spans cannot be exported to this address: write OTEL_EXPORTER_OTLP_ENDPOINT as \
         http://host:4318",
    )?;
    let mut batches = BatchConfigBuilder::default();
    if variable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE").is_none() {
        batches = batches.with_max_export_batch_size(MAX_BATCH);
    }
    let processor = BatchSpanProcessor::builder(exporter);
    let traces = SdkTracerProvider::builder()
        .with_span_processor(processor.with_batch_config(batches.build()).build())
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
    Ok(Some(Exporter(traces)))
}

impl Exporter {
    /// Sends the remaining spans, within a few seconds. Returns a sentence if that fails.
    pub(crate) fn finish(self) -> Option<String> {
        let failed = "not all spans were sent: the collector refused them, or did not answer in time; \
                      the run is not affected";
        let flushed = self.0.force_flush();
        flushed.err().map(|_| failed.to_owned())
    }
}

/// Creates the exporter with a client for the address.
fn exporter(address: &str) -> Option<SpanExporter> {
    let exporter = SpanExporter::builder().with_http();
    exporter.with_http_client(client(address)?).build().ok()
}

fn client(address: &str) -> Option<Client> {
    let client = match address.split_once("://")?.0 {
        "http" => tls::plain_client(),
        "https" => tls::client(),
        _ => return None,
    };
    let timeout = variable("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|ms| ms.parse().ok());
    let client = ClientBuilder::from(client.ok()?)
        .timeout(timeout.map_or(EXPORT_TIMEOUT, Duration::from_millis))
        .redirect(redirect::Policy::none());
    client.build().ok()
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
