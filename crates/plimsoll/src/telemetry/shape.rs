//! [`ListExporter`]: adds an attribute that `tracing` cannot express to exported spans: a list of
//! texts.

use std::fmt;
use std::time::Duration;

use opentelemetry::{Array, StringValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// An attribute that is a list in the conventions and a single text in a field.
const LIST: &str = "gen_ai.response.finish_reasons";

/// An exporter of spans that converts this attribute to a list.
pub(super) struct ListExporter<E>(pub(super) E);

impl<E: SpanExporter> SpanExporter for ListExporter<E> {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        for span in &mut batch {
            let attributes = span.attributes.iter_mut();
            for attribute in attributes.filter(|attribute| attribute.key.as_str() == LIST) {
                if let Value::String(text) = &attribute.value {
                    let list: Vec<StringValue> = vec![text.clone()];
                    attribute.value = Value::Array(Array::String(list));
                }
            }
        }
        self.0.export(batch).await
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

impl<E: fmt::Debug> fmt::Debug for ListExporter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
