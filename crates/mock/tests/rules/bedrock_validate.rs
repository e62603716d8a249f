//! Bedrock's validator: a failing and a passing request for each rule, with the API's messages. No
//! JSON makes it panic.

use plimsoll_mock::rules::MAX_FAULTS;
use plimsoll_mock::rules::bedrock::{refusal, validate};
use plimsoll_testkit::json_of;
use plimsoll_wire::bedrock::ConverseProfile;
use plimsoll_wire::overflow::{Verdict, classify};
use proptest::prelude::*;
use serde_json::{Value, json};

const CLAUDE: &str = "anthropic.claude-sonnet-4-5-20250929-v1:0";
const MISTRAL: &str = "mistral.mistral-large-2407-v1:0";

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"text": text}]})
}

fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"text": text}]})
}

fn asks(ids: &[&str]) -> Value {
    let blocks: Vec<Value> = ids
        .iter()
        .map(|id| json!({"toolUse": {"toolUseId": id, "name": "f", "input": {}}}))
        .collect();
    json!({"role": "assistant", "content": blocks})
}

fn result(id: &str) -> Value {
    json!({"toolResult": {"toolUseId": id, "content": [{"text": "done"}]}})
}

fn results(ids: &[&str]) -> Value {
    let blocks: Vec<Value> = ids.iter().map(|id| result(id)).collect();
    json!({"role": "user", "content": blocks})
}

fn request(messages: &[Value]) -> Value {
    json!({
        "messages": messages,
        "toolConfig": {"tools": [{"toolSpec": {"name": "f",
            "inputSchema": {"json": {"type": "object"}}}}]},
    })
}

fn told(request: &Value, model: &str) -> Vec<(String, String)> {
    let faults = validate(request, &ConverseProfile::of_model(model));
    let told = faults.into_iter().map(|fault| {
        let (status, body) = refusal(&fault);
        // Whoever gets it must not send the same request again.
        assert_eq!(classify(Some(status), &body.to_string()), Verdict::Invalid);
        assert_eq!(body, json!({"message": fault.words}));
        (fault.rule.to_string(), fault.words)
    });
    told.collect()
}

/// Breaks exactly these rules, one of them in these words; the second request breaks none.
fn case(model: &str, broken: &[&str], words: &str, bad: &Value, good: &Value) {
    let told_of_bad = told(bad, model);
    let rules: Vec<&str> = told_of_bad.iter().map(|(rule, _)| rule.as_str()).collect();
    assert_eq!(rules, broken, "{bad}");
    let said = told_of_bad.iter().any(|(_, said)| said.contains(words));
    assert!(said, "{words}: {told_of_bad:?}");
    assert_eq!(told(good, model), [], "{good}");
}

fn row(model: &str, broken: &[&str], words: &str, bad: &[Value], good: &[Value]) {
    case(model, broken, words, &request(bad), &request(good));
}

#[test]
fn br1_the_user_speaks_first_and_roles_alternate() {
    let good = [user("q"), said("x"), user("r")];
    let first = "A conversation must start with a user message. Try again with a conversation that \
                 starts with a user message.";
    row(CLAUDE, &["BR1"], first, &[said("x"), user("q")], &good);
    row(CLAUDE, &["BR1"], first, &[], &good);
    let alternate = "A conversation must alternate between user and assistant roles. Make sure the \
                     conversation alternates between user and assistant roles and try again.";
    row(CLAUDE, &["BR1"], alternate, &[user("q"), user("r")], &good);
    row(
        CLAUDE,
        &["BR1"],
        alternate,
        &[user("q"), said("x"), said("y"), user("r")],
        &good,
    );
}

#[test]
fn br2_no_more_results_than_calls() {
    let good = [user("q"), asks(&["a"]), results(&["a"])];
    let words = |at: usize| {
        format!(
            "The number of toolResult blocks at messages.{at}.content exceeds the number of \
             toolUse blocks of previous turn."
        )
    };
    row(CLAUDE, &["BR2"], &words(0), &[results(&["a"])], &good);
    row(
        CLAUDE,
        &["BR2"],
        &words(2),
        &[user("q"), said("x"), results(&["a"])],
        &good,
    );
    row(
        CLAUDE,
        &["BR2"],
        &words(2),
        &[user("q"), asks(&["a"]), results(&["a", "a"])],
        &good,
    );
}

#[test]
fn br3_all_results_stand_in_the_next_message() {
    let good = [user("q"), asks(&["a", "b"]), results(&["a", "b"])];
    let words = "Expected toolResult blocks at messages.2.content for the following Ids: ";
    let both = format!("{words}a, b");
    row(
        CLAUDE,
        &["BR3"],
        &both,
        &[user("q"), asks(&["a", "b"]), user("r")],
        &good,
    );
    row(
        CLAUDE,
        &["BR3"],
        &both,
        &[user("q"), asks(&["a", "b"])],
        &good,
    );
    row(
        CLAUDE,
        &["BR3", "V4"],
        &format!("{words}b"),
        &[user("q"), asks(&["a", "b"]), results(&["a"])],
        &good,
    );
    // One message for each result, which is how Chat Completions has them.
    row(
        CLAUDE,
        &["BR1", "BR3", "V4", "BR2"],
        &format!("{words}b"),
        &[
            user("q"),
            asks(&["a", "b"]),
            results(&["a"]),
            results(&["b"]),
        ],
        &good,
    );
}

#[test]
fn br4_results_stand_alone_for_some_models() {
    let mixed = json!({"role": "user", "content": [result("a"), {"text": "and now"}]});
    let mixed = [user("q"), asks(&["a"]), mixed];
    let alone = [user("q"), asks(&["a"]), results(&["a"])];
    row(
        MISTRAL,
        &["BR4"],
        "Conversation blocks and tool result blocks cannot be provided in the same turn.",
        &mixed,
        &alone,
    );
    assert_eq!(told(&request(&mixed), CLAUDE), []);
}

#[test]
fn br5_tools_are_configured_where_the_history_has_tool_blocks() {
    let good = request(&[user("q"), asks(&["a"]), results(&["a"])]);
    let mut bad = good.clone();
    bad.as_object_mut().unwrap().remove("toolConfig");
    let words = "The toolConfig field must be defined when using toolUse and toolResult content \
                 blocks.";
    case(CLAUDE, &["BR5"], words, &bad, &good);
    assert_eq!(told(&json!({"messages": [user("q")]}), CLAUDE), []);
}

#[test]
fn br6_names_and_choices_of_tools() {
    let good = request(&[user("q"), asks(&["a"]), results(&["a"])]);
    let mut bad = good.clone();
    bad["messages"][1]["content"][0]["toolUse"]["name"] = "fs.read".into();
    let words = "1 validation error detected: Value 'fs.read' at \
                 'messages.2.member.content.1.member.toolUse.name' failed to satisfy constraint: \
                 Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+";
    case(CLAUDE, &["BR6"], words, &bad, &good);
    let mut bad = good.clone();
    bad["toolConfig"]["tools"][0]["toolSpec"]["name"] = "x".repeat(65).into();
    let words = "'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint: Member \
                 must have length less than or equal to 64";
    case(CLAUDE, &["BR6"], words, &bad, &good);
    for choice in [
        json!({"auto": {}}),
        json!({"any": {}}),
        json!({"tool": {"name": "f"}}),
    ] {
        let mut good = good.clone();
        good["toolConfig"]["toolChoice"] = choice;
        let mut bad = good.clone();
        bad["toolConfig"]["toolChoice"] = json!({"none": {}});
        let words = "must set one of the following keys: auto, any, tool";
        case(CLAUDE, &["BR6"], words, &bad, &good);
    }
}

#[test]
fn v3_results_stand_in_the_order_of_their_calls() {
    row(
        CLAUDE,
        &["V3"],
        "in the order of its calls",
        &[user("q"), asks(&["a", "b"]), results(&["b", "a"])],
        &[user("q"), asks(&["a", "b"]), results(&["a", "b"])],
    );
    row(
        CLAUDE,
        &["V3"],
        "duplicate Ids",
        &[user("q"), asks(&["a", "a"]), results(&["a", "a"])],
        &[user("q"), asks(&["a", "b"]), results(&["a", "b"])],
    );
}

#[test]
fn the_last_word() {
    let words = "This model does not support assistant message prefill. The conversation must end \
                 with a user message.";
    let bad = [user("q"), said("x")];
    row(
        "eu.anthropic.claude-opus-4-6-v1",
        &["AM8"],
        words,
        &bad,
        &[user("q")],
    );
    assert_eq!(told(&request(&bad), CLAUDE), []);
}

#[test]
fn shapes() {
    let good = request(&[user("q"), asks(&["a"]), results(&["a"])]);
    let changed = |path: &str, value: Value| {
        let mut request = good.clone();
        *request.pointer_mut(path).unwrap() = value;
        request
    };
    for (bad, words) in [
        (
            changed("/messages/0/role", json!("system")),
            "enum value set: [user, assistant]",
        ),
        (
            changed("/messages/0/content", json!([])),
            "The content field in the Message object at messages.0 is empty. Add a ContentBlock \
             object to the content field and try again.",
        ),
        (
            changed("/messages/0/content/0/text", json!(" ")),
            "The text field in the ContentBlock object at messages.0.content.0 is blank. Add text \
             to the text field, and try again.",
        ),
        (
            changed("/messages/0/content/0", json!({})),
            "ContentBlock object at messages.0.content.0 must set one of the following keys",
        ),
        (
            changed("/messages/1/content/0/toolUse/input", json!("{}")),
            "messages.1.content.0.toolUse.input is invalid",
        ),
        (
            changed(
                "/messages/2/content/0/toolResult",
                json!({"toolUseId": "a", "status": "error", "content": []}),
            ),
            "The content field at messages.2.content.0.toolResult cannot be empty when status \
             value is error.",
        ),
        (
            changed("/toolConfig/tools", json!([])),
            "'toolConfig.tools'",
        ),
    ] {
        let told = told(&bad, CLAUDE);
        assert!(
            told.iter().any(|(_, said)| said.contains(words)),
            "{words}: {told:?}"
        );
    }
    let ids = [user("q"), asks(&["a b"]), results(&["a b"])];
    assert_eq!(told(&request(&ids), CLAUDE).len(), 2);
    let many = vec![json!({"role": "robot"}); 1000];
    let faults = validate(&json!({ "messages": many }), &ConverseProfile::default());
    assert_eq!(faults.len(), MAX_FAULTS);
}

/// JSON made of the keys and values that the validator looks for, in places they belong or not.
fn arbitrary_json() -> impl Strategy<Value = Value> {
    json_of(
        "messages role content text toolUse toolResult toolUseId name input status toolConfig \
         tools toolSpec toolChoice none cachePoint",
        "user assistant a",
    )
}

/// Messages that are nearly right.
fn message() -> impl Strategy<Value = Value> {
    let block = prop_oneof![
        Just(json!({"text": "x"})),
        Just(json!({"toolUse": {"toolUseId": "a", "name": "f", "input": {}}})),
        Just(result("a")),
        arbitrary_json(),
    ];
    let role = prop_oneof![Just("user"), Just("assistant")];
    (role, proptest::collection::vec(block, 0..4))
        .prop_map(|(role, content)| json!({"role": role, "content": content}))
}

proptest! {
    #[test]
    fn no_json_breaks_it(
        value in arbitrary_json(),
        messages in proptest::collection::vec(message(), 0..8),
    ) {
        for model in [CLAUDE, MISTRAL, ""] {
            let profile = ConverseProfile::of_model(model);
            let _ = validate(&value, &profile);
            let _ = validate(&json!([value]), &profile);
            for fault in validate(&json!({ "messages": messages }), &profile) {
                let _ = refusal(&fault);
            }
        }
    }
}
