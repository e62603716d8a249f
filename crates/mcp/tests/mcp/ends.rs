//! Servers that die or send too much during a call. The call has a result that names the
//! cause, only idempotent calls are repeated, and the next call reaches a server.

use std::time::Duration;

use serde_json::json;

use crate::stage::{Stage, call, connect, server_in};

/// Set in the process that is killed.
const HOLDER: &str = "PLIMSOLL_TEST_MCP_HOLDER";
const UNKNOWN: &str =
    "; whether the call had an effect is not known, look before you call it again";

#[tokio::test]
async fn one_that_dies_is_started_again_by_the_next_call() {
    let mut stage = Stage::new();
    let tools = connect(stage.server("")).await.tools(&[]);
    let died = call(&tools, "fake_dies", json!({})).await.unwrap_err();
    let told = "the MCP server `fake` gave no answer: it ended (exit 3); it said: out of memory";
    assert_eq!(died, format!("{told}{UNKNOWN}"));
    let got = call(&tools, "fake_echo", json!({"text": "back"})).await;
    assert_eq!(got.as_deref(), Ok("back"));
    drop(tools);
    let events = stage.all_until("call echo").await;
    let count = |event: &str| events.iter().filter(|other| *other == event).count();
    assert_eq!((count("start"), count("call dies")), (2, 1), "{events:?}");
    stage.are_gone().await;
}

#[tokio::test]
async fn one_dies_with_whoever_started_it_however_that_one_ends() {
    let mut stage = Stage::new();
    let mut holder = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ends::holds_a_server"])
        .env(HOLDER, stage.folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    stage.until("list").await;
    // SIGKILL: it has no time to tidy up.
    holder.kill().unwrap();
    holder.wait().unwrap();
    stage.are_gone().await;
}

/// No test by itself: the parent of a server.
#[tokio::test]
async fn holds_a_server() {
    let Some(folder) = std::env::var_os(HOLDER) else {
        return;
    };
    let _servers = connect(server_in("fake", "", folder.as_ref())).await;
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn only_idempotent_calls_are_made_again() {
    for (is_trusted, starts, calls) in [(true, 2, 2), (false, 1, 1)] {
        let mut stage = Stage::new();
        let server = if is_trusted {
            stage.server("").trusted()
        } else {
            stage.server("")
        };
        let tools = connect(server).await.tools(&[]);
        let got = call(&tools, "fake_dies_once", json!({})).await;
        if is_trusted {
            assert_eq!(got.as_deref(), Ok("alive"))
        } else {
            assert!(got.unwrap_err().ends_with(UNKNOWN))
        }
        // A last event, so that it is known what came before.
        let _ = call(&tools, "fake_asks", json!({})).await;
        let events = stage.all_until("call asks").await;
        let count = |event: &str| events.iter().filter(|other| *other == event).count();
        let restarts = usize::from(!is_trusted);
        assert_eq!(count("call dies_once"), calls, "{events:?}");
        assert_eq!(count("start"), starts + restarts, "{events:?}");
        drop(tools);
        stage.are_gone().await;
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_is_dropped_and_the_next_call_finds_a_server() {
    for name in ["fake_huge", "fake_endless"] {
        let stage = Stage::new();
        let tools = connect(stage.server("")).await.tools(&[]);
        let limit = Duration::from_secs(2);
        let got = tokio::time::timeout(limit, call(&tools, name, json!({}))).await;
        assert!(got.is_err(), "{name}: {got:?}");
        let got = call(&tools, "fake_echo", json!({"text": "back"})).await;
        assert_eq!(got.as_deref(), Ok("back"), "{name}");
        drop(tools);
        stage.are_gone().await;
    }
}
