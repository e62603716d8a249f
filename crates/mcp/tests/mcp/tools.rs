//! The tools that a server offers to a model: names, order, descriptions, schemas and approval.

use std::collections::HashSet;

use plimsoll_core::process::Command;
use plimsoll_mcp::{MCP_NAME_MAX, MCP_TOOLS, McpServer, McpServers, McpState};
use serde_json::json;

use crate::stage::{Stage, call, connect, names, tool};

#[tokio::test]
async fn its_tools_are_offered_in_one_order_under_its_name() {
    let stage = Stage::new();
    let servers = connect(stage.server("")).await;
    let tools = servers.tools(&[]);
    let mut sorted = names(&tools);
    assert_eq!(sorted.len(), 14);
    assert!(sorted.iter().all(|name| name.starts_with("fake_")));
    assert!(sorted.contains(&"fake_unknown_tool".to_owned()));
    let offered = sorted.clone();
    sorted.sort();
    assert_eq!(offered, sorted);
    let echo = tool(&tools, "fake_echo");
    assert_eq!(
        echo.spec().description,
        "Says a text again.\nWord for word."
    );
    assert_eq!(
        echo.spec().schema,
        json!({"type": "object", "properties": {"text": {"type": "string", "description": "The text"}}, "required": ["text"]})
    );
    let status = servers.status();
    assert_eq!(status[0].state, McpState::Ready(14));
    assert_eq!(status[0].notes, Vec::<String>::new());
    drop((tools, echo, servers));
    stage.are_gone().await;
}

#[tokio::test]
async fn hints_count_only_where_the_server_is_trusted() {
    // Tool; idempotent and asks where it is trusted.
    let rows = [
        ("fake_echo", true, false),
        ("fake_fails", true, false),
        ("fake_hangs", true, true),
        ("fake_variables", false, true),
    ];
    let stage = Stage::new();
    for is_trusted in [false, true] {
        let server = if is_trusted {
            stage.server("").trusted()
        } else {
            stage.server("")
        };
        let tools = connect(server).await.tools(&[]);
        for (name, idempotent, asks) in rows {
            let tool = tool(&tools, name);
            let seen = (tool.idempotent(), tool.asks());
            let told = if is_trusted {
                (idempotent, asks)
            } else {
                (false, true)
            };
            assert_eq!(seen, told, "{name}, trusted: {is_trusted}");
        }
    }
    stage.are_gone().await;
}

#[tokio::test]
async fn names_of_several_servers_and_of_other_tools_are_kept_apart() {
    let stage = Stage::new();
    let both = || [stage.named("a_unknown", ""), stage.named("a", "")];
    let servers = McpServers::connect(both(), |_| {}).await.unwrap();
    let tools = servers.tools(&[]);
    let all = names(&tools);
    let unique: HashSet<&String> = all.iter().collect();
    assert_eq!((all.len(), unique.len()), (28, 28));
    // The order is that of the servers.
    assert!(all[0].starts_with("a_unknown_") && all[27].starts_with("a_"));
    // Another tool has its name already: the server's gets another, the same every time.
    let taken = vec![tool(&tools, "a_echo")];
    let again = McpServers::connect(both(), |_| {}).await.unwrap();
    let beside = names(&again.tools(&taken));
    assert!(!beside.contains(&"a_echo".to_owned()));
    let echo = beside
        .iter()
        .find(|name| name.starts_with("a_echo_"))
        .unwrap();
    assert_eq!(echo.len(), "a_echo_".len() + 8);
    assert_eq!(beside, names(&again.tools(&taken)));
    // Names are as long as providers take.
    let long = connect(stage.named(&"x".repeat(70), "")).await.tools(&[]);
    assert!(names(&long).iter().all(|name| name.len() <= MCP_NAME_MAX));
    drop((tools, taken, long, servers, again));
    stage.are_gone().await;
}

#[tokio::test]
async fn lists_without_end_are_cut_and_it_is_said() {
    let stage = Stage::new();
    let servers = connect(stage.server("lists_for_ever")).await;
    assert_eq!(servers.tools(&[]).len(), MCP_TOOLS);
    let notes = servers.status()[0].notes.join(" ");
    assert!(
        notes.contains("more than 128 tools; the rest is left out"),
        "{notes}"
    );
    drop(servers);

    let servers = connect(stage.server("lists_thousands")).await;
    let tools = servers.tools(&[]);
    assert_eq!(tools.len(), MCP_TOOLS);
    let status = &servers.status()[0];
    assert_eq!(status.state, McpState::Ready(MCP_TOOLS));
    let notes = status.notes.join(" ");
    assert!(
        notes.contains("more than 128 tools; the rest is left out"),
        "{notes}"
    );
    drop((tools, servers));
    stage.are_gone().await;
}

#[tokio::test]
async fn one_that_cannot_be_had_is_left_out_and_the_others_are_there() {
    let stage = Stage::new();
    let missing = McpServer::command("missing", Command::new("no-such-program"));
    let dying = stage.named("dying", "dies_at_start");
    let servers = || [missing.clone(), dying.clone(), stage.server("")];
    let told = std::sync::Mutex::new(Vec::new());
    let connected = McpServers::connect(servers(), |status| {
        told.lock().unwrap().push(status.name.clone());
    });
    let connected = connected.await.unwrap();
    assert_eq!(connected.tools(&[]).len(), 14);
    let mut told = told.into_inner().unwrap();
    told.sort();
    assert_eq!(told, ["dying", "fake", "missing"]);
    let texts: Vec<String> = connected
        .status()
        .iter()
        .map(|status| match &status.state {
            McpState::Absent(error) => error.to_string(),
            state => format!("{state:?}"),
        })
        .collect();
    assert!(
        texts[0]
            .starts_with("the MCP server `missing` is not there: cannot start `no-such-program`"),
        "{}",
        texts[0]
    );
    // With its last words, but for what is secret in them.
    assert_eq!(
        texts[1],
        "the MCP server `dying` is not there: it ended before it was ready (exit 7); it said: no licence: [secret]"
    );
    assert_eq!(texts[2], "Ready(14)");

    // Where it is required, nothing is there.
    let required = McpServers::connect([stage.server(""), dying.clone().required()], |_| {});
    let error = required.await.err().unwrap();
    assert!(
        error.to_string().contains("`dying` is not there"),
        "{error}"
    );
    drop(connected);
    stage.are_gone().await;
}

#[tokio::test]
async fn one_that_hangs_at_the_beginning_is_given_up() {
    let mut stage = Stage::new();
    let server = stage
        .server("waits_for_ever")
        .timeout(std::time::Duration::from_secs(3));
    let servers = connect(server).await;
    stage.until("start").await;
    assert!(servers.tools(&[]).is_empty());
    let McpState::Absent(error) = servers.status()[0].state.clone() else {
        panic!("it is there")
    };
    assert_eq!(
        error.to_string(),
        "the MCP server `fake` is not there: it was not ready within 3 s; set `timeout`, or a longer \
         `max_duration`, to wait longer"
    );
    stage.are_gone().await;
}

#[tokio::test]
async fn its_environment_has_what_it_was_given_and_no_secret_of_ours() {
    let stage = Stage::new();
    let tools = connect(stage.server("")).await.tools(&[]);
    let got = call(&tools, "fake_variables", json!({})).await.unwrap();
    let names: Vec<&str> = got
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    assert!(names.contains(&"GIVEN_TOKEN") && names.contains(&"PATH"));
    let secrets = names
        .iter()
        .filter(|name| plimsoll_core::process::looks_secret(name));
    assert_eq!(secrets.collect::<Vec<_>>(), [&"GIVEN_TOKEN"]);
    drop(tools);
    stage.are_gone().await;
}
