//! [`Exporters`]: exports spans and metrics to a collector in the background, with bounded memory.
//! It does not retry, because the next export follows soon and no run waits for it.

use std::io::Read;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry::trace::{Link, SpanKind, TraceId, TracerProvider};
use opentelemetry::{Array, Context, Key, KeyValue, Value};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Config, SamplingDecision, SamplingResult,
    SdkTracerProvider, ShouldSample, Span, SpanData, SpanProcessor,
};
use plimsoll::providers::tls;
use plimsoll::telemetry::TARGET;
use reqwest::blocking::{Client, ClientBuilder};
use reqwest::{Url, redirect};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::Layer;

use super::BoxedLayer;
use super::metrics::SpanMetrics;
use super::settings::Settings;

/// The default of `OTEL_BSP_MAX_EXPORT_BATCH_SIZE`: the number of spans in one export. With
/// captured contents a span has up to 150 KB, and collectors accept a few MB.
const MAX_BATCH: usize = 64;
/// The maximum number of bytes that are read of a collector's response.
const MAX_ANSWER: u64 = 64 * 1024;
/// The maximum time to send the remaining data at the end. Unsent data is lost.
pub(super) const FINISH_TIMEOUT: Duration = Duration::from_secs(3);
/// The name of the service, unless the environment has another.
const SERVICE: &str = "plimsoll";
/// An attribute that is a list in the conventions and a single text in a field of `tracing`.
const LIST: &str = "gen_ai.response.finish_reasons";

/// The reason of the first failed export.
type FirstFault = Arc<OnceLock<String>>;

/// The exporters of spans and metrics.
#[derive(Debug)]
pub(super) struct Exporters {
    traces: SdkTracerProvider,
    metrics: Option<SdkMeterProvider>,
    fault: FirstFault,
}

/// Starts the exports that the settings ask for. Metrics are computed from spans.
pub(super) fn begin(
    settings: &Settings,
    layers: &mut Vec<BoxedLayer>,
) -> Result<Exporters, String> {
    if let Some(protocol) = &settings.protocol
        && protocol != "http/protobuf"
    {
        return Err(format!(
            "OTEL_EXPORTER_OTLP_PROTOCOL is `{protocol}`, and only http/protobuf is spoken here: \
             set that, and the collector's port for it, which is 4318 as a rule"
        ));
    }
    let fault = FirstFault::default();
    let carrier = |to: &Option<String>, what| Carrier::to(to.as_deref(), what, settings, &fault);
    // Check both addresses first, so that an invalid one leaves nothing running.
    let spans_to = carrier(&settings.traces, "spans")?;
    let metrics_to = carrier(&settings.metrics, "metrics")?;
    let unmade = |error| format!("the exporter cannot be made: {error}");
    let metrics = metrics_to.map(|carrier| metrics(carrier, settings).map_err(unmade));
    let metrics = metrics.transpose()?;
    let batches = spans_to.map(|carrier| batches(carrier, settings).map_err(unmade));
    let ended = EndedSpans {
        batches: batches.transpose()?,
        metrics: metrics.as_ref().map(SpanMetrics::new),
    };
    let traces = SdkTracerProvider::builder()
        .with_sampler(RecordAll(Config::default().sampler))
        .with_span_processor(ended)
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
    Ok(Exporters {
        traces,
        metrics,
        fault,
    })
}

impl Exporters {
    /// Sends the remaining data, within [`FINISH_TIMEOUT`]. Returns a sentence if something could
    /// not be sent.
    pub(super) fn finish(self) -> Option<String> {
        let Self {
            traces,
            metrics,
            fault,
        } = self;
        let (done, ended) = mpsc::channel();
        // On another thread, because the shutdown of metrics has no timeout.
        let end = move || {
            let traces = traces.shutdown_with_timeout(FINISH_TIMEOUT).is_ok();
            let metrics = metrics.is_none_or(|metrics| metrics.shutdown().is_ok());
            // The receiver is gone if the time is up.
            let _ = done.send(traces && metrics);
        };
        let sender = thread::Builder::new().name("plimsoll-telemetry-end".into());
        let in_time = sender.spawn(end).is_ok() && ended.recv_timeout(FINISH_TIMEOUT) == Ok(true);
        let why = match (fault.get(), in_time) {
            (Some(why), _) => why.clone(),
            (None, false) => format!("no answer within {} s", FINISH_TIMEOUT.as_secs()),
            (None, true) => return None,
        };
        Some(format!(
            "not all spans and metrics were sent ({why}); the run is not affected"
        ))
    }
}

fn batches(
    carrier: Carrier,
    settings: &Settings,
) -> Result<BatchSpanProcessor, ExporterBuildError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(carrier.to.as_str())
        .with_http_client(carrier)
        .with_timeout(settings.timeout)
        .build()?;
    let mut batches = BatchConfigBuilder::default();
    if std::env::var_os("OTEL_BSP_MAX_EXPORT_BATCH_SIZE").is_none() {
        batches = batches.with_max_export_batch_size(MAX_BATCH);
    }
    let processor = BatchSpanProcessor::builder(exporter);
    Ok(processor.with_batch_config(batches.build()).build())
}

fn metrics(carrier: Carrier, settings: &Settings) -> Result<SdkMeterProvider, ExporterBuildError> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_endpoint(carrier.to.as_str())
        .with_http_client(carrier)
        .with_timeout(settings.timeout)
        .build()?;
    Ok(SdkMeterProvider::builder()
        .with_periodic_exporter(exporter)
        .with_resource(resource())
        .build())
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

/// Receives ended spans, for both exports.
#[derive(Debug)]
struct EndedSpans {
    batches: Option<BatchSpanProcessor>,
    metrics: Option<SpanMetrics>,
}

impl SpanProcessor for EndedSpans {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, mut span: SpanData) {
        if let Some(metrics) = &self.metrics {
            metrics.record(&span);
        }
        let mut attributes = span.attributes.iter_mut();
        if let Some(attribute) = attributes.find(|attribute| attribute.key.as_str() == LIST)
            && let Value::String(text) = &attribute.value
        {
            attribute.value = Value::Array(Array::String(vec![text.clone()]));
        }
        if let Some(batches) = &self.batches {
            batches.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches
            .as_ref()
            .map_or(Ok(()), SpanProcessor::force_flush)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        let batches = self.batches.as_ref();
        batches.map_or(Ok(()), |batches| batches.shutdown_with_timeout(timeout))
    }

    fn set_resource(&mut self, resource: &Resource) {
        if let Some(batches) = &mut self.batches {
            batches.set_resource(resource);
        }
    }
}

/// Samples as the environment says, but records the other spans too: metrics count all of them.
#[derive(Debug, Clone)]
struct RecordAll(Box<dyn ShouldSample>);

impl ShouldSample for RecordAll {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let sampler = &self.0;
        let mut result = sampler.should_sample(parent, trace, name, kind, attributes, links);
        if result.decision == SamplingDecision::Drop {
            result.decision = SamplingDecision::RecordOnly;
        }
        result
    }
}

/// Sends exports to a collector from the exporters' threads, and records the first failure.
#[derive(Debug)]
struct Carrier {
    client: Client,
    to: Url,
    fault: FirstFault,
}

impl Carrier {
    /// Creates a client for an address, if there is one.
    fn to(
        to: Option<&str>,
        what: &str,
        settings: &Settings,
        fault: &FirstFault,
    ) -> Result<Option<Self>, String> {
        let Some(to) = to else { return Ok(None) };
        let url = Url::parse(to).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let to = url.ok_or_else(|| {
            format!(
                "the address for {what} is not valid: write OTEL_EXPORTER_OTLP_ENDPOINT as \
                 http://host:4318"
            )
        })?;
        let unmade = |why: String| format!("the exporter cannot be made: {why}");
        let client = if to.scheme() == "http" {
            tls::plain_client()
        } else {
            tls::client()
        };
        let client = ClientBuilder::from(client.map_err(|error| unmade(error.to_string()))?)
            .timeout(settings.timeout)
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|error| unmade(innermost(&error)))?;
        let fault = Arc::clone(fault);
        Ok(Some(Self { client, to, fault }))
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
