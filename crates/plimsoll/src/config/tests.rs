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

pub(super) fn good(text: &str) -> Config {
    Config::parse(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

impl Overrides {
    /// Adds `KEY=VALUE`, as `--set` of a program does.
    pub(super) fn set(self, text: &str) -> Self {
        let (path, value) = text.split_once('=').unwrap();
        self.flag(format!("--set {path}"), path, value)
    }
}

fn settings(text: &str) -> AgentSettings {
    let config = good(text);
    let name = config.agents().next().map(str::to_owned);
    let agent = config.resolve(name.as_deref(), &Overrides::default());
    agent.unwrap().settings().clone()
}

/// Reads, resolves and checks a configuration with flags (`--set KEY=VALUE`) and variables before it.
/// Returns its warnings and faults, one a line.
fn report(case: &str) -> String {
    let (mut over, mut variables, mut text) =
        (Overrides::default(), BTreeMap::new(), String::new());
    for line in case.lines() {
        if let Some(set) = line.strip_prefix("--set ") {
            over = over.set(set);
        } else if let Some((name, value)) = line
            .split_once('=')
            .filter(|(name, _)| name.starts_with("PLIMSOLL_"))
        {
            variables.insert(name, value.to_owned());
        } else {
            text.push_str(&format!("{line}\n"));
        }
    }
    let lookup = |name: &str| variables.get(name).cloned();
    let over = over.environment(&lookup);
    let mut warnings = Vec::new();
    let checked = Config::parse(&text).and_then(|config| {
        let mut agents = vec![None];
        agents.extend(config.agents().map(Some));
        for name in agents {
            let agent = config.resolve(name, &over)?;
            warnings.extend(agent.warnings().to_vec());
            agent.check_run()?;
        }
        Ok(())
    });
    let faults = checked.err().map_or(Vec::new(), |error| error.faults);
    let mut lines = Vec::from_iter(warnings.iter().map(|fault| format!("warning: {fault}")));
    lines.extend(faults.iter().map(ToString::to_string));
    lines.join("\n")
}

/// Compares the reports of a file's cases, each a title and a text. With `PLIMSOLL_BLESS=1`, writes them.
pub(super) fn with_cases(file: &str, report: impl Fn(&str) -> String) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/config/cases/").to_owned() + file;
    let text = std::fs::read_to_string(&path).unwrap();
    let mut cases = text.split("\n=== ");
    let mut fresh = cases.next().unwrap().trim_end().to_owned();
    for case in cases {
        let (title, rest) = case.split_once('\n').unwrap();
        let given = rest.split("\n---\n").next().unwrap().trim_end();
        let report = report(given);
        fresh.push_str(&format!(
            "\n\n=== {title}\n{given}\n---\n{}",
            report.trim_end()
        ));
    }
    fresh.push('\n');
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        return std::fs::write(path, fresh).unwrap();
    }
    assert_eq!(text, fresh, "PLIMSOLL_BLESS=1 brings {file} up to date");
}

/// Each case of `cases/faults.txt` is a title, a configuration and its report.
#[test]
fn faults_are_reported_with_their_places_and_cures() {
    with_cases("faults.txt", |text| {
        let report = report(text);
        assert!(!report.contains("sk-secret"), "{report}");
        report
    });
}

#[test]
fn a_check_reports_faults_of_all_kinds_at_once() {
    let text = "tool_execution = { batched = 0 }\nbase_url = \"not a url\"\nmax_trns = 3\n\
                system_file = \"no/prompt.md\"\nmodel = \"gpt-4o\"\n\
                [models.openai.x]\ninput = -1\noutput = 2\n[[mcp]]\nname = \"m\"\n\
                [[agents]]\nname = \"a\"\nmcp = [\"m\", \"n\"]\nmodel = \"mine/x\"\n\
                [providers.mine]\nbase_url = 3\n";
    let error = Config::of(text, None).check_runs().unwrap_err();
    let lines = error.faults.iter();
    let lines = lines.map(|fault| fault.origin.place().unwrap().line);
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 7, 9, 13, 16],
        "{error}"
    );
}

#[test]
fn a_check_tells_what_the_model_does_not_have() {
    let text = "model = \"groq/llama-3.3-70b\"\ncache.retention = \"long\"\n";
    let agents = Config::of(text, None).check_runs().unwrap();
    let warnings: Vec<String> = agents[0]
        .warnings()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        warnings.len() == 1 && warnings[0].contains("has no such thing"),
        "{warnings:?}"
    );
}

#[test]
fn a_check_names_what_is_left_out_and_each_fault_once() {
    let text = "model = \"compatible/x\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
                [[agents]]\nname = \"a\"\nmodel = \"openai/gpt-4o\"\n";
    let agents = Config::of(text, None).check_runs().unwrap();
    let warnings = agents[0].warnings().iter().map(ToString::to_string);
    let warnings: Vec<String> = warnings.collect();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].starts_with("line 2: `base_url` is left out"),
        "{warnings:?}"
    );
    let text = "permissions = [{ tool = \"nosuch\", then = \"deny\" }]\n\
                [[agents]]\nname = \"a\"\npermissions = [{ tool = \"read\", then = \"deny\" }]\n\
                [[agents]]\nname = \"b\"\n";
    let error = Config::of(text, None).check_runs().unwrap_err();
    assert_eq!(error.faults.len(), 1, "{error}");
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
         argument_digest = { over_chars = 900 }\n\
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
fn faults_of_two_files_name_their_own() {
    let read = |path: &str, text: &str| {
        let config = Config::of(text, Some(path.as_ref()));
        config.checked().unwrap()
    };
    let users = read(
        "home.toml",
        "\n\n\ntool_execution = \"parallel\"\ntarget = 6000",
    );
    let own = read("plimsoll.toml", "trigger = 5000\nmax_parallel_tools = 3\n");
    let error = own.over(users).checked().unwrap_err().to_string();
    assert!(
        error.contains("(`trigger`: line 1, `target`: home.toml:5:1)"),
        "{error}"
    );
    let users = read(
        "home.toml",
        "\n[[agents]]\nname = \"u\"\npins = [\"x\"]\nmax_parallel_tools = 2",
    );
    let own = read("plimsoll.toml", "tool_execution = { batched = 4 }\n");
    own.over(users).checked().unwrap();
    // Only the whole configuration has all providers: the user's own file may name some.
    let users = read(
        "home.toml",
        "[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"",
    );
    let own = read(
        "plimsoll.toml",
        "model = \"mine/x\"\n[summary]\nmodel = \"mine/y\"",
    );
    assert_eq!(own.defaults().unwrap_err().faults.len(), 2);
    own.over(users).defaults().unwrap();
    let broken = Config::of(
        "[[agents]]\nname = \"u\"\nsub_agents = [\"x\"]",
        Some("home.toml".as_ref()),
    );
    let error = broken.checked().unwrap_err().to_string();
    assert!(
        error.starts_with("home.toml:3:1: there is no agent `x`"),
        "{error}"
    );
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
    let error = config
        .resolve(Some("c"), &Overrides::default())
        .unwrap_err();
    assert_eq!(error.to_string(), "there is no agent `c`; there is: a, b");
}

#[test]
fn a_flag_takes_a_list_as_a_file_does() {
    let config = Config::parse("").unwrap();
    let over = Overrides::default()
        .set("permissions=[{ tool = \"bash\", arguments = \"git *\", then = \"allow\" }]")
        .set("tools=[\"read\", \"grep\"]");
    let agent = config.resolve(None, &over).unwrap();
    let settings = agent.settings();
    assert_eq!(settings.permissions.len(), 1, "{:?}", settings.permissions);
    let shown = format!("{:?}", settings.tools);
    assert!(
        shown.contains("\"read\"") && shown.contains("\"grep\""),
        "{shown}"
    );
    let over = Overrides::default().set("compaction={ keep_recent_turns = 4 }");
    let agent = config.resolve(None, &over).unwrap();
    let context = agent.settings().builder.context_config.unwrap();
    assert_eq!(context.compaction.keep_recent_turns, 4);
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
        let Some(value) = &key.value else {
            continue;
        };
        let text = key.default();
        assert!(
            key.convert(value).is_some(),
            "{}: {text} is not {}",
            key.path(),
            key.takes()
        );
        let mut set = settings(&match key.is_of_one_agent {
            false => format!("{} = {text}", key.path()),
            true => format!("[[agents]]\nname = \"a\"\n{} = {text}", key.path()),
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
    let kept = |text: &str| settings(text).retention;
    assert_eq!(kept(""), plimsoll_core::Retention::default());
    let both = kept("[sessions]\nkeep_days = 90\nkeep_bytes = 10_000_000_000");
    assert_eq!(both.max_age.map(|age| age.as_secs()), Some(90 * 86_400));
    assert_eq!(both.max_bytes.map(|bytes| bytes.0), Some(10_000_000_000));
}
