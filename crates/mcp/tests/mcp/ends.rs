//! Servers that die or send too much during a call. The call has a result that names the
//! cause, only idempotent calls are repeated, and the next call reaches a server.

use plimsoll_mcp::MCP_BACKOFF_MAX;
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
async fn one_that_always_dies_is_left_alone_for_a_while() {
    let mut stage = Stage::new();
    let tools = connect(stage.server("").trusted()).await.tools(&[]);
    // Each call starts it twice at most; soon it is not started at all.
    let mut last = String::new();
    for _ in 0..20 {
        last = call(&tools, "fake_dies_reading", json!({}))
            .await
            .unwrap_err();
        if last.contains("started again by a call in") {
            break;
        }
    }
    assert!(
        last.contains("times without an answer; it is started again by a call in"),
        "{last}"
    );
    assert!(
        last.contains("The last time: it ended (exit 3); it said: out of memory"),
        "{last}"
    );
    let secs = last
        .split(" in ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    assert!(secs.parse::<u64>().unwrap() <= MCP_BACKOFF_MAX.as_secs());
    // Nor by any other call meanwhile.
    let other = call(&tools, "fake_echo", json!({"text": "x"}))
        .await
        .unwrap_err();
    assert!(other.contains("without an answer"), "{other}");
    stage.until("start").await;
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn one_that_says_too_much_is_ended_and_the_next_call_finds_another() {
    let why = "it sent more than 16 MiB in one message and was ended; ask it for less at once";
    for name in ["fake_huge", "fake_endless"] {
        let stage = Stage::new();
        let tools = connect(stage.server("")).await.tools(&[]);
        let got = call(&tools, name, json!({})).await.unwrap_err();
        let told = format!("the MCP server `fake` gave no answer: {why}{UNKNOWN}");
        assert_eq!(got, told, "{name}");
        let got = call(&tools, "fake_echo", json!({"text": "back"})).await;
        assert_eq!(got.as_deref(), Ok("back"), "{name}");
        drop(tools);
        stage.are_gone().await;
    }
}
