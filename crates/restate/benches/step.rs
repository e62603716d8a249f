//! What a step of a durable run costs beside a step of Restate in which nothing is done. Rows for the table of
//! `cargo xtask bench`; none if PostgreSQL is not installed or no server of Restate is named.
#![allow(missing_docs)]

#[path = "../../context/benches/figure/mod.rs"]
mod figure;
#[path = "../../cli/tests/durable/restate.rs"]
#[allow(dead_code)]
mod restate;

use std::sync::Arc;

use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{Agent, ToolError, tool};
use plimsoll_restate::{Worker, WorkerOptions, register};
use plimsoll_store::PostgresStore;
use plimsoll_testkit::postgres::PostgresServer;
use restate_sdk::prelude::*;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use figure::{Amount, Requirement, Unit, median, row, sections, time};

/// Turns of one run, each of two steps: a model call, and a tool call.
const TURNS: u64 = 100;
/// Runs of each kind, in turns.
const ROUNDS: u64 = 7;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    #[allow(dead_code)]
    number: u64,
}

/// Does nothing, in steps.
struct Bare;

#[restate_sdk::object]
impl Bare {
    #[handler]
    async fn run(&self, ctx: ObjectContext<'_>, Json(steps): Json<u64>) -> HandlerResult<()> {
        for number in 0..steps {
            ctx.run(|| async move { Ok(Json(number)) }).await?;
        }
        Ok(())
    }
}

fn main() {
    sections(&[("restate", steps)]);
}

fn steps() {
    let Some(restate) = restate::Restate::start() else {
        return;
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some(postgres) = PostgresServer::start_in(folder, true) else {
        return;
    };
    let runtime = Runtime::new().unwrap();
    runtime.block_on(serve(&restate, &postgres));
    let call = |path: String, body: Value| {
        let url = format!("http://127.0.0.1:{}/{path}", restate.ingress);
        let sent = post(&url, &body);
        let spent = time(|| runtime.block_on(sent));
        spent.as_secs_f64() * 1e3
    };
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let all = (2 * TURNS + 2) as f64;
        bare.push(call(format!("Bare/b{round}/run"), json!(2 * TURNS + 2)) / all);
        let request = json!({ "format": 2, "prompt": "Look everywhere." });
        ours.push(call(format!("plimsoll/s{round}/run"), request) / all);
    }
    let (bare, ours) = (median(bare), median(ours));
    row(
        "a step of Restate in which nothing is done",
        Amount(bare, Unit::Millis),
        Requirement::Nothing,
    );
    row(
        "a step of a durable run, its entries in PostgreSQL with full sync: so much more",
        Amount(ours - bare, Unit::Millis),
        Requirement::AtMost(2.0),
    );
}

/// Starts both services, and tells Restate of them.
async fn serve(restate: &restate::Restate, postgres: &PostgresServer) {
    let store = PostgresStore::connect(&postgres.url()).await.unwrap();
    let turns = (0..ROUNDS).flat_map(|_| {
        let calls = (0..TURNS).map(|number| Turn::call("look", json!({ "number": number })));
        calls.chain([Turn::say("done")])
    });
    let look = |_: Number| async { Ok::<_, ToolError>("a line") };
    let agent = Agent::builder(ScriptedProvider::new(turns))
        .tool(tool("look", "Looks.", look))
        .max_turns(TURNS + 10)
        .store(Arc::new(store.clone()))
        .build()
        .unwrap();
    let [bare, ours] = restate::ports();
    let at = |port: u16| format!("127.0.0.1:{port}").parse().unwrap();
    let worker = Worker::bind(agent, store, at(ours), WorkerOptions::default()).unwrap();
    tokio::spawn(worker.serve(std::future::pending()));
    let endpoint = Endpoint::builder().bind(Bare).build();
    tokio::spawn(HttpServer::new(endpoint).listen_and_serve(at(bare)));
    let admin = format!("http://127.0.0.1:{}", restate.admin);
    for port in [bare, ours] {
        let worker = format!("http://127.0.0.1:{port}");
        register(&admin, &worker).await.unwrap();
    }
}

/// Calls a handler, and waits for its end.
async fn post(url: &str, body: &Value) {
    let reply = reqwest::Client::new()
        .post(url)
        .header("content-type", "application/json")
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    assert!(
        reply.status().is_success(),
        "{}",
        reply.text().await.unwrap()
    );
}
