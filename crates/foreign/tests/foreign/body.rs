//! A body that is cut by given edits: on each protocol, unedited parts keep their bytes, and the
//! protocol's validator accepts the result.

use plimsoll_mock::rules::Validate as _;
use std::sync::Arc;

use plimsoll_context::{
    Budget, CallId, Chars4, Draft, Message, Part, Policy, SessionPruneConfig, Stage, SummaryConfig,
    TokenCounter, Tokens, ToolCall, ToolResult, Trigger, ViewLimits,
};
use plimsoll_foreign::{Body, CutError};
use plimsoll_mock::rules::anthropic::sign;
use plimsoll_wire::Target;
use plimsoll_wire::WireError;
use plimsoll_wire::prompt_texts::framed_summary;
use serde_json::{Value, json};

fn target(name: &str, model: Option<&str>) -> Target {
    Target::of_protocol(name, model).unwrap()
}

fn claude() -> Target {
    target("anthropic", Some("claude-opus-4-6"))
}

/// Shortens messages to given ones, and replaces an exchange by a summary.
#[derive(Debug)]
struct Edits {
    shorter: Vec<(usize, Message)>,
    summary: Option<(usize, &'static str)>,
}

impl Stage for Edits {
    fn name(&self) -> &str {
        "edits"
    }

    fn propose(&self, draft: &mut Draft<'_>, _: &Budget, _: Trigger) {
        for (at, to) in &self.shorter {
            assert!(draft.shrink(*at, to.clone()) > Tokens::ZERO, "{to:?}");
        }
        if let Some((exchange, text)) = self.summary {
            draft.summarize(&[exchange], text);
        }
    }
}

/// Makes the edits, and asserts that nothing had to be repaired.
fn edited(text: &str, target: &Target, edits: Edits) -> String {
    let policy = Policy::new(vec![Arc::new(edits) as Arc<dyn Stage>]);
    let cut = cut(text, target, 100_000, &policy).unwrap().unwrap();
    assert_eq!(cut.repairs, [], "{}", cut.chat.write());
    cut.chat.write().into_owned()
}

fn shortened(text: &str, target: &Target, shorter: Vec<(usize, Message)>) -> String {
    let summary = None;
    edited(text, target, Edits { shorter, summary })
}

fn summarized(text: &str, target: &Target, exchange: usize, summary: &'static str) -> String {
    let (shorter, summary) = (Vec::new(), Some((exchange, summary)));
    edited(text, target, Edits { shorter, summary })
}

/// A request as no writer of ours would print it.
const CLAUDE: &str = r#"{ "model": "claude-opus-4-6" ,"max_tokens":  4096,
 "system": [ {"type":"text", "text":"You mend.\u0021", "cache_control":{"type":"ephemeral"}} ],
 "tools":[{"name":"read","input_schema":{"type":"object","n":1.50}}, {"type":"web_search_20250305","name":"web_search"}],
 "messages": [
  {"role":"user", "content":"Find it."},
  {"role":"assistant","content":[{"type":"thinking","thinking":"Hm\u002e","signature":"EqQB"}, {"type":"tool_use","id":"toolu_1","name":"read","input":{"n": 1.50,"path":"a/long/way"}}, {"type":"tool_use","id":"toolu_2","name":"read","input":{}}]},
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
    assert_eq!(body.chat.key("metadata"), Some(r#"{"user_id":"u\u0031"}"#));
    let counter = Chars4;
    assert!(body.overhead(&counter) > counter.tool(&body.document.tools[0]));
    assert_eq!(body.chat.write(), CLAUDE);
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
    // The newest exchange stays, so there is another one.
    let more = r#", {"role":"assistant","content":[{"type":"tool_use","id":"toolu_3","name":"read","input":{}}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_3","content":"r"}]}
 ], "metadata""#;
    let text = CLAUDE.replace("\n ], \"metadata\"", more);
    let before = entries(&text, "messages");
    // The batch leaves; what the user said behind its results stays, in a message of its own.
    let text = summarized(&text, &claude(), 2, "It was read.");
    let after = entries(&text, "messages");
    let framed = json!({"role": "user", "content": [{"type": "text", "text": framed_summary("[This summary replaces 3 messages]\n\nIt was read.")}]});
    assert_eq!(serde_json::from_str::<Value>(&after[1]).unwrap(), framed);
    assert_eq!(
        after[2],
        r#"{"role":"user","content":[{"type":"text", "text":"And\u0021"}]}"#
    );
    assert_eq!(
        [&after[0], &after[3], &after[4], &after[5], &after[6]],
        [&before[0], &before[3], &before[4], &before[5], &before[6]]
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
        [
            "system",
            "user",
            "summary",
            "user",
            "assistant",
            "user",
            "assistant",
            "result"
        ]
    );
}

#[test]
fn only_what_is_edited_of_a_message_is_written() {
    let before = entries(CLAUDE, "messages");
    let body = Body::read(CLAUDE, &claude()).unwrap();
    let short = |id: &str, text: &str| Message::result(CallId(id.into()), text);
    let (one, two) = (short("toolu_1", "[cut]"), short("toolu_2", "[cut] \"2\""));
    let text = shortened(CLAUDE, &claude(), vec![(3, one), (4, two)]);
    let after = entries(&text, "messages");
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
    let text = shortened(CLAUDE, &claude(), vec![(2, turn), (4, noted), (6, said)]);
    let after = entries(&text, "messages");
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
    // Responses has it in `instructions`.
    let plain = r#"{"instructions":"Be brief.","input":"A question","n":1.50}"#;
    let responses = target("openai-responses", None);
    let body = Body::read(plain, &responses).unwrap();
    let texts: Vec<String> = body.messages.iter().map(|one| one.text()).collect();
    assert_eq!(texts, ["Be brief.", "A question"]);
    assert_eq!(
        shortened(plain, &responses, vec![(1, Message::user("…"))]),
        r#"{"instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"…"}]}],"n":1.50}"#
    );
}

const RESPONSES: &str = r#"{"model":"gpt-5", "instructions":"You mend.", "store": false,
 "input":[ {"role":"user", "content":"Find it."},
 {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA\u003d"}, {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look.","annotations":[{"type":"url_citation"}]}]}, {"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{\"n\": 1.50}"},
 {"type":"function_call_output","id":"fco_1","call_id":"c1","output":"a long result", "status":"completed"},
 {"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gBBB"}, {"type":"custom_tool_call","id":"ctc_1","call_id":"c2","name":"patch","input":"*** Begin"},
 {"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"done with the lamp"}]},
 {"type":"message","id":"msg_2","role":"assistant","content":[{"type":"output_text","text":"Done.","annotations":[]}]},
 {"role":"user","content":[{"type":"input_text","text":"And?"}]} ], "tools":[{"type":"function","name":"read","parameters":{"type":"object","properties":{}}},{"type":"web_search"}], "x":1.50}"#;

#[test]
fn reasoning_stays_with_what_came_of_it() {
    let responses = target("openai-responses", None);
    // A reply after its results has no reasoning of its own; no id names it then.
    let text = RESPONSES.replace(r#""id":"msg_2","#, "");
    let text = text.replace("a long result", &"a long result ".repeat(60));
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
    let after = entries(&summarized(&text, &responses, 2, "Read."), "input");
    assert_eq!(after.len(), 7);
    assert_eq!(after[2..], before[5..]);
    let framed = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": framed_summary("[This summary replaces 2 messages]\n\nRead.")}]});
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
    let shorter = vec![(2, turn), (3, result), (5, patched)];
    let after = entries(&shortened(&text, &responses, shorter), "input");
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
fn tools_of_the_server_are_weighed_and_stay() {
    let text = r#"{"model":"m","tools":[{"type":"browser_search", "n":1.50},{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}"#;
    let chat = target("openai", None);
    let body = Body::read(text, &chat).unwrap();
    assert_eq!(
        (body.document.tools.len(), body.document.hosted_tools.len()),
        (1, 1)
    );
    assert!(body.overhead(&Chars4) > Chars4.tool(&body.document.tools[0]));
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
fn bound_thinking_leaves_with_the_messages_before_it() {
    let (text, target) = bound(4);
    let policy = Policy::evict(SessionPruneConfig::default());
    let whole = cut(&text, &target, 100_000, &policy).unwrap();
    assert!(whole.is_none());
    let small = cut(&text, &target, 400, &policy).unwrap().unwrap();
    assert!(small.tokens <= Tokens(400) && small.left < 18);
    assert!(small.repairs.iter().all(|repair| repair.fix == "thinking"));
    let request: Value = serde_json::from_str(&small.chat.write()).unwrap();
    assert_eq!(target.validate(&request), []);
    assert!(matches!(
        cut(&text, &target, 10, &policy),
        Err(CutError::CannotFit(_))
    ));
}

/// The loop under way began with the only thinking there is, and the request asks for more.
#[test]
fn a_loop_that_lost_its_beginning_goes_on_without_thinking() {
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
    for policy in [
        Policy::evict(SessionPruneConfig::default()),
        Policy::summarize(summary),
    ] {
        let small = cut(&text, &target, 900, &policy).unwrap().unwrap();
        let request: Value = serde_json::from_str(&small.chat.write()).unwrap();
        assert_eq!(target.validate(&request), [], "{}", small.chat.write());
        assert!(small.tokens <= Tokens(900));
        assert_eq!(request.get("thinking"), None, "{}", small.chat.write());
        let small = small.chat.write();
        let again = cut(&small, &target, 900, &policy).unwrap();
        assert!(again.is_none(), "{again:?}");
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
    // Tools that are declared there are instructions.
    assert!(body.messages[0].is_system());
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
            assert!(
                small.chat.write().contains(kept),
                "{kept}: {}",
                small.chat.write()
            );
        }
        let told = (0..19).filter(|at| small.chat.write().contains(&format!("Question {at}:")));
        assert!(told.count() <= old_questions, "{}", small.chat.write());
        let faults = responses.validate(&serde_json::from_str(&small.chat.write()).unwrap());
        assert_eq!(faults, []);
    }
}
