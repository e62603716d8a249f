//! [`Repeats`]: how often in a row the model has asked for the same calls and got the same results.
//! It counts; what follows is decided in `work.rs`.

use std::hash::{DefaultHasher, Hash, Hasher};

use plimsoll_context::ToolCall;
use serde_json::Value;

use crate::batch::{Batch, Call};

/// How often in a row the same batch has been asked for. A batch is the same whatever the order of
/// its calls and of the keys in their arguments; one whose results have changed is not, since
/// asking again is then polling.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Repeats {
    calls: u64,
    results: Option<u64>,
    streak: u64,
}

impl Repeats {
    /// A batch was asked for.
    pub(crate) fn asked(&mut self, batch: &Batch) {
        let calls = calls_hash(batch);
        if self.streak > 0 && self.calls == calls {
            self.streak += 1;
        } else {
            *self = Self {
                calls,
                results: None,
                streak: 1,
            };
        }
    }

    /// It has all its results. Those of calls that did not run say nothing.
    pub(crate) fn answered(&mut self, batch: &Batch) {
        let Some(results) = results_hash(batch) else {
            return;
        };
        if self
            .results
            .replace(results)
            .is_some_and(|before| before != results)
        {
            self.streak = 1;
        }
    }

    /// How many times in a row, the newest batch included.
    pub(crate) fn streak(self) -> u64 {
        self.streak
    }
}

fn calls_hash(batch: &Batch) -> u64 {
    let mut calls: Vec<String> = batch.calls().map(|call| written(&call.call)).collect();
    calls.sort_unstable();
    hash(&calls)
}

/// The results of a batch, whatever the order of its calls; `None` where a call did not run.
fn results_hash(batch: &Batch) -> Option<u64> {
    let result = |call: &Call| Some(call.result.as_ref().filter(|_| call.began)?.text());
    let results: Option<Vec<_>> = batch
        .calls()
        .map(|call| Some((written(&call.call), result(call)?)))
        .collect();
    results.map(|mut results| {
        results.sort_unstable();
        hash(&results)
    })
}

/// A call as text, the same whatever the order of keys and the blanks in its arguments.
fn written(call: &ToolCall) -> String {
    let arguments = serde_json::from_str::<Value>(&call.arguments).map(sorted);
    let arguments = arguments.map_or_else(|_| call.arguments.clone(), |value| value.to_string());
    format!("{} {arguments}", call.name)
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The same value with the keys of every object in order.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<(String, Value)> = object.into_iter().collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries
                .into_iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}
