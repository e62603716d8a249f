//! Tests the content of a file, and its faults.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_agent::AtLimit;
use plimsoll_context::{
    CacheStrategy, CompactionScope, ContextConfig, ContextStrategy, Ppm, SessionPruneConfig,
    Threshold, Tokens,
};

use plimsoll_core::BuilderSettings;

use super::*;

fn good(text: &str) -> Config {
    Config::parse(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn settings(text: &str) -> AgentSettings {
    let config = good(text);
    let name = config.agents().next().map(str::to_owned);
    let agent = config.resolve(name.as_deref(), &Overrides::default());
    agent.unwrap().settings().clone()
}

fn faults(text: &str) -> Vec<String> {
    let error = Config::parse(text).expect_err(text);
    error.faults.iter().map(ToString::to_string).collect()
}

/// Names of other systems and of other tables are errors that suggest Plimsoll's name.
#[test]
fn another_name_is_an_error_that_says_ours() {
    let import = "and `plimsoll config import` translates a whole file";
    for (text, said) in [
        (
            "[context]\nkeep_recent = 7",
            format!(
                "line 2: there is no `keep_recent` in [context]: this setting of phi-core is `compaction.keep_recent_turns` here, {import}"
            ),
        ),
        (
            "[execution_limits]\nmax_turns = 7",
            format!("line 1: there is no `execution_limits`: it is of phi-core, {import}"),
        ),
        (
            "[orchestrator]\nmax_turns = 7",
            format!("line 1: there is no `orchestrator`: it is of Heartbit, {import}"),
        ),
        (
            "[provider]\nname = \"x\"",
            format!(
                "line 1: there is no `provider`; did you mean `providers`? Or it is of phi-core, {import}"
            ),
        ),
        (
            "[[agents]]\nname = \"a\"\nsystem_prompt = \"x\"",
            format!(
                "line 3: there is no `system_prompt`: this setting of phi-core is `system` here, {import}"
            ),
        ),
    ] {
        assert_eq!(faults(text), [said]);
    }
    for (text, part) in [
        (
            "maxTurns = 7",
            "line 1: there is no `maxTurns`; did you mean `max_turns`?",
        ),
        (
            "[compaction]\nkeepRecentTurns = 7",
            "line 2: there is no `keepRecentTurns` in [compaction]; did you mean `keep_recent_turns`?",
        ),
        (
            "context = { compaction = {} }",
            "there is no `compaction` in [context]",
        ),
        (
            "context_strategy = { type = \"evict\" }",
            "`context_strategy` is a table; give \"evict\"",
        ),
        (
            "thinking_level = \"Low\"",
            "`thinking_level` is \"Low\"; give \"off\"",
        ),
        ("[[agents]]\nName = \"a\"", "did you mean `name`?"),
        (
            "[[agents]]\nname = \"a\"\nagents = [\"b\"]",
            "line 3: `agents` is of the whole file and not of one agent; the agents that it may call",
        ),
    ] {
        let said = faults(text);
        assert!(said.iter().any(|said| said.contains(part)), "{said:?}");
    }
}

#[test]
fn the_default_strategy_asks_a_model_only_if_one_is_configured() {
    let default = |snippet: &str| {
        let run = good(snippet).defaults().unwrap().trial().unwrap();
        (
            run.context_strategy().unwrap().name(),
            run.view_limits().trigger,
        )
    };
    assert_eq!(default(""), ("extract", Threshold::Auto));
    let trigger = Threshold::Sent(Tokens(50_000));
    assert_eq!(default("trigger = 50_000"), ("extract", trigger));
    assert_eq!(
        default("[summary]\nmodel = \"openai/gpt-5-mini\""),
        ("summarize", Threshold::Auto)
    );
    assert_eq!(
        default("summarization = false\ntrigger = 50_000"),
        ("evict", trigger),
        "the trigger was not meant for summaries"
    );
}

#[test]
fn a_trigger_of_summaries_that_are_off_is_refused() {
    for strategy in ["summarize", "extract"] {
        let text =
            format!("summarization = false\ncontext_strategy = \"{strategy}\"\ntrigger = 20_000\n");
        let said = faults(&text).join(" ");
        assert!(said.contains("`summarization` is false"), "{said}");
        let without = text.replace("trigger = 20_000\n", "");
        let run = good(&without).defaults().unwrap().trial().unwrap();
        let strategy = run.context_strategy();
        assert_eq!(strategy, Some(ContextStrategy::Evict { max_tokens: None }));
    }
}

#[test]
fn every_value_has_its_forms() {
    let read = settings(
        "max_duration = 1.5\nmax_total_tokens = \"none\"\ntrigger = 0.7\ntarget = 9_000\nat_limit = \"rollback\"\n\
         tools = \"read, grep\"\npins = [\"Be kind.\"]\ncounter = \"chars4\"\nwindow = \"unknown\"\n\
         max_calls_per_tool = { bash = 3, read = 9 }\nargument_digest = { over_chars = 900 }\n\
         [cache]\nstrategy = { manual = { cache_system = true } }\n[retry]\ninitial = \"500ms\"\n",
    );
    assert_eq!(
        read.builder.limits.max_duration,
        Some(Duration::from_millis(1_500))
    );
    assert_eq!(read.builder.limits.max_total_tokens, None);
    assert_eq!(read.builder.trigger, Threshold::Share(Ppm(700_000)));
    assert_eq!(read.builder.target, Some(Threshold::Sent(Tokens(9_000))));
    assert_eq!(read.builder.limits.at_limit, Some(AtLimit::Rollback));
    assert_eq!(read.tools, ["read", "grep"]);
    assert_eq!(read.builder.pins, ["Be kind."]);
    assert_eq!(read.builder.window, plimsoll_core::Window::Unknown);
    let calls = BTreeMap::from([("bash".to_owned(), 3), ("read".to_owned(), 9)]);
    assert_eq!(read.builder.limits.max_calls_per_tool, calls);
    assert_eq!(read.builder.argument_digest.unwrap().over_chars, 900);
    assert_eq!(
        read.builder.cache.strategy,
        CacheStrategy::Manual {
            cache_system: true,
            cache_tools: false,
            cache_messages: false
        }
    );
    assert_eq!(
        read.builder.driver.retry.initial,
        Duration::from_millis(500)
    );
    for (text, scope) in [
        ("{ fixed_count = 5 }", CompactionScope::FixedCount(5)),
        ("\"token_budget\"", CompactionScope::TokenBudget),
    ] {
        let text = format!("compaction = {{ compaction_scope = {text} }}");
        let context = settings(&text).builder.context_config.unwrap();
        assert_eq!(context.compaction.compaction_scope, scope);
    }
    assert_eq!(
        settings("context_strategy = \"extract\"")
            .builder
            .context_strategy,
        Some(ContextStrategy::Extract { max_tokens: None })
    );
    let digest = |text: &str| settings(text).builder.argument_digest;
    assert!(digest("argument_digest = true").is_some());
    assert!(digest("argument_digest = false").is_none());
}

#[test]
fn a_temperature_that_no_provider_takes_is_refused() {
    for (given, fault) in [
        ("9", "line 1: `temperature` is 9; give a number from 0 to 2"),
        (
            "2.1",
            "line 1: `temperature` is 2.1; give a number from 0 to 2",
        ),
        (
            "-1",
            "line 1: `temperature` is -1; give a number from 0 to 2",
        ),
    ] {
        let said = faults(&format!("temperature = {given}\n"));
        assert_eq!(said, [fault]);
    }
    assert_eq!(
        settings("temperature = 2").builder.sampling.temperature,
        Some(2.0)
    );
}

#[test]
fn a_bound_that_could_not_prune_is_refused_with_the_least_one() {
    let said = faults("[session_prune]\npruned_tool_result_max_bytes = 79\n");
    let wanted = "`pruned_tool_result_max_bytes` is 79; give a whole number, 80 or more";
    assert!(said.iter().any(|said| said.contains(wanted)), "{said:?}");
}

#[test]
fn everything_wrong_is_said_at_once_with_its_line() {
    let said = faults(
        "max_turns = 0\nmax_trns = 3\nmax_tokens = -1\nseed = 5\ntemperature = nan\n\
         max_total_tokens = 99999999999999999999999\nmax_cost = -0.5\nmax_duration = 0\ntrigger = 1.5\n\
         [cache]\nstrategy = \"evit\"\n[[agents]]\ndescription = 3\n[[agents]]\nname = \"a\"\nmax_turns = 0\n\
         max_tool_calls = 2\n[[agents]]\nname = \"a\"\n[[mcp]]\nname = \"x\"\ncommand = \"y\"\nurl = \"z\"\n\
         [models.openai.x]\ninput = -1\noutput = 2\n[models.opnai.x]\ninput = 1\noutput = 2\n\
         [providers.mine]\napi_key_env = \"sk-secret-0123456789\"\n",
    );
    let parts = [
        "line 1: `max_turns` is 0; give a whole number, 1 or more",
        "line 2: there is no `max_trns`; did you mean `max_turns`?",
        "line 3: `max_tokens` is -1; give a whole number of tokens such as 8000 or \"8k\", 1 or more",
        "line 5: `temperature` is NaN; give a number from 0 to 2",
        "line 6: `max_total_tokens` is a number that is too large",
        "line 7: `max_cost` is -0.5; give dollars",
        "line 8: `max_duration` is 0; give seconds",
        "line 9: `trigger` is 1.5; give tokens such as 50_000 or \"50k\", or a share",
        "line 11: `strategy` is \"evit\"; give \"auto\", \"disabled\" or",
        "line 12: [[agents]] needs a `name`",
        "line 13: `description` is 3; give a text",
        "line 16: `max_turns` is 0",
        "line 19: two agents are named `a` (the other is on line 14)",
        "line 23: a server has a `command` or a `url`",
        "line 25: models, openai, x, input",
        "line 27: models, opnai: there is no such provider; did you mean `openai`?",
        "line 30: [providers.mine] needs a `base_url`",
        "line 31: `api_key_env` is not the name of an environment variable",
    ];
    for (at, part) in parts.iter().enumerate() {
        let said = said.get(at).map_or("nothing", String::as_str);
        assert!(said.starts_with(part), "{said}\nis not\n{part}");
    }
    assert_eq!(said.len(), parts.len(), "{said:#?}");
    assert!(!said.iter().any(|said| said.contains("secret")));
}

#[test]
fn contradictions_name_both_sides_and_their_lines() {
    for text in [
        "trigger = 5000\n[compaction]\nkeep_first_turns = 1",
        "context_strategy = \"evict\"\n[context]",
    ] {
        assert_eq!(faults(text).len(), 1, "told once");
    }
    for (text, part) in [
        (
            "system = \"x\"\nsystem_file = \"y\"",
            "line 2: `system` (line 1) and `system_file` (line 2) are two settings",
        ),
        (
            "context_strategy = \"evict\"\n[context]",
            "line 2: `context_strategy` (line 1) and [context] (line 2) are two settings",
        ),
        (
            "trigger = 5000\n[compaction]\nkeep_first_turns = 1",
            "`trigger` (line 1) and [compaction] (line 2)",
        ),
        (
            "[compaction]\ntrigger = 5000\ncompact_at_pct = 0.5",
            "`trigger` (line 2) and `compact_at_pct` (line 3)",
        ),
        (
            "[compaction]\ncompact_at_pct = 0.1\ncompact_budget_threshold_pct = 0.2",
            "line 2: compact_at_pct (0.1) is not above compact_budget_threshold_pct (0.2)",
        ),
        (
            "trigger = 5000\ntarget = 6000",
            "line 1: the target (6000) is above the trigger (5000)",
        ),
        (
            "[context]\nmax_context_tokens = 4000",
            "line 2: every request would be compacted",
        ),
        (
            "context_strategy = \"unlimited\"\ntrigger = 3000",
            "context_strategy \"unlimited\" never compacts",
        ),
        (
            "system = \"x\"\nsystem_file = \"y\"\n",
            "two settings of one thing; keep the one you mean",
        ),
        (
            "max_parallel_tools = 65",
            "line 1: max_parallel_tools is 65; choose 1 to 64",
        ),
        ("context = 3", "line 1: [context] is 3; give a table"),
        (
            "name = \"x\"",
            "line 1: `name` is of one agent; write it in [[agents]]",
        ),
        (
            "share = 1",
            "line 1: there is no `share`; `share` is in [summary]",
        ),
        ("agents = 3", "[[agents]] is 3"),
        ("a = 1\na = 2", "line 2: this is no TOML"),
    ] {
        let said = faults(text);
        assert!(
            said.iter().any(|said| said.contains(part)),
            "{text}\n{said:#?}\nhas no\n{part}"
        );
    }
}

#[test]
fn a_fault_in_a_list_or_a_table_is_placed_where_it_is() {
    for (text, said) in [
        (
            "pins = [\n  \"a\",\n  3,\n]",
            "line 3: an item of `pins` is 3; give a list of texts",
        ),
        (
            "max_calls_per_tool = {\n  read = 1, bash = -1 }",
            "line 2: `bash` in `max_calls_per_tool` is -1; give a table of whole numbers from 0, such as { bash = 3 }",
        ),
        (
            "[models.openai.\"gpt-9\"]\nwindow = \"4oo\"",
            "line 2: models, openai, gpt-9, window: \"4oo\" is no whole number above 0",
        ),
        (
            "[[permissions]]\ntool = \"bash\"",
            "line 1: [[permissions]] needs `then`",
        ),
        (
            "[[hooks]]\non = \"on_error\"\ncommand = \"touch x\"",
            "line 3: `command` is \"touch x\"; give a list of a program and its arguments, such as [\"./guard\", \"--strict\"]",
        ),
    ] {
        assert_eq!(faults(text), [said]);
    }
}

#[test]
fn what_a_run_refuses_is_refused_here() {
    for (text, part) in [
        (
            "tools = [\"raed\"]",
            "line 1: there is no tool `raed`; did you mean `read`?",
        ),
        (
            "mode = \"yes\"",
            "the setting of the flag --mode is `permission_mode`",
        ),
        (
            "max_context = 3",
            "the setting of the flag --max-context is `window`",
        ),
    ] {
        let said = faults(text);
        assert!(said.len() == 1 && said[0].contains(part), "{said:?}");
    }
    // Only the whole configuration has all providers: the user's own file may name some.
    for (text, part) in [
        ("model = \"gpt-4o\"", "line 1: `gpt-4o`"),
        ("model = \"mine/x\"", "line 1: there is no provider `mine`"),
        (
            "[summary]\nmodel = \"mine/x\"",
            "line 2: there is no provider `mine`",
        ),
        (
            "base_url = \"not a url\"\nmodel = \"openai/gpt-4o\"",
            "line 1: ",
        ),
    ] {
        let error = good(text).defaults().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        let mine = good("[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"");
        let is_theirs = text.contains("mine/x");
        assert_eq!(
            good(text).over(mine).unwrap().defaults().is_ok(),
            is_theirs,
            "{text}"
        );
    }
    let flag = Overrides::default().flag("--tools", "tools", "raed");
    let error = good("").resolve(None, &flag).unwrap_err().to_string();
    assert!(
        error.starts_with("--tools: there is no tool `raed`; did you mean `read`?"),
        "{error}"
    );
    for rule in [
        "{ tool = \"bash\", arguments = \"comand=rm *\", then = \"deny\" }",
        "{ tool = \"nosuchtool\", then = \"deny\" }",
    ] {
        let agent = good(&format!("permissions = [{rule}]")).defaults().unwrap();
        let error = agent.check_tools().unwrap_err().to_string();
        assert!(error.contains("line 1: "), "{error}");
    }
    let text = "[[agents]]\nname = \"a\"\nsub_agents = [\"b\"]\n[[agents]]\nname = \"b\"\n\
        [[agents.permissions]]\ntool = \"x_y\"\nthen = \"deny\"\n[[mcp]]\nname = \"x\"\ncommand = \"x\"\n";
    let config = good(&format!(
        "permissions = [{{ tool = \"b\", then = \"deny\" }}, {{ tool = \"skill\", then = \"ask\" }}]\n{text}"
    ));
    for name in ["a", "b"] {
        config.agent(name).unwrap().check_tools().unwrap();
    }
}

#[test]
fn faults_of_two_files_name_their_own() {
    let read = |path: &str, text: &str| Config::of(text, Some(path.as_ref())).unwrap();
    let users = read(
        "home.toml",
        "\n\n\ntool_execution = \"parallel\"\ntarget = 6000",
    );
    let own = read("plimsoll.toml", "trigger = 5000\nmax_parallel_tools = 3\n");
    let error = own.over(users).unwrap_err().to_string();
    assert!(
        error.contains("(`trigger` is on line 1, `target` is on home.toml:5:1)"),
        "{error}"
    );
    let users = read(
        "home.toml",
        "\n[[agents]]\nname = \"u\"\npins = [\"x\"]\nmax_parallel_tools = 2",
    );
    let own = read("plimsoll.toml", "tool_execution = { batched = 4 }\n");
    own.over(users).unwrap();
    let broken = Config::of(
        "[[agents]]\nname = \"u\"\nsub_agents = [\"x\"]",
        Some("home.toml".as_ref()),
    );
    let error = broken.unwrap_err().to_string();
    assert!(
        error.starts_with("home.toml:3:1: there is no agent `x`"),
        "{error}"
    );
}

#[test]
fn a_table_can_be_a_flag() {
    let config = Config::parse("").unwrap();
    let set = |text: &str| config.resolve(None, &Overrides::default().set(text).unwrap());
    let agent = set("compaction={ keep_recent_turns = 4 }").unwrap();
    let context = agent.settings().builder.context_config.unwrap();
    assert_eq!(context.compaction.keep_recent_turns, 4);
    for (text, said) in [
        (
            "retry=3",
            "--set retry is 3, but [retry] is a table of settings; set one, as in --set retry.max_attempts=…",
        ),
        (
            "retry={ max_attempts = 0 }",
            "--set retry.max_attempts is 0; give a whole number, 1 or more",
        ),
        (
            "retry={ max_attemps = 1 }",
            "--set retry.max_attemps: there is no `max_attemps` in [retry]; did you mean `max_attempts`?",
        ),
        (
            "hooks=[{ on = \"x\", command = [\"y\"] }]",
            "--set hooks: `on` is \"x\"; give",
        ),
        (
            "permissions=[{ tool = \"bash\" }]",
            "--set permissions: [[permissions]] needs `then`",
        ),
    ] {
        let error = set(text).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn upper_layers_replace_lower_ones_key_by_key() {
    let config = good(
        "max_turns = 10\nmax_tool_calls = 5\npins = [\"all\"]\n[context]\nmax_context_tokens = 50000\n\
         [[agents]]\nname = \"a\"\nmax_turns = 20\npins = [\"own\"]\ncontext_strategy = \"evict\"\n[[agents]]\nname = \"b\"\n",
    );
    let a = config.agent("a").unwrap();
    assert_eq!(a.settings().builder.limits.max_turns, Some(20));
    assert_eq!(a.settings().builder.limits.max_tool_calls, Some(5));
    assert_eq!(a.settings().builder.pins, ["own", "all"]);
    assert!(
        a.settings().builder.context_config.is_none(),
        "its own strategy replaces the context of all"
    );
    assert_eq!(a.warnings(), []);
    let b = config.agent("b").unwrap();
    assert!(b.settings().builder.context_config.is_some());
    let variables = |name: &str| match name {
        "PLIMSOLL_MAX_TURNS" => Some("30".to_owned()),
        "PLIMSOLL_MAX_TOOL_CALLS" => Some("6".to_owned()),
        "PLIMSOLL_SEED" => Some(" ".to_owned()),
        _ => None,
    };
    let over = Overrides::default()
        .flag("--max-turns", "max_turns", "40")
        .flag("--policy", "context_strategy", "sliding-window")
        .environment(&variables);
    let b = config.resolve(Some("b"), &over).unwrap();
    let settings = b.settings();
    assert_eq!(settings.builder.limits.max_turns, Some(40));
    assert_eq!(settings.builder.limits.max_tool_calls, Some(6));
    assert_eq!(settings.builder.sampling.seed, None);
    assert!(settings.builder.context_config.is_none());
    let warned: Vec<&str> = b
        .warnings()
        .iter()
        .map(|fault| fault.text.as_str())
        .collect();
    assert_eq!(warned, ["`--policy` replaces [context] (line 4)"]);
    assert_eq!(b.origin("max_turns").unwrap().to_string(), "--max-turns");
    assert_eq!(
        b.origin("max_tool_calls").unwrap().to_string(),
        "$PLIMSOLL_MAX_TOOL_CALLS"
    );
    assert_eq!(
        b.origin("context_strategy").unwrap().to_string(),
        "--policy"
    );
    assert!(b.origin("seed").is_none());
    let wrong = Overrides::default()
        .flag("--max-turns", "max_turns", "many")
        .set("max_trns=3")
        .unwrap()
        .set("compaction.keep_recent_turns = 0")
        .unwrap();
    let error = config.resolve(Some("c"), &wrong).unwrap_err().to_string();
    for part in [
        "--max-turns is \"many\"; give a whole number, 1 or more",
        "--set max_trns: there is no `max_trns`; did you mean `max_turns`?",
        "--set compaction.keep_recent_turns is 0",
        "there is no agent `c`; there is: a, b",
    ] {
        assert!(error.contains(part), "no {part} in {error}");
    }
}

#[test]
fn a_flag_takes_a_list_as_a_file_does() {
    let config = Config::parse("").unwrap();
    let over = Overrides::default()
        .set("permissions=[{ tool = \"bash\", arguments = \"git *\", then = \"allow\" }]")
        .unwrap()
        .set("tools=[\"read\", \"grep\"]")
        .unwrap();
    let agent = config.resolve(None, &over).unwrap();
    let settings = agent.settings();
    assert_eq!(settings.permissions.len(), 1, "{:?}", settings.permissions);
    let shown = format!("{:?}", settings.tools);
    assert!(
        shown.contains("\"read\"") && shown.contains("\"grep\""),
        "{shown}"
    );
    let wrong = Overrides::default()
        .set("permissions=[{ tool = \"bash\", them = \"allow\" }]")
        .unwrap()
        .set("foo.bar=1")
        .unwrap()
        .set("providers.openai.base_url=http://x/v1")
        .unwrap();
    let error = config.resolve(None, &wrong).unwrap_err().to_string();
    for part in [
        "there is no `them` in [[permissions]]; did you mean `then`?",
        "--set foo.bar: there is no table [foo]; `plimsoll config show` lists",
        "[providers] can only be set in a file",
    ] {
        assert!(error.contains(part), "no {part} in {error}");
    }
    for (text, near) in [("[provider.x]", "providers"), ("[session.x]", "sessions")] {
        let error = Config::parse(text).unwrap_err().to_string();
        assert!(
            error.contains(&format!("did you mean `{near}`?")),
            "{error}"
        );
    }
}

#[test]
fn keys_are_never_said() {
    let secret = "sk-0123456789-hush";
    let config = good(&format!(
        "[[agents]]\nname = \"a\"\nmodel = \"openai/gpt-9\"\n[providers.openai]\napi_key = \"{secret}\"\nheaders = {{ x = \"{secret}\" }}\n\
         [[mcp]]\nname = \"m\"\ncommand = \"c\"\nenv = {{ TOKEN = \"{secret}\" }}\n"
    ));
    assert!(!format!("{config:?}").contains("hush"));
    let warned: Vec<String> = config
        .warnings()
        .iter()
        .map(|fault| fault.text.clone())
        .collect();
    assert_eq!(warned.len(), 1);
    assert!(
        warned[0].contains("name the variable with `api_key_env`") && !warned[0].contains("hush")
    );
    let agent = config.agent("a").unwrap();
    assert!(!format!("{agent:?}").contains("hush"));
    let (model, chat) = agent.chat("openai/gpt-9", &|_| None).unwrap();
    assert_eq!(model.to_string(), "openai/gpt-9");
    assert!(!format!("{chat:?}").contains("hush"));
    assert!(
        chat.build_with(&|_| None).is_ok(),
        "the key of the file is enough"
    );
    for text in [
        format!("[providers.openai]\napi_key = [\"{secret}\"]"),
        format!("[providers.openai]\napi_kee = \"{secret}\""),
        format!("[providers.openai]\napi_key = \"{secret}"),
        format!("[[mcp]]\nname = \"m\"\ncommand = \"c\"\nenv = \"{secret}\""),
    ] {
        let error = Config::parse(&text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hush"), "{error}");
    }
}

#[test]
fn a_provider_of_your_own_has_a_name() {
    let config = good(
        "model = \"mine/llama\"\n[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_env = \"MY_KEY\"\n",
    );
    let agent = config.defaults().unwrap();
    let (model, _) = agent.chat("mine/llama", &|_| Some("k".to_owned())).unwrap();
    assert_eq!(model.to_string(), "openai-compatible/llama");
    let error = agent.chat("mine/llama", &|_| None).unwrap_err().to_string();
    assert!(error.contains("$MY_KEY, which is not set"), "{error}");
}

#[test]
fn every_name_is_of_one_key_and_every_default_is_true() {
    let mut names = BTreeMap::new();
    for key in keys() {
        assert!(names.insert(key.path(), ()).is_none(), "{}", key.path());
        assert!(
            key.doc.ends_with('.') && !key.doc.contains('\n'),
            "{}",
            key.path()
        );
        let Preset::Value(text) = &key.default else {
            continue;
        };
        let value = key.preset().unwrap();
        assert!(
            key.accepts(&value),
            "{}: {text} is not {}",
            key.path(),
            key.takes
        );
        assert_eq!(value.to_string(), *text, "{}", key.path());
        let mut set = settings(&match key.scope {
            Scope::Everywhere => format!("{} = {text}", key.path()),
            Scope::AgentOnly => format!("[[agents]]\nname = \"a\"\n{} = {text}", key.path()),
        });
        set.builder.limits = set.builder.limits.filled();
        let named = set.name.clone();
        // The default, set explicitly or not.
        let default = AgentSettings {
            builder: BuilderSettings {
                session_prune: set
                    .builder
                    .session_prune
                    .map(|_| SessionPruneConfig::default()),
                tool_execution: set.builder.tool_execution,
                max_parallel_tools: set.builder.max_parallel_tools,
                context_strategy: set.builder.context_strategy,
                context_config: set.builder.context_config.map(|_| ContextConfig::default()),
                limits: BuilderSettings::default().limits.filled(),
                ..AgentSettings::default().builder
            },
            name: named,
            ..AgentSettings::default()
        };
        assert_eq!(set, default, "{}", key.path());
    }
}

#[test]
fn tokens_may_end_in_k_or_m() {
    for (text, tokens) in [
        ("8000", Some(8_000)),
        ("8_000", Some(8_000)),
        (" 100k ", Some(100_000)),
        ("1_0K", Some(10_000)),
        ("2M", Some(2_000_000)),
        ("0", Some(0)),
        ("-5", None),
        ("+5", None),
        ("1.5k", None),
        ("k", None),
        ("_k", None),
        ("", None),
        ("8kk", None),
        ("9223372036854775808", None),
        ("9223372036854775807k", None),
    ] {
        assert_eq!(parse_tokens(text), tokens, "{text}");
    }
    let text =
        "window = \"100k\"\nmax_tokens = \"2k\"\ntrigger = \"50_000\"\nmax_total_tokens = \"1m\"\n";
    let config = Config::parse(text).unwrap();
    let flags = Overrides::default().flag("--max-tokens", "max_tokens", "3k");
    let agent = config.resolve(None, &flags).unwrap();
    let settings = agent.settings();
    assert_eq!(settings.builder.max_tokens, Some(Tokens(3_000)));
    assert_eq!(settings.builder.trigger, Threshold::Sent(Tokens(50_000)));
    assert_eq!(
        settings.builder.limits.max_total_tokens,
        Some(Tokens(1_000_000))
    );
}

#[test]
fn sessions_are_kept_as_long_as_the_file_says() {
    let kept = |text: &str| Config::parse(text).unwrap().defaults().unwrap().retention();
    assert_eq!(kept(""), plimsoll_core::Retention::default());
    let both = kept("[sessions]\nkeep_days = 90\nkeep_bytes = 10_000_000_000");
    assert_eq!(both.max_age.map(|age| age.as_secs()), Some(90 * 86_400));
    assert_eq!(both.max_bytes.map(|bytes| bytes.0), Some(10_000_000_000));
    for wrong in ["0", "-1", "1.5", "\"90d\""] {
        let said = faults(&format!("[sessions]\nkeep_days = {wrong}")).join("\n");
        assert!(said.contains("give a whole number, 1 or more"), "{said}");
    }
    let said = faults("[sessions]\nkeep_day = 3").join("\n");
    assert!(said.contains("did you mean `keep_days`?"), "{said}");
}
