//! Units, descriptions and buckets of the metrics, which an event of `tracing` cannot express.

use opentelemetry_sdk::metrics::{Aggregation, Instrument, Stream};

/// Buckets for a model or tool call, in seconds, from the conventions.
const CALL: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
/// Buckets for a run, in seconds, from the conventions.
const RUN: [f64; 13] = [
    0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6,
];
/// Buckets for an evaluation, in seconds, from the conventions.
const WORKFLOW: [f64; 11] = [
    1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0,
];
/// Buckets for tokens, from the conventions.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// A metric's unit, description and buckets. The buckets are empty unless it is a histogram.
struct Shape(&'static str, &'static str, &'static [f64]);

/// Returns the view of a metric, or `None` for a metric of another crate.
pub(super) fn view(instrument: &Instrument) -> Option<Stream> {
    let Shape(unit, says, bounds) = shape(instrument.name())?;
    let mut stream = Stream::builder().with_unit(unit).with_description(says);
    if !bounds.is_empty() {
        stream = stream.with_aggregation(Aggregation::ExplicitBucketHistogram {
            boundaries: bounds.to_vec(),
            record_min_max: true,
        });
    }
    stream.build().ok()
}

fn shape(name: &str) -> Option<Shape> {
    Some(match name {
        "gen_ai.client.token.usage" => Shape("{token}", "Tokens of one model call.", &TOKENS),
        "gen_ai.client.operation.duration" => Shape("s", "How long a model call took.", &CALL),
        "gen_ai.client.operation.time_to_first_chunk" => {
            Shape("s", "Until the first piece of a reply came.", &CALL)
        }
        "gen_ai.execute_tool.duration" => Shape("s", "How long a tool call took.", &CALL),
        "gen_ai.invoke_agent.duration" => Shape("s", "How long a run took.", &RUN),
        "gen_ai.workflow.duration" => Shape("s", "How long an evaluation took.", &WORKFLOW),
        "plimsoll.plans" => Shape("{plan}", "Plans that made a view smaller.", &[]),
        "plimsoll.plan.tokens_freed" => Shape("{token}", "What plans freed.", &[]),
        "plimsoll.overflows" => Shape("{overflow}", "Requests refused as too long.", &[]),
        "plimsoll.retries" => Shape("{retry}", "Model calls that were made again.", &[]),
        "plimsoll.limit_hits" => Shape("{run}", "Runs that a limit has ended.", &[]),
        "plimsoll.cost" => Shape("{USD}", "Cost of model calls, if it is known.", &[]),
        "plimsoll.cache.tokens" => Shape(
            "{token}",
            "Input read from or written to a prompt cache.",
            &[],
        ),
        _ => return None,
    })
}
