//! `plimsoll config check`, and the effect of a configuration on a run, checked by the requests
//! that the server received.

use serde_json::json;

use super::chats;
use super::command::Home;
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;

fn check(config: &str, args: &[&str]) -> super::command::CommandOutput {
    let home = Home::new();
    home.file("plimsoll.toml", config);
    home.run([&["config", "check"][..], args].concat())
}

#[test]
fn a_good_configuration_is_printed_with_its_thresholds() {
    for (config, lines) in [
        (
            "[context]\nmax_context_tokens = 100_000\n",
            "compacts above 81000 tokens without the system prompt, or earlier if that or the answer \
             takes more than is set aside; ends at 56700\n\
             stages: cap → lines → summarize → evict → fit\ncontext.max_context_tokens = 100000\n",
        ),
        (
            "[compaction]\ntrigger = 8_000\n[summary]\nauthor = \"extract\"\nmax_summary_tokens = 900\n",
            "compacts above 8000 tokens of the whole request and ends at 5600\n\
             stages: cap → lines → extract → evict → fit\n\
             summary.max_summary_tokens = 900\nsummary.author = \"extract\"\n\
             compaction.trigger = 8000\n",
        ),
        (
            "",
            "compacts above 60000 tokens of the whole request and ends at 40000, in a window of \
             200000; above 40000 and at 20000 if the provider's cache has expired\n\
             stages: cap → prune → extract → evict → fit\n",
        ),
        (
            "model = \"openai/gpt-4o\"\ntarget = 0.55\nsummarization = false\nmax_history_messages = 20\n",
            "compacts above 97352 tokens of the whole request and ends at 68147, in a window of 128000\n\
             stages: cap → history → evict → prune → evict → fit\n\
             model = \"openai/gpt-4o\"\ntarget = 0.55\nmax_history_messages = 20\nsummarization = false\n",
        ),
        (
            "context_strategy = \"unlimited\"\n",
            "compacts only if the provider refuses a request\n\
             stages: \n\
             context_strategy = \"unlimited\"\n",
        ),
    ] {
        let said = check(config, &[]).done();
        let expected = format!("plimsoll.toml is good\n{lines}");
        assert_eq!(
            (said.out.as_str(), said.err.as_str()),
            (expected.as_str(), "")
        );
    }
    // Prices need trust, unless the file is named.
    let priced = "[models.openai.\"gpt-9\"]\ninput = 2.0\noutput = 8.0\n";
    let said = check(priced, &["plimsoll.toml"]).done();
    assert!(said.out.contains("models: 1 of your own"), "{}", said.out);
}

#[test]
fn another_systems_configuration_is_translated() {
    let home = Home::new();
    let theirs = "[provider]\nname = \"anthropic\"\nmodel = \"claude-sonnet-4-5\"\napi_key = \"sk-hush\"\n\
                  [orchestrator]\nmax_turns = 15\nenable_squads = true\n\
                  [[agents]]\nname = \"writer\"\ndescription = \"Writes.\"\n";
    home.file("heartbit.toml", theirs);
    let said = home.run(["config", "import", "heartbit.toml"]).done();
    let line = "max_turns = 15\n";
    assert!(said.out.contains(line), "{}", said.out);
    let err: Vec<&str> = said.err.lines().collect();
    assert_eq!(
        err,
        [
            "plimsoll: provider.name became model",
            "plimsoll: provider.model became model",
            "plimsoll: provider.api_key became providers.anthropic.api_key_env: a key is not written into a file: put it into $ANTHROPIC_API_KEY",
            "plimsoll: orchestrator.max_turns became max_turns",
            "plimsoll: orchestrator.enable_squads is not translated: it has no counterpart",
            "plimsoll: agents[0].name became [[agents]] name",
            "plimsoll: agents[0].description became [[agents]] description",
            "plimsoll: 6 settings translated, 1 not; each other setting has Plimsoll's default",
        ]
    );
    assert!(!format!("{} {}", said.out, said.err).contains("hush"));
    home.file("plimsoll.toml", &said.out);
    let checked = home.run(["config", "check", "plimsoll.toml"]).done();
    assert!(
        checked.out.contains("agent orchestrator"),
        "{}",
        checked.out
    );

    home.file("other.toml", "colour = 3\n");
    home.run(["config", "import", "other.toml"]).refused(
        1,
        &["other.toml:1:1: it has no setting of Heartbit or phi-core"],
    );
    home.run(["config", "import", "nothing.toml"])
        .refused(2, &["nothing.toml cannot be read"]);
}

/// The sentences are in crates/plimsoll/src/config/cases/faults.txt.
#[test]
fn everything_wrong_is_said_at_once() {
    let config = "max_history_messages = 0\nargument_digest = 3\n[compaction]\ncompact_at_pct = nan\n\
                  keep_recnt_turns = 0\ntarget = 90_000\n";
    let said = check(config, &[]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{config}");
    let lines: Vec<&str> = said.err.lines().collect();
    let begins = [
        "plimsoll: 5 settings are faulty",
        "- plimsoll.toml:1:1: `max_history_messages` is 0; give a whole number, 1 or more",
        "- plimsoll.toml:2:1: `argument_digest` is 3; give true, false or ",
        "- plimsoll.toml:4:1: `compact_at_pct` is a number out of range; give a fraction from 0 to 1",
        "- plimsoll.toml:5:1: there is no `keep_recnt_turns` in [compaction]; did you mean",
        "- plimsoll.toml:6:1: the trigger (81000) is not above the target (90000)",
    ];
    assert_eq!(lines.len(), begins.len(), "{}", said.err);
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}\nis not\n{begin}");
    }
    let home = Home::new();
    home.run(["config", "check"])
        .refused(2, &["plimsoll.toml cannot be read", "config init"]);
    home.run(["config", "check", "."])
        .refused(2, &["cannot be read"]);
}

/// Reads a file sixteen times, then answers.
fn script() -> Vec<FakeAnswer> {
    let read = |n: usize| {
        FakeAnswer::call(&[(
            "read",
            &format!("{{\"path\":\"notes.txt\",\"offset\":{n}}}"),
        )])
    };
    (1..17)
        .map(read)
        .chain([FakeAnswer::say("Done.")])
        .collect()
}

fn home(config: &str) -> Home {
    let home = Home::new();
    let lines: Vec<String> = (0..120)
        .map(|n| format!("note {n}: the tide is at {n}"))
        .collect();
    home.file("notes.txt", lines.join("\n"));
    home.file("plimsoll.toml", config);
    home
}

#[test]
fn a_run_is_compacted_as_configured() {
    let config = "[context]\nmax_context_tokens = 12_000\nsystem_prompt_tokens = 1_000\n\
                  [compaction]\nkeep_first_turns = 1\nkeep_recent_turns = 2\n\
                  [summary]\nauthor = \"extract\"\n\
                  [models.openai-compatible.m]\ninput = 1000.0\noutput = 2000.0\ncache_read = 500.0\n";
    let (home, fake) = (home(config), Fake::new(script()));
    let said = home
        .agent(&fake, &["--config", "plimsoll.toml", "Read on."])
        .done();
    assert!(
        said.err.contains(" freed, $") && said.err.contains(" saved a request"),
        "the prices of the configuration: {}",
        said.err
    );
    let asked = fake.asked();
    let compacted = asked.iter().find(|request| {
        messages(request)
            .iter()
            .any(|(_, text)| text.contains("[handover "))
    });
    let compacted = messages(compacted.expect("it fired"));
    assert_eq!(compacted[1], ("user".into(), "Read on.".into()));
    let roles: Vec<&str> = compacted.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(
        roles,
        [
            "system",
            "user",
            "assistant",
            "tool",
            "user",
            "assistant",
            "tool",
            "assistant",
            "tool"
        ]
    );
    // Without it nothing leaves: the window is large enough.
    let fake = Fake::new(script());
    home.agent(&fake, &["--no-config", "Read on."]).done();
    let last = fake.asked().pop().unwrap();
    assert_eq!(messages(&last).len(), 2 + 16 * 2);
}

#[test]
fn a_configuration_that_is_no_good_ends_the_run_before_it_begins() {
    for (config, args, part) in [
        (
            "[context]\nmax_contxt_tokens = 3\n",
            &[][..],
            "did you mean",
        ),
        (
            "[context]\nsystem_prompt_tokens = 4_000\n",
            &["--max-context", "4000"],
            "the system prompt takes 4000 of the 4000 tokens of context",
        ),
    ] {
        let (home, fake) = (home(config), Fake::new(script()));
        let args = [&["--config", "plimsoll.toml"][..], args, &["Read on."]].concat();
        home.agent(&fake, &args).refused(2, &[part]);
        assert!(fake.asked().is_empty());
    }
}

#[test]
fn compact_sums_up_by_default_and_refuses_a_policy_that_asks_a_model() {
    let home = Home::new();
    let chat = json!({"messages": chats::messages(30)}).to_string();
    let default = home.pipe(["compact", "--budget", "3000"], &chat).done();
    assert!(default.out.contains("[handover "), "{}", default.out);
    let with = |policy: &str| home.pipe(["compact", "--budget", "3000", "--policy", policy], &chat);
    assert_eq!(with("extract").done().out, default.out);
    with("summarize").misspelled(&["invalid value 'summarize' for '--policy", "extract, evict"]);
    assert!(!with("evict").done().out.contains("[handover "));
    // At ever smaller budgets, each on what came out before: one summary, never two.
    let mut chat = chat;
    for budget in ["6000", "4000", "2500", "1500", "900"] {
        let said = home.pipe(["compact", "--budget", budget], &chat).done();
        assert_eq!(chats::faults(&said.out), [""; 0], "{budget}");
        assert!(chats::weight(&said.out).0 <= budget.parse().unwrap());
        assert_eq!(
            said.out.matches("[handover ").count(),
            1,
            "{budget}: {}",
            said.out
        );
        assert_eq!(
            said.out.matches(chats::TASK).count(),
            1,
            "{budget}: {}",
            said.out
        );
        let again = home.pipe(["compact", "--budget", budget], &said.out).done();
        assert_eq!(again.out, said.out, "{budget}: twice is once");
        chat = said.out;
    }
}

#[test]
fn the_last_flag_counts_however_it_is_written() {
    let home = Home::new();
    for (args, turns) in [
        (
            ["--set", "max_turns=3", "--max-turns", "4"],
            "max_turns = 4",
        ),
        (
            ["--max-turns", "4", "--set", "max_turns=3"],
            "max_turns = 3",
        ),
    ] {
        let said = home.run([&["config", "show"][..], &args].concat()).done();
        assert!(said.out.contains(&format!("\n{turns}")), "{}", said.out);
    }
    // A rule that denies stands before one that allows.
    let args = [
        "config",
        "show",
        "--allow",
        "bash",
        "--deny",
        "bash:command=rm *",
    ];
    let said = home.run(args).done();
    let rules = said
        .out
        .lines()
        .find(|line| line.starts_with("permissions"));
    let rules = rules.unwrap();
    assert!(rules.find("deny") < rules.find("allow"), "{rules}");
    let said = home.run(["config", "show", "--set", "max_turns"]);
    let advice = "'--set <KEY=VALUE>': write KEY=VALUE, as in max_turns=20";
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains(advice), "{}", said.err);
}
