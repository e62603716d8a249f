//! A collector on its own thread. It stores the received telemetry as bytes and as spans, and
//! rejects data that it cannot decode.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use prost::Message;
use tokio::sync::oneshot;

pub(crate) type Attributes = BTreeMap<String, String>;

/// A span as it was sent.
#[derive(Debug, Clone)]
pub(crate) struct SentSpan {
    pub(crate) name: String,
    pub(crate) id: Vec<u8>,
    pub(crate) parent: Vec<u8>,
    pub(crate) trace: Vec<u8>,
    /// 1: internal, 3: client.
    pub(crate) kind: i32,
    /// 2: an error.
    pub(crate) status: i32,
    pub(crate) attributes: Attributes,
    pub(crate) events: Vec<(String, Attributes)>,
}

#[derive(Default)]
struct CollectedData {
    heads: Vec<String>,
    bodies: Vec<Vec<u8>>,
    spans: Vec<SentSpan>,
    resource: Attributes,
}

pub(crate) struct Collector {
    pub(crate) address: String,
    kept: Arc<Mutex<CollectedData>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let kept = Arc::new(Mutex::new(CollectedData::default()));
        let app = Router::new()
            .route("/v1/traces", post(traces))
            .with_state(Arc::clone(&kept));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let serve = axum::serve(listener, app).into_future();
                tokio::select! {
                    served = serve => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self {
            address,
            kept,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// The names and values of all headers that came with it.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.kept.lock().unwrap().heads.clone()
    }

    pub(crate) fn spans(&self) -> Vec<SentSpan> {
        self.kept.lock().unwrap().spans.clone()
    }

    pub(crate) fn resource(&self) -> Attributes {
        self.kept.lock().unwrap().resource.clone()
    }

    /// Whether any byte that was sent spells this.
    pub(crate) fn has_read(&self, text: &str) -> bool {
        let kept = self.kept.lock().unwrap();
        let reads = |body: &Vec<u8>| {
            body.windows(text.len())
                .any(|piece| piece == text.as_bytes())
        };
        kept.bodies.iter().any(reads)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

async fn traces(
    State(kept): State<Arc<Mutex<CollectedData>>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let Ok(request) = ExportTraceServiceRequest::decode(body.clone()) else {
        return StatusCode::BAD_REQUEST;
    };
    let mut kept = kept.lock().unwrap();
    kept.heads.push(format!("{headers:?}"));
    kept.bodies.push(body.to_vec());
    for resource in request.resource_spans {
        kept.resource = read(resource.resource.unwrap().attributes);
        for span in resource
            .scope_spans
            .into_iter()
            .flat_map(|scope| scope.spans)
        {
            let events = span.events.into_iter();
            kept.spans.push(SentSpan {
                name: span.name,
                id: span.span_id,
                parent: span.parent_span_id,
                trace: span.trace_id,
                kind: span.kind,
                status: span.status.map_or(0, |status| status.code),
                attributes: read(span.attributes),
                events: events
                    .map(|event| (event.name, read(event.attributes)))
                    .collect(),
            });
        }
    }
    StatusCode::OK
}

fn read(attributes: Vec<KeyValue>) -> Attributes {
    let read = |pair: KeyValue| (pair.key, text(pair.value));
    attributes.into_iter().map(read).collect()
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => {
            assert!(text.parse::<i64>().is_err(), "a number as text: {text}");
            text
        }
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(is)) => is.to_string(),
        Some(Value::ArrayValue(list)) => {
            let texts: Vec<String> = list.values.into_iter().map(|one| text(Some(one))).collect();
            format!("[{}]", texts.join(","))
        }
        other => panic!("{other:?}"),
    }
}
