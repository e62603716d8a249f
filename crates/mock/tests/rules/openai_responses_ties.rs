//! Items that belong to the reasoning before them (OR4), and the time that a long input takes.

use plimsoll_mock::rules::openai_responses::{tied, untied, validate};
use plimsoll_wire::openai_responses::ResponsesProfile;
use serde_json::{Value, json};

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn said(text: &str) -> Value {
    json!({"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": text}]})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "done"})
}

fn thought() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"})
}

fn with(mut item: Value, key: &str, value: impl Into<Value>) -> Value {
    item[key] = value.into();
    item
}

fn request(input: &[Value]) -> Value {
    json!({"model": "gpt-5", "input": input, "store": false,
        "include": ["reasoning.encrypted_content"]})
}

/// Only the server knows to which reasoning an id belongs.
#[test]
fn an_item_with_an_id_needs_the_reasoning_before_it() {
    let item = with(call("a"), "id", "fc_1");
    let message = with(said("x"), "id", "msg_1");
    let alone = [user("q"), item.clone(), output("a"), message.clone()];
    let made = [thought(), message.clone(), item.clone()];
    let ties = tied(&made);
    let tie = |id: &str| ties.get(id).cloned();
    let words = |list: &[Value]| untied(&request(list), tie).map(|fault| fault.words);
    let fc = "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' \
              item: 'rs_1'.";
    let msg = "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: \
               'rs_1'.";
    let (fc, msg) = (Some(fc.to_owned()), Some(msg.to_owned()));
    assert_eq!(words(&[user("q"), item.clone(), output("a")]), fc);
    assert_eq!(words(&[user("q"), message.clone()]), msg);
    // That of an earlier turn is not its own.
    let earlier = [
        user("q"),
        thought(),
        said("x"),
        user("r"),
        item.clone(),
        output("a"),
    ];
    assert_eq!(words(&earlier), fc);
    for good in [
        vec![user("q"), thought(), message, item, output("a")],
        // Without its id it says nothing of reasoning.
        vec![user("q"), call("a"), output("a")],
        vec![user("q"), with(call("a"), "id", "fc_2"), output("a")],
    ] {
        assert_eq!(words(&good), None, "{good:?}");
    }
    // Nothing was reasoned before it.
    assert!(tied(&alone).is_empty());
}

/// Whatever the order, a long input is judged in one go.
#[test]
fn a_long_input_is_judged_quickly() {
    let many = 40_000;
    let mut list = vec![call("a")];
    list.extend(vec![user("hm"); many]);
    list.push(output("a"));
    list.extend(vec![thought(); many]);
    list.push(said("x"));
    list.extend((0..many).map(|at| call(&format!("c{at}"))));
    list.extend((0..many).rev().map(|at| output(&format!("c{at}"))));
    assert_eq!(validate(&request(&list), &ResponsesProfile::openai()), []);
}
