// What the examples of docs/coming-from begin with: a model that follows a script, tools that read
// and write nothing, and what they were seen to do. Included by each example.
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::*;
use serde_json::{Value, json};

type Done = Result<(), Box<dyn std::error::Error>>;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Page {
    /// Which page.
    page: u64,
}

/// `read`: pages of so many bytes, each another.
fn reader(bytes: usize) -> impl Tool {
    tool(
        "read",
        "Reads a page of the log book.",
        move |input: Page| async move {
            let line = format!("page {}: wind from the west, all well; ", input.page);
            Ok::<_, ToolError>(line.repeat(bytes / line.len() + 1))
        },
    )
}

/// A call of `read`.
fn read(page: u64) -> Turn {
    Turn::call("read", json!({ "page": page }))
}

/// Reads so many pages, one after another, and answers.
fn reads(pages: u64) -> ScriptedProvider {
    ScriptedProvider::new((1..=pages).map(read).chain([Turn::say("All is well.")]))
}

/// Reads the same page for ever.
fn stuck() -> ScriptedProvider {
    ScriptedProvider::new([]).then_always(read(1))
}

/// A model that writes summaries.
fn scribe() -> Arc<dyn Provider> {
    let headings = [
        "Goal",
        "Constraints",
        "Decisions",
        "Files",
        "Errors",
        "Open work",
        "Next step",
    ];
    let summary: String = headings.map(|it| format!("## {it}\nSail on.\n")).concat();
    Arc::new(ScriptedProvider::new([]).then_always(Turn::say(summary)))
}

/// What the heaviest request weighed, by the exact counter.
fn heaviest(model: &ScriptedProvider) -> Tokens {
    let weights = model
        .requests()
        .into_iter()
        .map(|request| model.weigh(&request));
    weights.max().unwrap_or_default()
}

/// The last request, as text.
fn last(model: &ScriptedProvider) -> String {
    model
        .requests()
        .last()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// Everything that an observer sees, in order.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Event>>>);

impl Observer for Seen {
    fn see(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Seen {
    /// How many events are such.
    fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.0
            .lock()
            .unwrap()
            .iter()
            .filter(|event| is(event))
            .count()
    }
}

/// Words in the order in which they were said.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn say(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}
