//! [`Exporters`]: exports spans and metrics to a collector in the background, with bounded memory.
//! It reports failures in one sentence at its end.

use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread;

use opentelemetry::trace::TracerProvider;
use opentelemetry::{Key, Value};
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider};
use plimsoll_core::telemetry::{METRICS_TARGET, TARGET};
use reqwest::Url;
use tokio::runtime::{Builder, Runtime};
use tracing_opentelemetry::MetricsLayer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::Layer;

use super::carrier::{Carrier, FirstFault};
use super::guard::{FINISH_TIMEOUT, Guard};
use super::settings::Settings;
use super::shape::ListExporter;
use super::views::view;
use super::{BoxedLayer, TelemetryError};

/// The default of `OTEL_BSP_MAX_QUEUE_SIZE`: the number of ended spans that wait for an export.
/// Further spans are dropped, so a slow collector costs bounded memory and no time. The value is
/// the default of OpenTelemetry's specification.
pub const MAX_QUEUE: usize = 2_048;
/// The default of `OTEL_BSP_MAX_EXPORT_BATCH_SIZE`: the number of spans in one export. With
/// captured contents a span has up to 150 KB, and collectors accept a few MB.
pub const MAX_BATCH: usize = 64;

/// The exporters of spans and metrics.
#[derive(Debug)]
pub(super) struct Exporters {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
    fault: FirstFault,
    aside: Aside,
}

/// Sends the remaining data of one kind. Returns `true` if the collector accepted all of it.
type Sender = Box<dyn FnOnce() -> bool + Send>;

/// The runtime of the exports. Safe to drop anywhere: tokio's own `Runtime` panics if it is dropped
/// inside an async program, for example after a failed start.
#[derive(Debug)]
struct Aside(Option<Runtime>);

/// Starts the exports that the settings ask for.
pub(super) fn begin(
    settings: &Settings,
    layers: &mut Vec<BoxedLayer>,
) -> Result<Guard, TelemetryError> {
    if !settings.export() {
        return Ok(Guard::default());
    }
    if let Some(protocol) = &settings.protocol
        && protocol != "http/protobuf"
    {
        return Err(TelemetryError::Protocol {
            protocol: protocol.clone(),
        });
    }
    // Check both addresses first, so that an invalid one leaves nothing running.
    let spans_to = address(settings.traces.as_deref(), "spans")?;
    let metrics_to = address(settings.metrics.as_deref(), "metrics")?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("plimsoll-telemetry")
        .enable_all()
        .build()
        .map_err(|error| unmade(&error))?;
    let handle = runtime.handle().clone();
    let aside = Aside(Some(runtime));
    let fault: FirstFault = Arc::new(OnceLock::new());
    let carrier = |to: &Url| {
        Carrier::new(to, settings.timeout, handle.clone(), Arc::clone(&fault))
            .map_err(|why| TelemetryError::Exporter { why })
    };
    let mut sending = (None, None);
    if let Some((to, url)) = &spans_to {
        let carrier = carrier(url)?;
        let traces = traces(to, carrier, settings).map_err(|error| unmade(&error))?;
        let tracer = traces.tracer("plimsoll");
        let layer = tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_level(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        // Only our own spans: other crates would export the content of requests and replies.
        let ours = Targets::new()
            .with_target(TARGET, LevelFilter::INFO)
            .with_target(METRICS_TARGET, LevelFilter::OFF);
        layers.push(layer.with_filter(ours).boxed());
        sending.0 = Some(traces);
    }
    if let Some((to, url)) = &metrics_to {
        let carrier = carrier(url)?;
        let metrics = metrics(to, carrier, settings).map_err(|error| unmade(&error))?;
        let ours = Targets::new().with_target(METRICS_TARGET, LevelFilter::INFO);
        let layer = MetricsLayer::new(metrics.clone());
        layers.push(layer.with_filter(ours).boxed());
        sending.1 = Some(metrics);
    }
    let (traces, metrics) = sending;
    Ok(Guard {
        sending: Some(Exporters {
            traces,
            metrics,
            fault,
            aside,
        }),
    })
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Exporters {
    /// Sends the remaining data, within [`FINISH_TIMEOUT`]. Returns a sentence if something could
    /// not be sent.
    pub(super) fn end(self) -> Option<String> {
        let Self {
            traces,
            metrics,
            fault,
            aside,
        } = self;
        let (done, ended) = mpsc::channel();
        // Use separate threads, because the shutdown of metrics has no timeout.
        let senders = [
            traces.map(|traces| -> Sender {
                Box::new(move || traces.shutdown_with_timeout(FINISH_TIMEOUT).is_ok())
            }),
            metrics.map(|metrics| -> Sender { Box::new(move || metrics.shutdown().is_ok()) }),
        ];
        let mut under_way = 0;
        for sender in senders.into_iter().flatten() {
            let done = done.clone();
            let thread = thread::Builder::new().name("plimsoll-telemetry-end".into());
            let began = thread.spawn(move || {
                // The receiver is gone if the time is up.
                let _ = done.send(sender());
            });
            under_way += usize::from(began.is_ok());
        }
        let end = std::time::Instant::now() + FINISH_TIMEOUT;
        let mut late = false;
        for _ in 0..under_way {
            let left = end.saturating_duration_since(std::time::Instant::now());
            late |= ended.recv_timeout(left) != Ok(true);
        }
        // Read the failure before the runtime ends, because ending it makes running exports fail.
        let fault = fault.get().cloned();
        drop(aside);
        let why = match (fault, late) {
            (Some(why), _) => why,
            (None, true) => format!("no answer within {} s", FINISH_TIMEOUT.as_secs()),
            (None, false) => return None,
        };
        Some(format!(
            "not all spans and metrics were sent ({why}); the run is not affected"
        ))
    }
}

fn traces(
    to: &str,
    carrier: Carrier,
    settings: &Settings,
) -> Result<SdkTracerProvider, ExporterBuildError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(carrier)
        .with_endpoint(to)
        .with_timeout(settings.timeout)
        .build()?;
    let mut batches = BatchConfigBuilder::default();
    if std::env::var_os("OTEL_BSP_MAX_QUEUE_SIZE").is_none() {
        batches = batches.with_max_queue_size(MAX_QUEUE);
    }
    if std::env::var_os("OTEL_BSP_MAX_EXPORT_BATCH_SIZE").is_none() {
        batches = batches.with_max_export_batch_size(MAX_BATCH);
    }
    let processor = BatchSpanProcessor::builder(ListExporter(exporter))
        .with_batch_config(batches.build())
        .build();
    Ok(SdkTracerProvider::builder()
        .with_span_processor(processor)
        .with_resource(resource(&settings.service))
        .build())
}

fn metrics(
    to: &str,
    carrier: Carrier,
    settings: &Settings,
) -> Result<SdkMeterProvider, ExporterBuildError> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_http_client(carrier)
        .with_endpoint(to)
        .with_timeout(settings.timeout)
        .build()?;
    Ok(SdkMeterProvider::builder()
        .with_periodic_exporter(exporter)
        .with_view(view)
        .with_resource(resource(&settings.service))
        .build())
}

/// Returns the resource of the process, with the service name of the environment or else of the
/// settings.
fn resource(service: &str) -> Resource {
    let told = Resource::builder().build();
    let name = told.get(&Key::from_static_str("service.name"));
    let told = name.is_some_and(|name| match name {
        Value::String(name) => !name.as_str().starts_with("unknown_service"),
        _ => false,
    });
    let resource = Resource::builder();
    if told {
        resource.build()
    } else {
        resource.with_service_name(service.to_owned()).build()
    }
}

/// Parses an address. Returns it both as written and as parsed.
fn address<'a>(
    to: Option<&'a str>,
    what: &'static str,
) -> Result<Option<(&'a str, Url)>, TelemetryError> {
    let Some(to) = to else {
        return Ok(None);
    };
    let url = Url::parse(to).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.map(|url| Some((to, url)))
        .ok_or(TelemetryError::Address { what })
}

fn unmade(error: &dyn std::error::Error) -> TelemetryError {
    TelemetryError::Exporter {
        why: error.to_string(),
    }
}
