//! Every rule of the providers, and the place that enforces it: a validator, with similar requests
//! that break and follow it, or, if no single request can break it, a test that is named here. A
//! rule without either is a fault of this file. The messages of refusals are tested per protocol.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use plimsoll_context::Bytes;
use plimsoll_mock::rules as judge;
use plimsoll_mock::rules::{Fault, Rule};
use plimsoll_wire::openai_chat::{Dialect, Template};
use plimsoll_wire::{anthropic, bedrock, gemini, openai_responses};
use serde_json::{Value, json};

use crate::{named, said, user};

/// How many rules there are of each kind.
const RULES: [(&str, usize); 7] = [
    ("V", 11),
    ("OC", 9),
    ("OR", 6),
    ("AM", 14),
    ("GM", 5),
    ("BR", 6),
    ("T", 6),
];

/// Rules that no single request breaks, or not only: what holds them is a test, named by its file
/// below `crates` and its name.
const HELD_BY_TESTS: [(&str, &str, &str); 32] = [
    (
        "V1",
        "context/tests/context/stages.rs",
        "the_same_history_twice_gives_the_same_bytes",
    ),
    (
        "V1",
        "mock/tests/rules/properties.rs",
        "every_server_accepts_every_view",
    ),
    (
        "V2",
        "mock/tests/rules/properties.rs",
        "older_requests_are_prefixes_of_newer_ones",
    ),
    (
        "V2",
        "mock/tests/rules/openai_responses_properties.rs",
        "older_requests_are_prefixes_of_newer_ones",
    ),
    (
        "V2",
        "mock/tests/rules/anthropic_properties.rs",
        "older_requests_are_prefixes_of_newer_ones",
    ),
    (
        "V4",
        "mock/tests/rules/anthropic_thinking.rs",
        "what_changes_before_bound_thinking_takes_it_away_in_the_whole_loop",
    ),
    (
        "V5",
        "context/tests/context/stages.rs",
        "evict_never_touches_pending_calls",
    ),
    (
        "V5",
        "context/tests/context/properties.rs",
        "evict_keeps_every_request_whole_and_under_the_line",
    ),
    (
        "V6",
        "agent/tests/agent/pins.rs",
        "pins_survive_every_policy_byte_for_byte",
    ),
    (
        "V6",
        "context/tests/context/compaction.rs",
        "five_compactions_leave_one_summary_and_the_task_once",
    ),
    (
        "V6",
        "context/tests/context/stages.rs",
        "prune_may_take_the_task_but_never_the_newest_question",
    ),
    (
        "V7",
        "context/tests/context/properties.rs",
        "recovery_makes_every_refused_request_whole_and_smaller",
    ),
    (
        "V7",
        "context/tests/context/properties.rs",
        "summaries_that_fail_lie_and_overflow_keep_every_request_whole_and_under_the_line",
    ),
    (
        "V7",
        "context/tests/context/stages.rs",
        "prune_never_grows_a_text",
    ),
    (
        "V8",
        "agent/tests/agent/ladder.rs",
        "the_ladder_steps_down_and_ends_with_the_providers_error",
    ),
    (
        "V8",
        "context/tests/context/stages.rs",
        "what_cannot_fit_is_a_typed_error",
    ),
    (
        "V9",
        "agent/tests/agent/moments.rs",
        "undo_puts_the_view_back_run_by_run",
    ),
    (
        "V9",
        "agent/tests/agent/compacting.rs",
        "a_run_can_be_undone_over_a_plan",
    ),
    (
        "V10",
        "context/src/truncate/tests.rs",
        "head_tail_keeps_its_word",
    ),
    (
        "V10",
        "context/src/truncate/tests.rs",
        "cutting_again_counts_what_the_original_lost",
    ),
    (
        "V11",
        "core/tests/core/compaction.rs",
        "a_model_that_follows_a_marker_gets_the_exact_bytes",
    ),
    (
        "V11",
        "store/tests/store/recall.rs",
        "every_byte_comes_back_whatever_it_is",
    ),
    (
        "V11",
        "store/tests/store/recall.rs",
        "no_page_is_larger_than_a_result_may_be_whatever_is_asked_for",
    ),
    (
        "OC9",
        "mock/tests/rules/cache.rs",
        "a_dialect_without_words_for_it_says_nothing",
    ),
    (
        "OC9",
        "mock/tests/rules/cache.rs",
        "what_was_cached_stays_as_it_was_sent",
    ),
    (
        "OC9",
        "mock/tests/rules/cache.rs",
        "a_setting_of_the_user_stands_above_the_key",
    ),
    (
        "OR4",
        "mock/tests/rules/openai_responses_render.rs",
        "reasoning_is_sent_with_what_came_of_it_or_not_at_all",
    ),
    (
        "AM10",
        "mock/tests/rules/anthropic_thinking.rs",
        "thinking_goes_back_through_many_loops",
    ),
    (
        "AM12",
        "mock/tests/rules/anthropic_render.rs",
        "a_long_turn_has_a_breakpoint_where_the_request_before_it_ended",
    ),
    (
        "AM13",
        "wire/tests/wire/overflow_table.rs",
        "anthropic_body_too_large",
    ),
    ("T6", "wire/tests/wire/overflow_table.rs", "ollama"),
    (
        "T6",
        "core/tests/core/windows.rs",
        "a_request_that_was_cut_at_the_known_window_is_made_again_and_smaller",
    ),
];

/// Who judges.
enum Judge {
    Chat(Dialect),
    Responses(openai_responses::ResponsesProfile),
    Messages(anthropic::MessagesProfile),
    Gemini(gemini::GeminiProfile),
    Bedrock(bedrock::ConverseProfile),
}

impl Judge {
    fn faults(&self, request: &Value) -> Vec<Fault> {
        match self {
            Self::Chat(dialect) => judge::openai_chat::validate(request, dialect),
            Self::Responses(profile) => judge::openai_responses::validate(request, profile),
            Self::Messages(profile) => judge::anthropic::validate(request, profile),
            Self::Gemini(profile) => judge::gemini::validate(request, profile),
            Self::Bedrock(profile) => judge::bedrock::validate(request, profile),
        }
    }
}

struct Case {
    rule: Rule,
    judge: Judge,
    bad: Value,
    good: Value,
}

fn chat(rule: Rule, dialect: Dialect, bad: Value, good: Value) -> Case {
    let request = |messages: Value| json!({"model": "m", "messages": messages});
    Case {
        rule,
        judge: Judge::Chat(dialect),
        bad: request(bad),
        good: request(good),
    }
}

fn responses(rule: Rule, bad: Value, good: Value) -> Case {
    let request = |input: Value| json!({"model": "m", "store": false, "input": input});
    Case {
        rule,
        judge: Judge::Responses(openai_responses::ResponsesProfile::openai()),
        bad: request(bad),
        good: request(good),
    }
}

fn messages_request(messages: Value) -> Value {
    json!({"model": "m", "max_tokens": 2_000, "messages": messages,
        "tools": [{"name": "f", "input_schema": {"type": "object"}}]})
}

fn messages(rule: Rule, model: &str, bad: Value, good: Value) -> Case {
    Case {
        rule,
        judge: Judge::Messages(anthropic::MessagesProfile::of_model(model)),
        bad: messages_request(bad),
        good: messages_request(good),
    }
}

/// The same with settings of the request.
fn with(mut case: Case, settings: impl Fn(&mut Value)) -> Case {
    settings(&mut case.bad);
    settings(&mut case.good);
    case
}

fn contents(rule: Rule, model: &str, bad: Value, good: Value) -> Case {
    Case {
        rule,
        judge: Judge::Gemini(gemini::GeminiProfile::of_model(model)),
        bad: json!({ "contents": bad }),
        good: json!({ "contents": good }),
    }
}

fn converse(rule: Rule, model: &str, bad: Value, good: Value) -> Case {
    let request = |messages: Value| {
        json!({"messages": messages, "toolConfig": {"tools": [{"toolSpec": {"name": "f",
            "inputSchema": {"json": {"type": "object"}}}}]}})
    };
    Case {
        rule,
        judge: Judge::Bedrock(bedrock::ConverseProfile::of_model(model)),
        bad: request(bad),
        good: request(good),
    }
}

fn of_chat() -> Vec<Case> {
    use Rule::{Oc1, Oc2, Oc3, Oc4, Oc5, Oc6, Oc7, Oc8, Shape, T1, T2, T3, T4, T5, V3, V4};
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let asks = |ids: &[&str]| {
        let calls: Vec<Value> = ids.iter().map(|id| call(id)).collect();
        json!({"role": "assistant", "content": "so", "tool_calls": calls})
    };
    let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "done"});
    let system = || json!({"role": "system", "content": "s"});
    let (q, x, r) = (|| user("q"), || said("x"), || user("r"));
    let whole = || json!([q(), asks(&["a", "b"]), tool("a"), tool("b"), x(), r()]);
    let openai = Dialect::openai;
    let thought = |text: Option<&str>| {
        let mut asks = asks(&["a"]);
        if let Some(text) = text {
            asks["reasoning_content"] = text.into();
        }
        json!([q(), asks, tool("a")])
    };
    let nine = "D681PevKs";
    let mistral = || json!([q(), asks(&[nine]), tool(nine), x(), r()]);
    let template = |template: Template| Dialect::openai().with_template(template);
    let mut broken = asks(&["a"]);
    broken["tool_calls"][0]["function"]["arguments"] = json!({"x": 1});
    let mut torn = asks(&["a"]);
    torn["tool_calls"][0]["function"]["arguments"] = "{\"x".into();
    let pictured = json!({"role": "tool", "tool_call_id": "a",
        "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]});
    let silent = |content: Value| json!([q(), {"role": "assistant", "content": content}, r()]);
    vec![
        chat(
            Shape,
            openai(),
            json!([{"role": "robot", "content": "q"}]),
            whole(),
        ),
        chat(Oc1, openai(), json!([q(), asks(&["a"])]), whole()),
        chat(Oc1, openai(), json!([q(), asks(&["a"]), x()]), whole()),
        chat(Oc2, openai(), json!([q(), tool("a")]), whole()),
        chat(Oc2, openai(), json!([q(), x(), tool("a")]), whole()),
        chat(
            Oc3,
            openai(),
            json!([q(), asks(&["a"]), r(), tool("a")]),
            whole(),
        ),
        chat(
            Oc3,
            openai(),
            json!([q(), asks(&["a"]), system(), tool("a")]),
            whole(),
        ),
        chat(Oc3, openai(), json!([q(), asks(&["a"]), pictured]), whole()),
        chat(Oc4, openai(), json!([q(), broken, tool("a")]), whole()),
        chat(
            Oc4,
            named("llama.cpp"),
            json!([q(), torn, tool("a")]),
            whole(),
        ),
        chat(Oc5, openai(), silent(json!(null)), whole()),
        chat(Oc5, openai(), silent(json!("")), whole()),
        chat(Oc6, named("deepseek"), thought(None), thought(Some("hm"))),
        chat(Oc6, named("kimi"), thought(None), thought(Some("hm"))),
        chat(Oc6, named("kimi"), thought(Some("")), thought(Some(" "))),
        chat(
            Oc7,
            named("mistral"),
            json!([q(), asks(&["call_1"]), tool("call_1")]),
            mistral(),
        ),
        chat(
            Oc7,
            named("mistral"),
            json!([q(), asks(&[nine]), tool(nine), r()]),
            mistral(),
        ),
        chat(
            Oc7,
            named("mistral"),
            json!([q(), asks(&[nine]), x(), r()]),
            mistral(),
        ),
        chat(Oc8, named("llama.cpp"), json!([q(), x()]), whole()),
        chat(Oc8, named("mistral"), json!([q(), x()]), mistral()),
        chat(
            V3,
            openai(),
            json!([q(), asks(&["a"]), tool("a"), tool("a")]),
            whole(),
        ),
        chat(
            V4,
            openai(),
            json!([q(), asks(&["a", "b"]), tool("a")]),
            whole(),
        ),
        chat(
            T1,
            template(Template::Gemma),
            json!([q(), r()]),
            json!([q(), x(), r()]),
        ),
        chat(
            T1,
            template(Template::Gemma),
            json!([q(), x(), said("y"), r()]),
            json!([q()]),
        ),
        chat(
            T2,
            template(Template::Gemma),
            json!([q(), asks(&[nine]), tool(nine), r()]),
            json!([q(), asks(&[nine]), tool(nine), x(), r()]),
        ),
        chat(
            T2,
            template(Template::Mistral),
            json!([q(), asks(&[nine]), tool(nine), r()]),
            mistral(),
        ),
        chat(
            T3,
            named("vllm"),
            json!([q(), system(), r()]),
            json!([system(), q()]),
        ),
        chat(
            T3,
            named("vllm"),
            json!([system(), system(), q()]),
            json!([system(), q()]),
        ),
        chat(
            T4,
            template(Template::Qwen),
            json!([system(), asks(&["a"]), tool("a")]),
            json!([system(), q(), asks(&["a"]), tool("a")]),
        ),
        chat(
            T5,
            template(Template::Llama31),
            json!([q(), asks(&["a", "b"]), tool("a"), tool("b")]),
            json!([q(), asks(&["a"]), tool("a"), asks(&["b"]), tool("b")]),
        ),
    ]
}

fn of_responses() -> Vec<Case> {
    use Rule::{Or1, Or2, Or3, Or4, Or5, Or6, Shape, V3, V4};
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let item = |id: &str| {
        let mut item = call("a");
        item["id"] = id.into();
        item
    };
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "x"});
    let thought =
        || json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "g"});
    let emptied = || json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let (q, r) = (|| user("q"), || user("r"));
    let x = || json!({"role": "assistant", "content": [{"type": "output_text", "text": "x"}]});
    let whole = || {
        json!([
            q(),
            thought(),
            call("a"),
            call("b"),
            output("a"),
            output("b"),
            x(),
            r()
        ])
    };
    let long = format!("fc_{}", "x".repeat(450));
    let compaction = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "g"});
    vec![
        responses(Shape, json!([{"type": "tool_use"}]), whole()),
        responses(Or1, json!([q(), call("a")]), whole()),
        responses(Or1, json!([q(), call("a"), r()]), whole()),
        responses(Or2, json!([q(), output("a")]), whole()),
        responses(Or3, json!([q(), thought()]), whole()),
        responses(Or3, json!([q(), thought(), r()]), whole()),
        responses(
            Or4,
            json!([q(), emptied(), x()]),
            json!([q(), thought(), x()]),
        ),
        responses(
            Or5,
            json!([q(), thought(), item("call_1"), output("a")]),
            json!([q(), thought(), item("fc_1"), output("a")]),
        ),
        responses(
            Or5,
            json!([q(), thought(), item(&long), output("a")]),
            json!([q(), thought(), item("fc_1"), output("a")]),
        ),
        responses(
            Or6,
            json!([{"type": "compaction", "id": "cmp_1"}, q()]),
            // Everything before it may go.
            json!([compaction, q()]),
        ),
        responses(
            V3,
            json!([q(), call("a"), output("a"), output("a")]),
            json!([q(), call("a"), call("b"), output("b"), output("a")]),
        ),
        responses(
            V3,
            json!([q(), call("a"), call("a"), output("a"), output("a")]),
            json!([q(), call("a"), r(), output("a")]),
        ),
        responses(V4, json!([q(), call("a"), call("b"), output("a")]), whole()),
    ]
}

/// Takes prefills and thinks by a budget; takes none; binds thinking to what stands before it.
const BUDGET: &str = "claude-sonnet-4-5";
const ADAPTIVE: &str = "claude-opus-4-6";
const BOUND: &str = "claude-opus-5-5";

fn of_messages() -> Vec<Case> {
    use Rule::{Am1, Am2, Am3, Am4, Am5, Am6, Am7, Am8, Am9, Shape, V3, V4};
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "done"});
    let asks = |ids: &[&str]| {
        let calls: Vec<Value> = ids.iter().map(|id| call(id)).collect();
        json!({"role": "assistant", "content": calls})
    };
    let gives = |blocks: &[Value]| json!({"role": "user", "content": blocks});
    let (q, x, r) = (|| user("q"), || said("x"), || user("r"));
    let whole = || {
        json!([
            q(),
            asks(&["a", "b"]),
            gives(&[result("a"), result("b"), text("go")])
        ])
    };
    let of_server = |kind: &str| {
        let block = json!({"type": kind, "tool_use_id": "srvtoolu_1", "content": []});
        json!({"role": "assistant", "content": [block, {"type": "text", "text": "x"}]})
    };
    let served = |kind: &str| {
        let call = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "n", "input": {}});
        let block = json!({"type": kind, "tool_use_id": "srvtoolu_1", "content": []});
        json!({"role": "assistant", "content": [call, block, {"type": "text", "text": "x"}]})
    };
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "EqQB"});
    let thought = json!({"role": "assistant", "content": [thinking, call("a")]});
    let mut cases = vec![
        messages(
            Shape,
            BUDGET,
            json!([{"role": "robot", "content": "q"}, q()]),
            whole(),
        ),
        messages(Am1, BUDGET, json!([q(), asks(&["a"])]), whole()),
        messages(Am1, BUDGET, json!([q(), asks(&["a"]), r()]), whole()),
        messages(
            Am2,
            BUDGET,
            json!([q(), x(), gives(&[result("a")])]),
            whole(),
        ),
        messages(
            Am3,
            BUDGET,
            json!([q(), asks(&["a"]), gives(&[text("go"), result("a")])]),
            whole(),
        ),
        messages(
            Am3,
            BUDGET,
            json!([
                q(),
                asks(&["a", "b"]),
                gives(&[result("a"), text("go"), result("b")])
            ]),
            whole(),
        ),
        messages(
            Am4,
            BUDGET,
            json!([q(), asks(&["a"]), gives(&[result("a"), result("a")])]),
            whole(),
        ),
        messages(
            Am5,
            BUDGET,
            json!([q(), asks(&["a.b"]), gives(&[result("a.b")])]),
            whole(),
        ),
        messages(Am6, BUDGET, json!([gives(&[text("")])]), whole()),
        messages(Am6, BUDGET, json!([gives(&[text(" \n")])]), whole()),
        messages(
            Am6,
            BUDGET,
            json!([q(), said("Well, ")]),
            json!([q(), said("Well,")]),
        ),
        messages(Am7, BUDGET, json!([x(), q()]), json!([q(), r(), x(), q()])),
        messages(Am7, BUDGET, json!([]), whole()),
        messages(Am8, ADAPTIVE, json!([q(), x()]), whole()),
        with(
            messages(
                Am9,
                BUDGET,
                json!([q(), asks(&["a"]), gives(&[result("a")])]),
                json!([q(), thought, gives(&[result("a")])]),
            ),
            |request| request["thinking"] = json!({"type": "enabled", "budget_tokens": 1_024}),
        ),
        messages(
            V3,
            BUDGET,
            json!([
                q(),
                asks(&["a"]),
                gives(&[result("a")]),
                asks(&["a"]),
                gives(&[result("a")])
            ]),
            json!([q(), asks(&["a", "b"]), gives(&[result("b"), result("a")])]),
        ),
        messages(
            V4,
            BUDGET,
            json!([q(), asks(&["a", "b"]), gives(&[result("a")])]),
            whole(),
        ),
    ];
    for kind in [
        "web_search_tool_result",
        "advisor_tool_result",
        "mcp_tool_result",
    ] {
        let (bad, good) = (
            json!([q(), of_server(kind), r()]),
            json!([q(), served(kind), r()]),
        );
        cases.push(messages(Am2, BUDGET, bad, good));
    }
    cases.extend(of_messages_beside_pairs());
    cases
}

fn of_messages_beside_pairs() -> Vec<Case> {
    use Rule::{Am10, Am11, Am13, Am14};
    let q = || user("q");
    let thinks = |before: &str, text: &str, signature: &str| {
        let thinking = json!({"type": "thinking", "thinking": text, "signature": signature});
        json!([user(before), {"role": "assistant", "content": [thinking,
            {"type": "text", "text": "x"}]}, q()])
    };
    let signature = judge::anthropic::sign(&messages_request(json!([q()])), "hm");
    let mark = |ttl: &str| json!({"type": "ephemeral", "ttl": ttl});
    let marked = |ttls: &[&str]| {
        let blocks = ttls.iter();
        let blocks =
            blocks.map(|ttl| json!({"type": "text", "text": "q", "cache_control": mark(ttl)}));
        json!([{"role": "user", "content": blocks.collect::<Vec<_>>()}])
    };
    let edits = |edits: Value| {
        let mut request = messages_request(json!([q()]));
        request["context_management"] = json!({ "edits": edits });
        request
    };
    let (thinking, tools) = ("clear_thinking_20251015", "clear_tool_uses_20250919");
    let compact = |value: u64| {
        edits(json!([{"type": "compact_20260112",
            "trigger": {"type": "input_tokens", "value": value}}]))
    };
    let budget = || Judge::Messages(anthropic::MessagesProfile::of_model(BUDGET));
    let small = anthropic::MessagesProfile {
        max_body: Bytes(1_000),
        ..anthropic::MessagesProfile::of_model(BUDGET)
    };
    vec![
        messages(
            Am10,
            BUDGET,
            thinks("q", "hm", ""),
            thinks("q", "hm", "EqQB"),
        ),
        messages(
            Am10,
            BUDGET,
            thinks("q", "Hm", &signature),
            thinks("q", "hm", &signature),
        ),
        // Newer models bind it to what stands before it.
        messages(
            Am10,
            BOUND,
            thinks("p", "hm", &signature),
            thinks("q", "hm", &signature),
        ),
        messages(Am11, BUDGET, marked(&["5m"; 5]), marked(&["5m"; 4])),
        messages(Am11, BUDGET, marked(&["5m", "1h"]), marked(&["1h", "5m"])),
        Case {
            rule: Am13,
            judge: Judge::Messages(small),
            bad: messages_request(json!([user(&"q".repeat(1_000))])),
            good: messages_request(json!([q()])),
        },
        Case {
            rule: Am14,
            judge: budget(),
            bad: edits(json!([{"type": tools}, {"type": thinking}])),
            good: edits(json!([{"type": thinking}, {"type": tools}])),
        },
        Case {
            rule: Am14,
            judge: budget(),
            bad: compact(49_999),
            good: compact(50_000),
        },
    ]
}

fn of_gemini() -> Vec<Case> {
    use Rule::{Gm1, Gm2, Gm3, Gm4, Gm5, V3, V4};
    let user = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
    let said = |text: &str| json!({"role": "model", "parts": [{"text": text}]});
    let asks = |names: &[&str], signature: &str| {
        let parts = names
            .iter()
            .map(|name| json!({"functionCall": {"name": name, "args": {}}}));
        let mut parts: Vec<Value> = parts.collect();
        parts[0]["thoughtSignature"] = signature.into();
        json!({"role": "model", "parts": parts})
    };
    let answer = |name: &str| json!({"functionResponse": {"name": name, "response": {}}});
    let answers = |names: &[&str]| {
        let parts: Vec<Value> = names.iter().map(|name| answer(name)).collect();
        json!({"role": "user", "parts": parts})
    };
    let (q, fg) = (|| user("q"), || asks(&["f", "g"], "c2ln"));
    let whole = || json!([q(), fg(), answers(&["f", "g"]), said("x"), user("r")]);
    let late = json!({"role": "user", "parts": [{"text": "go"}, answer("f"), answer("g")]});
    let model = "gemini-3-pro";
    vec![
        contents(Gm1, model, json!([q(), fg(), user("r")]), whole()),
        contents(Gm1, model, json!([q(), fg(), answers(&["f"])]), whole()),
        contents(Gm1, model, json!([q(), answers(&["f"])]), whole()),
        contents(Gm2, model, json!([fg(), answers(&["f", "g"])]), whole()),
        contents(
            Gm2,
            model,
            json!([q(), said("x"), fg(), answers(&["f", "g"])]),
            whole(),
        ),
        contents(
            Gm3,
            model,
            json!([q(), asks(&["f"], ""), answers(&["f"])]),
            // Older turns may lack it.
            json!([q(), asks(&["f"], ""), answers(&["f"]), user("r")]),
        ),
        contents(
            Gm4,
            model,
            json!([q(), fg(), answers(&["f"]), answers(&["g"])]),
            whole(),
        ),
        contents(Gm4, model, json!([q(), fg(), late]), whole()),
        contents(Gm5, model, json!([]), whole()),
        contents(
            Gm5,
            model,
            json!([q(), {"role": "model", "parts": []}, q()]),
            whole(),
        ),
        contents(
            Gm5,
            model,
            json!([{"role": "assistant", "parts": [{"text": "x"}]}]),
            whole(),
        ),
        contents(V3, model, json!([q(), fg(), answers(&["g", "f"])]), whole()),
        contents(V4, model, json!([q(), fg(), answers(&["f"])]), whole()),
    ]
}

fn of_bedrock() -> Vec<Case> {
    use Rule::{Br1, Br2, Br3, Br4, Br5, Br6, V3, V4};
    let text = |text: &str| json!({ "text": text });
    let says = |role: &str, blocks: &[Value]| json!({"role": role, "content": blocks});
    let asks = |name: &str, ids: &[&str]| {
        let calls = ids
            .iter()
            .map(|id| json!({"toolUse": {"toolUseId": id, "name": name, "input": {}}}));
        says("assistant", &calls.collect::<Vec<_>>())
    };
    let result = |id: &str| json!({"toolResult": {"toolUseId": id, "content": [{"text": "x"}]}});
    let gives = |ids: &[&str]| {
        let results: Vec<Value> = ids.iter().map(|id| result(id)).collect();
        says("user", &results)
    };
    let q = || says("user", &[text("q")]);
    let ab = || asks("f", &["a", "b"]);
    let whole = || json!([q(), ab(), gives(&["a", "b"])]);
    let mixed = says("user", &[result("a"), result("b"), text("go")]);
    let model = "mistral.mistral-large-2407-v1:0";
    let mut without_tools = converse(Br5, model, whole(), whole());
    without_tools
        .bad
        .as_object_mut()
        .unwrap()
        .remove("toolConfig");
    let mut none = converse(Br6, model, whole(), whole());
    none.bad["toolConfig"]["toolChoice"] = json!({"none": {}});
    none.good["toolConfig"]["toolChoice"] = json!({"auto": {}});
    vec![
        converse(
            Br1,
            model,
            json!([says("assistant", &[text("x")]), q()]),
            whole(),
        ),
        converse(Br1, model, json!([q(), q()]), whole()),
        converse(Br2, model, json!([gives(&["a"])]), whole()),
        converse(
            Br2,
            model,
            json!([q(), ab(), gives(&["a", "b", "c"])]),
            whole(),
        ),
        converse(Br3, model, json!([q(), ab(), q()]), whole()),
        converse(
            Br3,
            model,
            json!([q(), ab(), gives(&["a"]), gives(&["b"])]),
            whole(),
        ),
        converse(Br4, model, json!([q(), ab(), mixed]), whole()),
        without_tools,
        converse(
            Br6,
            model,
            json!([q(), asks("f.g", &["a"]), gives(&["a"])]),
            whole(),
        ),
        none,
        converse(V3, model, json!([q(), ab(), gives(&["b", "a"])]), whole()),
        converse(V4, model, json!([q(), ab(), gives(&["a"])]), whole()),
    ]
}

fn cases() -> Vec<Case> {
    let all = [
        of_chat(),
        of_responses(),
        of_messages(),
        of_gemini(),
        of_bedrock(),
    ];
    all.into_iter().flatten().collect()
}

fn ids() -> Vec<String> {
    let all = RULES.iter();
    let all = all.flat_map(|(kind, count)| (1..=*count).map(move |n| format!("{kind}{n}")));
    all.collect()
}

#[test]
fn every_case_breaks_its_rule_and_its_like_breaks_none() {
    for case in cases() {
        let bad = case.judge.faults(&case.bad);
        let found = bad.iter().any(|fault| fault.rule == case.rule);
        assert!(found, "{}: {} {bad:?}", case.rule, case.bad);
        let good = case.judge.faults(&case.good);
        assert_eq!(good, [], "{}: {}", case.rule, case.good);
    }
}

#[test]
fn every_rule_that_a_validator_knows_has_a_case() {
    let with_case: BTreeSet<Rule> = cases().iter().map(|case| case.rule).collect();
    let by_test = |rule: Rule| HELD_BY_TESTS.iter().any(|(id, ..)| *id == rule.name());
    let mut without = Rule::ALL.into_iter().filter(|rule| !by_test(*rule));
    let without = without.find(|rule| !with_case.contains(rule));
    assert_eq!(without, None);
    // The list is whole: names are different, and each is a rule or the shape.
    let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
    let ids = ids();
    for name in names {
        assert!(name == "shape" || ids.iter().any(|id| id == name), "{name}");
    }
}

#[test]
fn every_rule_is_held_by_a_validator_or_by_a_test_that_is_there() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (rule, file, test) in HELD_BY_TESTS {
        let source = fs::read_to_string(crates.join(file)).unwrap_or_default();
        let there = source.contains(&format!("fn {test}("));
        assert!(there, "{rule} names {test} in {file}, which is not there");
    }
    let judged = Rule::ALL.iter().map(|rule| rule.name());
    let named = HELD_BY_TESTS.iter().map(|(rule, ..)| *rule);
    let held: BTreeSet<&str> = judged.chain(named).collect();
    for id in ids() {
        assert!(held.contains(id.as_str()), "{id} is held by nothing");
    }
}

#[test]
fn there_are_no_other_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let shared = root.unwrap().join("../shared/providers.md");
    let Ok(text) = fs::read_to_string(shared) else {
        println!("skipped: the list of rules is not here");
        return;
    };
    let marked = text.split("**").skip(1).step_by(2);
    let is_rule = |word: &&str| {
        let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
        digits.len() < word.len()
            && !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let written: BTreeSet<&str> = marked.filter(is_rule).collect();
    let ids = ids();
    let known: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(written, known);
}
