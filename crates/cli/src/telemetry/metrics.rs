//! [`SpanMetrics`]: the metrics of runs, computed from their ended spans. Names, units and buckets
//! are those of OpenTelemetry's conventions for generative AI.

use std::collections::HashMap;

use opentelemetry::metrics::{Counter, Histogram, MeterProvider};
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

const USAGE: &str = "gen_ai.client.token.usage";
const CALL_TIME: &str = "gen_ai.client.operation.duration";
const FIRST_CHUNK: &str = "gen_ai.client.operation.time_to_first_chunk";
const TOOL_TIME: &str = "gen_ai.execute_tool.duration";
const RUN_TIME: &str = "gen_ai.invoke_agent.duration";
const WORKFLOW_TIME: &str = "gen_ai.workflow.duration";

/// Name, unit, description and buckets of each histogram.
const HISTOGRAMS: [(&str, &str, &str, Buckets); 6] = [
    (USAGE, "{token}", "Tokens of one model call.", TOKENS),
    (CALL_TIME, "s", "Duration of a model call.", CALLS),
    (FIRST_CHUNK, "s", "Time until a reply begins.", CALLS),
    (TOOL_TIME, "s", "Duration of a tool call.", CALLS),
    (RUN_TIME, "s", "Duration of a run.", RUNS),
    (WORKFLOW_TIME, "s", "Duration of an evaluation.", RUNS),
];

const PLANS: &str = "plimsoll.plans";
const FREED: &str = "plimsoll.plan.tokens_freed";
const OVERFLOWS: &str = "plimsoll.overflows";
const RETRIES: &str = "plimsoll.retries";
const LIMIT_HITS: &str = "plimsoll.limit_hits";
const CACHED: &str = "plimsoll.cache.tokens";
const COST: &str = "plimsoll.cost";

/// Name, unit and description of each counter.
const COUNTERS: [(&str, &str, &str); 7] = [
    (PLANS, "{plan}", "Plans that made a view smaller."),
    (FREED, "{token}", "Tokens freed by plans."),
    (OVERFLOWS, "{overflow}", "Requests refused as too long."),
    (RETRIES, "{retry}", "Repeated model calls."),
    (LIMIT_HITS, "{run}", "Runs ended by a limit."),
    (CACHED, "{token}", "Input read from or written to caches."),
    (COST, "{USD}", "Cost of model calls, if known."),
];

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

/// The instruments, by name.
#[derive(Debug)]
pub(super) struct SpanMetrics {
    histograms: HashMap<&'static str, Histogram<f64>>,
    counters: HashMap<&'static str, Counter<f64>>,
}

impl SpanMetrics {
    pub(super) fn new(provider: &SdkMeterProvider) -> Self {
        let meter = provider.meter("plimsoll");
        let histograms = HISTOGRAMS.map(|(name, unit, description, (first, factor, count))| {
            let bounds = (0..count).map(|power| first * factor.powi(power));
            let histogram = meter.f64_histogram(name).with_unit(unit);
            let histogram = histogram.with_description(description);
            (name, histogram.with_boundaries(bounds.collect()).build())
        });
        let counters = COUNTERS.map(|(name, unit, description)| {
            let counter = meter.f64_counter(name).with_unit(unit);
            (name, counter.with_description(description).build())
        });
        Self {
            histograms: HashMap::from(histograms),
            counters: HashMap::from(counters),
        }
    }

    /// Records an ended span.
    pub(super) fn record(&self, span: &SpanData) {
        let took = span.end_time.duration_since(span.start_time);
        let took = took.unwrap_or_default().as_secs_f64();
        match text(span, "gen_ai.operation.name") {
            "chat" => self.call(span, took),
            // The model has invented the name, so it must not become a time series.
            "execute_tool" if text(span, ERROR) == "unknown_tool" => {
                let name = KeyValue::new(TOOL, "_OTHER");
                let labels = [vec![name], labels(span, &[ERROR])].concat();
                self.measure(TOOL_TIME, took, &labels);
            }
            "execute_tool" => self.measure(TOOL_TIME, took, &labels(span, &[TOOL, ERROR])),
            "invoke_agent" => {
                self.measure(RUN_TIME, took, &labels(span, &[AGENT, MODEL, ERROR]));
                if value(span, "plimsoll.limit_hit") == Some(&Value::Bool(true)) {
                    let labels = labels(span, &[AGENT, "plimsoll.outcome"]);
                    self.add(LIMIT_HITS, Some(1.0), &labels);
                }
            }
            "invoke_workflow" => {
                let labels = labels(span, &["gen_ai.workflow.name", ERROR]);
                self.measure(WORKFLOW_TIME, took, &labels);
            }
            "compact" if value(span, "plimsoll.plan.applied").is_some() => {
                let labels = labels(span, &["plimsoll.plan.why", PROVIDER, MODEL]);
                self.add(PLANS, Some(1.0), &labels);
                self.add(FREED, number(span, FREED), &labels);
            }
            _ => {}
        }
    }

    fn call(&self, span: &SpanData, took: f64) {
        let call = labels(span, &CALL);
        let with = |name, value| [call.clone(), vec![KeyValue::new(name, value)]].concat();
        if let Some(first) = number(span, "gen_ai.response.time_to_first_chunk") {
            self.measure(FIRST_CHUNK, first, &call);
        }
        let ended = [call.clone(), labels(span, &[ERROR])].concat();
        self.measure(CALL_TIME, took, &ended);
        for kind in ["input", "output"] {
            if let Some(tokens) = number(span, &format!("gen_ai.usage.{kind}_tokens")) {
                self.measure(USAGE, tokens, &with("gen_ai.token.type", kind));
            }
        }
        for (kind, key) in [
            ("read", "gen_ai.usage.cache_read.input_tokens"),
            ("write", "gen_ai.usage.cache_creation.input_tokens"),
        ] {
            let labels = with("plimsoll.cache.kind", kind);
            self.add(CACHED, number(span, key), &labels);
        }
        let model = labels(span, &[PROVIDER, MODEL]);
        self.add(COST, number(span, COST), &model);
        if number(span, "plimsoll.attempt") > Some(1.0) {
            self.add(RETRIES, Some(1.0), &model);
        }
        if text(span, ERROR) == "overflow" {
            self.add(OVERFLOWS, Some(1.0), &model);
        }
    }

    fn measure(&self, name: &str, value: f64, labels: &[KeyValue]) {
        if let Some(histogram) = self.histograms.get(name) {
            histogram.record(value, labels);
        }
    }

    fn add(&self, name: &str, value: Option<f64>, labels: &[KeyValue]) {
        let value = value.filter(|value| *value > 0.0);
        if let (Some(counter), Some(value)) = (self.counters.get(name), value) {
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
