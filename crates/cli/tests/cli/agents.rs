//! Agents of a configuration: which one runs, with which settings, checked by the requests that the
//! server received. Also the output of `config show`, `init` and `schema`.

use serde_json::Value;

use super::command::{Home, feed, with};
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;

const TWO: &str = "max_turns = 9\n[[agents]]\nname = \"bosun\"\nsystem = \"You are the bosun.\"\ntools = [\"read\"]\ntemperature = 0.25\nmax_turns = 3\n\
                   [[agents]]\nname = \"cook\"\nsystem = \"You are the cook.\"\ntools = \"none\"\nmax_tokens = 77\n";

fn home(config: &str) -> Home {
    let home = Home::new();
    home.file("plimsoll.toml", config);
    home
}

fn system(fake: &Fake) -> String {
    messages(&fake.asked()[0])[0].1.clone()
}

#[test]
fn an_agent_runs_as_its_configuration_says() {
    let home = home(TWO);
    for (args, prompt, key, value, tools) in [
        (
            &["--agent", "bosun"][..],
            "You are the bosun.",
            "temperature",
            Value::from(0.25),
            1,
        ),
        (
            &["--agent", "cook"],
            "You are the cook.",
            "max_tokens",
            77.into(),
            0,
        ),
        (
            &["--agent", "cook", "--max-tokens", "55"],
            "You are the cook.",
            "max_tokens",
            55.into(),
            0,
        ),
        (
            &["--agent", "cook", "--set", "seed=4"],
            "You are the cook.",
            "seed",
            4.into(),
            0,
        ),
    ] {
        let fake = Fake::new([FakeAnswer::say("Aye.")]);
        let said = home.agent(&fake, &[args, &["Report."]].concat()).done();
        assert!(
            said.err
                .contains("using the settings of plimsoll.toml, which you trust;"),
            "{}",
            said.err
        );
        assert_eq!(system(&fake), prompt);
        let asked = fake.asked();
        assert_eq!(asked[0][key], value, "{args:?}");
        let named = asked[0]["tools"].as_array().map_or(0, |tools| {
            let own = ["read", "bash", "write", "edit", "list", "glob", "grep"];
            let names = tools
                .iter()
                .filter_map(|tool| tool["function"]["name"].as_str());
            names.filter(|name| own.contains(name)).count()
        });
        assert_eq!(named, tools, "{args:?}");
    }
    let fake = Fake::new([FakeAnswer::say("Aye.")]);
    home.agent(&fake, &["Report."])
        .refused(2, &["several agents", "--agent: bosun, cook"]);
    home.agent(&fake, &["--agent", "bosum", "Report."])
        .refused(2, &["no agent `bosum`; did you mean `bosun`?"]);
    assert!(fake.asked().is_empty());
    let said = home.agent(&fake, &["--no-config", "Report."]).done();
    assert!(!said.err.contains("plimsoll.toml") && !system(&fake).contains("bosun"));
}

#[test]
fn the_only_agent_is_taken_and_said() {
    let home = home("[[agents]]\nname = \"bosun\"\nsystem = \"You are the bosun.\"\n");
    let fake = Fake::new([FakeAnswer::say("Aye.")]);
    let said = home.agent(&fake, &["Report."]).done();
    assert!(
        said.err.contains("agent bosun, the only one"),
        "{}",
        said.err
    );
    assert_eq!(system(&fake), "You are the bosun.");
    let fake = Fake::new([FakeAnswer::say("Aye.")]);
    let said = home.agent(&fake, &["--quiet", "Report."]).done();
    assert_eq!(said.out, "Aye.\n");
    assert!(!said.err.contains("bosun"), "{}", said.err);
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_file() {
    let home = home("seed = 1\n[[agents]]\nname = \"a\"\nseed = 2\n");
    for (variable, args, seed) in [
        (None, &[][..], 2),
        (Some("3"), &[], 3),
        (Some(""), &[], 2),
        (Some("3"), &["--seed", "4"], 4),
    ] {
        let fake = Fake::new([FakeAnswer::say("Aye.")]);
        let mut command = home.command(with(&fake, &[args, &["Report."]].concat()));
        if let Some(seed) = variable {
            command.env("PLIMSOLL_SEED", seed);
        }
        feed(command, b"").done();
        assert_eq!(fake.asked()[0]["seed"], seed);
    }
    let mut command = home.command(["config", "show", "--origin", "--max-turns", "7"]);
    command
        .env("PLIMSOLL_MAX_TOKENS", "99")
        .env("PLIMSOLL_MAX_TURN", "3");
    let said = feed(command, b"").done();
    for (line, origin) in [
        ("max_turns = 7", "# --max-turns"),
        ("max_tokens = 99", "# $PLIMSOLL_MAX_TOKENS"),
        ("seed = 2", "# plimsoll.toml:4:1"),
        ("# retry.max_attempts = 10", "# default"),
    ] {
        let shown = said.out.lines().find(|shown| shown.starts_with(line));
        assert!(
            shown.is_some_and(|shown| shown.ends_with(origin)),
            "{line} in {}",
            said.out
        );
    }
    let strange = "there is no setting PLIMSOLL_MAX_TURN\n";
    assert!(said.err.contains(strange), "{}", said.err);
    let said = home.run(["config", "show", "--json"]).done();
    let json: Value = serde_json::from_str(&said.out).unwrap();
    let seed = json
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["key"] == "seed")
        .unwrap();
    assert_eq!(
        (&seed["value"], &seed["origin"]["line"]),
        (&2.into(), &4.into())
    );
}

#[test]
fn rules_of_the_file_and_of_flags_decide_before_anybody_is_asked() {
    let call = || {
        [
            FakeAnswer::call(&[("bash", "{\"command\":\"echo land ho\"}")]),
            FakeAnswer::say("Done."),
        ]
    };
    for (config, args, ran) in [
        ("", &[][..], false),
        (
            "permissions = [{ tool = \"bash\", arguments = \"echo *\", then = \"allow\" }]\n",
            &[],
            true,
        ),
        (
            "permissions = [{ tool = \"bash\", then = \"deny\" }]\n",
            &["--yes"],
            false,
        ),
        ("", &["--allow", "bash:echo *"], true),
        ("", &["--allow", "bash:ls *"], false),
        ("", &["--yes", "--deny", "bash:*land*"], false),
        (
            "permissions = [{ tool = \"bash\", then = \"deny\" }]\n",
            &["--allow", "bash"],
            true,
        ),
    ] {
        let home = home(config);
        let fake = Fake::new(call());
        let args = [&["--config", "plimsoll.toml"][..], args, &["Look."]].concat();
        home.agent(&fake, &args).done();
        let last = fake.asked().pop().unwrap();
        let heard = messages(&last)
            .iter()
            .any(|(role, text)| role == "tool" && text.contains("land ho"));
        assert_eq!(heard, ran, "{config} {args:?}: {last}");
    }
}

#[test]
fn an_agent_calls_another_of_its_file() {
    let home = home(
        "[[agents]]\nname = \"captain\"\ntools = \"none\"\nsub_agents = [\"mate\"]\n[[agents]]\nname = \"mate\"\nsystem = \"You are the mate.\"\ndescription = \"Ties knots.\"\ntools = \"none\"\n",
    );
    let fake = Fake::new([
        FakeAnswer::call(&[("mate", "{\"task\":\"Tie a bowline.\"}")]),
        FakeAnswer::say("It is tied."),
        FakeAnswer::say("All is well."),
    ]);
    let said = home.agent(&fake, &["--agent", "captain", "Moor."]).done();
    assert_eq!(said.out, "All is well.\n");
    let asked = fake.asked();
    let called = messages(&asked[1]);
    assert_eq!(called[0].1, "You are the mate.");
    assert!(called[1].1.contains("Tie a bowline."));
    let told = messages(&asked[2]);
    assert!(
        told.iter()
            .any(|(role, text)| role == "tool" && text.contains("It is tied."))
    );
}

#[test]
fn guards_of_the_command_line_hold_for_agents_that_are_called() {
    let config = "[[agents]]\nname = \"captain\"\ntools = \"all\"\nsub_agents = [\"mate\"]\n\
                  [[agents]]\nname = \"mate\"\npermissions = [{ tool = \"bash\", then = \"allow\" }]\n";
    for (args, call, word) in [
        (
            &["--deny", "bash"][..],
            ("bash", "{\"command\":\"cat secret\"}"),
            "the rules of this run do not allow",
        ),
        (
            &["--root", "safe"],
            ("read", "{\"path\":\"../secret\"}"),
            "outside",
        ),
    ] {
        let home = home(config);
        home.file("secret", "hush");
        std::fs::create_dir(home.work().join("safe")).unwrap();
        let fake = Fake::new([
            FakeAnswer::call(&[("mate", "{\"task\":\"Look.\"}")]),
            FakeAnswer::call(&[call]),
            FakeAnswer::say("I could not."),
            FakeAnswer::say("Nobody could."),
        ]);
        let named = ["--config", "plimsoll.toml", "--agent", "captain", "--yes"];
        home.agent(&fake, &[&named[..], args, &["Look."]].concat())
            .done();
        let asked = fake.asked();
        let told = messages(&asked[2]);
        let result = &told.iter().find(|(role, _)| role == "tool").unwrap().1;
        assert!(
            result.contains(word) && !result.contains("hush"),
            "{result}"
        );
    }
}

#[test]
fn an_agent_that_cannot_be_made_ends_the_run_before_it_begins() {
    let home = home(
        "[[agents]]\nname = \"captain\"\nsub_agents = [\"mate\"]\n[[agents]]\nname = \"mate\"\nmodel = \"openai/gpt-5\"\n",
    );
    let fake = Fake::new([]);
    let named = ["--config", "plimsoll.toml", "--agent", "captain", "Look."];
    home.agent(&fake, &named)
        .refused(2, &["the agent `mate` cannot be made", "OPENAI_API_KEY"]);
    assert!(fake.asked().is_empty());
}

#[test]
fn who_says_no_is_said_and_why() {
    let home = home(
        "[[hooks]]\non = \"before_turn\"\ncommand = [\"sh\", \"-c\", \"echo it is Sunday >&2; exit 2\"]\n",
    );
    let args = ["--config", "plimsoll.toml", "Look."];
    let said = home.agent(&Fake::new([]), &args);
    said.refused(1, &["before_turn refused: it is Sunday"]);
    assert_eq!(
        said.err.matches("before_turn refused").count(),
        1,
        "{}",
        said.err
    );
}

#[test]
fn init_writes_a_good_file_once() {
    let home = Home::new();
    let said = home.run(["config", "init"]).done();
    assert!(said.err.contains("wrote plimsoll.toml"), "{}", said.err);
    home.run(["config", "check"]).done();
    let before = std::fs::read(home.work().join("plimsoll.toml")).unwrap();
    home.run(["config", "init"])
        .refused(2, &["plimsoll.toml is there already"]);
    assert_eq!(
        std::fs::read(home.work().join("plimsoll.toml")).unwrap(),
        before
    );
    home.run(["config", "init", "other.toml"]).done();
    home.run(["config", "init", "none/other.toml"])
        .refused(1, &["cannot be written"]);
    let fake = Fake::new([FakeAnswer::say("Aye.")]);
    home.agent(&fake, &["Report."]).done();
    let schema: Value = serde_json::from_str(&home.run(["config", "schema"]).done().out).unwrap();
    assert_eq!(schema["properties"]["max_turns"]["type"], "integer");
}

#[test]
fn every_agent_is_checked() {
    let said = home(TWO).run(["config", "check", "plimsoll.toml"]).done();
    for part in [
        "agent bosun",
        "\nmax_turns = 3\n",
        "agent cook",
        "\nmax_turns = 9\n",
    ] {
        assert!(said.out.contains(part), "no {part} in {}", said.out);
    }
    let said = home("[[agents]]\nname = \"a\"\n[agents.context]\nmax_context_tokens = 9\n[[agents]]\nname = \"b\"\ntrigger = 9\ntarget = 10\n")
        .run(["config", "check"]);
    said.refused(1, &["2 settings are faulty"]);
    for part in [
        "plimsoll.toml:4:1: every request would be compacted",
        "plimsoll.toml:7:1: the target is above the trigger",
    ] {
        assert!(said.err.contains(part), "no {part} in {}", said.err);
    }
}
