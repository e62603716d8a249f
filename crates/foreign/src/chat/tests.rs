//! Chats that are read and written: byte for byte if nothing changed.

use super::*;

const MESSAGES: &str = r#"{"model": "m", "system": [ ], "messages": [
  {"role":"user", "content":"One.", "x": 1.50},
  {"role":"assistant","content":[ {"type":"text","text":"a"} , {"type":"tool_use","id":"c","name":"f","input":{}}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}, 7, {"role":"user","content":[]}
 ], "max_tokens":  5}"#;

#[test]
fn every_entry_is_read_and_written_byte_for_byte() {
    for (text, protocol) in [
        (MESSAGES, Protocol::Messages),
        (
            r#" [ {"role":"user","content":"a"}, null ] "#,
            Protocol::Chat,
        ),
        (r#"{"input": "hello", "model": "m"}"#, Protocol::Responses),
        (
            r#"{"input": [{"type":"x"}], "instructions": "be"}"#,
            Protocol::Responses,
        ),
    ] {
        let chat = Chat::read(text, protocol).unwrap();
        assert_eq!(chat.write(), text);
    }
}

#[test]
fn a_changed_block_leaves_its_neighbors_as_they_were() {
    let mut chat = Chat::read(MESSAGES, Protocol::Messages).unwrap();
    let places: Vec<_> = chat.units.iter().map(|unit| unit.place).collect();
    assert!(chat.units[0].is_beside() && places[0].is_none());
    assert_eq!(places[3], Some(Place { entry: 1, block: 1 }));
    chat.units[1].edit()["text"] = "Uno.".into();
    chat.units[2].remove();
    let expected = concat!(
        r#"{"model":"m","system":[ ],"messages":[{"role":"user","content":[{"type":"text","text":"Uno."}],"x":1.50},"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]},7,"#,
        r#"{"role":"user","content":[]}],"max_tokens":5}"#
    );
    assert_eq!(chat.write(), expected);
    assert_eq!(chat.place(2), "messages[1]");
}

#[test]
fn units_of_a_log_become_messages_by_their_roles() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let units = vec![
        Unit::of_log(0, 0, Role::User, text("a")),
        Unit::of_log(1, 0, Role::Assistant, text("b")),
        Unit::of_log(2, 0, Role::Assistant, text("c")),
    ];
    let log = [4, 7, 7].map(|line| format!("line {line}")).to_vec();
    let mut chat = Chat::of_log(Protocol::Messages, log, Some("be".into()), units);
    // The system prompt is the first unit.
    assert_eq!(chat.place(3), "line 7");
    let turn = chat.new_turn();
    chat.units.push(Unit::inserted(Role::User, turn, text("d")));
    let expected = concat!(
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]},"#,
        r#"{"role":"user","content":[{"type":"text","text":"d"}]}],"system":"be"}"#
    );
    assert_eq!(chat.write(), expected);
}
