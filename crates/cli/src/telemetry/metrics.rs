//! [`SpanMetrics`]: the metrics of runs, computed from their ended spans. Names, units and buckets
//! are those of OpenTelemetry's conventions for generative AI.

use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry::{Key, KeyValue, Value};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SpanData;

/// The buckets of a histogram: the first bound, the factor to the next one, and their number.
type Buckets = (f64, f64, i32);
/// Seconds of a model or tool call.
const CALLS: Buckets = (0.01, 2.0, 14);
/// Seconds of a run or an evaluation.
const RUNS: Buckets = (0.1, 2.0, 17);
/// Tokens.
const TOKENS: Buckets = (1.0, 4.0, 14);

const PROVIDER: &str = "gen_ai.provider.name";
const MODEL: &str = "gen_ai.request.model";
const AGENT: &str = "gen_ai.agent.name";
const TOOL: &str = "gen_ai.tool.name";
const ERROR: &str = "error.type";
/// The labels of a model call.
const CALL: [&str; 6] = [
    "gen_ai.operation.name",
    PROVIDER,
    MODEL,
    "gen_ai.response.model",
    "server.address",
    "server.port",
];

/// The metrics of one process. The meter keeps the instruments by their names.
#[derive(Debug)]
pub(super) struct SpanMetrics(Meter);

/// The name, the unit and the description of a metric.
type Name = (&'static str, &'static str, &'static str);

impl SpanMetrics {
    pub(super) fn new(provider: &SdkMeterProvider) -> Self {
        Self(provider.meter("plimsoll"))
    }

    /// Records an ended span.
    pub(super) fn record(&self, span: &SpanData) {
        let took = span.end_time.duration_since(span.start_time);
        let took = took.unwrap_or_default().as_secs_f64();
        match text(span, "gen_ai.operation.name") {
            "chat" => self.call(span, took),
            "execute_tool" => {
                let mut labels = labels(span, &[TOOL, ERROR]);
                // The model has invented the name, so it must not become a time series.
                if text(span, ERROR) == "unknown_tool" {
                    labels.retain(|label| label.key.as_str() != TOOL);
                    labels.push(KeyValue::new(TOOL, "_OTHER"));
                }
                let name = (
                    "gen_ai.execute_tool.duration",
                    "s",
                    "Duration of a tool call.",
                );
                self.measure(name, CALLS, took, &labels);
            }
            "invoke_agent" => {
                let name = ("gen_ai.invoke_agent.duration", "s", "Duration of a run.");
                self.measure(name, RUNS, took, &labels(span, &[AGENT, MODEL, ERROR]));
                if value(span, "plimsoll.limit_hit") == Some(&Value::Bool(true)) {
                    let name = ("plimsoll.limit_hits", "{run}", "Runs ended by a limit.");
                    let labels = labels(span, &[AGENT, "plimsoll.outcome"]);
                    self.add(name, Some(1.0), &labels);
                }
            }
            "invoke_workflow" => {
                let name = (
                    "gen_ai.workflow.duration",
                    "s",
                    "Duration of an evaluation.",
                );
                let labels = labels(span, &["gen_ai.workflow.name", ERROR]);
                self.measure(name, RUNS, took, &labels);
            }
            "compact" if value(span, "plimsoll.plan.applied").is_some() => {
                let labels = labels(span, &["plimsoll.plan.why", PROVIDER, MODEL]);
                let plans = (
                    "plimsoll.plans",
                    "{plan}",
                    "Plans that made a view smaller.",
                );
                self.add(plans, Some(1.0), &labels);
                let freed = "plimsoll.plan.tokens_freed";
                let name = (freed, "{token}", "Tokens freed by plans.");
                self.add(name, number(span, freed), &labels);
            }
            _ => {}
        }
    }

    fn call(&self, span: &SpanData, took: f64) {
        let call = labels(span, &CALL);
        let with = |name, value| [call.clone(), vec![KeyValue::new(name, value)]].concat();
        let name = (
            "gen_ai.client.operation.duration",
            "s",
            "Duration of a model call.",
        );
        let ended = [call.clone(), labels(span, &[ERROR])].concat();
        self.measure(name, CALLS, took, &ended);
        if let Some(first) = number(span, "gen_ai.response.time_to_first_chunk") {
            let name = "gen_ai.client.operation.time_to_first_chunk";
            let name = (name, "s", "Time until a reply begins.");
            self.measure(name, CALLS, first, &call);
        }
        for kind in ["input", "output"] {
            if let Some(tokens) = number(span, &format!("gen_ai.usage.{kind}_tokens")) {
                let name = "gen_ai.client.token.usage";
                let name = (name, "{token}", "Tokens of one model call.");
                self.measure(name, TOKENS, tokens, &with("gen_ai.token.type", kind));
            }
        }
        for (kind, key) in [
            ("read", "gen_ai.usage.cache_read.input_tokens"),
            ("write", "gen_ai.usage.cache_creation.input_tokens"),
        ] {
            let name = "plimsoll.cache.tokens";
            let name = (name, "{token}", "Input read from or written to caches.");
            let labels = with("plimsoll.cache.kind", kind);
            self.add(name, number(span, key), &labels);
        }
        let model = labels(span, &[PROVIDER, MODEL]);
        let name = "plimsoll.cost";
        let cost = (name, "{USD}", "Cost of model calls, if known.");
        self.add(cost, number(span, name), &model);
        if number(span, "plimsoll.attempt") > Some(1.0) {
            let name = ("plimsoll.retries", "{retry}", "Repeated model calls.");
            self.add(name, Some(1.0), &model);
        }
        if text(span, ERROR) == "overflow" {
            let name = "plimsoll.overflows";
            let name = (name, "{overflow}", "Requests refused as too long.");
            self.add(name, Some(1.0), &model);
        }
    }

    fn measure(&self, of: Name, buckets: Buckets, value: f64, labels: &[KeyValue]) {
        let ((name, unit, description), (first, factor, count)) = (of, buckets);
        let bounds = (0..count).map(|power| first * factor.powi(power));
        let histogram = self.0.f64_histogram(name).with_unit(unit);
        let histogram = histogram.with_description(description);
        let histogram = histogram.with_boundaries(bounds.collect()).build();
        histogram.record(value, labels);
    }

    fn add(&self, (name, unit, description): Name, value: Option<f64>, labels: &[KeyValue]) {
        if let Some(value) = value.filter(|value| *value > 0.0) {
            let counter = self.0.f64_counter(name).with_unit(unit);
            let counter = counter.with_description(description).build();
            counter.add(value, labels);
        }
    }
}
fn value<'a>(span: &'a SpanData, key: &str) -> Option<&'a Value> {
    let mut attributes = span.attributes.iter();
    let found = attributes.find(|attribute| attribute.key.as_str() == key);
    found.map(|attribute| &attribute.value)
}

/// Returns a text, or an empty one.
fn text<'a>(span: &'a SpanData, key: &str) -> &'a str {
    match value(span, key) {
        Some(Value::String(text)) => text.as_str(),
        _ => "",
    }
}

fn number(span: &SpanData, key: &str) -> Option<f64> {
    match value(span, key)? {
        Value::I64(number) => Some(*number as f64),
        Value::F64(number) => Some(*number),
        _ => None,
    }
}

/// Returns the attributes of these names.
fn labels(span: &SpanData, names: &[&'static str]) -> Vec<KeyValue> {
    let label = |name: &&'static str| {
        let key = Key::from_static_str(name);
        Some(KeyValue::new(key, value(span, name)?.clone()))
    };
    names.iter().filter_map(label).collect()
}
