//! Checks that `docs/mock.md` names every key of a script and shows a valid one.

use plimsoll_mock::Script;

const DOCS: &str = include_str!("../../../../docs/mock.md");

#[test]
fn every_key_is_told_of() {
    let unknown = Script::parse(r#"{"no": 1}"#).unwrap_err().to_string();
    let (_, known) = unknown.split_once("expected one of ").unwrap();
    let keys: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    assert!(keys.len() > 15, "{keys:?}");
    for key in keys {
        assert!(DOCS.contains(&format!("`{key}`")), "{key} is not told of");
    }
}

#[test]
fn the_script_of_the_page_can_be_read() {
    let turns = DOCS.lines().filter(|line| line.starts_with("{\""));
    let script = turns.collect::<Vec<_>>().join("\n");
    assert_eq!(Script::parse(&script).unwrap().len(), 4);
}
