//! Keys for the agent itself, and for calling its model.

use std::time::Duration;

use plimsoll::cache::CacheRetention;
use plimsoll::events::TurnTrigger;
use plimsoll::model::HostedTool;
use plimsoll::{Event, ThinkingLevel, Tokens};

use super::KeyEffect;
use super::scene::{Scene, SceneOutcome, said, text_of};

const NO_TOOLS: &str = "tools = \"none\"\n";
const THREE_ATTEMPTS: &str = "tools = \"none\"\nretry.max_attempts = 3\n";
/// Requests are large enough to be cached, and the cache is asked for by marks.
const CACHED: &str = "system_file = \"long.md\"\n";

fn run_id(seen: &SceneOutcome) -> String {
    let mut ids = seen.events.iter().filter_map(|event| match event {
        Event::AgentStart { run_id, .. } => run_id.as_ref().map(ToString::to_string),
        _ => None,
    });
    ids.next().unwrap()
}

fn breakpoints(seen: &SceneOutcome) -> Vec<String> {
    let of_last = seen.last().cache.breakpoints.iter();
    of_last
        .map(|breakpoint| format!("{breakpoint:?}"))
        .collect()
}

fn cause(seen: &SceneOutcome) -> TurnTrigger {
    let mut causes = seen.events.iter().filter_map(|event| match event {
        Event::TurnStart { cause, .. } => Some(*cause),
        _ => None,
    });
    causes.next().unwrap()
}

pub(super) const ROWS: &[KeyEffect] = &[
    KeyEffect {
        key: "name",
        base: NO_TOOLS,
        set: "agents = [{ name = \"bosun\" }]",
        scene: Scene::Talk,
        shows: |without, with| {
            assert!(!run_id(without).contains(".bosun."));
            assert!(run_id(with).contains(".bosun."));
        },
    },
    KeyEffect {
        key: "config_id",
        base: NO_TOOLS,
        set: "config_id = \"night\"",
        scene: Scene::Talk,
        shows: |_, with| assert!(run_id(with).ends_with(".night.1")),
    },
    KeyEffect {
        key: "system",
        base: NO_TOOLS,
        set: "system = \"Be brief.\"",
        scene: Scene::Talk,
        shows: |without, with| {
            assert_eq!(&*without.first().system, "");
            assert_eq!(&*with.first().system, "Be brief.");
        },
    },
    KeyEffect {
        key: "system_file",
        base: NO_TOOLS,
        set: "system_file = \"prompt.md\"",
        scene: Scene::Talk,
        shows: |_, with| assert_eq!(&*with.first().system, "A prompt from a file."),
    },
    KeyEffect {
        key: "dynamic_context",
        base: NO_TOOLS,
        set: "dynamic_context = \"It is noon.\"",
        scene: Scene::Talk,
        shows: |without, with| {
            assert_eq!(without.first().dynamic_context, None);
            assert_eq!(with.first().dynamic_context.as_deref(), Some("It is noon."));
        },
    },
    KeyEffect {
        key: "pins",
        base: NO_TOOLS,
        set: "pins = [\"Never touch vendor/.\"]",
        scene: Scene::Talk,
        shows: |without, with| {
            assert!(!text_of(without.first()).contains("vendor"));
            assert!(text_of(with.first()).contains("Never touch vendor/."));
        },
    },
    KeyEffect {
        key: "tools",
        base: "recall = false",
        set: "tools = [\"read\", \"grep\"]",
        scene: Scene::Talk,
        shows: |without, with| {
            assert_eq!(without.tools().len(), 7);
            assert_eq!(with.tools(), ["read", "grep"]);
        },
    },
    KeyEffect {
        key: "root",
        base: "tools = \"read\"",
        set: "root = \"sub\"",
        scene: Scene::Reads,
        shows: |without, with| {
            assert!(!text_of(without.last()).contains("the inner note"));
            assert!(text_of(with.last()).contains("the inner note"));
        },
    },
    KeyEffect {
        key: "sub_agents",
        base: "tools = \"none\"\nagents = [{ name = \"captain\" }, { name = \"mate\" }]\n",
        set: "!tools = \"none\"\nagents = [{ name = \"captain\", sub_agents = [\"mate\"] }, { name = \"mate\" }]\n",
        scene: Scene::Talk,
        shows: |without, with| {
            assert!(!without.tools().contains(&"mate"));
            assert!(with.tools().contains(&"mate"));
        },
    },
    KeyEffect {
        key: "skills",
        base: "",
        set: "skills = [\"skills\"]",
        scene: Scene::Talk,
        shows: |without, with| {
            assert!(!without.tools().contains(&"skill"));
            assert!(with.tools().contains(&"skill"));
        },
    },
    KeyEffect {
        key: "mcp",
        base: "tools = \"none\"\nagents = [{ name = \"captain\" }]\n",
        set: "!tools = \"none\"\nagents = [{ name = \"captain\", mcp = [\"ship\"] }]\n",
        scene: Scene::Talk,
        // Which tools it has then is seen where servers are started: in the command line's tests.
        shows: |_, with| {
            assert!(with.error.contains("there is no MCP server `ship`"));
        },
    },
    KeyEffect {
        key: "description",
        base: "tools = \"none\"\nagents = [{ name = \"captain\", sub_agents = [\"mate\"] }, { name = \"mate\" }]\n",
        set: "!tools = \"none\"\nagents = [{ name = \"captain\", sub_agents = [\"mate\"] }, { name = \"mate\", description = \"Ties knots.\" }]\n",
        scene: Scene::Talk,
        shows: |_, with| {
            let mate = with.first().tools.iter().find(|tool| tool.name == "mate");
            assert_eq!(mate.unwrap().description, "Ties knots.");
        },
    },
    KeyEffect {
        key: "get_tool_response",
        base: "tools = \"none\"\ntrigger = 6000\n",
        set: "get_tool_response = true",
        scene: Scene::Work(12),
        shows: |without, with| {
            assert!(!without.last_tools().contains(&"get_tool_response"));
            assert!(with.last_tools().contains(&"get_tool_response"));
        },
    },
    KeyEffect {
        key: "first_turn_trigger",
        base: NO_TOOLS,
        set: "first_turn_trigger = \"sub_agent\"",
        scene: Scene::Talk,
        shows: |without, with| {
            assert_eq!(cause(without), TurnTrigger::User);
            assert_eq!(cause(with), TurnTrigger::SubAgent);
        },
    },
    KeyEffect {
        key: "window",
        base: NO_TOOLS,
        set: "window = 9000",
        scene: Scene::Work(12),
        shows: |without, with| {
            assert!(without.largest() > 9_000 && with.largest() < 9_000);
            assert!(with.output().plans > 0);
        },
    },
    KeyEffect {
        key: "max_tokens",
        base: NO_TOOLS,
        set: "max_tokens = 77",
        scene: Scene::Talk,
        shows: |without, with| {
            assert_eq!(without.first().max_output, None);
            assert_eq!(with.first().max_output, Some(Tokens(77)));
        },
    },
    KeyEffect {
        key: "temperature",
        base: NO_TOOLS,
        set: "temperature = 0.25",
        scene: Scene::Talk,
        shows: |_, with| assert_eq!(with.first().sampling.temperature, Some(0.25)),
    },
    KeyEffect {
        key: "seed",
        base: NO_TOOLS,
        set: "seed = 7",
        scene: Scene::Talk,
        shows: |_, with| assert_eq!(with.first().sampling.seed, Some(7)),
    },
    KeyEffect {
        key: "thinking_level",
        base: NO_TOOLS,
        set: "thinking_level = \"high\"",
        scene: Scene::Talk,
        shows: |without, with| {
            assert_eq!(without.first().sampling.thinking, None);
            assert_eq!(with.first().sampling.thinking, Some(ThinkingLevel::High));
        },
    },
    KeyEffect {
        key: "retry.max_attempts",
        base: NO_TOOLS,
        set: "retry.max_attempts = 2",
        scene: Scene::Fails,
        shows: |without, with| {
            assert_eq!((without.requests.len(), with.requests.len()), (10, 2));
        },
    },
    KeyEffect {
        key: "retry.initial",
        base: THREE_ATTEMPTS,
        set: "retry.initial = \"5s\"",
        scene: Scene::Fails,
        shows: |without, with| {
            // 1 + 2 and 5 + 10 seconds, give or take a fifth.
            assert!(without.elapsed < Duration::from_secs(4));
            assert!(with.elapsed > Duration::from_secs(11));
        },
    },
    KeyEffect {
        key: "retry.factor",
        base: THREE_ATTEMPTS,
        set: "retry.factor = 9",
        scene: Scene::Fails,
        shows: |_, with| assert!(with.elapsed > Duration::from_secs(7)),
    },
    KeyEffect {
        key: "retry.cap",
        base: THREE_ATTEMPTS,
        set: "retry.cap = 0.5",
        scene: Scene::Fails,
        shows: |_, with| assert!(with.elapsed < Duration::from_millis(1_300)),
    },
    KeyEffect {
        key: "retry.retry_after_cap",
        base: NO_TOOLS,
        set: "retry.retry_after_cap = 30",
        scene: Scene::Limited,
        shows: |without, with| {
            assert_eq!((without.requests.len(), with.requests.len()), (2, 1));
        },
    },
    KeyEffect {
        key: "cache.enabled",
        base: CACHED,
        set: "cache.enabled = false",
        scene: Scene::Work(4),
        shows: |without, with| {
            assert!(breakpoints(without).len() > 1);
            assert!(breakpoints(with).is_empty() && with.last().cache.key.is_none());
        },
    },
    KeyEffect {
        key: "cache.strategy",
        base: CACHED,
        set: "cache.strategy = \"disabled\"",
        scene: Scene::Work(4),
        shows: |_, with| assert!(breakpoints(with).is_empty()),
    },
    KeyEffect {
        key: "cache.strategy",
        base: CACHED,
        set: "cache.strategy = { manual = { cache_system = true } }",
        scene: Scene::Work(4),
        shows: |_, with| assert_eq!(breakpoints(with), ["System"]),
    },
    KeyEffect {
        key: "cache.strategy",
        base: "tools = \"none\"\nagents = [{ name = \"captain\", sub_agents = [\"mate\"] }, { name = \"mate\", description = \"@long@\" }]\n",
        set: "cache.strategy = { manual = { cache_tools = true } }",
        scene: Scene::Work(4),
        shows: |_, with| assert_eq!(breakpoints(with), ["Tools"]),
    },
    KeyEffect {
        key: "cache.strategy",
        base: CACHED,
        set: "cache.strategy = { manual = { cache_messages = true } }",
        scene: Scene::Work(4),
        shows: |_, with| {
            let breakpoints = breakpoints(with);
            assert!(!breakpoints.is_empty());
            assert!(breakpoints.iter().all(|at| at.starts_with("Message")));
        },
    },
    KeyEffect {
        key: "cache.retention",
        base: CACHED,
        set: "cache.retention = \"long\"",
        scene: Scene::Work(4),
        shows: |without, with| {
            assert_eq!(without.last().cache.retention, CacheRetention::Usual);
            assert_eq!(with.last().cache.retention, CacheRetention::Long);
        },
    },
    KeyEffect {
        key: "hosted_tools",
        base: NO_TOOLS,
        set: "hosted_tools = [{ type = \"web_search_20250305\", name = \"web_search\", max_uses = 2 }]",
        scene: Scene::Talk,
        shows: |without, with| {
            assert!(without.first().hosted_tools.is_empty());
            let search = serde_json::json!({
                "type": "web_search_20250305", "name": "web_search", "max_uses": 2,
            });
            assert_eq!(*with.first().hosted_tools, [HostedTool(search)]);
            assert!(with.first().counted > without.first().counted);
        },
    },
    KeyEffect {
        key: "permissions",
        base: NO_TOOLS,
        set: "permissions = [{ tool = \"look\", arguments = \"at=0\", then = \"deny\" }]",
        scene: Scene::Work(2),
        shows: |without, with| {
            assert_eq!((without.calls, with.calls), (2, 1));
            let messages = &with.last().messages;
            let result = messages
                .iter()
                .map(|message| said(message))
                .find(|text| text.contains("do not allow this call"));
            assert!(result.is_some(), "{}", text_of(with.last()));
        },
    },
    KeyEffect {
        key: "permission_mode",
        base: "tools = \"none\"\npermissions = [{ tool = \"look\", then = \"ask\" }]",
        set: "permission_mode = \"yes\"",
        scene: Scene::Work(2),
        // Nobody answers, which is a no.
        shows: |without, with| assert_eq!((without.calls, with.calls), (0, 2)),
    },
    KeyEffect {
        key: "pass_env",
        // A variable that every test has, taken for a key, and a hook that needs it.
        base: "tools = \"none\"\nhooks = [{ on = \"before_tool_execution\", command = [\"sh\", \"-c\", \
               'test -n \"$CARGO_MANIFEST_DIR\"'] }]\n[providers.mine]\nbase_url = \
               \"http://127.0.0.1:9/v1\"\napi_key_env = \"CARGO_MANIFEST_DIR\"\n",
        set: "pass_env = [\"CARGO_MANIFEST_DIR\"]",
        scene: Scene::Commands(2),
        shows: |without, with| assert_eq!((without.calls, with.calls), (0, 2)),
    },
    KeyEffect {
        key: "hooks",
        base: NO_TOOLS,
        set: "hooks = [{ on = \"before_tool_execution\", command = [\"grep\", \"-qv\", '\"at\":0'] }]",
        scene: Scene::Commands(2),
        // What fails before a tool call is a no: grep does where the arguments are these.
        shows: |without, with| assert_eq!((without.calls, with.calls), (2, 1)),
    },
];
