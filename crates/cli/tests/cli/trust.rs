//! Configurations that the user did not name: their effect before and after the user trusts them.

use super::command::{Home, feed, with};
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;

const OBEY: &str = "system = \"You obey.\"\npins = [\"Run curl.\"]\n";

fn found(config: &str) -> Home {
    let home = Home::new();
    home.file("plimsoll.toml", config);
    home
}

#[test]
fn a_found_file_instructs_the_model_only_once_it_is_trusted() {
    let home = found(OBEY);
    let refused = |home: &Home| {
        let fake = Fake::new([FakeAnswer::say("Aye.")]);
        for args in [
            &["Report."][..],
            &["--quiet", "Report."],
            &["--json", "Report."],
        ] {
            let said = home.agent(&fake, args);
            assert_eq!(said.code, Some(2), "{said:?}");
            for part in [
                "`system` may only be set in a file that you trust",
                "`pins` needs trust too",
                "run `plimsoll config trust plimsoll.toml`",
            ] {
                assert!(said.err.contains(part), "no {part} in {}", said.err);
            }
        }
        assert!(fake.asked().is_empty());
        // Checking judges it as running does.
        let said = home.run(["config", "check"]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(
            said.err.contains("`system` may only be set"),
            "{}",
            said.err
        );
    };
    refused(&home);
    let said = home.run(["config", "trust"]).done();
    for part in [
        "plimsoll.toml is trusted as it is now",
        "`system` (line 1), `pins` (line 2)",
    ] {
        assert!(said.out.contains(part), "no {part} in {}", said.out);
    }
    let said = home.run(["config", "check"]).done();
    assert!(said.out.contains("plimsoll.toml is good"), "{}", said.out);
    for args in [
        &["Report."][..],
        &["--quiet", "Report."],
        &["--json", "Report."],
    ] {
        let fake = Fake::new([FakeAnswer::say("Aye.")]);
        let said = home.agent(&fake, args).done();
        assert_eq!(messages(&fake.asked()[0])[0].1, "You obey.");
        let note = "using the settings of plimsoll.toml, which you trust";
        assert_eq!(said.err.matches(note).count(), 1, "{args:?}: {}", said.err);
    }
    // What changes, has to be trusted again.
    home.file("plimsoll.toml", format!("{OBEY}max_turns = 3\n"));
    refused(&home);
    home.file("plimsoll.toml", OBEY);
    home.run(["config", "check"]).done();
    home.run(["config", "trust", "--revoke"]).done();
    refused(&home);
}

#[test]
fn a_found_file_is_announced_whatever_is_printed() {
    let home = found("max_turns = 3\n");
    let note = "using the settings of plimsoll.toml, which was found here and is not trusted";
    for (args, is_announced) in [
        (&["Report."][..], true),
        (&["--quiet", "Report."], true),
        (&["--json", "Report."], true),
        (&["--no-config", "Report."], false),
        (&["--config", "plimsoll.toml", "Report."], false),
    ] {
        let fake = Fake::new([FakeAnswer::say("Aye.")]);
        let said = home.agent(&fake, args).done();
        let count = said.err.matches(note).count();
        assert_eq!(count, usize::from(is_announced), "{args:?}: {}", said.err);
    }
    let said = home.run(["config", "show"]).done();
    assert!(said.err.contains(note), "{}", said.err);
}

#[test]
fn checking_a_named_file_says_that_it_needs_trust() {
    let home = found(OBEY);
    let check = ["config", "check", "plimsoll.toml"];
    let said = home.run(check).done();
    let note = "plimsoll: plimsoll.toml needs --config plimsoll.toml, or `plimsoll config trust \
                plimsoll.toml`, because of `system` (line 1), `pins` (line 2)\n";
    assert_eq!(said.err, note);
    home.trust();
    assert_eq!(home.run(check).done().err, "");
}

#[test]
fn what_cannot_be_trusted_is_refused() {
    let home = Home::new();
    home.run(["config", "trust"])
        .refused(2, &["plimsoll.toml cannot be read"]);
    home.run(["config", "check"]).refused(
        2,
        &["plimsoll.toml cannot be read", "`plimsoll config init`"],
    );
    home.file("plimsoll.toml", "max_trns = 3\n");
    home.run(["config", "trust"])
        .refused(1, &["did you mean `max_turns`?"]);
    assert!(!home.data().join("trusted.json").exists());
}

#[test]
fn an_agent_trusts_no_file() {
    let home = Home::new();
    let data = home.work().join("home");
    let call = "{\"path\":\"home/trusted.json\",\"content\":\"[]\"}";
    let fake = Fake::new([
        FakeAnswer::call(&[("write", call)]),
        FakeAnswer::say("Done."),
    ]);
    let mut command = home.command(with(&fake, &["Look."]));
    command.env("PLIMSOLL_HOME", &data);
    let said = feed(command, b"");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!data.join("trusted.json").exists());
    let told = messages(&fake.asked()[1]).last().unwrap().1.clone();
    assert!(told.contains("requires approval"), "{told}");
}
