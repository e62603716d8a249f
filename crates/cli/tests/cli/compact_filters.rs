//! `plimsoll compact --policy clear-tool-uses` and `--policy trim`.

use serde_json::{Value, json};

use super::chats::{QUESTION, TASK, asked, faults, messages, raw, weight};
use super::command::Home;

fn results(chat: &str) -> Vec<String> {
    let is_result = |message: &String| message.contains("\"role\":\"tool\"");
    raw(chat).into_iter().filter(is_result).collect()
}

#[test]
fn clear_tool_uses_clears_old_results_above_its_trigger() {
    let home = Home::new();
    let chat = json!({"messages": messages(10)}).to_string();
    let tokens = weight(&chat).0;
    let run = |args: &[&str]| {
        let all = ["compact", "--policy", "clear-tool-uses"];
        let all: Vec<&str> = all.iter().chain(args).copied().collect();
        home.pipe(all, &chat)
    };
    // By default, it clears above 100,000 tokens.
    assert_eq!(run(&[]).done().out, chat);
    let exactly = tokens.to_string();
    assert_eq!(run(&["--trigger", &exactly]).done().out, chat);
    let below = (tokens - 1).to_string();
    let said = run(&["--trigger", &below]).done();
    let cleared = |chat: &str| {
        let results = results(chat);
        let is_cleared = |result: &&String| result.contains("[tool result cleared]");
        (results.iter().filter(is_cleared).count(), results.len())
    };
    let (clear, all) = cleared(&said.out);
    assert_eq!(clear, all - 3, "the newest 3 stay");
    assert_eq!(raw(&said.out).len(), raw(&chat).len());
    assert_eq!(faults(&said.out), [""; 0]);
    assert!(said.err.contains("(clear-tool-uses)"), "{}", said.err);
    let keep = run(&["--trigger", "tool_uses=1", "--keep", "5"]).done();
    assert_eq!(cleared(&keep.out), (all - 5, all));
    assert_eq!(
        run(&["--trigger", "1", "--clear-at-least", "100k"])
            .done()
            .out,
        chat
    );
    let name = serde_json::from_str::<Value>(&chat).unwrap();
    let name = name["messages"].as_array().unwrap().iter();
    let name = name.filter_map(|message| message["tool_calls"][0]["function"]["name"].as_str());
    let names: Vec<&str> = name.collect();
    let excluded = run(&["--trigger", "1", "--exclude-tools", &names.join(",")]).done();
    assert_eq!(excluded.out, chat);
    let inputs = run(&["--trigger", "1", "--clear-tool-inputs"]).done();
    assert!(
        inputs.out.matches("\"arguments\":\"{}\"").count() >= all - 3,
        "{}",
        inputs.out
    );
    let explained = run(&["--trigger", "1", "--explain"]).done();
    assert!(
        explained.err.contains("clear-tool-uses"),
        "{}",
        explained.err
    );
}

#[test]
fn trim_keeps_one_end() {
    let home = Home::new();
    let chat = json!({"messages": messages(10)}).to_string();
    let run = |args: &[&str]| {
        let all: Vec<&str> = ["compact", "--policy", "trim"]
            .iter()
            .chain(args)
            .copied()
            .collect();
        home.pipe(all, &chat)
    };
    let originals = raw(&chat);
    let last = run(&["--max-tokens", "600"]).done();
    let kept = raw(&last.out);
    assert!(weight(&last.out).0 <= 600 && kept.len() > 1, "{}", last.out);
    assert!(
        originals.ends_with(&kept[1..]) && kept[0] == originals[0],
        "{}",
        last.out
    );
    assert_eq!(asked(&last.out).last().map(String::as_str), Some(QUESTION));
    assert_eq!(faults(&last.out), [""; 0]);
    let first = run(&["--budget", "600", "--strategy", "first"]).done();
    assert!(originals.starts_with(&raw(&first.out)), "{}", first.out);
    assert_eq!(asked(&first.out).first().map(String::as_str), Some(TASK));
    let user = run(&["--budget", "600", "--start-on", "human", "--include-system"]).done();
    assert!(
        raw(&user.out)[1].contains("\"role\":\"user\""),
        "{}",
        user.out
    );
    // What is too little says what is enough.
    let least = run(&["--budget", "15"]);
    least.refused(4, &["allow at least"]);
    let least = least.err.split("allow at least ").nth(1).unwrap();
    run(&["--budget", least.split(',').next().unwrap()]).done();
}

#[test]
fn options_of_another_policy_are_refused() {
    let home = Home::new();
    let hi = "[{\"role\":\"user\",\"content\":\"hi\"}]";
    for (args, words) in [
        (&["--keep", "3"][..], &["--keep", "clear-tool-uses"][..]),
        (
            &["--policy", "evict", "--trigger", "9"],
            &["--trigger", "evict"],
        ),
        (
            &["--policy", "trim", "--exclude-tools", "a"],
            &["--exclude-tools", "trim"],
        ),
        (
            &["--policy", "clear-tool-uses", "--strategy", "first"],
            &["--strategy", "--policy trim"],
        ),
        (
            &["--policy", "clear_tool_uses"],
            &["has no budget", "--trigger"],
        ),
        (
            &[
                "--policy",
                "trim",
                "--strategy",
                "first",
                "--start-on",
                "user",
            ],
            &["--start-on", "--strategy last"],
        ),
        (
            &["--policy", "trim", "--start-on", "tool"],
            &["never comes first"],
        ),
        (
            &["--policy", "trim", "--include-system", "false"],
            &["instructions are never removed"],
        ),
        (&["--policy", "trim", "--explain"], &["no stages"]),
        (&["--policy", "cut"], &["clear-tool-uses, trim"]),
    ] {
        let all: Vec<&str> = ["compact", "--budget", "9"]
            .iter()
            .chain(args)
            .copied()
            .collect();
        home.pipe(all, hi).refused(2, words);
    }
    for (args, words) in [
        (["--start-on", "system"], "user, assistant or tool"),
        (["--trigger", "turns=3"], "tool_uses=20"),
        (["--strategy", "middle"], "first or last"),
    ] {
        let said = home.pipe(["compact", args[0], args[1]], hi);
        assert!(
            said.code == Some(2) && said.err.contains(words),
            "{}",
            said.err
        );
    }
    home.pipe(["compact", "--policy", "trim"], hi)
        .refused(2, &["--budget TOKENS"]);
    let none = home.pipe(
        [
            "compact", "--policy", "trim", "--budget", "90", "--end-on", "tool",
        ],
        hi,
    );
    none.refused(1, &["--end-on"]);
}
