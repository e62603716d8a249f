//! Wrong usage of `plimsoll run`: refused before any model is called, with the remedy.

use super::command::{Home, feed, with};
use super::fake::Fake;

#[test]
fn wrong_arguments_name_the_right_ones() {
    let home = Home::new();
    home.file("binary", b"\xff\xfe");
    home.file("plain", "x");
    let idle = Fake::new([]);
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &["no task", "plimsoll run \""]),
        (
            &[""],
            &["the task is empty", "describe what the agent should do"],
        ),
        (&[" \n\t"], &["the task is empty"]),
        (&["-"], &["the task is empty"]),
        (&["Hi", "--root", "nowhere"], &["nowhere"]),
        (&["Hi", "--root", "plain"], &["plain"]),
        (
            &["Hi", "--tools", "read,grpe"],
            &["grpe", "did you mean `grep`?"],
        ),
        (
            &["Hi", "--policy", "evit"],
            &[
                "--policy is \"evit\"",
                "\"sliding_window\" or \"unlimited\"",
            ],
        ),
        (&["Hi", "--trigger", "0"], &["--trigger"]),
        (&["Hi", "--max-context", "lots"], &["--max-context"]),
        (&["Hi", "--max-context", "0"], &["--max-context"]),
        (
            &["Hi", "--tool-style", "xml"],
            &["--tool-style is \"xml\"", "\"native\" or \"json\""],
        ),
        (
            &["Hi", "--system", "none.md"],
            &["none.md", "does not exist", "name a file"],
        ),
        (&["Hi", "--system", "."], &["cannot be read", "name a file"]),
        (
            &["Hi", "--system", "binary"],
            &["binary cannot be read", "save it as UTF-8"],
        ),
        (&["Hi", "--max-turns", "0"], &["--max-turns is 0"]),
        (&["Hi", "--max-turns", "many"], &["--max-turns is \"many\""]),
        (&["Hi", "--max-cost", "-1"], &["--max-cost is -1"]),
        (&["Hi", "--temperature", "nan"], &["--temperature is NaN"]),
        (&["Hi", "--idle-timeout", "0"], &["--idle-timeout is 0"]),
        (&["Hi", "--seed", "9223372036854775808"], &["--seed"]),
        (
            &["Hi", "--connect-timeout", "99999999999999"],
            &["--connect-timeout"],
        ),
        (
            &["Hi", "--set", "max_trns=3"],
            &["--set max_trns", "did you mean `max_turns`?"],
        ),
        (&["Hi", "--set", "max_turns"], &["KEY=VALUE"]),
        (&["Hi", "--agent", "x"], &["no agent `x`"]),
        (
            &["Hi", "--config", "none.toml"],
            &["none.toml cannot be read"],
        ),
    ];
    for (args, words) in cases {
        let said = home.agent(&idle, args);
        said.refused(2, words);
        assert_eq!(said.out, "", "{args:?}");
    }
    assert_eq!(idle.asked().len(), 0);
    let said = feed(home.command(with(&idle, &["-"])), b"\xff\xff");
    said.refused(2, &["standard input", "save it as UTF-8"]);
    for args in [
        &["Hi", "--json", "--quiet"][..],
        &["Hi", "--max-turns"],
        &["Hi", "you"],
    ] {
        let said = home.agent(&idle, args);
        assert_eq!(said.code, Some(2));
        assert!(said.err.contains("--help"), "{}", said.err);
    }
    // Nothing of all this has made a session.
    assert_eq!(home.run(["sessions", "list"]).done().out, "");
}

#[test]
fn wrong_models_name_the_right_ones() {
    let home = Home::new();
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["--model", "opnai/gpt-4o"],
            &["no provider `opnai`", "do you mean `openai`?"],
        ),
        (
            &["--model", "gpt-4o"],
            &["names no provider", "openai/gpt-4o"],
        ),
        (&["--model", "openai/"], &["needs a model"]),
        (&["--model", "openai/gpt-4o"], &["set OPENAI_API_KEY"]),
        (&["--model", "openai-compatible/m"], &["--base-url"]),
        (
            &["--model", "openai-compatible/m", "--base-url", "ftp://x"],
            &["base URL", "http://"],
        ),
        (
            &["--model", "local", "--base-url", "http://127.0.0.1:1"],
            &["--model local", "openai-compatible/NAME"],
        ),
    ];
    for (args, words) in cases {
        let args = [&["run", "Hi"][..], args].concat();
        home.run(args).refused(2, words);
    }
    let mut command = home.command(["run", "Hi"]);
    command.env("GROQ_API_KEY", "gsk-hush");
    let said = feed(command, b"");
    said.refused(2, &["GROQ_API_KEY is set", "--model groq/NAME"]);
    assert!(!said.err.contains("hush"));
}

#[test]
fn what_a_newcomer_tries_has_a_cure() {
    let home = Home::new();
    let help = home.run(["--help"]).done();
    assert!(
        help.out.starts_with("Run LLM agents inside hard limits"),
        "{}",
        help.out
    );
    // Long descriptions are wrapped between words.
    let help = home.run(["compact", "--help"]).done().out;
    let widest = help.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{widest:?}: {help}");
    let version = home.run(["--version"]).done().out;
    assert!(version.starts_with("plimsoll "));
    assert_eq!(home.run(["version"]).done().out, version);
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["config", "check"],
            &["plimsoll.toml cannot be read", "config init"],
        ),
        (
            &["run", "Hi", "--model", "local2"],
            &["(do you mean `local`?); write PROVIDER/NAME"],
        ),
    ];
    for (args, words) in cases {
        home.run(*args).refused(2, words);
    }
    for wrong in ["abc", "-5"] {
        let said = home.run(["compact", "--budget", wrong]);
        assert_eq!(said.code, Some(2));
        assert!(said.err.contains("such as 8000 or 100k"), "{}", said.err);
    }
    for wrong in ["abc", "-5", "0"] {
        for (flag, words) in [
            (
                "--max-context",
                "give a number of tokens such as 32000 or \"32k\"",
            ),
            ("--max-tokens", "tokens such as 8000 or \"8k\", 1 or more"),
            (
                "--max-total-tokens",
                "tokens such as 8000 or \"8k\", 1 or more",
            ),
            ("--trigger", "give tokens such as 50_000 or \"50k\""),
        ] {
            let args = ["run", "--model", "openai/m", flag, wrong, "Hi"];
            home.run(args)
                .refused(2, &[&format!("{flag} is "), wrong, words]);
        }
    }
    let chat = "[{\"role\":\"user\",\"content\":\"Hi.\"}]";
    let small = home.pipe(["compact", "--budget", "1k"], chat).done();
    assert_eq!(small.out.trim(), chat);
    home.pipe(["compact", "--budget", "1k"], "{\"foo\":1}")
        .refused(
            1,
            &["expected an array of messages", "an object with `messages`"],
        );
}
