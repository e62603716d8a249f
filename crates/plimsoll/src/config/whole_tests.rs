//! Tests that the documentation, the template, the schema and the builder agree with the table of
//! settings.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::key::fields;
use super::*;

/// The tables whose fields the documentation lists, in this order.
const TABLES: [&str; 4] = [
    "[[permissions]]",
    "[[hooks]]",
    "[[mcp]]",
    "[providers.NAME]",
];

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");

/// To bring the docs up to date: `PLIMSOLL_BLESS=1 cargo test -p plimsoll --features config docs`.
#[test]
fn the_docs_have_every_key() {
    let text = std::fs::read_to_string(DOCS).unwrap();
    let (before, rest) = text.split_once("<!-- keys -->\n").unwrap();
    let (table, after) = rest.split_once("<!-- /keys -->").unwrap();
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        let fresh = format!("{before}<!-- keys -->\n{}<!-- /keys -->{after}", markdown());
        std::fs::write(DOCS, fresh).unwrap();
        return;
    }
    assert_eq!(
        table,
        markdown(),
        "docs/configuration.md is stale: PLIMSOLL_BLESS=1 cargo test -p plimsoll --features config docs"
    );
}

#[test]
fn the_template_sets_nothing_and_is_good_without_its_comment_marks() {
    let config = Config::parse(TEMPLATE).unwrap();
    assert_eq!(
        config.defaults().unwrap().settings(),
        &AgentSettings::default()
    );
    let set = TEMPLATE.lines().filter_map(|line| line.strip_prefix("# "));
    let set = set.filter(|line| line.contains(" = ") || line.starts_with('['));
    let set: Vec<&str> = set.collect();
    let config = Config::parse(&set.join("\n")).unwrap();
    assert_eq!(config.agents().next(), Some("reviewer"));
    assert_eq!(config.warnings(), []);
}

#[test]
fn what_is_shown_says_again_what_was_said() {
    let text = "max_turns = 7\npins = [\"Say \\\"aye\\\".\"]\ntrigger = 0.7\nmax_duration = \"90s\"\nmax_cost = 0.5\n\
        tool_execution = { batched = 4 }\nwindow = \"unknown\"\n\
        permissions = [{ tool = \"bash\", arguments = \"git *\", then = \"allow\" }]\n\
        hooks = [{ on = \"on_error\", command = [\"sh\", \"-c\", \"cat\"], timeout = 2.0 }]\n\
        [cache]\nstrategy = { manual = { cache_tools = true } }\n[summary]\nauthor = \"extract\"\n";
    let agent = Config::parse(text).unwrap().defaults().unwrap();
    let shown: String = agent
        .effective()
        .map(|one| format!("{}\n", one.line()))
        .collect();
    let again = Config::parse(&shown).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.defaults().unwrap().settings(), agent.settings());
    let json: Vec<Json> = agent.effective().map(|one| one.json()).collect();
    let of = |key: &str| json.iter().find(|one| one["key"] == key).unwrap();
    assert_eq!(of("max_turns")["value"], 7);
    assert_eq!(of("max_turns")["origin"]["line"], 1);
    assert_eq!(of("retry.max_attempts")["value"], 10);
    assert_eq!(of("retry.max_attempts")["origin"], "default");
    assert_eq!(of("seed")["default"], "none");
}

/// Checks a value against a schema as an editor does, as far as Plimsoll's schema needs it.
fn fits(schema: &Json, value: &Json) -> bool {
    if let Some(values) = schema["enum"].as_array() {
        return values.contains(value);
    }
    let types: Vec<&str> = match &schema["type"] {
        Json::Null => return true,
        Json::Array(types) => types.iter().filter_map(Json::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    types.iter().any(|kind| match *kind {
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "number" => value.is_number(),
        "array" => {
            let items = value.as_array();
            items.is_some_and(|items| items.iter().all(|item| fits(&schema["items"], item)))
        }
        "object" => value.as_object().is_some_and(|object| {
            let required = schema["required"].as_array().into_iter().flatten();
            let mut required = required.filter_map(Json::as_str);
            let is_known = |(name, value): (&String, &Json)| match &schema["properties"][name] {
                Json::Null => match &schema["additionalProperties"] {
                    Json::Bool(more) => *more,
                    other => fits(other, value),
                },
                known => fits(known, value),
            };
            required.all(|name| object.contains_key(name)) && object.iter().all(is_known)
        }),
        _ => false,
    })
}

#[test]
fn the_schema_takes_what_reading_takes() {
    let schema = schema();
    for (text, good) in [
        ("", true),
        ("max_turns = 3", true),
        ("max_turns = \"x\"", false),
        ("max_trns = 3", false),
        ("max_steps = 3", false),
        ("max_duration = \"10m\"", true),
        ("max_total_tokens = \"none\"", true),
        ("window = \"unknown\"", true),
        ("context_strategy = \"evict\"", true),
        ("context_strategy = { type = \"summarize\" }", false),
        ("argument_digest = true", true),
        ("argument_digest = { over_chars = 900 }", true),
        ("cache = { strategy = \"auto\" }", true),
        (
            "cache = { strategy = { manual = { cache_tools = true } } }",
            true,
        ),
        ("tools = \"all\"\npins = [\"x\"]", true),
        (
            "[[agents]]\nname = \"x\"\nsub_agents = [\"y\"]\n[agents.compaction]\nkeep_recent_turns = 3\n[[agents]]\nname = \"y\"",
            true,
        ),
        ("[[agents]]\nmax_turns = 3", false),
        ("name = \"x\"", false),
        ("[[mcp]]\nname = \"x\"\ncommand = \"y\"", true),
        ("[[mcp]]\ncommand = \"y\"", false),
        ("[providers.openai]\nbase_url = \"http://x/v1\"", true),
        ("[models.openai.x]\ninput = 1.0\noutput = 2", true),
        ("[models.openai.x]\nwindow = 9000\nimages = false", true),
        ("[models.openai.\"x.y\"]\nefforts = [\"low\"]", true),
        ("[models.\"openai/x\"]\nwindow = 9000", false),
        ("[models.openai.x]\nwindows = 9000", false),
        ("permissions = [{ tool = \"bash\", then = \"deny\" }]", true),
        (
            "permissions = [{ tool = \"bash\", then = \"never\" }]",
            false,
        ),
        ("[[hooks]]\non = \"on_error\"\ncommand = [\"x\"]", true),
        ("[[hooks]]\non = \"on_error\"", false),
        (
            "compaction = { compaction_scope = { fixed_count = 3 } }",
            true,
        ),
        ("tool_execution = { batched = 3 }", true),
    ] {
        assert_eq!(
            Config::parse(text).is_ok(),
            good,
            "{text}: {:?}",
            Config::parse(text).err()
        );
        let value: toml::Table = text.parse().unwrap();
        let value = serde_json::to_value(value).unwrap();
        assert_eq!(fits(&schema, &value), good, "{text}");
    }
    for key in keys() {
        if let Some(value) = &key.value {
            let mut object = serde_json::json!(value);
            for part in key.path().rsplit('.') {
                let mut outer = serde_json::Map::new();
                outer.insert(part.to_owned(), object);
                object = outer.into();
            }
            if !key.is_of_one_agent {
                assert!(fits(&schema, &object), "{object}");
            }
        }
    }
}

#[test]
fn every_key_has_a_variable() {
    for key in keys() {
        let read = |name: &str| (name == key.variable()).then(|| "[\"no such\"]".to_owned());
        let over = Overrides::default().environment(&read);
        let set = Overrides::default().set(&format!("{}=[\"no such\"]", key.path()));
        let fault = |over: &Overrides| {
            let resolved = Config::default().resolve(None, over);
            resolved.err().map(|error| error.to_string())
        };
        let [by_variable, by_flag] = [fault(&over), fault(&set)];
        assert_eq!(
            by_variable.is_some(),
            by_flag.is_some(),
            "{}: {by_variable:?}, {by_flag:?}",
            key.path()
        );
    }
}

/// Methods of the builder that take code or objects, which a file cannot express.
const CODE: [&str; 16] = [
    "settings",
    "check_answer",
    "hook",
    "provider_override",
    "shared_observer",
    "observer",
    "store",
    "gate",
    "shared_gate",
    "policy",
    "in_memory_strategy",
    "block_strategy",
    "input_filter",
    "input_filters",
    "transform_context",
    "convert_to_llm",
];

/// Keys and tables whose method in the builder has another name; empty if it has none.
const METHODS: [(&str, &str); 22] = [
    ("name", ""),
    ("description", ""),
    ("system_file", "system"),
    ("pins", "pin"),
    ("root", "tools"),
    ("sub_agents", "tool"),
    ("skills", "tools"),
    ("mcp", "tools"),
    ("permission_mode", "permissions"),
    ("sandbox", "tools"),
    ("hooks", "command_hook"),
    ("model", "builder"),
    ("base_url", "builder"),
    ("tool_style", "builder"),
    ("connect_timeout", "builder"),
    ("idle_timeout", "builder"),
    ("summary.model", "summarizer"),
    ("summary.prompt_file", "summary_prompt"),
    ("sessions", "builder"),
    ("retry", "retry_config"),
    ("cache", "cache_config"),
    ("context", "context_config"),
];

#[test]
fn every_method_of_the_builder_is_reached_by_a_key() {
    let sources = [
        include_str!("../../../core/src/builder.rs"),
        include_str!("../../../core/src/builder/hooks.rs"),
        include_str!("../../../core/src/builder/hosted.rs"),
        include_str!("../../../core/src/builder/limits.rs"),
        include_str!("../../../core/src/builder/view.rs"),
        include_str!("../../../core/src/builder/context.rs"),
    ];
    let methods = sources
        .iter()
        .flat_map(|source| source.split("    pub fn ").skip(1));
    let methods = methods.filter(|rest| {
        rest.split(')')
            .next()
            .is_some_and(|head| head.contains("self"))
    });
    // A closure as a hook is code; a file has commands for the same purpose.
    let is_hook = |name: &&str| {
        name.starts_with("before_")
            || name.starts_with("after_")
            || name.starts_with("on_")
            || name.starts_with("get_")
    };
    let methods: BTreeSet<&str> = methods
        .map(|rest| rest.split(['(', '<']).next().unwrap())
        // The hooks, by a macro.
        .filter(|name| *name != "$name")
        .collect();
    // A key has a method of its own name, or one for all of its table.
    let method = |key: &'static SettingKey| {
        let named = |(name, _): &&(&str, &str)| *name == key.path() || *name == key.table;
        let method = METHODS.iter().find(named);
        method.map_or(key.name.as_str(), |(_, method)| method)
    };
    let mut reached: BTreeSet<&str> = keys().map(method).collect();
    // By the tables beside the keys: prices, and all limits at once.
    reached.extend(["prices", "summarizer_prices", "execution_limits", "build"]);
    // One of several.
    reached.insert("hosted_tool");
    // By the keys of [providers] and [[mcp]].
    reached.insert("secrets");
    // By the keys of fields that have no method.
    reached.insert("configure");
    // By the environment, which sets the destinations of spans.
    reached.insert("record_contents");
    let left: Vec<&&str> = methods
        .difference(&reached)
        .filter(|method| !(CODE.contains(method) || is_hook(method)))
        .collect();
    assert!(left.is_empty(), "no key for {left:?}");
    let wrong: Vec<&&str> = reached
        .difference(&methods)
        .filter(|method| METHODS.iter().any(|(_, named)| named == *method))
        .filter(|method| !["", "builder"].contains(method))
        .collect();
    assert!(wrong.is_empty(), "no method {wrong:?}");
}

#[test]
fn a_default_in_the_schema_is_a_value_of_the_field() {
    for table in TABLES {
        for field in super::key::fields(table) {
            let value = field.value.as_ref();
            assert!(
                value.is_none_or(|value| field.convert(value).is_some()),
                "{table} {}",
                field.name
            );
        }
    }
}

/// The rows are data, so the names in them are compared with those of the types.
#[test]
fn every_choice_is_the_name_of_a_value() {
    use plimsoll_agent::{HookPoint, Permission, PermissionMode};
    let field = |path: &str| super::key::field(path).unwrap();
    for key in keys() {
        for name in &key.choices {
            assert!(key.convert(&name.as_str().into()).is_some(), "{name}");
        }
    }
    for (path, names) in [
        ("permission_mode", PermissionMode::NAMES.to_vec()),
        ("sandbox", plimsoll_tools::SandboxMode::NAMES.to_vec()),
        (
            "cache.retention",
            plimsoll_context::CacheRetention::NAMES.to_vec(),
        ),
        ("counter", COUNTERS.to_vec()),
    ] {
        assert_eq!(field(path).choices, names, "{path}");
    }
    for name in &field("[[hooks]].on").choices {
        let point: HookPoint = serde_json::from_value(name.as_str().into()).unwrap();
        assert_eq!(point.name(), name);
    }
    for name in &field("[[permissions]].then").choices {
        let then: Permission = serde_json::from_value(name.as_str().into()).unwrap();
        assert_eq!(then.name(), name);
    }
    let least = [
        (
            "summary.max_summary_tokens",
            plimsoll_context::LEAST_SUMMARY.0,
        ),
        (
            "session_prune.pruned_tool_result_max_bytes",
            plimsoll_context::SessionPruneConfig::LEAST_BYTES.0,
        ),
    ];
    for (path, least) in least {
        let convert = |number: u64| field(path).convert(&number.into());
        assert!(
            convert(least).is_some() && convert(least - 1).is_none(),
            "{path}"
        );
    }
}

#[test]
fn settings_for_one_thing_exclude_each_other() {
    let (mut pairs, mut with_needs) = (0, 0);
    for one in keys() {
        for other in keys() {
            let excludes = one.excludes(&other.path());
            assert_eq!(excludes, other.excludes(&one.path()), "{}", one.path());
            pairs += usize::from(excludes);
        }
        let needs = one.needs.as_str();
        let mut known = ["", "summarizer", "bash", "trigger"].contains(&needs);
        super::key::lacks(needs, |path| {
            known = super::key::key(path).is_some();
            None
        });
        assert!(known, "{}", one.path());
        with_needs += usize::from(!needs.is_empty());
    }
    assert_eq!((pairs, with_needs), (2 + 2 + 4 + 60, 18));
    for table in ["[[mcp]]", "[providers.NAME]"] {
        let fields = || super::key::fields(table);
        for (one, other) in fields().flat_map(|one| fields().map(move |other| (one, other))) {
            assert_eq!(one.excludes(&other.name), other.excludes(&one.name));
        }
    }
}

#[test]
fn every_limit_of_a_run_is_known_as_one() {
    let limits = keys().filter(|key| key.is_limit());
    let limits: Vec<&str> = limits.map(|key| key.name.as_str()).collect();
    let expected = [
        "max_turns",
        "max_total_tokens",
        "count_tokens",
        "max_duration",
        "max_cost",
        "max_tool_calls",
        "max_identical_tool_calls",
        "tool_call_history_size",
        "max_memory",
        "at_limit",
    ];
    assert_eq!(limits, expected);
}

/// Whatever a key is set to, the parser accepts it or reports a fault with its line.
#[test]
fn flags_have_hyphens() {
    for flag in keys().filter_map(|key| key.flag.as_ref()) {
        assert!(!flag.contains('_'), "--{flag}");
    }
}

#[test]
fn every_key_takes_what_is_good_and_says_what_is_not() {
    let values = [
        "0",
        "-1",
        "1",
        "1.5",
        "-0.5",
        "0.5",
        "nan",
        "-nan",
        "inf",
        "-inf",
        "1e300",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "999999999999999999999999999999",
        "true",
        "\"\"",
        "\"x\"",
        "\"none\"",
        "[]",
        "[0]",
        "[[1]]",
        "[\"x\"]",
        "[{}]",
        "{}",
        "{ x = 1 }",
        "{ x = -1 }",
        "{ x = { y = [] } }",
        "1979-05-27",
        "07:32:00",
        "\"10m\"",
        "\"-3s\"",
        "\"1e999h\"",
        "{ batched = -1 }",
    ];
    let mut refused = 0;
    for key in keys() {
        let path = key.path();
        for value in values {
            let set = match key.is_of_one_agent {
                false => format!("\n{path} = {value}\n"),
                true => format!("\n[[agents]]\n{path} = {value}\n"),
            };
            // A summary needs no other settings; the rest of a context is checked with it.
            let Err(error) = Config::parse(&set) else {
                continue;
            };
            refused += 1;
            for fault in &error.faults {
                assert!(fault.origin.place().is_some(), "{set}{error}");
            }
            let names = error.to_string().contains(&key.name) || error.to_string().contains("name");
            let within = error.to_string().contains(&key.table)
                || error.to_string().contains("compaction would fire");
            assert!(names || within, "{set}{error}");
        }
        for nothing in ["nan", "-1", "inf"] {
            let text = format!("{path} = {nothing}");
            let is_text = key.name == "compaction_scope";
            assert!(Config::parse(&text).is_err() || is_text, "{text}");
        }
    }
    assert!(refused > 1_000, "{refused}");
}

/// Returns the tables of the documentation.
fn markdown() -> String {
    let mut text = row(["key", "value", "default", "what", "flag"]) + &row(["---"; 5]);
    for key in keys() {
        let flag = key.flag.as_ref();
        let flag = flag.map_or(String::new(), |flag| format!("`--{flag}`"));
        let (path, default) = (format!("`{}`", key.path()), default(key));
        text += &row([&path, &value(key), &default, &key.doc, &flag]);
    }
    for table in TABLES {
        text += &format!("\n### `{table}`\n\n");
        text += &(row(["key", "value", "default", "what"]) + &row(["---"; 4]));
        for key in fields(table) {
            let name = format!("`{}`", key.name);
            text += &row([&name, &value(key), &default(key), &key.doc]);
        }
    }
    text
}

fn default(key: &SettingKey) -> String {
    match key.value {
        _ if key.is_required => "required".to_owned(),
        Some(_) => format!("`{}`", key.default()),
        None => key.default(),
    }
}

/// Returns a word for the form of a value, which the documentation explains, or the form itself.
fn value(key: &SettingKey) -> String {
    match key.description().word.as_str() {
        "flag" | "choice" => key.takes(),
        word if key.or_none => format!("{word} or \"none\""),
        word => word.to_owned(),
    }
}

/// Returns a row of a table.
fn row<const CELLS: usize>(cells: [&str; CELLS]) -> String {
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", cells.join(" | "))
}
