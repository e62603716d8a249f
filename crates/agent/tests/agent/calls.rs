//! Tool calls inside the machine: matching names and arguments, the calls of a message that run,
//! and the results of the others. Played on the stage of `stage/`.

use plimsoll_agent::{
    Answer, AtLimit, EndReason, Entry, Event, KnownTool, LimitKind, MAX_BATCH, MAX_PARALLEL_TOOLS,
    Setup, ToolChoice, ToolExecutionStrategy, ToolPhase,
};
use plimsoll_context::Message;
use serde_json::{Value, json};

use crate::stage::audit::audit;
use crate::stage::{Stage, limits, setup, tool};

fn with_schema(name: &str, schema: Value) -> KnownTool {
    let mut tool = tool(name, false, false);
    tool.spec.schema = schema;
    tool
}

/// A setup with one more tool: `run`, with a schema.
fn typed() -> Setup {
    let mut setup = setup();
    setup.tools.push(with_schema(
        "run",
        json!({
            "type": "object",
            "required": ["command"],
            "properties": {
                "command": { "type": "string" },
                "timeout": { "type": "integer" },
                "env": { "type": "object", "additionalProperties": { "type": "string" } },
                "paths": { "type": "array", "items": { "type": "string" } },
                "quiet": { "type": "boolean" },
            },
        }),
    ));
    setup
}

fn repaired(stage: &Stage) -> Vec<(&str, &str, &str)> {
    let repaired = stage.events.iter().filter_map(|event| match event {
        Event::ToolCallRepaired { call, from, to } => {
            Some((call.0.as_str(), from.as_str(), to.as_str()))
        }
        _ => None,
    });
    repaired.collect()
}

fn names(stage: &Stage) -> Vec<&str> {
    stage
        .executed
        .iter()
        .map(|call| call.name.as_str())
        .collect()
}

/// R22, H8.
#[test]
fn a_name_that_is_nearly_right_is_repaired_and_the_result_names_the_tool() {
    let mut stage = Stage::new(setup());
    stage
        .say("go")
        .calls(&["a:Read", "b:wirte", "c:functions.read"]);
    assert_eq!(names(&stage), ["read", "write", "read"]);
    assert_eq!(
        repaired(&stage),
        [
            ("a", "Read", "read"),
            ("b", "wirte", "write"),
            ("c", "functions.read", "read")
        ]
    );
    let events = stage.events.iter().filter_map(|event| match event {
        Event::ToolCall {
            name,
            phase: ToolPhase::Start,
            ..
        } => Some(name.as_str()),
        _ => None,
    });
    assert_eq!(events.collect::<Vec<_>>(), ["read", "write", "read"]);
    stage.done("a", "1").done("b", "2").done("c", "3");
    // The model's own words stay as they were.
    let seen: Vec<&str> = stage
        .seen()
        .iter()
        .flat_map(|m| m.calls())
        .map(|c| c.name.as_str())
        .collect();
    assert_eq!(seen, ["Read", "wirte", "functions.read"]);
    assert_eq!(
        stage.last_request(),
        "u go / a [a,b,c] / r a [there is no tool `Read`; this is the result of `read`]\n1 \
         / r b [there is no tool `wirte`; this is the result of `write`]\n2 \
         / r c [there is no tool `functions.read`; this is the result of `read`]\n3"
    );
    stage.text("done");
    audit(&stage);
}

/// R22: whether a person is asked is decided by the tool that is meant.
#[test]
fn a_name_is_put_right_before_anybody_is_asked() {
    let mut stage = Stage::new(setup());
    stage
        .say("go")
        .calls(&["a:bsh:{\"x\":1}", "b:bash_command"]);
    assert!(stage.executed.is_empty());
    let asked: Vec<&str> = stage
        .asked
        .iter()
        .map(|asked| asked.call.name.as_str())
        .collect();
    assert_eq!(asked, ["bash", "bash"]);
    let no = Answer::Deny {
        why: "not today".into(),
    };
    stage
        .answer("a", no)
        .answer("b", Answer::Allow)
        .done("b", "ok");
    assert_eq!(
        stage.last_request(),
        "u go / a [a,b] / r! a not today \
         / r b [there is no tool `bash_command`; this is the result of `bash`]\nok"
    );
    stage.text("done");
    audit(&stage);
}

#[test]
fn a_name_that_may_mean_several_or_none_gets_the_nearest_for_a_result() {
    let mut setup = setup();
    setup
        .tools
        .extend([tool("read_dir", true, false), tool("ls", true, false)]);
    for (name, nearest) in [
        ("rm", "read, write, read_dir, bash, ls"),
        ("raed_file", "read_dir, read, "),
        ("delete", "ls, read, "),
    ] {
        let mut stage = Stage::new(setup.clone());
        stage.say("go").calls(&[&format!("a:{name}")]);
        assert!(stage.executed.is_empty(), "{name}");
        let result = format!("r! a there is no tool `{name}`; there is: {nearest}");
        assert!(
            stage.last_request().contains(&result),
            "{}",
            stage.last_request()
        );
        assert!(repaired(&stage).is_empty());
        stage.finish();
        audit(&stage);
    }
    let mut stage = Stage::new(setup);
    stage
        .say("go")
        .calls(&[&format!("a:{}", "x".repeat(100_000))]);
    assert!(
        stage.seen().last().unwrap().text().len() < 300,
        "it is not repeated whole"
    );
    stage.finish();
}

/// The log keeps the call as the model wrote it; in the view it leaves room for the answer.
#[test]
fn a_huge_name_or_huge_broken_arguments_do_not_end_a_run() {
    for call in [
        format!("a:{}", "x".repeat(1_000_000)),
        format!("a:read:{{\"path\": \"{}", "y".repeat(250_000)),
    ] {
        let mut stage = Stage::new(setup());
        stage.say("go").calls(&[&call]);
        assert!(stage.executed.is_empty());
        let sizes = stage.seen().iter().flat_map(|m| m.calls());
        let size: usize = sizes.map(|c| c.name.len() + c.arguments.len()).sum();
        assert!(size < 5_000, "{size}");
        let logged = stage.log.iter().any(|entry| match entry {
            Entry::Reply { message, .. } => message
                .calls()
                .any(|c| c.name.len() + c.arguments.len() > 200_000),
            _ => false,
        });
        assert!(logged);
        stage.text("done");
        assert_eq!(stage.outcome().reason, EndReason::Answered);
        audit(&stage);
    }
}

/// A process that dies decides the same again, and does not run twice what must not.
#[test]
fn a_resumed_run_means_the_same_tool() {
    for (call, runs_again) in [("Read", true), ("Write", false)] {
        let mut stage = Stage::new(setup());
        stage
            .say("go")
            .calls(&[&format!("a:{call}:\"{{\\\"x\\\":1}}\"")]);
        assert_eq!(stage.executed.len(), 1);
        let mut next = Stage::resume(stage.log, stage.setup);
        next.go_on();
        assert_eq!(!next.executed.is_empty(), runs_again, "{call}");
        if runs_again {
            assert_eq!(next.executed, stage.executed);
        }
        next.finish();
        audit(&next);
    }
}

#[test]
fn arguments_are_put_right_and_the_model_s_own_stay() {
    let written = "{\"command\": 7, \"timeout\": \"60\", \"env\": \"{\\\"A\\\": 150}\", \
                   \"paths\": \"src\", \"quiet\": \"True\", \"more\": \"60\"}";
    let mut stage = Stage::new(typed());
    stage
        .say("go")
        .calls(&[&format!("a:run:{written}"), "b:run:{\"command\":\"ls\"}"]);
    assert_eq!(
        stage.executed[0].arguments,
        "{\"command\":\"7\",\"timeout\":60,\"env\":{\"A\":\"150\"},\"paths\":[\"src\"],\
         \"quiet\":true,\"more\":\"60\"}"
    );
    assert_eq!(stage.executed[1].arguments, "{\"command\":\"ls\"}");
    stage.done("a", "1").done("b", "2");
    let seen = stage
        .seen()
        .get(1)
        .unwrap()
        .calls()
        .next()
        .unwrap()
        .arguments
        .clone();
    assert_eq!(seen, written);
    stage.text("done");
    audit(&stage);
}

#[test]
fn arguments_that_are_a_string_of_json_are_that_json() {
    let mut stage = Stage::new(typed());
    stage
        .say("go")
        .calls(&["a:run:\"{\\\"command\\\": \\\"ls\\\", \\\"timeout\\\": \\\"5\\\"}\""]);
    assert_eq!(
        stage.executed[0].arguments,
        "{\"command\":\"ls\",\"timeout\":5}"
    );
    stage.done("a", "ok").text("done");
    audit(&stage);
}

#[test]
fn arguments_that_do_not_fit_are_named_and_the_others_run() {
    let mut stage = Stage::new(typed());
    stage.say("go").calls(&[
        "a:run:{\"timeout\":\"soon\",\"paths\":[1,{}]}",
        "b:run:{\"command\":\"ls\"}",
    ]);
    assert_eq!(stage.running(), ["b"]);
    stage.done("b", "ok");
    assert_eq!(
        stage.seen().get(2).unwrap().text(),
        "not run: the arguments of `run` do not fit: `command` is missing; `timeout` is the string \
         \"soon\", in place of integer; call it again"
    );
    stage.text("done");
    assert_eq!(stage.outcome().tool_calls, 1);
    audit(&stage);
}

#[test]
fn a_call_of_a_tool_with_an_invalid_schema_runs_unchanged() {
    for schema in [
        json!("object"),
        json!({ "type": 5 }),
        json!({ "type": "object", "properties": 7 }),
        json!({ "type": "object", "properties": { "x": { "type": "whole" } } }),
        json!(null),
    ] {
        let mut setup = setup();
        setup.tools = vec![with_schema("odd", schema)];
        let mut stage = Stage::new(setup);
        stage.say("go").calls(&["a:odd:{\"x\": \"60\"}"]);
        assert_eq!(stage.executed[0].arguments, "{\"x\": \"60\"}");
        stage.done("a", "ok").text("done");
        audit(&stage);
    }
}

fn skipped(stage: &Stage) -> Vec<&str> {
    let skipped = stage.events.iter().filter_map(|event| match event {
        Event::ToolCall {
            phase: ToolPhase::Skipped,
            call,
            ..
        } => Some(call.0.as_str()),
        _ => None,
    });
    skipped.collect()
}

/// C1, S2: the first ones run, in call order; each further one is told.
#[test]
fn calls_over_the_limit_are_skipped_in_call_order() {
    let mut stage = Stage::new(limits(50, Some(2), AtLimit::Finalize));
    stage
        .say("go")
        .calls(&["a:read", "b:nothing", "c:write", "d:write", "e:read"]);
    assert_eq!(stage.running(), ["a", "c"]);
    stage.done("c", "3").done("a", "1");
    let shown = stage.last_request();
    let expected = "/ r c 3 / r! d skipped: 2 of the 2 tool calls of this run are used \
                    / r! e skipped: 2 of the 2 tool calls of this run are used / n [";
    assert!(shown.contains(expected), "{shown}");
    assert_eq!(
        stage.requests.last().unwrap().request.tool_choice,
        ToolChoice::None
    );
    // A limit that is reached already: the same for all.
    stage.calls(&["g:write", "h:read"]);
    assert_eq!(skipped(&stage), ["d", "e", "g", "h"]);
    assert_eq!(
        stage.outcome().reason,
        EndReason::Limit {
            kind: LimitKind::ToolLimit,
            used: 2,
            limit: 2
        }
    );
    audit(&stage);
}

/// Ten thousand calls in one message: so many run, each has its one result, in call order.
#[test]
fn a_message_of_ten_thousand_calls() {
    let ids: Vec<String> = (0..10_000).map(|n| format!("c{n}")).collect();
    let calls: Vec<String> = ids
        .iter()
        .map(|id| format!("{id}:read:{{\"x\":\"{id}\"}}"))
        .collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let mut setup = limits(5, None, AtLimit::Finalize);
    setup.line.window = None;
    setup.max_parallel_tools = MAX_PARALLEL_TOOLS;
    let mut stage = Stage::new(setup);
    stage.say("go").calls(&calls);
    while let Some(call) = stage.running.back() {
        let id = call.id.0.clone();
        stage.done(&id, "ok");
    }
    assert_eq!(stage.at_once, MAX_PARALLEL_TOOLS);
    assert_eq!(stage.executed(), ids[..MAX_BATCH]);
    let results: Vec<(&str, bool)> = stage
        .seen()
        .iter()
        .filter_map(|message| match message.as_ref() {
            Message::ToolResult(result) => Some((result.call.0.as_str(), result.is_error)),
            _ => None,
        })
        .collect();
    let expected = ids.iter().enumerate();
    let expected: Vec<(&str, bool)> = expected
        .map(|(n, id)| (id.as_str(), n >= MAX_BATCH))
        .collect();
    assert_eq!(results, expected);
    let last = stage.seen().last().unwrap().text();
    assert_eq!(
        last,
        "skipped: a message may make 128 tool calls; make the others in the next one"
    );
    stage.text("done");
    assert_eq!(stage.outcome().tool_calls, MAX_BATCH as u64);
}

/// One that cannot be read stops them all, wherever it stands.
#[test]
fn a_malformed_call_behind_the_last_that_may_run_stops_the_batch() {
    let mut calls: Vec<String> = (0..MAX_BATCH + 1)
        .map(|n| format!("c{n}:read:{{\"n\":{n}}}"))
        .collect();
    calls.push("bad:read:{\"x\":".to_owned());
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let mut stage = Stage::new(setup());
    stage.say("go").calls(&calls);
    assert!(stage.executed.is_empty());
    stage.finish();
    assert_eq!(stage.outcome().tool_calls, 0);
}

/// Ids that come twice are made unique, so that each call has its own result.
#[test]
fn calls_of_one_id_each_have_their_result() {
    let mut stage = Stage::new(setup());
    stage.say("go").calls(&[
        "a:read:{\"n\":1}",
        "a:write:{\"n\":2}",
        "b:read",
        "a:nothing",
        "a:read:{\"n\":3}",
    ]);
    while let Some(call) = stage.running.front().cloned() {
        stage.done(&call.id.0, &format!("{} {}", call.name, call.arguments));
    }
    assert_eq!(
        stage.last_request(),
        "u go / a [a,a_1,b,a_3,a_4] / r a read {\"n\":1} / r a_1 write {\"n\":2} / r b read {} \
         / r! a_3 there is no tool `nothing`; there is: bash, write, read / r a_4 read {\"n\":3}"
    );
    stage.text("done");
    assert_eq!(stage.outcome().reason, EndReason::Answered);
}

/// P6.
#[test]
fn how_many_run_at_once() {
    for (strategy, at_once) in [
        (ToolExecutionStrategy::default(), 1),
        (ToolExecutionStrategy::Sequential, 1),
        (ToolExecutionStrategy::Parallel, MAX_PARALLEL_TOOLS),
        (ToolExecutionStrategy::Batched(1), 1),
        (ToolExecutionStrategy::Batched(2), 2),
        (
            ToolExecutionStrategy::Batched(MAX_PARALLEL_TOOLS),
            MAX_PARALLEL_TOOLS,
        ),
    ] {
        assert_eq!(strategy.max_parallel_tools(), Ok(at_once), "{strategy:?}");
        let mut stage = Stage::new(Setup {
            max_parallel_tools: at_once,
            ..setup()
        });
        let calls: Vec<String> = (0..5).map(|n| format!("c{n}:read:{{\"n\":{n}}}")).collect();
        let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
        stage.say("go").calls(&calls);
        // Whichever ends first.
        while let Some(call) = stage.running.back() {
            let id = call.id.0.clone();
            stage.done(&id, &id);
        }
        assert_eq!(stage.at_once, at_once.min(5), "{strategy:?}");
        assert_eq!(
            stage.last_request(),
            "u go / a [c0,c1,c2,c3,c4] / r c0 c0 / r c1 c1 / r c2 c2 / r c3 c3 / r c4 c4"
        );
        stage.text("done");
        audit(&stage);
    }
    for none in [0, MAX_PARALLEL_TOOLS + 1, usize::MAX] {
        let why = ToolExecutionStrategy::Batched(none)
            .max_parallel_tools()
            .unwrap_err();
        assert!(why.contains("choose 1 to 64"), "{why}");
    }
    let written = |strategy| serde_json::to_value(strategy).unwrap();
    assert_eq!(written(ToolExecutionStrategy::Parallel), json!("parallel"));
    assert_eq!(
        written(ToolExecutionStrategy::Batched(4)),
        json!({ "batched": 4 })
    );
}
