//! The validator of Anthropic Messages: a failing and a passing request for each rule, with the
//! API's messages. No JSON makes it panic.

use plimsoll_context::Bytes;
use plimsoll_mock::rules::MAX_FAULTS;
use plimsoll_mock::rules::anthropic::{refusal, sign, validate, validate_announced};
use plimsoll_testkit::json_of;
use plimsoll_wire::anthropic::MessagesProfile;
use plimsoll_wire::overflow::{Verdict, classify};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Takes prefills and thinks by a budget.
const BUDGET: &str = "claude-sonnet-4-5";
/// Takes no prefill and thinks as it sees fit.
const ADAPTIVE: &str = "claude-opus-4-6";
/// Binds thinking to what stands before it.
const BOUND: &str = "claude-opus-5-5";

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn said(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "read", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "done"})
}

fn thinking(text: &str, signature: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": signature})
}

fn question() -> Value {
    user(json!("q"))
}

fn request(messages: &[Value]) -> Value {
    json!({
        "model": "m",
        "max_tokens": 2_000,
        "tools": [{"name": "read", "description": "", "input_schema": {"type": "object"}}],
        "messages": messages,
    })
}

fn with(mut request: Value, key: &str, value: Value) -> Value {
    request[key] = value;
    request
}

fn rules(request: &Value, model: &str) -> Vec<String> {
    let faults = validate(request, &MessagesProfile::of_model(model));
    faults.iter().map(|fault| fault.rule.to_string()).collect()
}

/// Breaks exactly these rules for the model, first in these words; the second request breaks none.
#[track_caller]
fn row(model: &str, broken: &[&str], words: &str, bad: &Value, good: &Value) {
    assert_eq!(rules(bad, model), broken, "{bad}");
    let faults = validate(bad, &MessagesProfile::of_model(model));
    assert!(faults[0].words.contains(words), "{}", faults[0].words);
    assert_eq!(rules(good, model), [""; 0], "{good}");
    let (status, body) = refusal(&faults[0]);
    assert_eq!(status, 400);
    assert_eq!(body["error"]["type"], "invalid_request_error");
    assert_eq!(
        classify(Some(status), &body.to_string()),
        Verdict::Invalid,
        "{body}"
    );
}

/// The same of messages alone.
#[track_caller]
fn messages(model: &str, broken: &[&str], words: &str, bad: &[Value], good: &[Value]) {
    row(model, broken, words, &request(bad), &request(good));
}

fn whole() -> Vec<Value> {
    vec![
        question(),
        said(json!([text("both"), call("a"), call("b")])),
        user(json!([result("a"), result("b"), text("and now?")])),
    ]
}

#[test]
fn am1_every_call_is_answered_in_the_next_message() {
    let words = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately \
                 after: a. Each `tool_use` block must have a corresponding `tool_result` block in \
                 the next message.";
    let calls = said(json!([call("a")]));
    for after in [vec![], vec![question()]] {
        let bad = [vec![question(), calls.clone()], after].concat();
        let good = [question(), calls.clone(), user(json!([result("a")]))];
        messages(BUDGET, &["AM1"], words, &bad, &good);
    }
    // The answer comes a message too late.
    let late = [
        question(),
        calls,
        said(json!("x")),
        user(json!([result("a")])),
    ];
    messages(BUDGET, &["AM1", "AM2"], words, &late, &whole());
}

#[test]
fn am1_and_am2_hold_for_the_providers_own_tools_too() {
    let call = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
        "input": {"query": "q"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": []});
    let good = [
        question(),
        said(json!([call, found, text("so")])),
        question(),
    ];
    messages(
        BUDGET,
        &["AM2"],
        "unexpected `tool_use_id` found in `web_search_tool_result` blocks: srvtoolu_1",
        &[question(), said(json!([found, text("so")])), question()],
        &good,
    );
    messages(
        BUDGET,
        &["AM1"],
        "`web_search` tool use with id `srvtoolu_1` was found without a corresponding \
         `web_search_tool_result` block",
        &[question(), said(json!([call, text("so")])), question()],
        // The turn was paused: it goes on from here.
        &[question(), said(json!([call]))],
    );
    // That is no prefill.
    let paused = request(&[question(), said(json!([text("so"), call]))]);
    assert_eq!(rules(&paused, ADAPTIVE), [""; 0]);
    let compacted = json!({"type": "compaction", "content": "All so far."});
    let paused = request(&[question(), said(json!([compacted]))]);
    assert_eq!(rules(&paused, ADAPTIVE), [""; 0]);
}

/// A program that runs at the provider's asks for the host's tools: it is open until it is done.
#[test]
fn am1_a_program_may_wait_for_the_results_of_the_hosts_tools() {
    let code = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution",
        "input": {"code": "await q()"}});
    let asks = |id: &str| {
        let caller = json!({"type": "code_execution_20250825", "tool_id": "srvtoolu_1"});
        with(call(id), "caller", caller)
    };
    let done = json!({"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1",
        "content": {"type": "code_execution_result", "stdout": "3", "stderr": "",
            "return_code": 0, "content": []}});
    let once = [
        question(),
        said(json!([code, asks("a")])),
        user(json!([result("a")])),
    ];
    let twice = [said(json!([asks("b")])), user(json!([result("b")]))];
    let end = [said(json!([done, text("3")])), question()];
    for good in [
        once.to_vec(),
        [once.as_slice(), &twice].concat(),
        [once.as_slice(), &twice, &end].concat(),
        // It was called beside a tool of the host's, whose result comes first.
        vec![
            question(),
            said(json!([code, call("a")])),
            user(json!([result("a")])),
        ],
    ] {
        assert_eq!(rules(&request(&good), BUDGET), [""; 0], "{good:?}");
    }
    let words = "`code_execution` tool use with id `srvtoolu_1` was found without";
    for bad in [
        // Nothing came from it, and something else goes on.
        vec![
            question(),
            said(json!([code, call("a")])),
            user(json!([result("a"), text("so?")])),
        ],
        vec![
            question(),
            said(json!([code, call("a")])),
            user(json!([result("a")])),
            said(json!([call("b")])),
            user(json!([result("b")])),
        ],
        vec![question(), said(json!([code, text("so")]))],
    ] {
        messages(BUDGET, &["AM1"], words, &bad, &once);
    }
}

#[test]
fn am2_every_result_answers_the_message_before_it() {
    let words = "unexpected `tool_use_id` found in `tool_result` blocks: z. Each `tool_result` \
                 block must have a corresponding `tool_use` block in the previous message.";
    let orphan = [question(), said(json!("x")), user(json!([result("z")]))];
    messages(BUDGET, &["AM2"], words, &orphan, &whole());
    let calls = said(json!([call("a")]));
    let extra = [question(), calls, user(json!([result("a"), result("z")]))];
    messages(BUDGET, &["AM2"], words, &extra, &whole());
    let words = "messages.0.content.0: unexpected";
    messages(
        BUDGET,
        &["AM2"],
        words,
        &[user(json!([result("z")]))],
        &whole(),
    );
}

#[test]
fn am3_results_come_first_and_together() {
    let words = "messages.2: Did not find 2 `tool_result` block(s) at the beginning of this \
                 message. Messages following `tool_use` blocks must begin with a matching number \
                 of `tool_result` blocks.";
    for content in [
        json!([text("wait"), result("a"), result("b")]),
        json!([result("a"), text("wait"), result("b")]),
    ] {
        let mut bad = whole();
        bad[2] = user(content);
        messages(BUDGET, &["AM3"], words, &bad, &whole());
    }
}

#[test]
fn am4_every_call_has_a_single_result() {
    let mut bad = whole();
    bad[2] = user(json!([result("a"), result("b"), result("b")]));
    let words = "each tool_use must have a single result. Found multiple `tool_result` blocks \
                 with id: b";
    messages(BUDGET, &["AM4"], words, &bad, &whole());
}

#[test]
fn am5_ids_have_letters_digits_dashes() {
    let with = |id: &str| {
        [
            question(),
            said(json!([call(id)])),
            user(json!([result(id)])),
        ]
    };
    let words = "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'";
    for bad in ["a.b", "", "functions:read", "ü"] {
        messages(
            BUDGET,
            &["AM5", "AM5"],
            words,
            &with(bad),
            &with("toolu_01-A"),
        );
    }
}

#[test]
fn am6_no_text_is_empty() {
    let empty = "messages: text content blocks must be non-empty";
    let blank = "messages: text content blocks must contain non-whitespace text";
    let nothing = "all messages must have non-empty content except for the optional final \
                   assistant message";
    let good = [user(json!([text("q")]))];
    for (content, words) in [
        (json!([text("")]), empty),
        (json!([text("q"), text(" \n")]), blank),
        (json!(" "), blank),
        (json!(""), nothing),
        (json!([]), nothing),
    ] {
        messages(BUDGET, &["AM6"], words, &[user(content)], &good);
    }
    let inside = |inner: Value| {
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": inner});
        [question(), said(json!([call("a")])), user(json!([result]))]
    };
    messages(
        BUDGET,
        &["AM6"],
        empty,
        &inside(json!([text("")])),
        &inside(json!("")),
    );
    let system = |text: &str| {
        with(
            request(&good),
            "system",
            json!([{"type": "text", "text": text}]),
        )
    };
    let words = "system: text content blocks must be non-empty";
    row(BUDGET, &["AM6"], words, &system(""), &system("Be brief."));
    messages(
        BUDGET,
        &["AM6"],
        "messages: final assistant content cannot end with trailing whitespace",
        &[question(), said(json!("Well, "))],
        &[question(), said(json!([text("Well,")]))],
    );
}

#[test]
fn am7_the_user_speaks_first() {
    let words = "messages: first message must use the \"user\" role";
    messages(
        BUDGET,
        &["AM7"],
        words,
        &[said(json!("x")), question()],
        &whole(),
    );
    let words = "messages: at least one message is required";
    // Neighbours of one role are merged by the API.
    messages(BUDGET, &["AM7"], words, &[], &[question(), question()]);
}

#[test]
fn am8_no_prefill_from_4_6_on() {
    let prefill = [question(), said(json!("Well,"))];
    let words = "This model does not support assistant message prefill. The conversation must end \
                 with a user message.";
    messages(ADAPTIVE, &["AM8"], words, &prefill, &whole());
    assert_eq!(rules(&request(&prefill), BUDGET), [""; 0]);
}

#[test]
fn am9_a_loop_begins_with_thinking_while_the_model_thinks() {
    let on = json!({"type": "enabled", "budget_tokens": 1_024});
    let thinks = |messages: &[Value]| with(request(messages), "thinking", on.clone());
    let opened = |first: Value| {
        vec![
            question(),
            said(json!([first, text("both"), call("a")])),
            user(json!([result("a")])),
            // Later steps of a loop may lack it.
            said(json!([call("b")])),
            user(json!([result("b")])),
        ]
    };
    let words = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found \
                 `text`. When `thinking` is enabled, a final `assistant` message must start with a \
                 thinking block (preceeding the lastmost set of `tool_use` and `tool_result` \
                 blocks).";
    let redacted = json!({"type": "redacted_thinking", "data": "EmwK"});
    for good in [thinking("hm", "EqQB"), redacted] {
        row(
            BUDGET,
            &["AM9"],
            words,
            &thinks(&whole()),
            &thinks(&opened(good)),
        );
    }
    // A loop that is over may lack it, and where thinking is adaptive every one.
    let over = [whole(), vec![said(json!("done")), question()]].concat();
    assert_eq!(rules(&thinks(&over), BUDGET), [""; 0]);
    let adaptive = with(request(&whole()), "thinking", json!({"type": "adaptive"}));
    assert_eq!(rules(&adaptive, ADAPTIVE), [""; 0]);
    messages(
        BUDGET,
        &["AM9"],
        "messages.1: The final block in an assistant message cannot be `thinking`.",
        &[
            question(),
            said(json!([text("x"), thinking("hm", "EqQB")])),
            question(),
        ],
        &[
            question(),
            said(json!([thinking("hm", "EqQB"), text("x")])),
            question(),
        ],
    );
}

#[test]
fn am10_thinking_comes_back_as_it_was_signed() {
    let answers = |block: Value| [question(), said(json!([block, text("x")])), question()];
    let good = answers(thinking("hm", "EqQB"));
    for (block, words) in [
        (
            json!({"type": "thinking", "thinking": "hm"}),
            "thinking.signature: Field required",
        ),
        (
            thinking("hm", ""),
            "Invalid `signature` in `thinking` block",
        ),
        (
            json!({"type": "redacted_thinking"}),
            "redacted_thinking.data: Field required",
        ),
    ] {
        messages(BUDGET, &["AM10"], words, &answers(block), &good);
    }
    // What a simulated server signed, it knows again.
    let signature = sign(&request(&[question()]), "hm");
    let good = answers(thinking("hm", &signature));
    let altered = answers(thinking("Hm", &signature));
    let words = "messages.1.content.0: Invalid `signature` in `thinking` block";
    messages(BUDGET, &["AM10"], words, &altered, &good);
    let elsewhere = |block: Value| {
        [
            user(json!("another question")),
            said(json!([block, text("x")])),
            question(),
        ]
    };
    let moved = elsewhere(thinking("hm", &signature));
    let words = "The block is bound to a different conversation";
    messages(BOUND, &["AM10"], words, &moved, &good);
    // Older models sign only the block itself; breakpoints are no part of anything.
    assert_eq!(rules(&request(&moved), BUDGET), [""; 0]);
    let marked =
        user(json!([{"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}]));
    let marked = [vec![marked], good[1..].to_vec()].concat();
    assert_eq!(rules(&request(&marked), BOUND), [""; 0]);
}

fn mark(ttl: Option<&str>) -> Value {
    match ttl {
        None => json!({"type": "ephemeral"}),
        Some(ttl) => json!({"type": "ephemeral", "ttl": ttl}),
    }
}

#[test]
fn am11_breakpoints() {
    let marked = |ttls: &[Option<&str>]| {
        let blocks = ttls
            .iter()
            .map(|ttl| with(text("q"), "cache_control", mark(*ttl)));
        request(&[user(blocks.collect())])
    };
    let words = "A maximum of 4 blocks with cache_control may be provided. Found 5.";
    row(
        BUDGET,
        &["AM11"],
        words,
        &marked(&[None; 5]),
        &marked(&[None; 4]),
    );
    let words = "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not \
                 come after a ttl='5m' cache_control block. Note that blocks are processed in the \
                 following order: `tools`, `system`, `messages`.";
    let good = marked(&[Some("1h"), Some("5m")]);
    row(
        BUDGET,
        &["AM11"],
        words,
        &marked(&[None, Some("1h")]),
        &good,
    );
    // Tools come before messages, wherever they stand in the body.
    let mut tools = marked(&[Some("1h")]);
    tools["tools"][0]["cache_control"] = mark(None);
    row(BUDGET, &["AM11"], "a ttl='1h'", &tools, &good);
    let words = "Input should be '5m' or '1h'";
    row(BUDGET, &["AM11"], words, &marked(&[Some("2h")]), &good);
    let mut kind = good.clone();
    kind["messages"][0]["content"][0]["cache_control"]["type"] = "persistent".into();
    row(
        BUDGET,
        &["AM11"],
        "Input should be 'ephemeral'",
        &kind,
        &good,
    );
    let block = with(thinking("hm", "EqQB"), "cache_control", mark(None));
    let bad = request(&[question(), said(json!([block, text("x")])), question()]);
    let words = "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted";
    row(BUDGET, &["AM11"], words, &bad, &good);
    let empty = with(text(""), "cache_control", mark(None));
    let bad = request(&[user(json!([text("q"), empty]))]);
    assert_eq!(rules(&bad, BUDGET), ["AM6", "AM11"]);
}

#[test]
fn am13_a_body_has_a_largest_size() {
    let profile = MessagesProfile {
        max_body: Bytes(1_000),
        ..MessagesProfile::of_model(BUDGET)
    };
    let large = request(&[user(json!("q".repeat(1_000)))]);
    let faults = validate(&large, &profile);
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].rule.to_string(), "AM13");
    let (status, body) = refusal(&faults[0]);
    assert_eq!(
        (status, body["error"]["type"].as_str()),
        (413, Some("request_too_large"))
    );
    assert_eq!(
        classify(Some(status), &body.to_string()),
        Verdict::BodyTooLarge
    );
    assert!(validate(&request(&[question()]), &profile).is_empty());
    assert_eq!(MessagesProfile::default().max_body, Bytes(32 * 1024 * 1024));
}

#[test]
fn am14_context_editing() {
    let edits = |edits: Value| {
        with(
            request(&[question()]),
            "context_management",
            json!({"edits": edits}),
        )
    };
    let (thinking, tools) = ("clear_thinking_20251015", "clear_tool_uses_20250919");
    row(
        BUDGET,
        &["AM14"],
        "`clear_thinking` must be listed before `clear_tool_uses`",
        &edits(json!([{"type": tools}, {"type": thinking}])),
        &edits(json!([{"type": thinking}, {"type": tools}])),
    );
    let compact = |tokens: u64| {
        edits(json!([{"type": "compact_20260112",
            "trigger": {"type": "input_tokens", "value": tokens}}]))
    };
    let words = "Input should be greater than or equal to 50000";
    row(BUDGET, &["AM14"], words, &compact(49_999), &compact(50_000));
}

#[test]
fn v3_and_v4_order_and_batches() {
    // Results are known by their ids, in any order.
    let mut order = whole();
    order[2] = user(json!([result("b"), result("a")]));
    let mut part = whole();
    part[2] = user(json!([result("a")]));
    messages(BUDGET, &["AM1", "V4"], "after: b.", &part, &order);
    let twice = [whole(), whole()].concat();
    let words = "messages.4: `tool_use` ids must be unique";
    messages(BUDGET, &["V3", "V3"], words, &twice, &whole());
}

#[test]
fn the_shape_of_a_request() {
    let good = request(&[question()]);
    let without = |key: &str| {
        let mut request = good.clone();
        request.as_object_mut().unwrap().remove(key);
        request
    };
    for (bad, words) in [
        (without("model"), "model: Field required"),
        (without("max_tokens"), "max_tokens: Field required"),
        (without("messages"), "messages: Field required"),
        (
            with(good.clone(), "max_tokens", json!(0)),
            "greater than or equal to 1",
        ),
        (
            with(good.clone(), "max_tokens", json!(64_001)),
            "max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for m",
        ),
        (
            with(good.clone(), "system", json!(1)),
            "system: Input should be",
        ),
        (
            with(good.clone(), "temperature", json!(1.1)),
            "temperature: range: 0..1",
        ),
        (
            with(
                good.clone(),
                "tool_choice",
                json!({"type": "tool", "name": "write"}),
            ),
            "Tool 'write' not found in provided tools",
        ),
        (
            with(without("tools"), "tool_choice", json!({"type": "none"})),
            "tool_choice may only be specified while providing tools.",
        ),
        (
            with(
                good.clone(),
                "tools",
                json!([{"name": "a b", "input_schema": {"type": "object"}}]),
            ),
            "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        ),
        (
            with(
                good.clone(),
                "tools",
                json!([{"name": "a", "input_schema": {}}]),
            ),
            "tools.0.custom.input_schema.type: Field required",
        ),
        (
            request(&[json!({"role": "tool", "content": "x"}), question()]),
            "messages.0.role: Input",
        ),
        (
            request(&[json!({"role": "system", "content": "x"}), question()]),
            "messages: Unexpected role \"system\".",
        ),
        (
            request(&[user(json!([{"type": "gopher"}]))]),
            "Input tag 'gopher' found",
        ),
        (
            request(&[user(json!([{}]))]),
            "messages.0.content.0.type: Field required",
        ),
        (
            request(&[user(json!([call("a")]))]),
            "can only be in `assistant` messages",
        ),
        (
            request(&[user(json!([{"type": "image", "source": {"type": "base64",
                "media_type": "image/bmp", "data": "AA=="}}]))]),
            "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
        ),
    ] {
        let faults = validate(&bad, &MessagesProfile::of_model(BUDGET));
        assert!(faults[0].words.contains(words), "{faults:?}");
        assert_eq!(faults[0].rule.to_string().as_str(), "shape", "{faults:?}");
    }
    assert!(validate(&good, &MessagesProfile::of_model(BUDGET)).is_empty());
    let system = || json!({"role": "system", "content": "Be kind."});
    messages(
        "claude-opus-4-8",
        &["shape"],
        "Unexpected role \"system\"",
        &[system(), question()],
        &[question(), system()],
    );
    let failed = |inner: Value| {
        let result = json!({"type": "tool_result", "tool_use_id": "a", "is_error": true,
            "content": [inner]});
        request(&[question(), said(json!([call("a")])), user(json!([result]))])
    };
    let image = json!({"type": "image", "source": {"type": "url", "url": "https://x"}});
    let words = "all content must be type `text` if `is_error` is true";
    row(
        BUDGET,
        &["shape"],
        words,
        &failed(image),
        &failed(text("no")),
    );
}

#[test]
fn thinking_and_what_goes_with_it() {
    let asks = |thinking: Value| with(request(&[question()]), "thinking", thinking);
    let on = |budget: u64| asks(json!({"type": "enabled", "budget_tokens": budget}));
    let good = on(1_024);
    for (model, bad, words) in [
        (
            BUDGET,
            on(1_023),
            "budget_tokens: Input should be greater than or equal to 1024",
        ),
        (
            BUDGET,
            on(2_000),
            "`max_tokens` must be greater than `thinking.budget_tokens`.",
        ),
        (
            BUDGET,
            asks(json!({"type": "enabled"})),
            "budget_tokens: Field required",
        ),
        (
            BUDGET,
            asks(json!({"type": "adaptive"})),
            "adaptive thinking is not supported",
        ),
        (
            BUDGET,
            asks(json!({"type": "deep"})),
            "'adaptive', 'disabled', 'enabled'",
        ),
        (
            "claude-3-5-haiku-latest",
            good.clone(),
            "does not support thinking.",
        ),
        (
            "claude-opus-4-7",
            good.clone(),
            "\"thinking.type.enabled\" is not supported for this model.",
        ),
        (
            BOUND,
            with(
                request(&[question()]),
                "tool_choice",
                json!({"type": "any"}),
            ),
            "this model does not support forced tool use.",
        ),
        (
            BUDGET,
            with(good.clone(), "tool_choice", json!({"type": "any"})),
            "Thinking may not be enabled when tool_choice forces tool use.",
        ),
        (
            BUDGET,
            with(good.clone(), "temperature", json!(0.5)),
            "`temperature` may only be set to 1 when thinking is enabled",
        ),
        (
            "claude-opus-4-8",
            with(request(&[question()]), "temperature", json!(0.5)),
            "`temperature` is deprecated for this model.",
        ),
    ] {
        let faults = validate(&bad, &MessagesProfile::of_model(model));
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].words.contains(words), "{faults:?}");
    }
    for (model, fine) in [
        (BUDGET, good.clone()),
        (BUDGET, asks(json!({"type": "disabled"}))),
        (BUDGET, with(good, "temperature", json!(1))),
        (
            BUDGET,
            with(request(&[question()]), "temperature", json!(0.5)),
        ),
        (ADAPTIVE, asks(json!({"type": "adaptive"}))),
        (ADAPTIVE, on(1_024)),
    ] {
        assert_eq!(rules(&fine, model), [""; 0], "{fine}");
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    json_of(
        "role content type text id name input tool_use_id cache_control ttl source thinking \
         signature messages system tools max_tokens edits budget_tokens is_error x",
        "user assistant text tool_use tool_result thinking enabled adaptive a é 1h 5m \
         web_search_tool_result server_tool_use simulated-a-b image base64",
    )
}

proptest! {
    #[test]
    fn no_json_breaks_it(
        messages in json_value(), system in json_value(), tools in json_value(), thinking in json_value(),
        whole in json_value(),
    ) {
        let request = json!({"model": "m", "max_tokens": 9, "messages": messages, "system": system,
            "tools": tools, "thinking": thinking, "context_management": whole.clone()});
        for model in [BUDGET, ADAPTIVE, BOUND, "gopher"] {
            let profile = MessagesProfile::of_model(model);
            for request in [&request, &whole] {
                prop_assert!(validate(request, &profile).len() <= MAX_FAULTS);
                let _ = sign(request, "x");
            }
        }
    }
}

/// What the models of one era take and those of another refuse.
#[test]
fn settings_are_those_of_the_model() {
    const OLD: &str = "claude-3-5-haiku-latest";
    const FIXED: &str = "claude-opus-4-7";
    let asked = request(&[question()]);
    let set = |keys: &[(&str, Value)]| {
        let mut request = asked.clone();
        request["max_tokens"] = 4_000.into();
        for (key, value) in keys {
            request[*key] = value.clone();
        }
        request
    };
    let effort = |effort: &str| set(&[("output_config", json!({"effort": effort}))]);
    let thinks = (
        "thinking",
        json!({"type": "enabled", "budget_tokens": 2_000}),
    );
    let adapts = ("thinking", json!({"type": "adaptive"}));
    let never = set(&[("thinking", json!({"type": "disabled"}))]);
    let both = set(&[("temperature", json!(0.5)), ("top_p", json!(0.9))]);
    let top_p = set(&[("top_p", json!(0.9))]);
    let top_k = set(&[("top_k", json!(5))]);
    let stops = |stops: Value| set(&[("stop_sequences", stops)]);
    let one = "cannot both be specified for this model";
    let unset = "`top_k` must be unset when thinking";
    for (model, bad, words, good) in [
        (
            BUDGET,
            effort("low"),
            "This model does not support the effort",
            asked.clone(),
        ),
        (
            "claude-haiku-4-5",
            effort("low"),
            "does not support the effort",
            asked.clone(),
        ),
        (
            ADAPTIVE,
            effort("extreme"),
            "output_config.effort: Input should be",
            effort("max"),
        ),
        (
            BOUND,
            never.clone(),
            "\"thinking.type.disabled\" is not supported",
            asked.clone(),
        ),
        (
            "claude-fable-5",
            never.clone(),
            "thinking.type.disabled",
            set(std::slice::from_ref(&adapts)),
        ),
        (BUDGET, both.clone(), one, top_p.clone()),
        ("claude-opus-4-1", both.clone(), one, top_p.clone()),
        (ADAPTIVE, both.clone(), one, top_p.clone()),
        (
            FIXED,
            top_p.clone(),
            "`top_p` is deprecated for this model.",
            asked.clone(),
        ),
        (
            BUDGET,
            set(&[("top_k", json!(-1))]),
            "top_k: Input should be greater than or equal to 0",
            top_k.clone(),
        ),
        (
            FIXED,
            top_k.clone(),
            "`top_k` is deprecated for this model.",
            asked.clone(),
        ),
        (
            BUDGET,
            set(&[thinks.clone(), ("top_k", json!(5))]),
            unset,
            top_k.clone(),
        ),
        (
            ADAPTIVE,
            set(&[adapts, ("top_k", json!(5))]),
            unset,
            top_k.clone(),
        ),
        (
            BUDGET,
            set(&[thinks.clone(), ("top_p", json!(0.9))]),
            "`top_p` must be greater than or equal to 0.95",
            set(&[thinks, ("top_p", json!(0.95))]),
        ),
        (
            BUDGET,
            stops(json!(["a", "\n\n"])),
            "each stop sequence must contain non-whitespace",
            stops(json!(["a\n"])),
        ),
    ] {
        row(model, &["shape"], words, &bad, &good);
    }
    for (model, good) in [
        (OLD, both),
        ("claude-opus-4-5", effort("medium")),
        ("kimi-k3", effort("medium")),
        (ADAPTIVE, never.clone()),
        (BUDGET, never),
    ] {
        assert_eq!(rules(&good, model), [""; 0], "{model} {good}");
    }
}

/// AM9, in both directions: who thinks begins with thinking, who does not has none.
#[test]
fn thinking_stands_in_the_last_turn_while_the_model_thinks() {
    let thought = thinking("hm", "EqQB");
    let on = |messages: &[Value]| {
        let request = request(messages);
        let request = with(request, "max_tokens", 4_000.into());
        with(
            request,
            "thinking",
            json!({"type": "enabled", "budget_tokens": 2_000}),
        )
    };
    let found = "Expected `thinking` or `redacted_thinking`, but found `text`";
    let prefilled = [question(), said(json!([text("It is")]))];
    row(
        BUDGET,
        &["AM9"],
        found,
        &on(&prefilled),
        &request(&prefilled),
    );

    let looped = [
        question(),
        said(json!([thought, call("a")])),
        user(json!([result("a")])),
    ];
    let bare = [
        question(),
        said(json!([call("a")])),
        user(json!([result("a")])),
    ];
    let words = "messages.1.content.0: When thinking is disabled, an `assistant` message in the \
                 final position cannot contain `thinking`.";
    row(BUDGET, &["AM9"], words, &request(&looped), &on(&looped));
    row(BUDGET, &["AM9"], words, &request(&looped), &request(&bare));
    // A loop that is over, other models and other servers.
    let over = [looped.as_slice(), &[said(json!("done")), question()]].concat();
    assert_eq!(rules(&request(&over), BUDGET), [""; 0]);
    for model in [ADAPTIVE, "kimi-k3"] {
        assert_eq!(rules(&request(&looped), model), [""; 0], "{model}");
    }
}

#[test]
fn thinking_between_calls_may_take_more_than_one_reply_has() {
    let asked = with(
        request(&[question()]),
        "thinking",
        json!({"type": "enabled", "budget_tokens": 8_000}),
    );
    let profile = MessagesProfile::of_model(BUDGET);
    assert_eq!(rules(&asked, BUDGET), ["shape"]);
    let betas = "another, interleaved-thinking-2025-05-14";
    assert_eq!(validate_announced(&asked, &profile, betas), []);
}

#[test]
fn the_breakpoint_that_the_api_puts_counts() {
    let mark = json!({"type": "ephemeral"});
    let marked = |count: usize| {
        let block = with(text("x"), "cache_control", mark.clone());
        let asked = request(&[user(json!(vec![block; count]))]);
        with(asked, "cache_control", mark.clone())
    };
    row(BUDGET, &["AM11"], "Found 5", &marked(4), &marked(3));
}
