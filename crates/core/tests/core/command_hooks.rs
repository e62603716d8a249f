//! Hooks that are programs: their input, their valid answers, and errors. A broken hook does not
//! affect anything else.

use std::path::Path;
use std::time::Duration;

use plimsoll_agent::{EndReason, HookPoint};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{Agent, AgentBuilder, CommandHook, Error, ToolError, tool};
use plimsoll_testkit::Warnings;
use serde_json::{Value, json};

use crate::go;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Anything {
    #[serde(default)]
    text: String,
}

fn agent(provider: &ScriptedProvider) -> (AgentBuilder, Warnings) {
    let look = |input: Anything| async move { Ok::<_, ToolError>(format!("saw {}", input.text)) };
    let rm = |_: Anything| async { Ok::<_, ToolError>("gone") };
    let warnings = Warnings::default();
    let builder = Agent::builder(provider.clone())
        .tool(tool("look", "Looks.", look))
        .tool(tool("rm", "Removes.", rm))
        .observer(warnings.observer());
    (builder, warnings)
}

fn sh(on: HookPoint, script: &str) -> CommandHook {
    CommandHook::new(on, ["sh", "-c", script])
}

fn results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

/// Keeps what it reads, one line a call.
fn keeps(folder: &Path, on: HookPoint) -> CommandHook {
    let file = folder.join("read");
    sh(on, &format!("cat >> '{}'", file.display()))
}

fn script() -> ScriptedProvider {
    ScriptedProvider::new([
        Turn::call("look", json!({"text": "a \"line\"\nand more"})),
        Turn::say("Land!"),
    ])
}

#[tokio::test]
async fn programs_read_what_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let provider = script();
    let (mut builder, warnings) = agent(&provider);
    for on in [
        HookPoint::BeforeTask,
        HookPoint::BeforeLoop,
        HookPoint::BeforeTurn,
        HookPoint::BeforeToolExecution,
        HookPoint::AfterToolExecution,
        HookPoint::AfterTurn,
        HookPoint::AfterLoop,
        HookPoint::AfterTask,
    ] {
        builder = builder.command_hook(keeps(folder.path(), on));
    }
    let output = builder.build().unwrap().run("go").await.unwrap();
    assert_eq!(output.text, "Land!");
    assert_eq!(warnings.all(), Vec::<String>::new());
    let text = std::fs::read_to_string(folder.path().join("read")).unwrap();
    let read: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let hooks: Vec<&str> = read
        .iter()
        .map(|line| line["hook"].as_str().unwrap())
        .collect();
    assert_eq!(
        hooks,
        [
            "before_task",
            "before_loop",
            "before_turn",
            "before_tool_execution",
            "after_tool_execution",
            "after_turn",
            "before_turn",
            "after_turn",
            "after_loop",
            "after_task"
        ]
    );
    for line in &read {
        assert_eq!(
            (&line["run"], &line["session_id"]),
            (&json!(1), &json!(output.session_id.as_str()))
        );
    }
    assert_eq!(read[2]["turn"], 1);
    assert_eq!(read[3]["tool"], "look");
    assert_eq!(
        read[3]["arguments"],
        json!({"text": "a \"line\"\nand more"})
    );
    assert_eq!(
        (&read[4]["call"], &read[4]["is_error"]),
        (&read[3]["call"], &json!(false))
    );
    assert!(read[5]["usage"]["output"].as_u64().unwrap() > 0);
    assert_eq!(read[9]["outcome"]["text"], "Land!");
}

#[tokio::test]
async fn programs_say_yes_or_no() {
    let on = HookPoint::BeforeToolExecution;
    for (says, result) in [
        ("", "saw"),
        ("echo '{}'", "saw"),
        ("echo '{\"decision\":\"allow\"}'", "saw"),
        ("cat > /dev/null", "saw"),
        // It need not read what it is told.
        ("exec <&-", "saw"),
        (
            "echo '{\"decision\":\"deny\",\"reason\":\"not on a Sunday\"}'",
            "`look` was skipped: before_tool_execution refused: not on a Sunday",
        ),
        (
            "echo 'not on a Sunday' >&2; exit 2",
            "`look` was skipped: before_tool_execution refused: not on a Sunday",
        ),
        (
            "exit 2",
            "`look` was skipped: before_tool_execution refused",
        ),
    ] {
        let provider = script();
        let (builder, warnings) = agent(&provider);
        go(builder.command_hook(sh(on, says))).await;
        let said = results(&provider.requests()[1]);
        assert!(said[0].starts_with(result), "{says}: {said:?}");
        assert_eq!(warnings.all(), Vec::<String>::new(), "{says}");
    }
}

#[tokio::test]
async fn a_broken_program_guards_all_the_same() {
    let broken = [
        ("exit 1", "ended with exit code 1 and printed no error"),
        ("echo oh >&2; exit 77", "ended with exit code 77: oh"),
        ("echo yes", "printed no verdict"),
        ("kill -9 $$", "was ended by signal 9"),
        ("sleep 1000", "did not end within 0.3 s"),
        ("sleep 1000 & exec sleep 1000", "did not end within 0.3 s"),
        ("yes | head -c 1000000", "printed more than 65536 bytes"),
    ];
    for (script_of, says) in broken {
        // Before a tool call it denies.
        let provider = script();
        let (builder, warnings) = agent(&provider);
        let mut hook = sh(HookPoint::BeforeToolExecution, script_of);
        hook.timeout =
            Some(Duration::from_millis(300)).filter(|_| script_of.contains("& exec sleep"));
        let all = if script_of.contains("sleep") {
            Duration::from_millis(300)
        } else {
            plimsoll_core::HOOK_TIMEOUT
        };
        let output = go(builder.hook_timeout(all).command_hook(hook.clone())).await;
        assert_eq!((output.text.as_str(), output.tool_calls), ("Land!", 0));
        let said = results(&provider.requests()[1]);
        assert!(
            said[0].contains("was not allowed") && said[0].contains(says),
            "{script_of}: {said:?}"
        );
        assert_eq!(warnings.all().len(), 1);
        // Elsewhere the run goes on and says so.
        let provider = script();
        let (builder, warnings) = agent(&provider);
        hook.on = HookPoint::AfterTurn;
        let output = go(builder.hook_timeout(all).command_hook(hook)).await;
        assert_eq!((output.text.as_str(), output.tool_calls), ("Land!", 1));
        let warnings = warnings.all();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].starts_with("after_turn: `sh` "), "{warnings:?}");
        assert!(warnings[0].contains(says), "{warnings:?}");
    }
    let provider = script();
    let (builder, warnings) = agent(&provider);
    let missing = CommandHook::new(HookPoint::BeforeTurn, ["/no/such/program"]);
    let output = go(builder.command_hook(missing)).await;
    assert_eq!(output.text, "Land!");
    assert!(warnings.all()[0].contains("cannot start `/no/such/program`"));
}

/// Closures first, then programs in their order; the first no counts.
#[tokio::test]
async fn the_first_no_counts() {
    let folder = tempfile::tempdir().unwrap();
    let on = HookPoint::BeforeTurn;
    for (closure, by, read) in [
        (false, "before_turn refused", 0),
        (true, "before_turn refused: two", 1),
    ] {
        let provider = script();
        let (builder, _) = agent(&provider);
        let output = go(builder
            .before_turn(move |_, _| closure)
            .command_hook(keeps(folder.path(), on))
            .command_hook(sh(on, "echo two >&2; exit 2"))
            .command_hook(keeps(folder.path(), on)))
        .await;
        let reason = EndReason::Refused {
            by: "before_turn".into(),
            why: by.into(),
        };
        assert_eq!(output.reason, reason);
        let text = std::fs::read_to_string(folder.path().join("read")).unwrap_or_default();
        assert_eq!(text.lines().count(), read);
    }
}

#[tokio::test]
async fn a_program_is_for_the_tools_that_it_names() {
    let provider = ScriptedProvider::new([
        Turn::calls([("look", json!({})), ("rm", json!({}))]),
        Turn::say("Land!"),
    ]);
    let (builder, _) = agent(&provider);
    let mut hook = sh(HookPoint::BeforeToolExecution, "exit 2");
    hook.tools = vec!["r*".into(), "mv".into()];
    go(builder.command_hook(hook)).await;
    let said = results(&provider.requests()[1]);
    assert!(
        said[0].starts_with("saw") && said[1].starts_with("`rm` was skipped"),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_program_may_follow_up() {
    let folder = tempfile::tempdir().unwrap();
    let provider = ScriptedProvider::new([Turn::say("Land!"), Turn::say("More land!")]);
    let (builder, _) = agent(&provider);
    let once = format!(
        "cd '{}'; test -e said || echo '{{\"messages\":[\"And behind it?\"]}}'; touch said",
        folder.path().display()
    );
    let output = go(builder.command_hook(sh(HookPoint::FollowUp, &once))).await;
    assert_eq!((output.text.as_str(), output.turns), ("More land!", 2));
    let last = provider.requests()[1]["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(last["content"], "And behind it?");
}

#[test]
fn faults_of_programs_are_faults_of_the_settings() {
    let provider = script();
    let (builder, _) = agent(&provider);
    let mut timeless = sh(HookPoint::BeforeTurn, "true");
    timeless.timeout = Some(Duration::ZERO);
    let mut toolless = sh(HookPoint::AfterLoop, "true");
    toolless.tools = vec!["look".into()];
    let built = builder
        .command_hook(CommandHook::new(HookPoint::OnError, Vec::<String>::new()))
        .command_hook(timeless)
        .command_hook(toolless)
        .build();
    let Err(Error::Build(faults)) = built else {
        panic!("it was built")
    };
    assert_eq!(faults.len(), 3, "{faults:?}");
    let read: CommandHook =
        serde_json::from_value(json!({"on": "before_turn", "command": ["true"], "tools": []}))
            .unwrap();
    assert_eq!(read, CommandHook::new(HookPoint::BeforeTurn, ["true"]));
}

#[tokio::test]
async fn a_program_may_rewrite_arguments_and_results() {
    let provider = script();
    let (builder, warnings) = agent(&provider);
    let arguments = r#"echo '{"decision":"allow","arguments":{"text":"sk-123"}}'"#;
    let result = r#"grep -q '"result":"saw sk-123"' && echo '{"result":"saw a key"}'"#;
    go(builder
        .command_hook(sh(HookPoint::BeforeToolExecution, arguments))
        .command_hook(sh(HookPoint::TransformToolResult, result)))
    .await;
    assert_eq!(results(&provider.requests()[1]), ["saw a key"]);
    assert_eq!(warnings.all(), Vec::<String>::new());
}

/// An answer without effect at its point is a fault of the program, and is not ignored silently.
#[tokio::test]
async fn an_answer_without_effect_is_a_fault() {
    let provider = script();
    let (builder, warnings) = agent(&provider);
    let output =
        go(builder.command_hook(sh(HookPoint::BeforeTurn, r#"echo '{"arguments":{}}'"#))).await;
    assert_eq!(output.text, "Land!");
    assert_eq!(
        warnings.all()[0],
        "before_turn: `sh` gave an answer that has no effect here; the run goes on without it"
    );
}

/// Broken scripts end with exit code 2 as well. If a hook decides nothing, it is a failure.
#[tokio::test]
async fn a_refusal_of_a_hook_that_does_not_decide_is_a_fault() {
    for refusal in ["exit 2", r#"echo '{"decision":"deny"}'"#] {
        let provider = script();
        let (builder, warnings) = agent(&provider);
        go(builder.command_hook(sh(HookPoint::TransformToolResult, refusal))).await;
        let result = &results(&provider.requests()[1])[0];
        assert!(result.starts_with("the result was withheld"), "{result}");
        assert_eq!(warnings.all().len(), 1, "{:?}", warnings.all());
    }
}
