//! Builds without some features: using a missing feature gives one sentence with the remedy. In all
//! other respects, such builds behave like the full one.

use super::command::Home;
#[cfg(not(feature = "otlp"))]
use super::command::{feed, with};
#[cfg(not(all(feature = "otlp", feature = "mcp")))]
use super::fake::Fake;
#[cfg(not(feature = "otlp"))]
use super::fake::FakeAnswer;

#[cfg(not(feature = "otlp"))]
#[test]
fn a_collector_is_not_in_this_build_and_the_run_goes_on() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::say("Aye.")]);
    let mut command = home.command(with(&fake, &["Look."]));
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
    command.env("PLIMSOLL_LOG", "info");
    let said = feed(command, b"").done();
    assert_eq!(said.out, "Aye.\n");
    let told: Vec<&str> = said
        .err
        .lines()
        .filter(|line| line.contains("otlp"))
        .collect();
    assert_eq!(told.len(), 1, "{}", said.err);
    assert!(told[0].contains("--features otlp"), "{told:?}");
    // The log is there all the same.
    assert!(said.err.contains("invoke_agent"), "{}", said.err);
}

#[cfg(not(feature = "acp"))]
#[test]
fn an_editor_is_told_that_its_agent_is_not_in_this_build() {
    let said = Home::new().run(["acp"]);
    said.refused(2, &["the feature `acp`"]);
}

#[cfg(not(feature = "mcp"))]
#[test]
fn servers_of_tools_are_not_in_this_build_and_nothing_is_run_without_them() {
    let home = Home::new();
    home.file(
        "plimsoll.toml",
        "[[mcp]]\nname = \"ship\"\ncommand = \"no-such-program\"\n",
    );
    let idle = Fake::new([]);
    let said = home.agent(&idle, &["--config", "plimsoll.toml", "Look."]);
    said.refused(2, &["[[mcp]]", "the feature `mcp`"]);
    assert!(idle.asked().is_empty());
    let said = home.run(["config", "check", "plimsoll.toml", "--connect"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let told = format!("{}{}", said.out, said.err);
    assert!(told.contains("the feature `mcp`"), "{told}");
}
