//! The telemetry that a collector receives from runs: spans with their parents, attributes and
//! events, and metrics; and the data that is only sent on request. Each test has its own collector.

mod collector;
mod runs;
mod silence;

use collector::{Point, SentSpan};
use plimsoll::telemetry::{self, Settings};

/// Plays something while this collector is told; what was said at the end, and what time stood still
/// for.
fn told<F: Future<Output = ()>>(settings: &Settings, play: impl FnOnce() -> F) -> Option<String> {
    let (dispatch, guard) = telemetry::dispatch(settings).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    // One thread, so that it is the default of all tasks.
    tracing::dispatcher::with_default(&dispatch, || runtime.block_on(play()));
    drop(runtime);
    guard.finish()
}

/// The only span of this name.
fn only<'a>(spans: &'a [SentSpan], name: &str) -> &'a SentSpan {
    match &named(spans, name)[..] {
        [one] => one,
        many => panic!("{} of {name} in {:?}", many.len(), names(spans)),
    }
}

fn named<'a>(spans: &'a [SentSpan], name: &str) -> Vec<&'a SentSpan> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn names(spans: &[SentSpan]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

/// The points of a metric under labels.
fn points<'a>(points: &'a [Point], name: &str, labels: &[(&str, &str)]) -> Vec<&'a Point> {
    let fits = |point: &&Point| {
        let has = |(key, value): &(&str, &str)| {
            point.attributes.get(*key).map(String::as_str) == Some(*value)
        };
        point.name == name && labels.iter().all(has)
    };
    points.iter().filter(fits).collect()
}
