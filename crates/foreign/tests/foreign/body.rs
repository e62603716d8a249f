//! A body that is edited in place: on each protocol, unedited parts keep their bytes, and the
//! protocol's validator accepts the result.

use plimsoll_mock::rules::Validate as _;
use std::sync::Arc;

use plimsoll_context::{
    CallId, Chars4, Message, Part, Policy, SessionPruneConfig, Source, SummaryConfig, TokenCounter,
    Tokens, ToolCall, ToolResult, ViewLimits,
};
use plimsoll_foreign::{Body, CutError, Slot};
use plimsoll_mock::rules as judge;
use plimsoll_mock::rules::anthropic::sign;
use plimsoll_wire::Target;
use plimsoll_wire::prompt_texts::framed_summary;
use plimsoll_wire::{WireError, openai_responses};
use serde_json::{Value, json};

fn target(name: &str, model: Option<&str>) -> Target {
    Target::of_protocol(name, model).unwrap()
}

fn claude() -> Target {
    target("anthropic", Some("claude-opus-4-6"))
}

/// Writes, and asserts that nothing had to be repaired.
fn write(text: &str, target: &Target, slots: &[Slot<'_>]) -> String {
    let body = Body::read(text, target).unwrap();
    let written = body.write(slots.iter().copied()).unwrap();
    let left_out = (written.unthinking, written.repairs);
    assert_eq!(left_out, (vec![], vec![]), "{}", written.text);
    written.text
}

fn originals(of: impl IntoIterator<Item = usize>) -> Vec<Slot<'static>> {
    of.into_iter().map(Slot::Original).collect()
}

/// A request as no writer of ours would print it.
const CLAUDE: &str = r#"{ "model": "claude-opus-4-6" ,"max_tokens":  4096,
 "system": [ {"type":"text", "text":"You mend.\u0021", "cache_control":{"type":"ephemeral"}} ],
 "tools":[{"name":"read","input_schema":{"type":"object","n":1.50}}, {"type":"web_search_20250305","name":"web_search"}],
 "messages": [
  {"role":"user", "content":"Find it."},
  {"role":"assistant","content":[{"type":"thinking","thinking":"Hm\u002e","signature":"EqQB"}, {"type":"tool_use","id":"toolu_1","name":"read","input":{"n": 1.50}}, {"type":"tool_use","id":"toolu_2","name":"read","input":{}}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"one long result","x":1}, {"type":"tool_result","tool_use_id":"toolu_2","content":[{"type":"text","text":"two"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}],"cache_control":{"type":"ephemeral"}}, {"type":"text", "text":"And\u0021"}]},
  {"role":"assistant","content":[{"type":"text","text":"Found.","citations":[{"type":"char_location","cited_text":"x"}]}, {"type":"text","text":"So."}]},
  {"role":"user","content":[ {"type":"text","text":"Mend it.", "cache_control":{"type":"ephemeral"}} ]}
 ], "metadata":{"user_id":"u\u0031"}}"#;

/// The text of each message of the list, as it stands there.
fn entries(text: &str, key: &str) -> Vec<String> {
    let object: std::collections::BTreeMap<String, &serde_json::value::RawValue> =
        serde_json::from_str(text).unwrap();
    let list: Vec<&serde_json::value::RawValue> = serde_json::from_str(object[key].get()).unwrap();
    list.iter().map(|raw| raw.get().to_owned()).collect()
}

#[test]
fn what_nobody_touched_is_the_same_text() {
    let body = Body::read(CLAUDE, &claude()).unwrap();
    let roles: Vec<&str> = body.messages.iter().map(|one| role(one)).collect();
    assert_eq!(
        roles,
        [
            "system",
            "user",
            "assistant",
            "result",
            "result",
            "user",
            "assistant",
            "user"
        ]
    );
    assert_eq!(
        (body.document.tools.len(), body.document.hosted_tools.len()),
        (1, 1)
    );
    assert_eq!(body.key("metadata"), Some(r#"{"user_id":"u\u0031"}"#));
    let counter = Chars4;
    assert!(body.overhead(&counter) > counter.tool(&body.document.tools[0]));
    assert_eq!(write(CLAUDE, &claude(), &originals(0..8)), CLAUDE);
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::System { .. } => "system",
        Message::User { .. } => "user",
        Message::Assistant { .. } => "assistant",
        Message::ToolResult(_) => "result",
        Message::Summary { .. } => "summary",
        Message::Notice { .. } => "notice",
    }
}

#[test]
fn an_exchange_leaves_and_the_rest_keeps_its_bytes() {
    let before = entries(CLAUDE, "messages");
    let summary = Message::Summary {
        text: "It was read.".into(),
    };
    // The batch leaves; what the user said behind its results stays, in a message of its own.
    let slots = [
        &originals([0, 1])[..],
        &[Slot::New(&summary)],
        &originals([5, 6, 7]),
    ]
    .concat();
    let text = write(CLAUDE, &claude(), &slots);
    let after = entries(&text, "messages");
    let framed = json!({"role": "user", "content": [{"type": "text", "text": framed_summary("It was read.")}]});
    assert_eq!(serde_json::from_str::<Value>(&after[1]).unwrap(), framed);
    assert_eq!(
        after[2],
        r#"{"role":"user","content":[{"type":"text", "text":"And\u0021"}]}"#
    );
    assert_eq!(
        [&after[0], &after[3], &after[4]],
        [&before[0], &before[3], &before[4]]
    );
    for kept in [
        r#""metadata":{"user_id":"u\u0031"}"#,
        r#""max_tokens":4096"#,
        r#""system":[ {"type":"text", "text":"You mend.\u0021", "cache_control":{"type":"ephemeral"}} ]"#,
        r#"{"type":"object","n":1.50}}, {"type":"web_search_20250305""#,
    ] {
        assert!(text.contains(kept), "{kept}\n{text}");
    }
    // It reads back as what was written.
    let again = Body::read(&text, &claude()).unwrap();
    let said: Vec<&str> = again.messages.iter().map(|one| role(one)).collect();
    assert_eq!(
        said,
        ["system", "user", "summary", "user", "assistant", "user"]
    );
}

#[test]
fn only_what_is_edited_of_a_message_is_written() {
    let before = entries(CLAUDE, "messages");
    let body = Body::read(CLAUDE, &claude()).unwrap();
    let short = |id: &str, text: &str| Message::result(CallId(id.into()), text);
    let (one, two) = (short("toolu_1", "[cut]"), short("toolu_2", "[cut] \"2\""));
    let slots = [
        &originals(0..3)[..],
        &[Slot::Edited(3, &one), Slot::Edited(4, &two)],
        &originals(5..8),
    ]
    .concat();
    let after = entries(&write(CLAUDE, &claude(), &slots), "messages");
    let expected = before[2]
        .replace(r#""content":"one long result""#, r#""content":"[cut]""#)
        .replace(
            r#""content":[{"type":"text","text":"two"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]"#,
            r#""content":"[cut] \"2\"""#,
        )
        .replace("}, {\"type\":\"t", "},{\"type\":\"t");
    assert_eq!(after[2], expected);
    assert_eq!((&after[1], &after[3]), (&before[1], &before[3]));

    // An image within a result, and the texts and the arguments of a turn.
    let mut parts = body.messages[4].parts().to_vec();
    parts[1] = Part::text("[image left out]");
    let noted = Message::ToolResult(ToolResult {
        call: CallId("toolu_2".into()),
        parts,
        is_error: false,
    });
    let mut turn = body.messages[2].parts().to_vec();
    let Part::ToolCall(call) = &turn[1] else {
        panic!()
    };
    turn[1] = Part::ToolCall(ToolCall {
        arguments: r#"{"n": "…"}"#.into(),
        ..call.clone()
    });
    let turn = Message::Assistant { parts: turn };
    let mut said = body.messages[6].parts().to_vec();
    said[0] = Part::text("F…");
    let said = Message::Assistant { parts: said };
    let slots = [
        &originals(0..2)[..],
        &[
            Slot::Edited(2, &turn),
            Slot::Original(3),
            Slot::Edited(4, &noted),
            Slot::Original(5),
            Slot::Edited(6, &said),
            Slot::Original(7),
        ],
    ]
    .concat();
    let after = entries(&write(CLAUDE, &claude(), &slots), "messages");
    // The thinking, the other call and the other text keep their bytes; what cites another text goes.
    assert!(after[1].contains(r#"{"type":"thinking","thinking":"Hm\u002e","signature":"EqQB"}"#));
    assert!(
        after[1].contains(r#""name":"read","input":{"n":"…"}},{"type":"tool_use","id":"toolu_2""#)
    );
    assert!(after[2].contains(r#"[{"type":"text","text":"two"},{"type":"text","text":"[image left out]"}],"cache_control""#));
    assert_eq!(
        after[3],
        r#"{"role":"assistant","content":[{"type":"text","text":"F…"},{"type":"text","text":"So."}]}"#
    );
}

#[test]
fn a_system_prompt_beside_the_messages_is_one_of_them() {
    let body = Body::read(CLAUDE, &claude()).unwrap();
    assert_eq!(*body.messages[0], Message::system("You mend.!"));
    let short = Message::system("Y…");
    let slots = [&[Slot::Edited(0, &short)][..], &originals(1..8)].concat();
    assert_eq!(
        write(CLAUDE, &claude(), &slots),
        CLAUDE,
        "instructions stay"
    );
    assert!(!write(CLAUDE, &claude(), &originals(1..8)).contains("system"));
    // Responses has it in `instructions`.
    let plain = r#"{"instructions":"Be brief.","input":"Q","n":1.50}"#;
    let responses = target("openai-responses", None);
    let body = Body::read(plain, &responses).unwrap();
    let texts: Vec<String> = body.messages.iter().map(|one| one.text()).collect();
    assert_eq!(texts, ["Be brief.", "Q"]);
    let cut = Message::user("…");
    let text = write(
        plain,
        &responses,
        &[Slot::Original(0), Slot::Edited(1, &cut)],
    );
    assert_eq!(
        text,
        r#"{"instructions":"Be brief.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"…"}]}],"n":1.50}"#
    );
    let text = write(plain, &responses, &[Slot::Original(1)]);
    assert_eq!(text, r#"{"input":"Q","n":1.50}"#);
}

const RESPONSES: &str = r#"{"model":"gpt-5", "instructions":"You mend.", "store": false,
 "input":[ {"role":"user", "content":"Find it."},
 {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA\u003d"}, {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look.","annotations":[{"type":"url_citation"}]}]}, {"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{\"n\": 1.50}"},
 {"type":"function_call_output","id":"fco_1","call_id":"c1","output":"a long result", "status":"completed"},
 {"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gBBB"}, {"type":"custom_tool_call","id":"ctc_1","call_id":"c2","name":"patch","input":"*** Begin"},
 {"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"done"}]},
 {"type":"message","id":"msg_2","role":"assistant","content":[{"type":"output_text","text":"Done.","annotations":[]}]},
 {"role":"user","content":[{"type":"input_text","text":"And?"}]} ], "tools":[{"type":"function","name":"read","parameters":{"type":"object","properties":{}}},{"type":"web_search"}], "x":1.50}"#;

#[test]
fn reasoning_stays_with_what_came_of_it() {
    let responses = target("openai-responses", None);
    // A reply after its results has no reasoning of its own; no id names it then.
    let text = RESPONSES.replace(r#""id":"msg_2","#, "");
    let before = entries(&text, "input");
    let body = Body::read(&text, &responses).unwrap();
    let said: Vec<&str> = body.messages.iter().map(|one| role(one)).collect();
    assert_eq!(
        said,
        [
            "system",
            "user",
            "assistant",
            "result",
            "assistant",
            "result",
            "assistant",
            "user"
        ]
    );
    let summary = Message::Summary {
        text: "Read.".into(),
    };
    let slots = [
        &originals([0, 1])[..],
        &[Slot::New(&summary)],
        &originals(4..8),
    ]
    .concat();
    let after = entries(&write(&text, &responses, &slots), "input");
    assert_eq!(after.len(), 7);
    assert_eq!(after[2..], before[5..]);
    let framed = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": framed_summary("Read.")}]});
    assert_eq!(serde_json::from_str::<Value>(&after[1]).unwrap(), framed);

    // Edits in place: the reasoning, the ids and what else an item has stay.
    let result = Message::result(CallId("c1".into()), "[cut]");
    let patched = Message::result(CallId("c2".into()), "[cut]");
    let mut parts = body.messages[2].parts().to_vec();
    parts[1] = Part::text("I…");
    let Part::ToolCall(call) = &parts[2] else {
        panic!()
    };
    parts[2] = Part::ToolCall(ToolCall {
        arguments: "{}".into(),
        ..call.clone()
    });
    let turn = Message::Assistant { parts };
    let slots = [
        &originals([0, 1])[..],
        &[
            Slot::Edited(2, &turn),
            Slot::Edited(3, &result),
            Slot::Original(4),
            Slot::Edited(5, &patched),
        ],
        &originals([6, 7]),
    ]
    .concat();
    let after = entries(&write(&text, &responses, &slots), "input");
    assert_eq!(after[1], before[1]);
    assert_eq!(
        after[2],
        r#"{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I…","annotations":[]}]}"#
    );
    assert_eq!(
        after[3],
        r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{}"}"#
    );
    assert_eq!(
        after[4],
        r#"{"type":"function_call_output","id":"fco_1","call_id":"c1","output":"[cut]","status":"completed"}"#
    );
    assert_eq!(
        after[7],
        r#"{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"[cut]"}]}"#
    );
    assert_eq!(after[8..], before[8..]);
}

#[test]
fn what_a_change_has_left_that_would_be_refused_is_mended_and_told() {
    let responses = target("openai-responses", None);
    let text = RESPONSES.replace(r#""id":"msg_2","#, "");
    let body = Body::read(&text, &responses).unwrap();
    // A result without its call.
    let written = body.write(originals([0, 1, 3, 6, 7])).unwrap();
    assert_eq!(written.repairs.len(), 1, "{:?}", written.repairs);
    assert!(!written.text.contains("a long result"));
    // A call without its result, and the assistant first.
    let body = Body::read(CLAUDE, &claude()).unwrap();
    let written = body.write(originals([2, 4, 7])).unwrap();
    let told: Vec<String> = written.repairs.iter().map(ToString::to_string).collect();
    assert!(
        told.iter()
            .any(|one| one.contains("`toolu_1` has no result")),
        "{told:?}"
    );
    assert!(told.iter().any(|one| one.contains("before it")), "{told:?}");
    assert_eq!(
        claude().validate(&serde_json::from_str(&written.text).unwrap()),
        []
    );
}

#[test]
fn tools_of_the_server_are_weighed_and_stay() {
    let text = r#"{"model":"m","tools":[{"type":"browser_search", "n":1.50},{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}"#;
    let chat = target("openai", None);
    let body = Body::read(text, &chat).unwrap();
    assert_eq!(
        (body.document.tools.len(), body.document.hosted_tools.len()),
        (1, 1)
    );
    assert!(body.overhead(&Chars4) > Chars4.tool(&body.document.tools[0]));
    let written = body.write([Slot::Original(1)]).unwrap().text;
    assert!(
        written.contains(r#"[{"type":"browser_search", "n":1.50},{"#),
        "{written}"
    );
    // Others still have to have a name.
    let nameless = text.replace(r#"{"name":"f"}"#, "{}");
    assert!(matches!(
        Body::read(&nameless, &chat),
        Err(WireError::Expected { .. })
    ));
}

/// A request whose thinking is signed as a model signs it that binds it to all that it had read.
fn bound(loops: usize) -> (String, Target) {
    let target = target("anthropic", Some("claude-opus-5-5"));
    let mut request =
        json!({"model": "claude-opus-5-5", "max_tokens": 4096, "system": "s", "messages": []});
    for at in 0..loops {
        let push = |request: &mut Value, message: Value| {
            request["messages"].as_array_mut().unwrap().push(message);
        };
        push(
            &mut request,
            json!({"role": "user", "content": format!("Task {at}. {}", "word ".repeat(40))}),
        );
        let thought = "thought ".repeat(60);
        let id = format!("toolu_{at}");
        let thinking =
            json!({"type": "thinking", "thinking": thought, "signature": sign(&request, &thought)});
        push(
            &mut request,
            json!({"role": "assistant", "content": [thinking, {"type": "tool_use", "id": id, "name": "f", "input": {}}]}),
        );
        push(
            &mut request,
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "result ".repeat(50)}]}),
        );
        push(
            &mut request,
            json!({"role": "assistant", "content": [{"type": "text", "text": format!("Answer {at}.")}]}),
        );
    }
    request["messages"]
        .as_array_mut()
        .unwrap()
        .push(json!({"role": "user", "content": "Go on."}));
    let faults = target.validate(&request);
    assert!(faults.is_empty(), "{faults:?}");
    (request.to_string(), target)
}

#[test]
fn thinking_that_is_bound_to_what_has_changed_leaves_in_whole_loops() {
    let (text, target) = bound(4);
    let body = Body::read(&text, &target).unwrap();
    // Loop two loses its result's text: its own thinking and all behind it go, loop one's stays.
    let cut = Message::result(CallId("toolu_1".into()), "[cut]");
    let mut slots = originals(0..18);
    slots[7] = Slot::Edited(7, &cut);
    let written = body.write(slots).unwrap();
    assert_eq!(written.unthinking, [10, 14]);
    let request: Value = serde_json::from_str(&written.text).unwrap();
    assert_eq!(target.validate(&request), []);
    assert_eq!(written.text.matches("signature").count(), 2);
    let kept = entries(&text, "messages");
    assert_eq!(entries(&written.text, "messages")[..5], kept[..5]);
    // A model that signs only its thinking keeps all of it.
    let own = Target::of_protocol("anthropic", Some("claude-opus-4-6")).unwrap();
    let mut slots = originals(0..18);
    slots[7] = Slot::Edited(7, &cut);
    let written = Body::read(&text, &own).unwrap().write(slots).unwrap();
    assert_eq!(written.text.matches("signature").count(), 4);
}

fn cut<'a>(
    text: &'a str,
    target: &Target,
    budget: u64,
    policy: &Policy,
) -> Result<Option<plimsoll_foreign::BodyCut<'a>>, CutError> {
    let counter: Arc<dyn TokenCounter> = Arc::new(Chars4);
    let body = Body::read(text, target).unwrap();
    let view = body.transcript(&counter);
    let line = ViewLimits::exactly(Tokens(budget));
    body.cut(&view, &policy.clone().for_filter(), &line)
}

#[test]
fn bound_thinking_makes_room_first() {
    let (text, target) = bound(4);
    let policy = Policy::evict(SessionPruneConfig::default());
    let whole = cut(&text, &target, 100_000, &policy).unwrap();
    assert!(whole.is_none());
    let counter: Arc<dyn TokenCounter> = Arc::new(Chars4);
    let weighs = Body::read(&text, &target)
        .unwrap()
        .transcript(&counter)
        .tokens();
    // A little less than it weighs: thinking that must leave in any case is enough.
    let smaller = cut(&text, &target, weighs.0 - 10, &policy)
        .unwrap()
        .unwrap();
    assert!(smaller.plan.is_none(), "{:?}", smaller.plan);
    assert_eq!(smaller.left, 18);
    assert!(!smaller.unthinking.is_empty() && smaller.repairs.is_empty());
    assert!(smaller.tokens <= Tokens(weighs.0 - 10));
    let request: Value = serde_json::from_str(&smaller.text).unwrap();
    assert_eq!(target.validate(&request), []);
    // Much less.
    let small = cut(&text, &target, 400, &policy).unwrap().unwrap();
    assert!(small.tokens <= Tokens(400) && small.left < 18);
    assert_eq!(
        target.validate(&serde_json::from_str(&small.text).unwrap()),
        []
    );
    assert!(matches!(
        cut(&text, &target, 10, &policy),
        Err(CutError::CannotFit(_))
    ));
}

/// The loop under way began with the only thinking there is, and the request asks for more.
#[test]
fn a_loop_under_way_goes_on_beginning_with_its_thinking() {
    let target = target("anthropic", Some("claude-sonnet-4-5"));
    let mut list = vec![json!({"role": "user", "content": "The task."})];
    for at in 0..20 {
        let mut blocks = vec![
            json!({"type": "tool_use", "id": format!("toolu_{at}"), "name": "f", "input": {}}),
        ];
        if at == 0 {
            blocks.insert(
                0,
                json!({"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}),
            );
        }
        list.push(json!({"role": "assistant", "content": blocks}));
        list.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("toolu_{at}"), "content": format!("Result {at}. {}", "word ".repeat(60))}]}));
    }
    let text = json!({"model": "claude-sonnet-4-5", "max_tokens": 8000,
        "thinking": {"type": "enabled", "budget_tokens": 4000}, "messages": list})
    .to_string();
    let summary = SummaryConfig::default().without_model();
    for (budget, thinks) in [(900, true), (60, false)] {
        for policy in [
            Policy::evict(SessionPruneConfig::default()),
            Policy::summarize(summary),
        ] {
            let small = cut(&text, &target, budget, &policy).unwrap().unwrap();
            let request: Value = serde_json::from_str(&small.text).unwrap();
            assert_eq!(target.validate(&request), [], "{}", small.text);
            assert!(small.tokens <= Tokens(budget));
            assert_eq!(
                small.text.contains("\"thinking\":{"),
                thinks,
                "{}",
                small.text
            );
            assert_eq!(small.repairs.is_empty(), thinks, "{:?}", small.repairs);
            assert_eq!(small.text.contains("\"EqQB\""), thinks, "{}", small.text);
            let again = cut(&small.text, &target, budget, &policy).unwrap();
            assert!(again.is_none(), "{again:?}");
        }
    }
}

#[test]
fn a_compaction_of_the_providers_stays_and_so_does_what_a_person_asked() {
    let responses = target("openai-responses", None);
    let mut input = vec![
        json!({"type": "additional_tools", "tools": []}),
        json!({"role": "user", "content": "The task."}),
        json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "g".repeat(400)}),
        json!({"role": "assistant", "content": "I go on from there."}),
    ];
    for at in 0..30 {
        input.push(
            json!({"role": "user", "content": format!("Question {at}: {}", "word ".repeat(30))}),
        );
        input.push(
            json!({"role": "assistant", "content": format!("Answer {at}: {}", "word ".repeat(30))}),
        );
    }
    input.push(json!({"type": "computer_call", "call_id": "k", "id": "cu_1", "action": {}}));
    input.push(json!({"type": "computer_call_output", "call_id": "k", "output": {}}));
    let text = json!({"model": "gpt-5", "input": input}).to_string();
    let body = Body::read(&text, &responses).unwrap();
    let standing: Vec<String> = body
        .standing()
        .iter()
        .map(|at| body.messages[*at].text())
        .collect();
    // Tools that are declared there are instructions; the first user message is a person's.
    assert_eq!(standing.len(), 2, "{standing:?}");
    assert!(body.messages[0].is_system());
    assert!(standing[1].starts_with("Question 29"));
    // A summary tells as many of the old questions as fit.
    let summary = Policy::summarize(SummaryConfig::default().without_model());
    for (policy, old_questions) in [
        (Policy::evict(SessionPruneConfig::default()), 0),
        (summary, 18),
    ] {
        let small = cut(&text, &responses, 900, &policy).unwrap().unwrap();
        for kept in [
            "cmp_1",
            "The task.",
            "additional_tools",
            "Question 29",
            "computer_call_output",
        ] {
            assert!(small.text.contains(kept), "{kept}: {}", small.text);
        }
        let told = (0..19).filter(|at| small.text.contains(&format!("Question {at}:")));
        assert!(told.count() <= old_questions, "{}", small.text);
        let faults = responses.validate(&serde_json::from_str(&small.text).unwrap());
        assert_eq!(faults, []);
    }
}

#[test]
fn new_messages_have_the_wires_own_form() {
    let call = |id: &str| Message::Assistant {
        parts: vec![Part::ToolCall(ToolCall {
            id: CallId(id.into()),
            name: "f".into(),
            arguments: "{\"a\": 1}".into(),
            opaque: None,
        })],
    };
    let (asked, answered) = (call("c9"), Message::result(CallId("c9".into()), "r"));
    let (system, notice) = (
        Message::system("Mind the gap."),
        Message::Notice {
            text: "Stopped.".into(),
        },
    );
    let (user, last) = (Message::user("q"), Message::user("last"));
    let new = [&user, &asked, &answered, &system, &notice, &last];
    for (text, name) in [
        (
            r#"{"model":"m","messages":[{"role":"user","content":"a"}]}"#,
            "openai",
        ),
        (
            r#"{"model":"m","input":[{"role":"user","content":"a"}]}"#,
            "openai-responses",
        ),
        (
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}]}"#,
            "anthropic",
        ),
    ] {
        let target = target(name, None);
        let slots =
            std::iter::once(Slot::Original(0)).chain(new.iter().map(|message| Slot::New(message)));
        let slots: Vec<Slot<'_>> = slots.collect();
        let written = write(text, &target, &slots);
        assert_eq!(
            target.validate(&serde_json::from_str(&written).unwrap()),
            [],
            "{written}"
        );
        let again = Body::read(&written, &target).unwrap();
        assert!(
            [&answered, &last]
                .into_iter()
                .all(|one| again.messages.iter().any(|other| **other == *one)),
            "{written}"
        );
        let said: String = again.messages.iter().map(|one| one.text()).collect();
        assert!(
            said.contains("Mind the gap.") && said.contains("Stopped."),
            "{said}"
        );
    }
}

#[test]
fn odd_slots_break_nothing() {
    for (text, target) in [
        (CLAUDE, claude()),
        (RESPONSES, target("openai-responses", None)),
        (r#"[{"role":"user","content":"a"}]"#, target("openai", None)),
        ("[]", target("openai", None)),
    ] {
        let body = Body::read(text, &target).unwrap();
        let other = Message::ToolResult(ToolResult {
            call: CallId("?".into()),
            parts: vec![],
            is_error: true,
        });
        let image = Message::User {
            parts: vec![Part::Image(plimsoll_context::Image {
                source: Source::Url {
                    url: "https://x/y".into(),
                },
                size: None,
                detail: None,
            })],
        };
        for at in [0, 1, 2, 3, 5, 99] {
            for slots in [
                vec![Slot::Original(at), Slot::Original(at)],
                vec![Slot::Edited(at, &other), Slot::Original(0)],
                vec![Slot::Edited(at, &image)],
                vec![Slot::New(&other)],
                vec![],
            ] {
                let written = body.write(slots.clone()).unwrap();
                let faults = target.validate(&serde_json::from_str(&written.text).unwrap());
                let of_messages = faults
                    .iter()
                    .filter(|fault| fault.place.starts_with(target.list()));
                let faults: Vec<_> = of_messages.collect();
                assert!(
                    faults.is_empty() || text.starts_with('['),
                    "{at} {slots:?} {faults:?}\n{}",
                    written.text
                );
            }
        }
    }
    assert!(matches!(
        Body::read("{}", &claude()),
        Err(WireError::Expected { .. })
    ));
    assert!(
        Body::read(r#"{"system":"s","messages":[]}"#, &claude())
            .unwrap()
            .is_silent()
    );
    assert!(!Body::read(CLAUDE, &claude()).unwrap().is_silent());
    let profile = openai_responses::ResponsesProfile::openai();
    assert!(
        Body::read(
            r#"{"instructions":"s","input":[]}"#,
            &Target::Responses(profile)
        )
        .unwrap()
        .is_silent()
    );
}

/// The server would ask for the reasoning by the id of what came of it (OR4).
#[test]
fn what_came_of_reasoning_that_is_gone_goes_without_its_id() {
    let responses = target("openai-responses", None);
    let body = Body::read(RESPONSES, &responses).unwrap();
    let turn = body
        .messages
        .iter()
        .position(|message| matches!(message.parts(), [Part::Thinking(_), ..]))
        .unwrap();
    let mut parts = body.messages[turn].parts().to_vec();
    parts.remove(0);
    let silent = Message::Assistant { parts };
    let slots: Vec<Slot<'_>> = (0..body.messages.len())
        .map(|index| {
            if index == turn {
                Slot::Edited(index, &silent)
            } else {
                Slot::Original(index)
            }
        })
        .collect();
    let before: Value = serde_json::from_str(RESPONSES).unwrap();
    let ties = judge::openai_responses::tied(before["input"].as_array().unwrap());
    assert!(
        ties.contains_key("msg_1") && ties.contains_key("fc_1"),
        "{ties:?}"
    );
    let written = body.write(slots).unwrap();
    let repairs = written.repairs.iter().map(ToString::to_string);
    let repairs: Vec<String> = repairs.collect();
    assert!(
        repairs.iter().all(|one| one.contains("its id")),
        "{repairs:?}"
    );
    let after: Value = serde_json::from_str(&written.text).unwrap();
    assert_eq!(
        judge::openai_responses::untied(&after, &ties),
        None,
        "{after}"
    );
    let text = after.to_string();
    assert!(
        !text.contains("rs_1") && text.contains("url_citation"),
        "{text}"
    );
    assert!(
        text.contains("rs_2") && text.contains("ctc_1"),
        "the others stay: {text}"
    );
}
