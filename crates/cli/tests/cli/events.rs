//! `run --json`: every line is an event, as `plimsoll schema` describes it.

use std::collections::BTreeSet;

use boon::{Compiler, Schemas};
use serde_json::Value;

use super::command::Home;
use super::fake::{Fake, FakeAnswer};

/// The events of a run, each valid by the schema.
fn events(home: &Home, said: &str) -> BTreeSet<String> {
    let schema = serde_json::from_str(&home.run(["schema"]).done().out).unwrap();
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("event:schema", schema).unwrap();
    let index = compiler.compile("event:schema", &mut schemas).unwrap();
    let names = said.lines().map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        if let Err(error) = schemas.validate(&event, index) {
            panic!("{line}: {error:#}");
        }
        event["event"].as_str().unwrap().to_owned()
    });
    names.collect()
}

#[test]
fn every_event_is_as_the_schema_says() {
    let home = Home::new();
    home.file(
        "notes.txt",
        "a line of notes that says little\n".repeat(600),
    );
    let read = || FakeAnswer::call(&[("read", r#"{"path":"notes.txt"}"#)]);
    let fake = Fake::new([
        read(),
        FakeAnswer::call(&[("raed", r#"{"path":"notes.txt","limit":"5"}"#)]),
        read(),
        FakeAnswer::error(503, "overloaded").header("retry-after", "0"),
        FakeAnswer::call(&[("bash", r#"{"command":"true"}"#)]),
        read(),
        read(),
        read(),
        FakeAnswer::say("Done."),
    ]);
    let args = [
        "--json",
        "--max-context",
        "6000",
        "--max-turns",
        "11",
        "Read it.",
    ];
    let said = home.agent(&fake, &args).done();
    let names = events(&home, &said.out);
    for name in [
        "agent_start",
        "turn_start",
        "delta",
        "tool_call",
        "retrying",
        "tool_call_repaired",
        "plan_applied",
        "step",
        "turn_end",
        "agent_end",
    ] {
        assert!(names.contains(name), "no {name} in {names:?}");
    }
    let first: Value = serde_json::from_str(said.out.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["event"], &first["version"]),
        (&"agent_start".into(), &2.into())
    );
}

#[test]
fn what_is_no_event_is_refused_by_the_schema() {
    let home = Home::new();
    let schema: Value = serde_json::from_str(&home.run(["schema"]).done().out).unwrap();
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("event:schema", schema).unwrap();
    let index = compiler.compile("event:schema", &mut schemas).unwrap();
    for line in [
        r#"{"event":"nothing"}"#,
        r#"{"event":"warning"}"#,
        r#"{"event":"turn_start","turn":"one"}"#,
    ] {
        let event = serde_json::from_str(line).unwrap();
        assert!(schemas.validate(&event, index).is_err(), "{line}");
    }
}

#[test]
fn the_schema_is_the_one_that_the_library_generates() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/events.schema.json");
    let schema = format!("{:#}\n", plimsoll::events::event_schema());
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(file, &schema).unwrap();
    }
    let kept = std::fs::read_to_string(file).unwrap();
    assert!(
        kept == schema,
        "{file} is out of date: run this test with PLIMSOLL_BLESS=1"
    );
}
