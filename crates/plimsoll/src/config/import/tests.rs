//! Tests the translation of other systems' configurations, and the notes on untranslated settings.

use std::time::Duration;

use plimsoll_agent::{ThinkingLevel, ToolExecutionStrategy};
use plimsoll_context::{Threshold, Tokens};

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
builtin_tools = ["read_file", "webfetch", "todo_write"]
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
        (4, Some(15))
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
    let strategy = |settings: &AgentSettings| {
        let settings = &settings.builder;
        (settings.context_strategy.unwrap().name(), settings.trigger)
    };
    assert_eq!(
        strategy(&researcher),
        ("summarize", Threshold::Sent(Tokens(80_000)))
    );
    assert_eq!(researcher.builder.max_result, Some(Tokens(4_000)));
    assert_eq!(
        researcher.builder.limits.max_duration, None,
        "the deadline is of the whole"
    );
    assert_eq!(researcher.mcp.unwrap(), ["localhost", "npx"]);
    let writer = read(&import, Some("writer"));
    assert_eq!(
        strategy(&writer),
        ("sliding_window", Threshold::Sent(Tokens(100_000)))
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
fn servers_that_differ_in_their_arguments_are_two() {
    let servers = r#"[{ command = "npx", args = ["a b"] }, { command = "npx", args = ["a", "b"] }, { command = "npx", args = ["a", "b"] }]"#;
    let text = HEARTBIT.replace(
        r#"["http://localhost:8001/mcp", { command = "npx", args = ["-y", "files"], env = { API_TOKEN = "hush", PORT = "9" } }]"#,
        servers,
    );
    let researcher = read(&import(&text), Some("researcher"));
    assert_eq!(researcher.mcp.unwrap().len(), 2);
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
            read.builder.context_config.unwrap().max_context_tokens,
            Tokens(50_000)
        );
        let compaction = read.builder.context_config.unwrap().compaction;
        assert_eq!(compaction.keep_recent_turns, 4);
        assert_eq!(read.builder.limits.max_turns, Some(20));
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
}

#[test]
fn newer_keys_of_phi_core_win_over_legacy_ones() {
    let settings = settings(
        r#"{"context_config": {
            "max_context_tokens": 100000,
            "compaction": {"keep_first_turns": 1, "keep_recent_turns": 8, "tool_output_max_lines": 40},
            "keep_first": 2, "keep_recent": 10, "tool_output_max_lines": 50}}"#,
    );
    let compaction = &settings.builder.context_config.unwrap().compaction;
    let turns = (compaction.keep_first_turns, compaction.keep_recent_turns);
    assert_eq!(turns, (1, 8));
    assert_eq!(compaction.tool_output_max_lines, 40);
    let import = import("[compaction]\nkeep_recent = 10\nkeep_first_turns = 1\n");
    let compaction = read(&import, None);
    let compaction = compaction.builder.context_config.unwrap().compaction;
    assert_eq!(compaction.keep_recent_turns, 10, "it is alone");
}

/// The form of Heartbit's own templates.
#[test]
fn a_template_of_heartbit_is_recognised() {
    let template = "[meta]\ndescription = \"Reviews\"\nversion = \"1.0\"\ntags = [\"a\"]\n\
        [agent]\nsystem_prompt = \"\"\"\nYou review.\n\"\"\"\nmax_tokens = 4096\nmax_turns = 30\n\
        tool_profile = \"standard\"\ndangerous_tools = true\n";
    let import = import(template);
    assert_eq!(import.system, System::Heartbit);
    let settings = read(&import, None);
    assert_eq!(settings.system.as_deref(), Some("You review.\n"));
    assert_eq!(settings.builder.limits.max_turns, Some(30));
    assert_eq!(settings.builder.max_tokens, Some(Tokens(4_096)));
    let lost = import.settings.iter().filter(|it| it.became.is_empty());
    let lost: Vec<&str> = lost.map(|it| it.name.as_str()).collect();
    let reported = [
        "meta.description",
        "meta.version",
        "meta.tags",
        "agent.tool_profile",
        "agent.dangerous_tools",
    ];
    assert_eq!(lost, reported);
}

#[test]
fn the_smallest_files_are_recognised() {
    let text = "[provider]\nmodel = \"claude-sonnet-4-5\"\napi_key = \"${ANTHROPIC_API_KEY}\"\n";
    assert_eq!(import(text).system, System::PhiCore);
    // Heartbit names the provider.
    let named = text.replace("[provider]\n", "[provider]\nname = \"anthropic\"\n");
    assert_eq!(import(&named).system, System::Heartbit);
}

#[test]
fn heartbits_pruning_runs_before_each_request() {
    let text = "[[agents]]\nname = \"a\"\n[agents.session_prune]\nkeep_recent_n = 2\n\
         pruned_tool_result_max_bytes = 200\n";
    let import = Import::of(text, Some(System::Heartbit)).unwrap();
    assert!(
        import.toml.contains("session_prune.eager = true"),
        "{}",
        import.toml
    );
    read(&import, Some("a"));
}

#[test]
fn a_wrong_form_of_rules_is_reported() {
    let import = import(
        "[[agents]]\nname = \"a\"\n[permissions]\n[[permissions.rules]]\ntool = \"bash\"\n\
         action = \"deny\"\n",
    );
    assert!(note(&import, "permissions").contains("give a list of rules"));
    assert!(!import.toml.contains("permissions = []"), "{}", import.toml);
}

#[test]
fn program_code_is_not_read() {
    for code in [
        "let config = AgentLoopConfig {\n    max_turns: Some(3),\n};",
        "const agent = createSmartAgent({ limits: { maxToolCalls: 5 } });",
        "AgentConfig config;\nconfig.maxSteps = 30;\n",
    ] {
        let error = Import::of(code, None).unwrap_err().to_string();
        assert!(
            error.contains("not TOML, YAML or JSON") || error.contains("not recognised"),
            "{error}"
        );
    }
}

#[test]
fn a_value_that_is_not_good_is_left_out_and_not_repeated() {
    for turns in ["\"sk-hush\"", "0", "-1e400", "[1]"] {
        let text = format!("{{\"execution\": {{\"max_turns\": {turns}, \"max_cost\": 1.0}}}}");
        let import = import(&text);
        assert!(!import.toml.contains("max_turns = "), "{}", import.toml);
        assert!(!format!("{import:?}").contains("sk-hush"));
        let note = note(&import, "execution.max_turns");
        assert!(note.contains("give a whole number, 1 or more"), "{note}");
    }
    let agent = "[[agents]]\nname = \"a\"\nprovider = { name = \"openai\", model = \"gpt-5\" }\n";
    let error = Import::of(&agent.repeat(2), None).unwrap_err().to_string();
    assert!(
        error.contains("it cannot become a plimsoll.toml: "),
        "{error}"
    );
}

#[test]
fn what_cannot_be_imported_gets_one_sentence() {
    let deep_json = format!("{}1{}", "{\"limits\":".repeat(5_000), "}".repeat(5_000));
    let deep_yaml = "- ".repeat(5_000) + "x";
    for (text, part) in [
        (" \n", "line 1: it is empty; give a configuration file"),
        ("\0\x01\u{fffd}ELF", "line 1: it is not text"),
        (
            "max_turns = 3\n",
            "it is already a plimsoll.toml and needs no import",
        ),
        (
            "colour = \"red\"\n",
            "its system is not recognised (phi-core, Heartbit)",
        ),
        ("once upon a time\n", "it is not TOML, YAML or JSON"),
        ("{\"a\": ", "it is not TOML, YAML or JSON"),
        (deep_json.as_str(), "it is not TOML, YAML or JSON"),
        (deep_yaml.as_str(), "it is not TOML, YAML or JSON"),
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
    assert!(read("a.toml", b"[provider]\nname = ").starts_with("a.toml:2:8: this is no TOML"));
    let error = read("a.yaml", b"a: [1\nb: }");
    assert!(error.starts_with("a.yaml:2:") && error.contains(": this is no YAML"));
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
        let is_alone = !(OF_MODELS.contains(&row.how) || row.how == "size");
        assert!(
            became || row.ours.is_empty() || !is_alone,
            "{system} {path}"
        );
    }
}

#[test]
fn every_row_names_a_setting_of_ours() {
    assert!(ROWS.len() > 130);
    for ((system, path), row) in &*ROWS {
        let implied = row.implies.map(|(name, _)| name);
        let other = ["key", "price", "-"].contains(&row.how);
        for name in [row.ours].into_iter().chain(implied).filter(|_| !other) {
            assert!(
                crate::config::key(name).is_some(),
                "{system}: {path} is `{name}`"
            );
        }
        assert!(!row.why.is_empty() || row.how != "-", "{system}: {path}");
    }
}
