//! Tests the translation of other systems' configurations, and the notes on untranslated settings.

use std::time::Duration;

use plimsoll_agent::{AtLimit, ThinkingLevel, ToolExecutionStrategy};
use plimsoll_context::{CompactionScope, ContextStrategy, Threshold, Tokens};

use super::rows::ModelField;
use super::*;
use crate::config::{AgentSettings, Overrides};

const HEARTBIT: &str = r#"
[provider]
name = "anthropic"
model = "claude-sonnet-4-5"
api_key = "sk-0123456789-hush"

[provider.retry]
max_retries = 3
base_delay_ms = 500
max_delay_ms = 30000

[orchestrator]
max_turns = 15
run_timeout_seconds = 900
reasoning_effort = "none"
enable_squads = true

[[agents]]
name = "researcher"
description = "Looks things up."
system_prompt = """
You look things up.
Say "I do not know" if you do not."""
mcp_servers = ["http://localhost:8001/mcp", { command = "npx", args = ["-y", "files"], env = { API_TOKEN = "hush", PORT = "9" } }]
summarize_threshold = 80000
max_tool_output_bytes = 16000

[[agents]]
name = "writer"
description = "Writes."
context_strategy = { type = "sliding_window", max_tokens = 100000 }
builtin_tools = ["read_file", "webfetch"]
provider = { name = "openai", model = "gpt-5-mini" }

[[permissions]]
tool = "bash"
pattern = "git *"
action = "allow"

[guardrails]
pii = { action = "redact" }
"#;

fn import(text: &str) -> Import {
    Import::of(text, None).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Parses the result, which must not cause warnings.
fn read(import: &Import, agent: Option<&str>) -> AgentSettings {
    let config =
        Config::parse(&import.toml).unwrap_or_else(|error| panic!("{}\n{error}", import.toml));
    assert_eq!(config.warnings(), [], "{}", import.toml);
    let agent = config.resolve(agent, &Overrides::default()).unwrap();
    agent.settings().clone()
}

fn settings(text: &str) -> AgentSettings {
    read(&import(text), None)
}

fn note(import: &Import, name: &str) -> String {
    let found = import.settings.iter().find(|setting| setting.name == name);
    let found = found.unwrap_or_else(|| panic!("{name} is not in {:#?}", import.settings));
    found.note.clone().unwrap_or_default()
}

#[test]
fn an_ordinary_file_of_heartbit_is_understood() {
    let import = import(HEARTBIT);
    assert_eq!(import.system, System::Heartbit);
    assert!(!import.toml.contains("hush"), "{}", import.toml);
    let all = read(&import, None);
    assert_eq!(all.model.as_deref(), Some("anthropic/claude-sonnet-4-5"));
    assert_eq!(
        (
            all.builder.driver.retry.max_attempts,
            all.builder.limits.max_turns
        ),
        (4, 15)
    );
    assert_eq!(all.builder.driver.retry.initial, Duration::from_millis(500));
    assert_eq!(all.builder.sampling.thinking, Some(ThinkingLevel::Off));
    assert_eq!(all.permissions.len(), 1);
    assert_eq!(all.builder.pass_env, ["API_TOKEN"]);
    let main = read(&import, Some("orchestrator"));
    assert_eq!(main.sub_agents, ["researcher", "writer"]);
    assert_eq!(
        main.builder.limits.max_duration,
        Some(Duration::from_secs(900))
    );
    assert_eq!(main.mcp.as_deref(), Some(&[][..]));
    let researcher = read(&import, Some("researcher"));
    let system = researcher.system.as_deref();
    assert_eq!(
        system,
        Some("You look things up.\nSay \"I do not know\" if you do not.")
    );
    let max_tokens = Some(Tokens(80_000));
    assert_eq!(
        researcher.context_strategy(),
        ContextStrategy::Summarize { max_tokens }
    );
    assert_eq!(researcher.builder.max_result, Some(Tokens(4_000)));
    assert_eq!(
        researcher.builder.limits.max_duration, None,
        "the deadline is of the whole"
    );
    assert_eq!(researcher.mcp.unwrap(), ["localhost", "npx"]);
    let writer = read(&import, Some("writer"));
    let max_tokens = Some(Tokens(100_000));
    assert_eq!(
        writer.context_strategy(),
        ContextStrategy::SlidingWindow { max_tokens }
    );
    assert_eq!(writer.tools, ["read"]);
    assert_eq!(writer.model.as_deref(), Some("openai/gpt-5-mini"));
    assert!(note(&import, "provider.api_key").contains("put it into $ANTHROPIC_API_KEY"));
    assert!(note(&import, "agents.builtin_tools").contains("webfetch"));
    let lost = import
        .settings
        .iter()
        .filter(|setting| setting.became.is_empty());
    let lost: Vec<(usize, &str)> = lost.map(|it| (it.line, it.name.as_str())).collect();
    assert_eq!(
        lost,
        [(16, "orchestrator.enable_squads"), (40, "guardrails")]
    );
    assert!(
        import.toml.contains("# line 40: guardrails: "),
        "{}",
        import.toml
    );
    assert!(
        import
            .toml
            .contains("max_turns = 15 # line 13: orchestrator.max_turns")
    );
}

#[test]
fn every_form_of_phi_core_means_the_same() {
    let toml = "[provider]\nmodel = \"gpt-4o\"\napi = \"openai\"\napi_key = \"${MY_KEY}\"\n\
        [provider.cost]\ninput_per_million = 2.5\noutput_per_million = 10\n\
        [agent.profile]\nname = \"coder\"\nthinking_level = \"High\"\n\
        [compaction]\nmax_context_tokens = 50000\nkeep_recent_turns = 4\n\
        [execution]\nmax_turns = 20\nmax_cost = 0.5\n\
        [execution.retry]\nmax_retries = 0\ninitial_delay_ms = 250\nbackoff_multiplier = 2.0\n\
        [tools]\ntool_strategy = \"batched\"\nbatch_size = 3\n";
    let yaml = "provider:\n  model: gpt-4o\n  api: openai\n  api_key: ${MY_KEY}\n  cost:\n    input_per_million: 2.5\n    \
        output_per_million: 10\nagent:\n  profile: {name: coder, thinking_level: High}\n\
        compaction:\n  max_context_tokens: 50000\n  keep_recent_turns: 4\nexecution:\n  max_turns: 20\n  \
        max_cost: 0.5\n  retry:\n    max_retries: 0\n    initial_delay_ms: 250\n    backoff_multiplier: 2.0\n\
        tools:\n  tool_strategy: batched\n  batch_size: 3\n";
    let json = r#"{"provider": {"model": "gpt-4o", "api": "openai", "api_key": "${MY_KEY}",
        "cost": {"input_per_million": 2.5, "output_per_million": 10}},
        "agent": {"profile": {"name": "coder", "thinking_level": "High"}},
        "compaction": {"max_context_tokens": 50000, "keep_recent_turns": 4},
        "execution": {"max_turns": 20, "max_cost": 0.5,
            "retry": {"max_retries": 0, "initial_delay_ms": 250, "backoff_multiplier": 2.0}},
        "tools": {"tool_strategy": "batched", "batch_size": 3}}"#;
    let mut said = Vec::new();
    for text in [toml, yaml, json] {
        let import = import(text);
        assert_eq!(import.system, System::PhiCore, "{text}");
        let read = read(&import, Some("coder"));
        assert_eq!(read.model.as_deref(), Some("openai/gpt-4o"));
        assert_eq!(read.builder.sampling.thinking, Some(ThinkingLevel::High));
        assert_eq!(
            read.context_config().unwrap().max_context_tokens,
            Tokens(50_000)
        );
        assert_eq!(read.context.compaction.keep_recent_turns, 4);
        assert_eq!(read.builder.limits.max_turns, 20);
        // Setting one of these limits implies the others in that system.
        assert_eq!(
            read.builder.limits.max_total_tokens,
            Some(Tokens(1_000_000))
        );
        assert_eq!(
            read.builder.limits.max_duration,
            Some(Duration::from_secs(600))
        );
        assert_eq!(
            (
                read.builder.driver.retry.max_attempts,
                read.builder.driver.retry.factor
            ),
            (1, 2)
        );
        assert_eq!(
            read.builder.tool_execution,
            Some(ToolExecutionStrategy::Batched(3))
        );
        assert!(
            import
                .toml
                .contains("[providers.openai]\napi_key_env = \"MY_KEY\"")
        );
        assert!(
            import.toml.contains("[models.openai.gpt-4o]\ninput = 2.5"),
            "{}",
            import.toml
        );
        said.push(read);
    }
    assert_eq!((&said[0], &said[0]), (&said[1], &said[2]));
    let code = "let config = AgentLoopConfig {\n    model_config: ModelConfig::new(\"openai\"),\n    temperature: Some(0.2), max_tokens: None,\n    \
        thinking_level: ThinkingLevel::Low,\n    tool_execution: ToolExecutionStrategy::Batched { size: 4 },\n    \
        context_config: Some(ContextConfig {\n        max_context_tokens: 100_000,\n        keep_recent: 8,\n        \
        compaction: CompactionConfig { compaction_scope: CompactionScope::FixedCount(5), ..Default::default() },\n    }),\n    \
        execution_limits: Some(ExecutionLimits { max_duration: Duration::from_secs(60), max_cost: None, ..Default::default() }),\n    \
        cache_config: CacheConfig { enabled: true, strategy: CacheStrategy::Manual { cache_system: true, cache_tools: false, cache_messages: true } },\n    \
        ..base\n};";
    let read = settings(code);
    assert_eq!(
        (read.builder.sampling.temperature, read.builder.max_tokens),
        (Some(0.2), None)
    );
    assert_eq!(read.builder.sampling.thinking, Some(ThinkingLevel::Low));
    assert_eq!(
        read.builder.tool_execution,
        Some(ToolExecutionStrategy::Batched(4))
    );
    assert_eq!(read.context.compaction.keep_recent_turns, 8);
    assert_eq!(
        read.context.compaction.compaction_scope,
        CompactionScope::FixedCount(5)
    );
    assert_eq!(
        read.builder.limits.max_duration,
        Some(Duration::from_secs(60))
    );
    assert_eq!(read.builder.limits.max_cost, None);
}

#[test]
fn cognipeers_trigger_is_for_summaries() {
    let text = "const agent = createSmartAgent({\n  name: 'Helper', // shown to users\n  model: fromLangchain(new ChatOpenAI({ apiKey: 'sk-hush' })),\n  \
        limits: { maxToolCalls: 5, maxParallelTools: 2, maxToken: 30_000, contextTokenLimit: 20_000, summaryTokenLimit: 1000, },\n  tools: [search],\n});";
    let on = import(text);
    assert_eq!(on.system, System::Cognipeer);
    assert!(!on.toml.contains("hush"));
    let read_on = read(&on, Some("Helper"));
    let max_tokens = Some(Tokens(30_000));
    assert_eq!(
        read_on.context_strategy(),
        ContextStrategy::Summarize { max_tokens }
    );
    assert_eq!(
        read_on.builder.target,
        Some(Threshold::Sent(Tokens(20_000)))
    );
    assert_eq!(read_on.builder.summary.max_summary_tokens, Tokens(1_000));
    assert_eq!(read_on.builder.limits.max_tool_calls, Some(5));
    assert_eq!(read_on.builder.max_parallel_tools, Some(2));
    let lost: Vec<&str> = on
        .settings
        .iter()
        .filter(|it| it.became.is_empty())
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(lost, ["model", "tools"], "{:#?}", on.settings);

    let off = import(&text.replace("limits:", "summarization: false, limits:"));
    let read_off = read(&off, Some("Helper"));
    assert!(!read_off.builder.summarization);
    assert_eq!((read_off.trigger, read_off.builder.target), (None, None));
    assert!(note(&off, "limits.maxToken").contains("as `summarization` is false"));
    let newer = settings(
        "summarization: { enable: true, summaryTriggerTokens: 9000 }, limits: { maxToolCalls: 3 }",
    );
    assert_eq!(newer.trigger, Some(Threshold::Sent(Tokens(9_000))));
}

#[test]
fn ambi_and_gaia_are_read_from_their_code() {
    let ambi = "let engine = LLMEngineConfig::OpenAI(OpenAIEngineConfig {\n    api_key: std::env::var(\"MY_KEY\")?,\n    \
        base_url: \"http://127.0.0.1:9000/v1\".to_string(),\n    model_name: \"qwen\".into(),\n    temp: 0.7,\n    top_p: 0.9,\n});\n\
        let agent = Agent::make(engine).await?\n    .preamble(\"You keep the log.\")\n    .max_iterations(10)\n    \
        .with_eviction_strategy(EvictionStrategy { max_safe_tokens: 4096 })\n    .on_evict(|state, evicted| store(evicted));";
    let import = import(ambi);
    assert_eq!(import.system, System::Ambi);
    let read = read(&import, None);
    let max_tokens = Some(Tokens(4_096));
    assert_eq!(
        read.context_strategy(),
        ContextStrategy::SlidingWindow { max_tokens }
    );
    assert_eq!(
        (read.builder.limits.max_turns, read.builder.limits.at_limit),
        (10, AtLimit::Rollback)
    );
    assert_eq!(read.system.as_deref(), Some("You keep the log."));
    assert_eq!(read.model.as_deref(), Some("openai-compatible/qwen"));
    assert!(
        import.toml.contains("[providers.openai-compatible]"),
        "{}",
        import.toml
    );
    assert!(
        import.toml.contains("api_key_env = \"MY_KEY\""),
        "{}",
        import.toml
    );

    let gaia = "AgentConfig config;\nconfig.baseUrl = \"http://localhost:8000/api/v1\";\nconfig.modelId = \"Qwen3-4B-GGUF\";\n\
        config.maxSteps = 30; // enough\nconfig.contextSize = 32'768;\nconfig.maxHistoryMessages = 0;\nconfig.toolCallHistorySize = 4;\n";
    let gaia = Import::of(gaia, None).unwrap();
    assert_eq!(gaia.system, System::Gaia);
    let read = self::read(&gaia, None);
    assert_eq!(read.builder.limits.max_turns, 30);
    assert_eq!(
        read.builder.limits.identical_tool_calls(),
        Some(4),
        "loop detection is on"
    );
    assert_eq!(read.builder.limits.tool_call_history_size, Some(10));
    assert_eq!(read.builder.max_history_messages, None);
    assert!(note(&gaia, "maxHistoryMessages").contains("no limit"));
}

#[test]
fn a_value_that_is_not_good_is_left_out_and_not_repeated() {
    for text in [
        "config.maxSteps = \"sk-hush\";\nconfig.contextSize = 9000;",
        "{\"maxSteps\": 0, \"contextSize\": 9000}",
        "{\"maxSteps\": -1e400, \"contextSize\": 9000}",
        "config.maxSteps = readHush();\nconfig.contextSize = 9000;",
    ] {
        let import = import(text);
        assert!(!import.toml.contains("max_turns"), "{}", import.toml);
        assert!(!format!("{import:?}").contains("sk-hush"));
        let setting = &import.settings[0];
        assert!(
            setting
                .note
                .as_deref()
                .unwrap()
                .contains("give a whole number, 1 or more")
        );
    }
    let error = Import::of(
        "limits: { maxToken: 5000,\n contextTokenLimit: 6000 }",
        None,
    )
    .unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("line 1: it cannot become a plimsoll.toml: the target"),
        "{error}"
    );
    assert!(
        error.contains("`target` is on line 2") || error.contains("line 2"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_imported_gets_one_sentence() {
    let deep_json = format!("{}1{}", "{\"limits\":".repeat(5_000), "}".repeat(5_000));
    let deep_yaml = "- ".repeat(5_000) + "x";
    for (text, part) in [
        (" \n", "line 1: it is empty; give the configuration file"),
        ("\0\x01\u{fffd}ELF", "line 1: it is not text"),
        (
            "max_turns = 3\n",
            "it is already a plimsoll.toml and needs no import",
        ),
        (
            "colour = \"red\"\n",
            "its system is not recognised (Cognipeer, phi-core",
        ),
        ("once upon a time\n", "its system is not recognised"),
        ("{\"a\": ", "its system is not recognised"),
        (deep_json.as_str(), "64 deep"),
        (deep_yaml.as_str(), "its system is not recognised"),
    ] {
        let error = Import::of(text, None).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let error = Import::read(&path, None).unwrap_err().to_string();
        error.replace(&format!("{}/", folder.path().display()), "")
    };
    assert!(read("a.toml", b"[provider]\nname = ").starts_with("a.toml:2: this is no TOML"));
    assert!(read("a.yaml", b"a: [1\nb: }").starts_with("a.yaml:2: this is no YAML"));
    assert!(read("a.bin", &[0xff, 0xfe, 0x80]).contains("a.bin cannot be read: it is not text"));
    assert!(read("a.json", &vec![b' '; 50_000_000]).contains("larger than 4 MiB"));
}

/// Every row produces a text that Plimsoll's parser accepts, whatever the value is.
#[test]
fn every_row_becomes_something_that_is_read() {
    let values = [
        "3",
        "20000",
        "0.5",
        "true",
        "\"low\"",
        "\"parallel\"",
        "\"User\"",
        "\"Auto\"",
        "\"TokenBudget\"",
        "\"sliding_window\"",
        "[\"read\"]",
        "[{ tool = \"x\", action = \"deny\" }]",
    ];
    for ((system, path), row) in &*ROWS {
        let path = match (path.strip_prefix("agents."), system) {
            (Some("name" | "id"), _) => continue,
            (Some(path), System::Heartbit) => format!("[[agents]]\nname = \"a\"\n{path}"),
            (Some(path), _) => format!("[[agent.instances]]\n{path}"),
            (None, _) => (*path).to_owned(),
        };
        let mut became = false;
        for value in values {
            let text = format!("{path} = {value}\n");
            if let Ok(import) = Import::of(&text, Some(*system)) {
                read(&import, None);
                let last = import.settings.last().unwrap();
                if !last.became.is_empty() {
                    became = true;
                    break;
                }
            }
        }
        let is_alone = !matches!(row.how, ValueConversion::Model(_) | ValueConversion::Batch);
        assert!(
            became || row.ours.is_empty() || !is_alone,
            "{system} {path}"
        );
    }
}

#[test]
fn every_row_names_a_setting_of_ours() {
    assert!(ROWS.len() > 180);
    for ((system, path), row) in &*ROWS {
        let implied = row.implies.map(|(name, _)| name);
        let other = matches!(
            row.how,
            ValueConversion::Model(ModelField::Key | ModelField::Price) | ValueConversion::Nothing
        );
        for name in [row.ours].into_iter().chain(implied).filter(|_| !other) {
            assert!(
                crate::config::key(name).is_some(),
                "{system}: {path} is `{name}`"
            );
        }
        assert!(
            !row.why.is_empty() || row.how != ValueConversion::Nothing,
            "{system}: {path}"
        );
    }
}

#[test]
fn names_are_in_snake_case() {
    for (given, snake_case) in [
        ("maxToken", "max_token"),
        ("MaxToken", "max_token"),
        ("max-token", "max_token"),
        ("baseURL", "base_url"),
        ("OpenAIEngineConfig", "open_ai_engine_config"),
        ("max_tokens", "max_tokens"),
    ] {
        assert_eq!(snake(given), snake_case);
    }
}
