//! Runs agents as a program does, and checks the provider's requests, the caller's output and the log.
//! The tests of memory are programs of their own, since they count every allocation.

mod asked;
mod cache;
#[cfg(unix)]
mod command_hooks;
mod compaction;
mod context;
mod deadlines;
mod driver;
mod dropped_writes;
mod edges;
mod events;
mod forks;
mod hooks;
mod hosted;
mod journal;
mod kept_files;
mod limits;
mod losses;
mod parallel;
mod rewrites;
mod run_settings;
mod run_stream;
mod steering;
mod sub_agents;
mod tools;
mod windows;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use plimsoll_agent::{Entry, ExecutionLimits, Failure, Request};
use plimsoll_context::{Delta, Money, PriceSheet, Rates, Reply, Tokens};
use plimsoll_core::telemetry::ServerAddress;
use plimsoll_core::{AgentBuilder, AgentOutput, MemoryStore, Provider, SessionId, SessionStore};
use plimsoll_testkit::session_id;
use serde_json::Value;

/// The arguments of tools that take none.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// The session of most tests.
fn id() -> SessionId {
    session_id("s")
}

fn roles(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["role"].as_str().unwrap())
        .collect()
}

/// The messages of a request as `role: text`.
fn texts(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .map(|message| {
            let text = message["content"].as_str().unwrap_or_default();
            format!("{}: {text}", message["role"].as_str().unwrap())
        })
        .collect()
}

/// A dollar for a million tokens read, and this for a million written.
fn price_sheet(output: f64) -> PriceSheet {
    PriceSheet::of(Rates {
        input: Money::from_dollars(1.0).unwrap(),
        output: Money::from_dollars(output).unwrap(),
        cache_read: None,
        cache_write: None,
    })
}

async fn go(builder: AgentBuilder) -> AgentOutput {
    builder.build().unwrap().run("go").await.unwrap()
}

/// The limits of the newest run of a session.
async fn limits_of(store: &MemoryStore, session: &str) -> ExecutionLimits {
    let log = store.load(&session_id(session)).await.unwrap();
    let config = log.iter().rev().find_map(|entry| match entry {
        Entry::RunStarted { config, .. } => config.clone(),
        _ => None,
    });
    config
        .unwrap_or_else(|| panic!("{session} has no run"))
        .limits
}

/// A provider that panics outside of its calls.
struct Breaks;

#[async_trait]
impl Provider for Breaks {
    fn model(&self) -> &str {
        "test/breaks"
    }

    fn server(&self) -> Option<ServerAddress> {
        panic!("out of rum")
    }

    async fn call(&self, _: &Request, _: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, Failure> {
        Err(Failure::ContentFilter)
    }
}

/// A provider that panics in its calls, which it counts.
#[derive(Clone, Default)]
struct Panics(Arc<AtomicUsize>);

#[async_trait]
impl Provider for Panics {
    fn model(&self) -> &str {
        "scripted/panics"
    }

    async fn call(&self, _: &Request, _: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, Failure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("out of rum")
    }

    async fn window(&self) -> Option<Tokens> {
        panic!("out of charts")
    }
}
