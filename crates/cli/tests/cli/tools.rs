//! Failing tool calls: each gets a result with the error, and the run continues.

use super::command::{CommandOutput, Home, feed, with};
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;

/// Runs one batch of calls; gives back the result of each, as the model sees it.
fn results(home: &Home, args: &[&str], calls: &[(&str, &str)]) -> Vec<String> {
    let fake = Fake::new([FakeAnswer::call(calls), FakeAnswer::say("done")]);
    let said = home.agent(&fake, &[args, &["Do it."]].concat()).done();
    assert_eq!(said.out, "done\n");
    let sent = messages(&fake.asked()[1]);
    let results: Vec<String> = sent
        .into_iter()
        .filter(|(role, _)| role == "tool")
        .map(|(_, text)| text)
        .collect();
    assert_eq!(results.len(), calls.len());
    let show = home.run(["sessions", "show", &said.session()]).done();
    assert!(show.out.contains("done"), "the session still opens");
    results
}

#[test]
fn bash_is_denied_without_yes_and_without_a_terminal() {
    let home = Home::new();
    let call = [("bash", "{\"command\":\"touch made; echo hi\"}")];
    let denied = results(&home, &[], &call);
    assert!(
        denied[0].contains("--yes") || denied[0].contains("not allow"),
        "{}",
        denied[0]
    );
    assert!(!home.work().join("made").exists());
    let allowed = results(&home, &["--yes"], &call);
    assert!(allowed[0].contains("hi"), "{}", allowed[0]);
    assert!(home.work().join("made").exists());
}

#[test]
fn malformed_arguments_and_unknown_tools_are_told_to_the_model() {
    let home = Home::new();
    let bad = results(
        &home,
        &[],
        &[("read", "{\"path\": \"a.txt"), ("list", "{}")],
    );
    assert!(bad[0].contains("JSON"), "{}", bad[0]);
    let bad = results(&home, &[], &[("read", "[1]")]);
    assert!(bad[0].contains("object"), "{}", bad[0]);
    let bad = results(
        &home,
        &[],
        &[("fetch", "{\"path\":\"a.txt\"}"), ("list", "{}")],
    );
    assert!(bad[0].contains("no tool `fetch`; there is"), "{}", bad[0]);
    // A slip is not told but repaired.
    let repaired = results(&home, &[], &[("raed", "{\"path\":\"a.txt\"}")]);
    assert!(
        repaired[0].contains("there is no `a.txt`"),
        "{}",
        repaired[0]
    );
    let bad = results(&home, &[], &[("read", "{\"lines\":3}")]);
    assert!(bad[0].contains("path"), "{}", bad[0]);
    let bad = results(&home, &[], &[("read", "{\"path\":\"../../etc/passwd\"}")]);
    assert!(!bad[0].contains("root:"), "{}", bad[0]);
}

#[test]
fn a_flood_and_invalid_utf8_are_cut_and_mended() {
    let home = Home::new();
    let flood = "{\"command\":\"head -c 50000000 /dev/zero | tr '\\\\0' x\"}";
    let binary = "{\"command\":\"printf 'a\\\\377\\\\376b'\"}";
    let said = results(&home, &["--yes"], &[("bash", flood), ("bash", binary)]);
    assert!(said[0].len() < 300_000, "{} bytes", said[0].len());
    assert!(said[0].contains("xxxx"), "some of it is shown");
    assert!(
        said[1].contains('a') && said[1].contains('b'),
        "{}",
        said[1]
    );
    assert!(said[1].contains('\u{fffd}'), "{}", said[1]);
}

#[test]
fn a_command_that_hangs_or_fails_is_told() {
    let home = Home::new();
    let calls = [
        ("bash", "{\"command\":\"sleep 1000\",\"timeout\":1}"),
        ("bash", "{\"command\":\"exit 3\"}"),
    ];
    let said = results(&home, &["--yes"], &calls);
    assert!(
        said[0].contains("1 s") || said[0].contains("1s"),
        "{}",
        said[0]
    );
    assert!(said[1].contains('3'), "{}", said[1]);
}

#[test]
fn a_path_that_is_denied_is_denied_however_it_is_spelled() {
    let home = Home::new();
    home.file(".env", "KEY=hunter2\n");
    home.file("other", "KEY=1\n");
    let absolute = format!("{{\"path\":\"{}/.env\"}}", home.work().display());
    let calls = [
        ("read", "{\"path\":\".env\"}"),
        ("read", "{\"path\":\"./.env\"}"),
        ("read", "{\"path\":\".//.env\"}"),
        ("read", absolute.as_str()),
        ("grep", "{\"pattern\":\"KEY\"}"),
        ("grep", "{\"pattern\":\"KEY\",\"path\":\".env\"}"),
        (
            "edit",
            "{\"path\":\".env\",\"old\":\"KEY=x\",\"new\":\"x\"}",
        ),
    ];
    let said = results(&home, &["--deny", "read:path=.env"], &calls);
    for (call, said) in calls.iter().zip(&said) {
        assert!(!said.contains("hunter2"), "{call:?}: {said}");
    }
    assert!(
        said[0].contains("the rules of this run do not allow"),
        "{}",
        said[0]
    );
    assert!(
        said[4].contains("other:1: KEY=1") && said[4].contains("1 left out"),
        "{}",
        said[4]
    );
}

#[test]
fn a_file_that_programs_run_or_agents_obey_is_written_after_a_question() {
    let write = |path: &str| format!("{{\"path\":\"{path}\",\"content\":\"x\"}}");
    let paths = [
        "plimsoll.toml",
        "AGENTS.md",
        "./.envrc",
        ".cargo/config.toml",
        ".git/hooks/x",
    ];
    let texts = paths.map(write);
    let calls = texts.each_ref().map(|text| ("write", text.as_str()));
    for (args, written) in [
        (&[][..], [false; 5]),
        (&["--allow", "write"], [false; 5]),
        (&["--allow", "write:path=*"], [false; 5]),
        (&["--yes"], [true; 5]),
    ] {
        let home = Home::new();
        let said = results(&home, args, &calls);
        for ((path, is_written), said) in paths.iter().zip(written).zip(&said) {
            assert_eq!(
                home.work().join(path).exists(),
                is_written,
                "{args:?} {path}: {said}"
            );
            assert_eq!(said.contains("requires approval"), !is_written, "{said}");
        }
    }
    let home = Home::new();
    let said = results(&home, &["--allow", "write:path=plimsoll.toml"], &calls[..2]);
    assert!(
        said[0].starts_with("created") && said[1].contains("requires approval"),
        "{said:?}"
    );
}

#[test]
fn a_pattern_allows_one_simple_command_and_denies_it_anywhere() {
    let home = Home::new();
    let bash = |command: &str| serde_json::json!({ "command": command }).to_string();
    let run = |args: &[&str], commands: &[&str]| {
        let arguments: Vec<String> = commands.iter().map(|command| bash(command)).collect();
        let calls = arguments.iter().map(|text| ("bash", text.as_str()));
        results(&home, args, &calls.collect::<Vec<_>>())
    };
    let said = run(
        &["--allow", "bash:echo *"],
        &[
            "echo  'a;b' \"c d\"",
            "echo a; touch made",
            "echo a\ntouch made",
            "echo $(touch made)",
            "echo a | tee made",
            "echo a > made",
            "X=1 echo a",
        ],
    );
    assert!(said[0].starts_with("a;b c d\n"), "{}", said[0]);
    for said in &said[1..] {
        assert!(said.contains("requires approval"), "{said}");
    }
    assert!(!home.work().join("made").exists());
    let said = run(
        &["--yes", "--deny", "bash:touch *"],
        &[
            "echo made",
            // The shell's own `echo` only prints its arguments.
            "echo touch made",
            // It is not known of `ls` that it does not run its arguments.
            "ls touch made",
            "true && touch made",
            "sudo sh -c 'touch made'",
            "$CMD made",
            "echo \"a",
        ],
    );
    assert!(said[0].starts_with("made\n"), "{}", said[0]);
    assert!(said[1].starts_with("touch made\n"), "{}", said[1]);
    for said in &said[2..] {
        assert!(said.starts_with("not run: "), "{said}");
    }
    assert!(said[6].contains("write simple commands"), "{}", said[6]);
    assert!(!home.work().join("made").exists());
}

#[test]
fn a_command_cannot_give_keys_away() {
    const KEY: &str = "sk-SUPERSECRETKEY1234567890";
    let home = Home::new();
    home.file("db.txt", "postgres://bo:hush-hush@host/db\n");
    // Its own environment, and that of every process that it may look into.
    let look = "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a -e KEY= -e TOKEN=; env; cat db.txt; echo looked";
    let call = serde_json::json!({ "command": look }).to_string();
    let fake = Fake::new([
        FakeAnswer::call(&[("bash", &call)]),
        FakeAnswer::say("done"),
    ]);
    let mut command = home.command(with(&fake, &["--yes", "Look."]));
    command
        .env("OPENAI_COMPATIBLE_API_KEY", KEY)
        .env("DEPLOY_TOKEN", "tok-0123456789abcdef")
        .env("STORE_AT", "postgres://bo:hush-hush@host/db");
    let said: CommandOutput = feed(command, b"").done();
    let sent = fake.asked()[1].to_string();
    assert!(sent.contains("looked"), "{sent}");
    let kept = ["sessions.db", "sessions.db-wal"].map(|name| home.data().join(name));
    let kept = kept
        .iter()
        .filter_map(|path| std::fs::read(path).ok())
        .flatten();
    let kept = String::from_utf8_lossy(&kept.collect::<Vec<u8>>()).into_owned();
    assert!(kept.contains("looked"));
    for text in [&sent, &kept, &said.err, &said.out] {
        assert!(
            !["SUPERSECRET", "tok-0123456789", "hush-hush"]
                .iter()
                .any(|key| text.contains(key)),
            "{text}"
        );
    }
}

#[test]
fn a_command_gets_a_key_only_if_the_configuration_passes_it_on_and_its_value_is_struck_out() {
    let look = "echo \"deploy=$DEPLOY_TOKEN mine=$MINE model=$THE_MODEL\"";
    let call = serde_json::json!({ "command": look }).to_string();
    for (passed, told) in [
        ("", "deploy= mine= model="),
        (
            "pass_env = [\"DEPLOY_TOKEN\", \"MINE\"]\n",
            "deploy=[secret DEPLOY_TOKEN] mine=[secret MINE] model=",
        ),
    ] {
        let home = Home::new();
        let fake = Fake::new([
            FakeAnswer::call(&[("bash", &call)]),
            FakeAnswer::say("done"),
        ]);
        // No name says that these are keys; the configuration does.
        let providers = format!(
            "[providers.mine]\nbase_url = \"{}\"\napi_key_env = \"THE_MODEL\"\n[providers.other]\nbase_url = \
             \"{}\"\napi_key_env = \"MINE\"\n",
            fake.url(),
            fake.url()
        );
        home.file("plimsoll.toml", format!("{passed}{providers}"));
        let args = [
            "run",
            "--yes",
            "--model",
            "mine/m",
            "--max-context",
            "20000",
            "Look.",
        ];
        let mut command = home.command(args);
        command
            .env("DEPLOY_TOKEN", "tok-0123456789abcdef")
            .env("MINE", "mine-0123456789abcdef")
            .env("THE_MODEL", "model-0123456789abcdef");
        feed(command, b"").done();
        let sent = fake.asked()[1].to_string();
        assert!(sent.contains(&format!("{told}\\n[exit 0]")), "{sent}");
    }
}
