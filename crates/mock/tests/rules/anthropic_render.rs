//! Requests on Anthropic Messages: budgets and breakpoints over many requests. Single
//! requests are the cases in `tests/cases/rendered/messages.txt`.

use std::sync::Arc;

use plimsoll_context::{
    CacheConfig, CacheRules, CacheView, Chars4, Message, Opaque, Part, Tokens, Transcript,
    breakpoints,
};
use plimsoll_mock::rules::anthropic::validate;
use plimsoll_testkit::messages::{tool_call as call, tool_result as result};
use plimsoll_wire::anthropic::{MessagesProfile, render};
use plimsoll_wire::{Effort, LeftOut, RenderInput};
use serde_json::Value;

const BUDGET: &str = "claude-sonnet-4-5";

/// The body of a valid request and its notes.
fn rendered(
    input: &RenderInput<'_>,
    messages: &[Message],
) -> (Value, Vec<(Option<usize>, LeftOut)>) {
    let profile = MessagesProfile::of_model(input.model);
    let rendered = render(input, messages, &profile).unwrap();
    let body: Value = serde_json::from_slice(&rendered.body).unwrap();
    let faults = validate(&body, &profile);
    assert!(faults.is_empty(), "{faults:?} {body:#}");
    let notes = rendered.notes.into_iter();
    (body, notes.map(|note| (note.message, note.what)).collect())
}

fn input() -> RenderInput<'static> {
    RenderInput {
        model: BUDGET,
        ..RenderInput::default()
    }
}

fn own_tool(data: &str) -> Opaque {
    Opaque {
        origin: "anthropic".into(),
        data: data.into(),
    }
}

/// Thinking is bound to the provider's own tools, too.
#[test]
fn hosted_tools_are_part_of_the_prefix() {
    let bound = MessagesProfile::of_model("claude-opus-5-5");
    let prefix = |hosted: &[Opaque]| {
        let input = RenderInput {
            hosted_tools: hosted,
            ..input()
        };
        let rendered = render(&input, &[Message::user("q")], &bound);
        rendered.unwrap().prefix
    };
    let search = own_tool(r#"{"type":"web_search_20250305", "name":"web_search","max_uses":3}"#);
    assert_ne!(prefix(&[]), prefix(&[search]));
}

#[test]
fn the_thinking_budget_always_fits() {
    let messages = [Message::user("q")];
    let mut budgets = Vec::new();
    for room in (1..60).rev().map(|thousands| thousands * 1_000) {
        let input = RenderInput {
            model: BUDGET,
            effort: Some(Effort::High),
            room: Some(room),
            ..input()
        };
        let (body, _) = rendered(&input, &messages);
        let max = body["max_tokens"].as_u64().unwrap();
        assert!(max <= room);
        let budget = body["thinking"]["budget_tokens"].as_u64();
        if let Some(budget) = budget {
            assert!(
                (1_024..max - max / 4).contains(&budget),
                "{budget} of {max}"
            );
        }
        budgets.push(budget);
    }
    assert_eq!(budgets[0], Some(30_143));
    assert_eq!(budgets.last(), Some(&None));
}

/// AM12 with the planner: turn after turn, however many blocks one has, the newest entry of the
/// request before is found again.
#[test]
fn a_long_turn_has_a_breakpoint_where_the_request_before_it_ended() {
    let mut transcript = Transcript::new(Arc::new(Chars4));
    transcript.push(Message::user("the task ".repeat(2_000)));
    let mut sent = None;
    let mut written: Option<usize> = None;
    for (turn, calls) in [1, 3, 30, 1, 12, 45, 2].into_iter().enumerate() {
        let items = transcript.items();
        let view = CacheView {
            tools: Tokens(0),
            system: Tokens(10),
            items,
            sent,
        };
        let plan = breakpoints(&view, &CacheConfig::default(), &CacheRules::default());
        let input = RenderInput {
            system: Some("Be brief."),
            cache: Some(&plan),
            ..input()
        };
        let messages: Vec<Message> = items.iter().map(|item| (*item.message).clone()).collect();
        let (body, _) = rendered(&input, &messages);
        // The blocks of all messages in order, and where breakpoints stand among them.
        let blocks = body["messages"].as_array().unwrap().iter();
        let blocks: Vec<&Value> = blocks
            .flat_map(|m| m["content"].as_array().unwrap())
            .collect();
        let marked = (0..blocks.len()).filter(|at| blocks[*at].get("cache_control").is_some());
        let marked: Vec<usize> = marked.collect();
        if let Some(written) = written {
            let found = marked
                .iter()
                .any(|mark| (written..written + 20).contains(mark));
            assert!(found, "turn {turn}: {written} is not found from {marked:?}");
        }
        written = marked.last().copied();
        assert_eq!(written, Some(blocks.len() - 1), "the end is marked");
        sent = items.last().map(|item| item.seq);
        let id = |at: usize| format!("toolu_{turn}_{at}");
        let parts = (0..calls).map(|at| call(&id(at), "read", "{}")).collect();
        transcript.push(Message::Assistant { parts });
        for at in 0..calls {
            transcript.push(result(&id(at), vec![Part::text("done")], false));
        }
    }
}
