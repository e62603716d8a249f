//! The spans of runs as a subscriber of `tracing` sees them: their parents, attributes and events, and
//! the data that they only contain on request.

mod recorder;
mod runs;

use recorder::{RecordedSpan, Recorder};

/// Runs something and returns its ended spans.
fn spans_of<F: Future<Output = ()>>(play: impl FnOnce() -> F) -> Vec<RecordedSpan> {
    let recorder = Recorder::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    // One thread, so that it is the default of all tasks.
    tracing::dispatcher::with_default(&recorder.dispatch(), || runtime.block_on(play()));
    drop(runtime);
    recorder.ended()
}

/// Whether any attribute or event of a span spells this.
fn has_read(spans: &[RecordedSpan], text: &str) -> bool {
    format!("{spans:?}").contains(text)
}

/// The only span of this name.
fn only<'a>(spans: &'a [RecordedSpan], name: &str) -> &'a RecordedSpan {
    match &named(spans, name)[..] {
        [one] => one,
        many => panic!("{} of {name} in {:?}", many.len(), names(spans)),
    }
}

fn named<'a>(spans: &'a [RecordedSpan], name: &str) -> Vec<&'a RecordedSpan> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn names(spans: &[RecordedSpan]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}
