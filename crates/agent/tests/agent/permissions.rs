//! Permissions: the rule that applies, and the machine's decision.

use plimsoll_agent::{
    Answer, CallTarget, CommandTarget, Event, HookPoint, PathTarget, Permission, PermissionMode,
    PermissionRule, Permissions, Setup, ShellText, SimpleCommand,
};
use plimsoll_context::HostedTool;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::stage::audit::audit;
use crate::stage::{Stage, setup};

/// Rules as `allow tool` or `deny tool pattern`.
fn rules(written: &[&str]) -> Permissions {
    Permissions::new(written.iter().map(|rule| {
        let mut words = rule.splitn(3, ' ');
        let permission: Permission = words.next().unwrap().parse().unwrap();
        let rule = PermissionRule::new(words.next().unwrap(), permission);
        match words.next() {
            Some(pattern) => rule.with_argument(pattern),
            None => rule,
        }
    }))
}

#[test]
fn which_rule_decides() {
    use Permission::{Allow, Ask, Deny};
    let table: &[(&[&str], &str, Value, Option<Permission>)] = &[
        (&[], "bash", json!({}), None),
        (&["allow bash"], "bash", json!({}), Some(Allow)),
        (&["allow bash"], "bash2", json!({}), None),
        (&["deny fs_*"], "fs_write", json!({}), Some(Deny)),
        (&["deny fs_*"], "fs_", json!({}), Some(Deny)),
        (&["deny fs_*"], "my_fs_write", json!({}), None),
        (&["deny *_write"], "fs_write", json!({}), Some(Deny)),
        (&["deny *"], "", json!({}), Some(Deny)),
        (&["deny *a*b*"], "xaxbx", json!({}), Some(Deny)),
        (&["deny *a*b*"], "xbxax", json!({}), None),
        (&["deny aXa"], "aXa", json!({}), Some(Deny)),
        (&["deny a*a"], "a", json!({}), None),
        (&["deny a*a"], "aa", json!({}), Some(Deny)),
        (&["deny a*ab*ab"], "aabab", json!({}), Some(Deny)),
        (&["deny a*ab*ab"], "aab", json!({}), None),
        // The first that matches.
        (
            &["ask bash", "deny bash", "allow *"],
            "bash",
            json!({}),
            Some(Ask),
        ),
        (
            &["ask bash", "deny bash", "allow *"],
            "read",
            json!({}),
            Some(Allow),
        ),
        (
            &["deny bash *rm*", "allow bash"],
            "bash",
            json!({ "command": "ls" }),
            Some(Allow),
        ),
        // To deny and to ask, one text is enough, at any depth.
        (
            &["deny bash *rm -rf*"],
            "bash",
            json!({ "a": [1, { "b": "x; rm -rf /" }], "c": "ls" }),
            Some(Deny),
        ),
        (
            &["ask * *secret*"],
            "read",
            json!({ "path": "my secret" }),
            Some(Ask),
        ),
        (&["ask * *secret*"], "read", json!({ "secret": 1 }), None),
        (&["deny * 1"], "read", json!({ "n": 1, "b": true }), None),
        (&["deny * true"], "read", json!({ "n": 1, "b": true }), None),
        // To allow, all of them.
        (
            &["allow bash git *"],
            "bash",
            json!({ "command": "git log" }),
            Some(Allow),
        ),
        (
            &["allow bash git *"],
            "bash",
            json!({ "command": "rm -rf /", "note": "git log" }),
            None,
        ),
        (&["allow bash git *"], "bash", json!({}), None),
        (&["allow bash *"], "bash", json!({}), None),
        (
            &["allow bash *"],
            "bash",
            json!({ "n": 1, "x": "" }),
            Some(Allow),
        ),
        // In one field.
        (
            &["allow bash command=git *"],
            "bash",
            json!({ "command": "git log", "note": "x" }),
            Some(Allow),
        ),
        (
            &["allow bash command=git *"],
            "bash",
            json!({ "note": "git log" }),
            None,
        ),
        (
            &["allow bash command=git *"],
            "bash",
            json!({ "command": ["git log", "rm"] }),
            None,
        ),
        (
            &["deny bash command=*rm*"],
            "bash",
            json!({ "command": ["git log", "rm"] }),
            Some(Deny),
        ),
        (
            &["deny bash force=true"],
            "bash",
            json!({ "force": true }),
            Some(Deny),
        ),
        (&["deny bash n=7"], "bash", json!({ "n": 7 }), Some(Deny)),
        (
            &["deny bash a.b=x"],
            "bash",
            json!({ "a": { "b": "x" } }),
            Some(Deny),
        ),
        (
            &["deny bash a.b=x"],
            "bash",
            json!({ "a.b": "x" }),
            Some(Deny),
        ),
        (&["deny bash a.b=x"], "bash", json!({ "a": "x" }), None),
        (&["deny bash a.0=x"], "bash", json!({ "a": ["x"] }), None),
        (
            &["deny bash a=b=c"],
            "bash",
            json!({ "a": "b=c" }),
            Some(Deny),
        ),
        // No name of a field stands before that sign: it is a text.
        (
            &["deny bash *X=1*"],
            "bash",
            json!({ "command": "X=1 make" }),
            Some(Deny),
        ),
    ];
    for (written, tool, arguments, expected) in table {
        let says = rules(written).decide(tool, arguments, &CallTarget::Arguments);
        assert_eq!(says, *expected, "{written:?} {tool} {arguments}");
    }
}

#[test]
fn a_path_is_known_by_where_it_leads() {
    use Permission::{Allow, Ask, Deny};
    let target = |path: &str, written: &str, same_as, is_protected| {
        CallTarget::Path(PathTarget {
            fields: &["path", "file"],
            path: path.to_owned(),
            absolute: format!("/ws/{path}"),
            written: written.to_owned(),
            same_as,
            is_protected,
        })
    };
    let env = || target(".env", ".//.env", &["read"][..], false);
    let inner = || target("secrets/a/b", "secrets/x/../a/b", &[][..], false);
    let agents = || target("AGENTS.md", "AGENTS.md", &["edit"][..], true);
    let table: &[(&[&str], &str, CallTarget, Option<Permission>)] = &[
        (&["deny read path=.env"], "read", env(), Some(Deny)),
        (&["deny read path=./.env"], "read", env(), Some(Deny)),
        (&["deny read path=/ws/.env"], "read", env(), Some(Deny)),
        (&["deny read path=.//.env"], "read", env(), Some(Deny)),
        (&["deny read .env"], "read", env(), Some(Deny)),
        (&["deny read file=.env"], "read", env(), Some(Deny)),
        (&["deny read content=.env"], "read", env(), None),
        (&["allow read path=.//.env"], "read", env(), None),
        (&["allow read path=.env"], "read", env(), Some(Allow)),
        // What is in a directory that a rule names.
        (&["deny read path=secrets"], "read", inner(), Some(Deny)),
        (&["ask read path=secrets/a"], "read", inner(), Some(Ask)),
        (&["deny read path=secrets/*"], "read", inner(), Some(Deny)),
        (&["deny read path=secret"], "read", inner(), None),
        (&["allow read path=secrets"], "read", inner(), None),
        // Rules for a tool that does the same, with a path, hold too.
        (&["deny read path=.env"], "grep", env(), Some(Deny)),
        (&["ask read path=*"], "grep", env(), Some(Ask)),
        (&["deny read"], "grep", env(), None),
        (&["allow read path=.env"], "grep", env(), None),
        (
            &["allow read path=.env", "deny read path=*"],
            "grep",
            env(),
            None,
        ),
        (
            &["allow grep", "deny read path=.env"],
            "grep",
            env(),
            Some(Deny),
        ),
        // A protected path.
        (&[], "write", agents(), Some(Ask)),
        (&["allow write"], "write", agents(), Some(Ask)),
        (&["allow write path=*"], "write", agents(), Some(Ask)),
        (
            &["allow write path=AGENTS.md"],
            "write",
            agents(),
            Some(Allow),
        ),
        (&["allow write content=x"], "write", agents(), Some(Ask)),
        (&["deny edit path=AGENTS.md"], "write", agents(), Some(Deny)),
    ];
    let arguments = json!({ "path": "…", "content": "x" });
    for (written, tool, target, expected) in table {
        let says = rules(written).decide(tool, &arguments, target);
        assert_eq!(says, *expected, "{written:?} {tool}");
    }
}

#[test]
fn a_command_is_allowed_alone_and_denied_anywhere() {
    use Permission::{Allow, Ask, Deny};
    let literal = |text: &str| vec![ShellText::Literal(text.to_owned())];
    let target = |written: &str, simple: Option<&str>, commands| {
        CallTarget::Command(CommandTarget {
            fields: &["command"],
            written: written.to_owned(),
            simple: simple.map(|text| SimpleCommand {
                text: text.to_owned(),
                spelled: String::new(),
            }),
            commands,
            ..CommandTarget::default()
        })
    };
    let log = || target("git  log", Some("git log"), vec![literal("git log")]);
    let two = || {
        let both = vec![literal("git log"), literal("rm x")];
        target("git log; rm x", None, both)
    };
    let unknown = || {
        let text = vec![ShellText::Unknown, ShellText::Literal(" x".to_owned())];
        target("$a x", None, vec![text])
    };
    let broken = || {
        CallTarget::Command(CommandTarget {
            fields: &["command"],
            is_unclear: true,
            ..CommandTarget::default()
        })
    };
    let table: &[(&[&str], CallTarget, Option<Permission>)] = &[
        (&["allow bash command=git *"], log(), Some(Allow)),
        (&["allow bash git *"], log(), Some(Allow)),
        (&["allow bash command=*"], log(), Some(Allow)),
        (&["deny bash command=git log"], log(), Some(Deny)),
        (&["allow bash command=git *"], two(), None),
        (&["allow bash command=*"], two(), None),
        (&["allow bash"], two(), Some(Allow)),
        (&["deny bash command=rm *"], two(), Some(Deny)),
        (&["deny bash command=*; rm x"], two(), Some(Deny)),
        (&["deny bash command=mv *"], two(), None),
        (&["deny bash command=mv x"], unknown(), Some(Ask)),
        (
            &["deny bash command=mv x", "deny bash command=$a *"],
            unknown(),
            Some(Deny),
        ),
        (
            &["deny bash command=mv x", "allow bash"],
            unknown(),
            Some(Ask),
        ),
        (&["deny bash command=mv y"], unknown(), Some(Ask)),
        (&["allow bash command=*"], unknown(), None),
        (&["allow bash command=*"], broken(), None),
        (&["deny bash command=mv *"], broken(), Some(Ask)),
    ];
    for (written, target, expected) in table {
        let arguments = json!({ "command": "…", "timeout_seconds": 3 });
        let says = rules(written).decide("bash", &arguments, target);
        assert_eq!(says, *expected, "{written:?} {target:?}");
    }
    let spelled = CallTarget::Command(CommandTarget {
        fields: &["command"],
        simple: Some(SimpleCommand {
            text: "git -c a=b log".to_owned(),
            spelled: "git -c a=b ".to_owned(),
        }),
        ..CommandTarget::default()
    });
    for (pattern, says) in [
        ("allow bash command=git *", None),
        ("allow bash command=git -c a=b *", Some(Allow)),
    ] {
        let decision = rules(&[pattern]).decide("bash", &json!({}), &spelled);
        assert_eq!(decision, says, "{pattern}");
    }
}

#[test]
fn words_of_a_configuration() {
    for permission in [Permission::Allow, Permission::Deny, Permission::Ask] {
        assert_eq!(permission.name().parse(), Ok(permission));
    }
    assert!("Allow".parse::<Permission>().is_err());
}

#[test]
fn a_rule_for_a_tool_that_there_is_not_is_a_fault() {
    let rules = rules(&["allow read", "deny fs_*", "ask *", "deny baash x=1"]);
    let faults = rules.faults(["read", "bash"], &[], &|_, _| true);
    let faults: Vec<_> = faults
        .iter()
        .map(|fault| (fault.item, fault.text.as_str()))
        .collect();
    assert_eq!(
        faults,
        [
            (
                Some(1),
                "a permission rule is for `fs_*`, and there is no such tool"
            ),
            (
                Some(3),
                "a permission rule is for `baash`, and there is no such tool"
            ),
        ]
    );
    assert!(
        Permissions::default()
            .faults([], &[], &|_, _| true)
            .is_empty()
    );
    let many = Permissions::new(vec![PermissionRule::new("*", Permission::Ask); 1_001]);
    assert_eq!(many.faults(["read"], &[], &|_, _| true).len(), 1);
}

/// The provider runs the tools of an MCP server without asking, so that no rule for one of them is kept.
#[test]
fn rules_for_some_tools_of_a_hosted_server_are_refused() {
    let mcp = || {
        HostedTool(json!({
            "type": "mcp", "server_label": "gh", "server_url": "https://gh.example",
            "require_approval": "never", "allowed_tools": ["read"]
        }))
    };
    let toolset = || HostedTool(json!({"type": "mcp_toolset", "mcp_server_name": "gh"}));
    let first = Err("a permission rule is for calls of `gh_*`");
    for (tool, set, expected) in [
        (mcp(), &["deny gh_delete*"][..], first),
        (mcp(), &["ask gh_push"], first),
        (mcp(), &["deny *delete*"], first),
        (mcp(), &["deny gh_* repo=main"], first),
        (mcp(), &["deny gh x=1"], first),
        (mcp(), &["allow gh", "deny gh_delete*"], first),
        (mcp(), &["allow gh_read", "deny gh_*"], first),
        (
            mcp(),
            &["allow gh_*", "deny gh_delete*"],
            Ok(Permission::Allow),
        ),
        (mcp(), &["allow gh", "deny *"], Err("allow `gh_*` before")),
        (mcp(), &["deny gh_delete*", "deny gh"], first),
        (mcp(), &["deny gh", "ask gh_push"], Ok(Permission::Deny)),
        (
            mcp(),
            &["deny bash x=1", "ask ghost_*"],
            Ok(Permission::Allow),
        ),
        (toolset(), &["deny gh_delete*"], first),
        (toolset(), &["deny gh"], Ok(Permission::Deny)),
    ] {
        match (rules(set).hosted(&tool), expected) {
            (Ok(says), Ok(expected)) => assert_eq!(says, expected, "{tool:?} {set:?}"),
            (Err(why), Err(words)) => assert!(why.contains(words), "{set:?}: {why}"),
            (says, _) => panic!("{tool:?} {set:?}: {says:?}"),
        }
    }
    // There may be such a tool.
    let set = rules(&["deny gh_delete*", "deny gl_delete*"]);
    let faults = set.faults(["read"], &[mcp()], &|_, _| true);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].text.contains("gl_delete"), "{faults:?}");
}

proptest! {
    /// Patterns as a slow and simple reading of them says.
    #[test]
    fn a_star_stands_for_anything(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
        fn fits(pattern: &[u8], text: &[u8]) -> bool {
            match (pattern, text) {
                ([], []) => true,
                ([b'*', rest @ ..], _) if fits(rest, text) => true,
                ([b'*', ..], [_, text @ ..]) => fits(pattern, text),
                ([one, pattern @ ..], [other, text @ ..]) if one == other => fits(pattern, text),
                _ => false,
            }
        }
        let rule = Permissions::new([PermissionRule::new(&pattern, Permission::Deny)]);
        let says = rule.decide(&text, &json!({}), &CallTarget::Arguments).is_some();
        prop_assert_eq!(says, fits(pattern.as_bytes(), text.as_bytes()));
    }

    #[test]
    fn nothing_breaks_it(pattern in ".{0,12}", text in ".{0,12}") {
        let rule = PermissionRule::new(&pattern, Permission::Allow).with_argument(&text);
        let arguments = json!({ "a": text, "b": [pattern] });
        let _ = Permissions::new([rule]).decide(&text, &arguments, &CallTarget::Arguments);
    }
}

fn under(written: &[&str]) -> Setup {
    Setup {
        permissions: rules(written).into(),
        ..setup()
    }
}

/// `bash` asks where nothing is said, `read` and `write` do not.
#[test]
fn what_a_rule_says_is_done() {
    let mut stage = Stage::new(under(&[
        "deny bash *rm*",
        "allow bash git *",
        "ask write path=/etc*",
        "deny secrets",
    ]));
    stage.say("go").calls(&[
        "a:bash:{\"command\":\"rm -rf /\"}",
        "b:bash:{\"command\":\"git log\"}",
        "c:write:{\"path\":\"/etc/hosts\"}",
        "d:read",
        "e:bash:{\"command\":\"ls\"}",
    ]);
    assert_eq!(
        stage.running(),
        ["b", "d"],
        "three at once: two run, one is asked about"
    );
    assert_eq!(stage.asked.len(), 1);
    assert_eq!(
        (stage.asked[0].call.id.0.as_str(), stage.asked[0].asks_gate),
        ("c", true)
    );
    let no = |why: &str| Answer::Deny { why: why.into() };
    stage
        .answer("c", no("leave it"))
        .done("b", "2")
        .done("d", "4");
    assert_eq!(stage.asked[0].call.id.0, "e");
    stage.answer("e", Answer::Allow).done("e", "5");
    assert_eq!(
        stage.last_request(),
        "u go / a [a,b,c,d,e] \
         / r! a not run: the rules of this run do not allow this call of `bash`; do something else \
         / r b 2 / r! c leave it / r d 4 / r e 5"
    );
    assert_eq!(stage.executed(), ["b", "d", "e"]);
    stage.text("done");
    assert_eq!(stage.outcome().tool_calls, 3);
    audit(&stage);
}

/// `bash` asks, `write` changes files; rules go before the mode.
#[test]
fn what_a_mode_says_is_done_with_calls_that_no_rule_decides_about() {
    use PermissionMode::{Ask, AutoEdit, ReadOnly, Yes};
    for (mode, written, executed, asked) in [
        (AutoEdit, &[][..], &["w", "r"][..], &["b"][..]),
        (Ask, &[], &["r"], &["b", "w"]),
        (Yes, &[], &["b", "w", "r"], &[]),
        (ReadOnly, &[], &["r"], &[]),
        (ReadOnly, &["allow bash", "ask write"], &["b", "r"], &[]),
        (Yes, &["deny bash", "ask write"], &["w", "r"], &[]),
        (Ask, &["allow write"], &["w", "r"], &["b"]),
    ] {
        let mut setup = under(written);
        setup.permissions = rules(written).with_mode(mode).into();
        setup.max_parallel_tools = 3;
        for tool in &mut setup.tools {
            tool.edits_files = tool.spec.name == "write";
        }
        let mut stage = Stage::new(setup);
        stage.say("go").calls(&["b:bash", "w:write", "r:read"]);
        assert_eq!(stage.executed(), executed, "{mode:?} {written:?}");
        let ids = stage.asked.iter().map(|asked| asked.call.id.0.as_str());
        assert_eq!(ids.collect::<Vec<_>>(), asked, "{mode:?} {written:?}");
        stage.finish();
        audit(&stage);
    }
}

/// R22: no name and no way to write the arguments leads around a rule.
#[test]
fn rules_see_the_tool_that_is_meant_and_the_arguments_that_it_gets() {
    let mut setup = under(&["deny bash command=*rm*", "allow bash"]);
    setup.tools[2].spec.schema = json!({
        "type": "object", "properties": { "command": { "type": "string" }, "at": {
            "type": "object", "properties": { "command": { "type": "string" } } } },
    });
    setup.permissions = rules(&["deny bash *rm*", "allow bash"]).into();
    let mut stage = Stage::new(setup);
    stage.say("go").calls(&[
        "a:bsh:{\"command\":\"rm x\"}",
        "b:Bash:\"{\\\"command\\\":\\\"rm x\\\"}\"",
        "c:bash_command:{\"at\":\"{\\\"command\\\":\\\"r\\\\u006d x\\\"}\"}",
        "d:BASH:{\"command\":\"ls\"}",
    ]);
    assert_eq!(stage.executed(), ["d"]);
    assert!(stage.asked.is_empty());
    let repaired = stage
        .events
        .iter()
        .filter(|e| matches!(e, Event::ToolCallRepaired { .. }));
    assert_eq!(repaired.count(), 4);
    stage.done("d", "ok").text("done");
    audit(&stage);
}

/// A rule that allows spares the person, not the host's own hook.
#[test]
fn a_hook_is_asked_whatever_the_rules_allow() {
    let mut setup = under(&["allow bash", "deny write"]);
    setup.hooks.insert(HookPoint::BeforeToolExecution);
    setup.max_parallel_tools = 3;
    let mut stage = Stage::new(setup);
    stage.say("go").calls(&["a:bash", "b:write", "c:read"]);
    let asked: Vec<(&str, bool, bool)> = stage
        .asked
        .iter()
        .map(|asked| (asked.call.id.0.as_str(), asked.asks_hook, asked.asks_gate))
        .collect();
    assert_eq!(asked, [("a", true, false), ("c", true, false)]);
    stage.finish();
    assert_eq!(stage.executed(), ["a", "c"]);
    audit(&stage);
}
