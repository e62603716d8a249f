//! [`Exporter`]: exports spans to a collector in the background, with bounded memory. It does not
//! retry, because the next export follows soon and no run waits for it.

use std::io::Read;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry::trace::TracerProvider;
use opentelemetry::{Array, Context, Key, Value};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, Span, SpanData, SpanProcessor,
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
/// The maximum number of bytes that are read of a collector's response.
const MAX_ANSWER: u64 = 64 * 1024;
/// The maximum time to send the remaining spans at the end. Unsent ones are lost.
const FINISH_TIMEOUT: Duration = Duration::from_secs(3);
/// The name of the service, unless the environment has another.
const SERVICE: &str = "plimsoll";
/// An attribute that is a list in the conventions and a single text in a field of `tracing`.
const LIST: &str = "gen_ai.response.finish_reasons";

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
    let fault = FirstFault::default();
    let carrier = Carrier::new(address, settings.timeout, &fault)?;
    let batches = batches(carrier, settings.timeout)
        .map_err(|error| format!("the exporter cannot be made: {error}"))?;
    let traces = SdkTracerProvider::builder()
        .with_span_processor(EndedSpans(batches))
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

fn batches(carrier: Carrier, timeout: Duration) -> Result<BatchSpanProcessor, ExporterBuildError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(carrier.to.as_str())
        .with_http_client(carrier)
        .with_timeout(timeout)
        .build()?;
    let mut batches = BatchConfigBuilder::default();
    if std::env::var_os("OTEL_BSP_MAX_EXPORT_BATCH_SIZE").is_none() {
        batches = batches.with_max_export_batch_size(MAX_BATCH);
    }
    let processor = BatchSpanProcessor::builder(exporter);
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

/// Gives ended spans their list, and batches them.
#[derive(Debug)]
struct EndedSpans(BatchSpanProcessor);

impl SpanProcessor for EndedSpans {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, mut span: SpanData) {
        let mut attributes = span.attributes.iter_mut();
        if let Some(attribute) = attributes.find(|attribute| attribute.key.as_str() == LIST)
            && let Value::String(text) = &attribute.value
        {
            attribute.value = Value::Array(Array::String(vec![text.clone()]));
        }
        self.0.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

/// Sends exports to a collector from the exporter's thread, and records the first failure.
#[derive(Debug)]
struct Carrier {
    client: Client,
    to: Url,
    fault: FirstFault,
}

impl Carrier {
    /// Creates a client for an address.
    fn new(address: &str, timeout: Duration, fault: &FirstFault) -> Result<Self, String> {
        let url = Url::parse(address).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let to = url.ok_or(
            "the address for spans is not valid: write OTEL_EXPORTER_OTLP_ENDPOINT as \
             http://host:4318",
        )?;
        let unmade = |why: String| format!("the exporter cannot be made: {why}");
        let client = if to.scheme() == "http" {
            tls::plain_client()
        } else {
            tls::client()
        };
        let client = ClientBuilder::from(client.map_err(|error| unmade(error.to_string()))?)
            .timeout(timeout)
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|error| unmade(innermost(&error)))?;
        let fault = Arc::clone(fault);
        Ok(Self { client, to, fault })
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let reason = |error: reqwest::Error| innermost(&error.without_url());
        let request = request.try_into().map_err(reason)?;
        let answer = self.client.execute(request).map_err(reason)?;
        let status = answer.status();
        if !status.is_success() {
            self.failed(&format!("it answered {status}"));
        }
        let mut body = Vec::new();
        let read = answer.take(MAX_ANSWER).read_to_end(&mut body);
        read.map_err(|error| error.to_string())?;
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        Ok(response)
    }

    /// Records a failure, with the collector's scheme, host and port, but without a path or a key.
    fn failed(&self, why: &str) -> String {
        let text = format!("{}: {why}", self.to.origin().ascii_serialization());
        self.fault.get_or_init(|| text.clone());
        text
    }
}

#[async_trait]
impl HttpClient for Carrier {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.send(request).map_err(|why| self.failed(&why).into())
    }
}

/// Returns the message of the innermost error.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
