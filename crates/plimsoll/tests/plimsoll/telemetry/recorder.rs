//! A layer of `tracing` that keeps ended spans.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use plimsoll::telemetry::TARGET;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Fields by their names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(pub(crate) BTreeMap<String, String>);

/// A span that has ended.
#[derive(Debug, Clone)]
pub(crate) struct RecordedSpan {
    pub(crate) name: String,
    pub(crate) id: u64,
    pub(crate) parent: Option<u64>,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) events: Vec<(String, BTreeMap<String, String>)>,
}

/// Keeps ended spans, in the order of their ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<RecordedSpan>>>);

impl Recorder {
    pub(crate) fn dispatch(&self) -> Dispatch {
        Dispatch::new(tracing_subscriber::registry().with(self.clone()))
    }

    pub(crate) fn ended(&self) -> Vec<RecordedSpan> {
        self.0.lock().unwrap().clone()
    }
}

impl RecordedSpan {
    /// Whether the span is an error.
    pub(crate) fn failed(&self) -> bool {
        self.attributes.get("otel.status_code").map(String::as_str) == Some("ERROR")
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        if span.metadata().target() == TARGET {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(RecordedSpan {
                name: span.name().to_owned(),
                id: id.into_u64(),
                parent: span.parent().map(|parent| parent.id().into_u64()),
                attributes: fields.0,
                events: Vec::new(),
            });
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        if let Some(recorded) = span.extensions_mut().get_mut::<RecordedSpan>() {
            let mut fields = Fields::default();
            values.record(&mut fields);
            recorded.attributes.extend(fields.0);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else {
            return;
        };
        if event.metadata().target() == TARGET
            && let Some(recorded) = span.extensions_mut().get_mut::<RecordedSpan>()
        {
            let mut fields = Fields::default();
            event.record(&mut fields);
            let name = fields.0.remove("message").unwrap_or_default();
            recorded.events.push((name, fields.0));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        let Some(mut recorded) = span.extensions_mut().remove::<RecordedSpan>() else {
            return;
        };
        if let Some(name) = recorded.attributes.get("otel.name") {
            recorded.name.clone_from(name);
        }
        self.0.lock().unwrap().push(recorded);
    }
}
