//! `--json-schema`: an answer that a script can parse, or an exit code if there is none.

use super::command::Home;
use super::fake::{Fake, FakeAnswer};

const SCHEMA: &str =
    r#"{"type":"object","required":["licence"],"properties":{"licence":{"enum":["MIT","BSD"]}}}"#;

#[test]
fn the_answer_is_json_that_matches_the_schema() {
    let home = Home::new();
    home.file("answer.json", SCHEMA);
    let fake = Fake::new([
        FakeAnswer::say("It is MIT."),
        FakeAnswer::say(r#"{"licence":"GPL"}"#),
        FakeAnswer::say("```json\n{\"licence\": \"MIT\"}\n```"),
    ]);
    let args = ["-q", "--json-schema", "answer.json", "Which licence?"];
    let ran = home.agent(&fake, &args).done();
    assert_eq!(ran.out, "{\"licence\": \"MIT\"}\n");
    let asked = fake.asked();
    let said = |request: usize| asked[request]["messages"].to_string();
    assert!(said(0).contains("one JSON value and nothing else"));
    assert!(
        said(1).contains("the answer is not exactly one JSON value"),
        "{}",
        said(1)
    );
    assert!(said(2).contains("at '/licence': "), "{}", said(2));
}

#[test]
fn an_answer_that_never_matches_is_not_printed() {
    let home = Home::new();
    let fake = Fake::new(vec![FakeAnswer::say("It is MIT."); 4]);
    let args = ["--json-schema", SCHEMA, "Which licence?"];
    let ran = home.agent(&fake, &args);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
    let why = "check_answer refused: the answer is not exactly one JSON value";
    assert!(ran.err.contains(why), "{}", ran.err);
    assert_eq!(fake.asked().len(), 4);
    let fake = Fake::new(vec![FakeAnswer::say("{\"licence\":\"GPL\"}"); 4]);
    let ran = home.agent(&fake, &args);
    assert!(ran.err.contains("at '/licence': "), "{}", ran.err);
}

#[cfg(unix)]
#[test]
fn an_answer_that_a_hook_refuses_is_told_with_its_reason() {
    let home = Home::new();
    let hook = "on = \"check_answer\"\ncommand = [\"sh\", \"-c\", \"echo no good >&2; exit 2\"]\n";
    home.file("c.toml", format!("[[hooks]]\n{hook}"));
    let schema = ["--json-schema", SCHEMA];
    for schema in [&[][..], &schema] {
        let fake = Fake::new(vec![FakeAnswer::say("{\"licence\":\"MIT\"}"); 4]);
        let args = [&["-q", "--config", "c.toml"], schema, &["Which licence?"]].concat();
        let ran = home.agent(&fake, &args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
        assert!(
            ran.err.contains("check_answer refused: no good"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn a_schema_that_is_none_is_refused_before_anything_is_called() {
    let home = Home::new();
    let fake = Fake::new([]);
    let large = home.work().join("large.json");
    std::fs::File::create(large)
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    for (given, why) in [
        ("none.json", "--json-schema none.json: No such file"),
        (
            "large.json",
            "--json-schema: large.json is larger than 64 KiB",
        ),
        ("{\"type\":\"strong\"}", "is not a JSON Schema: at '/type'"),
    ] {
        home.agent(&fake, &["--json-schema", given, "Look."])
            .refused(2, &[why]);
    }
    let said = home.agent(&fake, &["--json-schema", SCHEMA]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("<TASK>"), "{}", said.err);
}
