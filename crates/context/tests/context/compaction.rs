//! The effects of `ContextConfig`'s stages on a view: the turns that stay, the runs that are
//! summarized, and the messages that are evicted. Parsing of the configuration is tested next to
//! its code.

// Its `show` would name summaries by what they replace.
use std::sync::Arc;

use plimsoll_context::{
    ArgumentDigest, Author, Budget, CallId, Chars4, CompactionConfig, CompactionScope,
    ContextConfig, Draft, HistoryLimit, Message, Opaque, OwnStages, Part, Policy, Stage,
    SummaryConfig, Thinking, Tokens, ToolCall, Transcript, Trigger,
};
use plimsoll_testkit::notation::{message, view};

fn budget(trigger: u64, target: u64) -> Budget {
    Budget {
        limit: Tokens(trigger * 5 / 4),
        trigger: Tokens(trigger),
        target: Tokens(target),
        max_result: Tokens(1_000_000),
        keep_recent: 1,
        overhead: Tokens(0),
        instructions: Tokens(0),
    }
}

fn config(change: impl FnOnce(&mut CompactionConfig)) -> ContextConfig {
    let mut config = ContextConfig::default();
    change(&mut config.compaction);
    config
}

fn extract() -> SummaryConfig {
    SummaryConfig {
        author: Author::Extract,
        ..SummaryConfig::default()
    }
}

fn policy(change: impl FnOnce(&mut CompactionConfig)) -> Policy {
    config(change).policy(extract(), None, OwnStages::default())
}

/// The view in short: `S` for a summary, `~` behind what was cut.
fn shape(view: &Transcript) -> String {
    let word = |message: &Message| {
        let text = message.text();
        let name = text.split([':', '\n']).next().unwrap_or_default();
        let cut = if text.contains("[pruned: ") { "~" } else { "" };
        match message {
            Message::System { .. } => format!("s:{name}{cut}"),
            Message::User { .. } => format!("u:{name}{cut}"),
            Message::Notice { .. } => format!("n:{name}"),
            Message::Summary { .. } => "S".to_owned(),
            Message::ToolResult(result) => format!("r:{}{cut}", result.call),
            Message::Assistant { .. } => {
                let calls: Vec<&str> = message.calls().map(|call| call.id.0.as_str()).collect();
                let calls = if calls.is_empty() {
                    String::new()
                } else {
                    format!("[{}]", calls.join(","))
                };
                format!("a:{name}{calls}")
            }
        }
    };
    let words: Vec<String> = view
        .items()
        .iter()
        .map(|item| word(&item.message))
        .collect();
    words.join(" ")
}

/// Plans, applies, and plans again, which must find nothing to do.
fn compacted(policy: &Policy, budget: &Budget, before: &str) -> Transcript {
    applied(policy, budget, view(before))
}

fn applied(policy: &Policy, budget: &Budget, mut view: Transcript) -> Transcript {
    let again = policy.plan(&view, budget, Trigger::Request);
    let plan = policy.plan(&view, budget, Trigger::Request).unwrap();
    assert_eq!(again.unwrap(), plan, "the same view, the same plan");
    if let Some(plan) = plan {
        view.apply(&plan).unwrap();
    }
    assert_paired(&view);
    let next = policy.plan(&view, budget, Trigger::Request).unwrap();
    assert_eq!(next, None, "{}", shape(&view));
    view
}

fn assert_paired(view: &Transcript) {
    let mut open = Vec::new();
    for item in view.items() {
        match item.message.as_ref() {
            Message::ToolResult(result) => assert_eq!(open.remove(0), result.call),
            message => {
                assert!(open.is_empty(), "unanswered");
                open = message.calls().map(|call| call.id.clone()).collect();
            }
        }
    }
}

/// A run of `turns` tool calls of `size` bytes each, from call `from` on, and its answer.
fn run(name: &str, from: usize, turns: usize, size: usize) -> String {
    let calls: Vec<String> = (from..from + turns)
        .map(|n| format!("a:[c{n}] r:c{n}*{size}"))
        .collect();
    format!("u:{name} {} a:done{name} ", calls.join(" "))
}

#[test]
fn sections_keep_what_they_are_told() {
    // Eight turns of 514 tokens; room for half of them.
    let eight = run("task", 1, 8, 2_000);
    let eight = eight.strip_suffix(" a:donetask ").unwrap();
    let three = format!(
        "{}{}{eight}",
        run("one", 20, 2, 2_000),
        run("two", 30, 2, 2_000)
    );
    let rows: [(&str, &str, Policy, &str); 9] = [
        (
            "first and recent turns stay, the middle is summed up",
            eight,
            policy(|c| (c.keep_first_turns, c.keep_recent_turns) = (1, 2)),
            "u:task a:[c1] r:c1 S a:[c7] r:c7~ a:[c8] r:c8~",
        ),
        (
            "none of the first",
            eight,
            policy(|c| (c.keep_first_turns, c.keep_recent_turns) = (0, 2)),
            "u:task S a:[c7] r:c7~ a:[c8] r:c8~",
        ),
        (
            "more recent than fit: as many as do",
            eight,
            policy(|c| (c.keep_first_turns, c.tool_output_max_lines) = (1, 500)),
            "u:task a:[c1] r:c1 S a:[c7] r:c7 a:[c8] r:c8",
        ),
        (
            "more first than fit: as many as do",
            eight,
            policy(|c| (c.keep_first_turns, c.keep_recent_turns) = (50, 2)),
            "u:task a:[c1] r:c1 a:[c2] r:c2 S a:[c8] r:c8~",
        ),
        (
            "without summaries the middle leaves",
            eight,
            policy(|c| {
                (c.keep_first_turns, c.keep_recent_turns) = (1, 2);
                c.summarization = false;
            }),
            "u:task a:[c1] r:c1 n:[10 messages were removed here] a:[c7] r:c7~ a:[c8] r:c8~",
        ),
        (
            "earlier runs go into the summary whole, the first turns are the newest run's",
            &three,
            policy(|c| (c.keep_first_turns, c.keep_recent_turns) = (1, 2)),
            "u:one S u:task a:[c1] r:c1 a:[c7] r:c7~ a:[c8] r:c8~",
        ),
        (
            "beyond the scope they leave without",
            &three,
            policy(|c| {
                (c.keep_first_turns, c.keep_recent_turns) = (1, 2);
                c.compaction_scope = CompactionScope::FixedCount(0);
            }),
            "u:one n:[11 messages were removed here] u:task a:[c1] r:c1 S a:[c7] r:c7~ a:[c8] r:c8~",
        ),
        (
            "within a budget of tokens they are summed up",
            &three,
            policy(|c| {
                (c.keep_first_turns, c.keep_recent_turns) = (1, 2);
                c.compaction_scope = CompactionScope::TokenBudget;
            }),
            "u:one S u:task a:[c1] r:c1 a:[c7] r:c7~ a:[c8] r:c8~",
        ),
        (
            "a line cap of many lines leaves the recent turns alone",
            eight,
            policy(|c| {
                (c.keep_first_turns, c.keep_recent_turns) = (1, 2);
                c.tool_output_max_lines = 500;
            }),
            "u:task a:[c1] r:c1 S a:[c7] r:c7 a:[c8] r:c8",
        ),
    ];
    for (says, before, policy, after) in rows {
        // Results of 2,000 bytes are 8 lines; the default cap would leave them.
        let lines = if says.contains("many lines") || says.contains("more recent") {
            Vec::new()
        } else {
            vec![6]
        };
        let policy = lines
            .iter()
            .fold(policy, |policy, max| with_lines(&policy, *max));
        let view = compacted(&policy, &budget(3_000, 2_400), before);
        assert_eq!(shape(&view), after, "{says}");
        assert!(view.tokens() <= Tokens(2_400), "{says}: {}", view.tokens());
    }
}

/// The same with another cap on lines.
fn with_lines(policy: &Policy, max: usize) -> Policy {
    let lines = Arc::new(plimsoll_context::Lines {
        max,
        of_turns: 2,
        after_turns: 0,
    }) as Arc<dyn Stage>;
    let stages = policy.stages().iter().map(|stage| match stage.name() {
        "lines" => Arc::clone(&lines),
        _ => Arc::clone(stage),
    });
    Policy::new(stages.collect())
}

#[test]
fn scope_counts_runs_not_what_is_said_during_one() {
    // The second user message stands behind results: it steers the first run.
    let steered = format!(
        "u:one a:[c1] r:c1*2000 u:steer a:[c2] r:c2*2000 a:done {}",
        run("two", 3, 4, 2_000)
    );
    let policy = policy(|c| {
        (c.keep_first_turns, c.keep_recent_turns) = (0, 2);
        c.compaction_scope = CompactionScope::FixedCount(1);
    });
    let view = compacted(&policy, &budget(2_900, 1_500), &steered);
    assert_eq!(shape(&view), "u:one S u:two a:[c6] r:c6 a:donetwo");
    let text = view.items()[1].message.text();
    assert!(
        text.contains("steer"),
        "it is summed up with its run: {text}"
    );
}

#[test]
fn runs_beyond_the_scope_say_nothing_in_the_summary() {
    let old = "u:task a:first u:oldest*80 a:second u:older*80 a:third u:old*80 a:fourth ";
    let before = format!("{old}{}", run("now", 1, 6, 2_000));
    for (scope, said) in [
        (CompactionScope::FixedCount(0), [false, false, false]),
        (CompactionScope::FixedCount(1), [false, false, true]),
        (CompactionScope::FixedCount(2), [false, true, true]),
        (CompactionScope::FixedCount(3), [true, true, true]),
        (CompactionScope::TokenBudget, [true, true, true]),
    ] {
        let policy = policy(|c| {
            c.compaction_scope = scope;
            c.keep_first_turns = 0;
        });
        let view = compacted(&policy, &budget(3_000, 2_400), &before);
        let summary = view.items().iter().find_map(|item| match &*item.message {
            Message::Summary { text } => Some(text.clone()),
            _ => None,
        });
        let summary = summary.unwrap();
        let found = ["oldest:", "older:", "old:0"].map(|word| {
            summary
                .match_indices(word)
                .any(|(at, _)| !summary[..at].ends_with(|c: char| c.is_alphabetic()))
        });
        assert_eq!(found, said, "{scope:?}: {summary}");
    }
}

#[test]
fn it_fires_above_its_trigger_and_ends_at_its_target() {
    let policy = policy(|_| {});
    let before = run("task", 1, 30, 2_000);
    let weight = view(&before).tokens().0;
    let at = compacted(&policy, &budget(weight, weight * 7 / 10), &before);
    assert_eq!(at.tokens().0, weight, "at the trigger nothing happens");
    let above = compacted(&policy, &budget(weight - 1, (weight - 1) * 7 / 10), &before);
    assert!(above.tokens().0 <= (weight - 1) * 7 / 10);
    // Without growth it does not fire again, and every word of it is as it was.
    let again = applied(
        &policy,
        &budget(weight - 1, (weight - 1) * 7 / 10),
        above.clone(),
    );
    assert_eq!(
        serde_json::to_string(&bodies(&again)).unwrap(),
        serde_json::to_string(&bodies(&above)).unwrap()
    );
}

fn bodies(view: &Transcript) -> Vec<Message> {
    view.items()
        .iter()
        .map(|item| item.message.as_ref().clone())
        .collect()
}

#[test]
fn five_compactions_leave_one_summary_and_the_task_once() {
    let policy = policy(|c| c.keep_recent_turns = 4);
    let budget = budget(6_000, 4_200);
    let mut view = view("u:the-task-of-all |");
    let (mut compactions, mut turn) = (0, 0);
    while compactions < 5 {
        turn += 1;
        assert!(turn < 500);
        for word in [format!("a:[c{turn}]"), format!("r:c{turn}*1500")] {
            view.push(message(&word));
        }
        view.mark_sent();
        let Some(plan) = policy.plan(&view, &budget, Trigger::Request).unwrap() else {
            continue;
        };
        compactions += 1;
        view.apply(&plan).unwrap();
        assert_paired(&view);
        assert!(view.tokens() <= budget.target);
        let count = |found: &dyn Fn(&Message) -> bool| {
            view.items()
                .iter()
                .filter(|item| found(&item.message))
                .count()
        };
        assert_eq!(
            count(&|message| matches!(message, Message::Summary { .. })),
            1
        );
        assert_eq!(count(&|message| message.text() == "the-task-of-all"), 1);
        let turns = count(&|message| message.calls().count() > 0);
        assert_eq!(turns, 2 + 4, "the first two and the last four stay");
    }
}

#[test]
fn a_giant_line_of_400_kb_is_bounded_and_its_call_stays() {
    let policy = policy(|c| c.keep_first_turns = 0);
    for sent in ["", " a:ok"] {
        let before = format!("u:task a:[c1] r:c1*400000{sent}");
        let mut unread = view(&before);
        if sent.is_empty() {
            unread = Transcript::new(Arc::new(Chars4));
            for word in before.split_whitespace() {
                unread.push(message(word));
            }
        }
        let budget = Budget {
            max_result: Tokens(8_000),
            ..budget(40_000, 28_000)
        };
        let view = applied(&policy, &budget, unread);
        assert!(shape(&view).starts_with("u:task a:[c1] r:c1~"));
        let result = view.items()[2].message.text();
        assert!(result.starts_with("c1:00000 ") && result.len() <= 32_000);
        // What was read is bounded by lines: 50 of 256 bytes.
        assert!(
            sent.is_empty() || result.len() <= 50 * 256,
            "{}",
            result.len()
        );
    }
}

#[test]
fn stages_of_your_own_take_the_place_of_ours() {
    /// Drops the exchange at a place.
    #[derive(Debug)]
    struct DropAt(usize);
    impl Stage for DropAt {
        fn name(&self) -> &str {
            "mine"
        }
        fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
            if draft.is_due(budget) {
                draft.drop_exchange(self.0);
            }
        }
    }
    let before = format!("{}{}", run("one", 1, 2, 2_000), run("two", 3, 4, 2_000));
    let config = config(|c| (c.keep_first_turns, c.keep_recent_turns) = (0, 1));
    let with = |own: OwnStages| {
        let policy = config.policy(extract(), None, own);
        let names: Vec<String> = policy
            .stages()
            .iter()
            .map(|stage| stage.name().to_owned())
            .collect();
        (
            names.join(" "),
            shape(&compacted(&policy, &budget(3_000, 2_700), &before)),
        )
    };
    let mine = |at: usize| Some(Arc::new(DropAt(at)) as Arc<dyn Stage>);
    assert_eq!(
        with(OwnStages::default()),
        (
            "cap lines extract evict fit".to_owned(),
            "u:one S u:two a:donetwo".to_owned()
        )
    );
    let in_memory = OwnStages {
        in_memory: mine(5),
        block: None,
    };
    assert_eq!(
        with(in_memory),
        (
            "cap lines mine extract evict fit".to_owned(),
            // Ours sees to the earlier run only, and theirs was enough.
            "u:one a:[c1] r:c1 a:[c2] r:c2 a:doneone u:two n:[2 messages were removed here] \
             a:[c4] r:c4 a:[c5] r:c5 a:[c6] r:c6 a:donetwo"
                .to_owned()
        )
    );
    let block = OwnStages {
        in_memory: None,
        block: mine(1),
    };
    let (names, after) = with(block);
    assert_eq!(names, "cap lines mine extract evict fit");
    let removed = "u:one n:[2 messages were removed here] a:[c2] r:c2";
    assert!(after.starts_with(removed), "{after}");
    let both = OwnStages {
        in_memory: mine(2),
        block: mine(1),
    };
    assert_eq!(with(both).0, "cap lines mine mine evict fit");
}

fn call(id: &str, size: usize) -> Part {
    named("write", id, size)
}

fn named(tool: &str, id: &str, size: usize) -> Part {
    Part::ToolCall(ToolCall {
        id: CallId(id.into()),
        name: tool.into(),
        arguments: serde_json::json!({"path": "a.rs", "text": "x y ".repeat(size / 4)}).to_string(),
        opaque: None,
    })
}

fn signed() -> Part {
    let opaque = Some(Opaque {
        origin: "anthropic".into(),
        data: "{}".into(),
    });
    Part::Thinking(Thinking {
        text: "hm".into(),
        opaque,
    })
}

#[test]
fn old_arguments_are_digested_and_nothing_else() {
    let thought = Part::Thinking(Thinking {
        text: "hm".into(),
        opaque: None,
    });
    let sign = |part: Part| match part {
        Part::ToolCall(mut call) => {
            call.opaque = Some(Opaque {
                origin: "gemini".into(),
                data: "1".into(),
            });
            Part::ToolCall(call)
        }
        other => other,
    };
    let one = |parts: &[Part]| vec![Message::user("task"), assistant(parts)];
    // What is said, the messages before the newest batch, the calls that become digests.
    let rows: [(&str, Vec<Message>, &[&str]); 8] = [
        ("an old call", one(&[call("c1", 4_000)]), &["c1"]),
        ("at the bound", one(&[call("c1", 2_000)]), &[]),
        (
            "both of a batch, text and unsigned thought stay",
            one(&[
                thought,
                Part::text("so"),
                call("c1", 4_000),
                call("c2", 9_000),
            ]),
            &["c1", "c2"],
        ),
        ("a signed thought", one(&[signed(), call("c1", 4_000)]), &[]),
        ("a signed call", one(&[sign(call("c1", 4_000))]), &[]),
        ("a tool of ours", one(&[named("recall", "c1", 4_000)]), &[]),
        (
            "the whole loop under a signed thought",
            vec![
                Message::user("task"),
                assistant(&[call("c1", 4_000)]),
                Message::user("next"),
                assistant(&[signed(), call("c2", 4_000)]),
                assistant(&[call("c3", 4_000)]),
            ],
            &["c1"],
        ),
        (
            "loops without one",
            vec![
                Message::user("task"),
                assistant(&[signed(), call("c1", 4_000)]),
                Message::user("next"),
                assistant(&[call("c2", 4_000)]),
                Message::user("and"),
            ],
            &["c2"],
        ),
    ];
    for (says, messages, digests) in rows {
        let mut view = Transcript::new(Arc::new(Chars4));
        let newest = assistant(&[call("newest", 4_000)]);
        for message in messages.into_iter().chain([newest]) {
            let calls: Vec<CallId> = message.calls().map(|call| call.id.clone()).collect();
            view.push(message);
            for call in calls {
                view.push(Message::result(call, "ok"));
            }
        }
        view.mark_sent();
        let before = view.clone();
        let policy = Policy::new(vec![Arc::new(ArgumentDigest::default())]);
        // Not due: off.
        let calm = budget(100_000, 50_000);
        assert_eq!(
            policy.best_plan(&view, &calm, Trigger::Request),
            None,
            "{says}"
        );
        let due = budget(10, 5);
        let plan = policy.best_plan(&view, &due, Trigger::Request);
        assert_eq!(plan.is_some(), !digests.is_empty(), "{says}");
        if let Some(plan) = plan {
            view.apply(&plan).unwrap();
            assert_eq!(
                policy.best_plan(&view, &due, Trigger::Request),
                None,
                "{says}"
            );
        }
        for (was, is) in before.items().iter().zip(view.items()) {
            let others = |message: &Message| -> Vec<Part> {
                let parts = message.parts().iter();
                parts
                    .filter(|part| !matches!(part, Part::ToolCall(_)))
                    .cloned()
                    .collect()
            };
            assert_eq!(others(&was.message), others(&is.message), "{says}");
            for (was, is) in was.message.calls().zip(is.message.calls()) {
                let digested = digests.contains(&is.id.0.as_str());
                assert_eq!(was.arguments != is.arguments, digested, "{says}: {}", is.id);
                let value: serde_json::Value = serde_json::from_str(&is.arguments).unwrap();
                assert_eq!(value["path"], "a.rs");
                let text = value["text"].as_str().unwrap();
                assert_eq!(text.contains("[pruned: "), digested, "{says}");
                assert!(!digested || text.len() <= 400, "{says}");
            }
        }
    }
}

fn assistant(parts: &[Part]) -> Message {
    Message::Assistant {
        parts: parts.to_vec(),
    }
}

#[test]
fn a_history_has_so_many_messages() {
    let rows = [
        (
            10,
            "u:task a:[c1] r:c1 a:[c2] r:c2",
            "u:task a:[c1] r:c1 a:[c2] r:c2",
        ),
        (
            5,
            "u:task a:[c1] r:c1 a:[c2] r:c2",
            "u:task a:[c1] r:c1 a:[c2] r:c2",
        ),
        // Seven are allowed and eight there: down to four.
        (
            7,
            "u:task a:[c1] r:c1 a:[c2] r:c2 a:[c3,c4] r:c3 r:c4",
            "u:task n:[4 messages were removed here] a:[c3,c4] r:c3 r:c4",
        ),
        // The task and the newest exchange stay, whatever is allowed; no result is left alone.
        (
            2,
            "u:task a:[c1] r:c1 a:[c2,c3] r:c2 r:c3",
            "u:task n:[2 messages were removed here] a:[c2,c3] r:c2 r:c3",
        ),
        (
            2,
            "u:task a:[c1] r:c1 | a:[c2] r:c2",
            "u:task n:[2 messages were removed here] a:[c2] r:c2",
        ),
        (
            1,
            "u:task a:one u:more a:[c1] r:c1",
            // Its marker would weigh more than the answer.
            "u:task a:one u:more a:[c1] r:c1",
        ),
    ];
    for (max, before, after) in rows {
        let policy = Policy::new(vec![Arc::new(HistoryLimit(max))]);
        let calm = budget(1_000_000, 500_000);
        assert_eq!(
            shape(&compacted(&policy, &calm, before)),
            after,
            "{max}: {before}"
        );
    }
}
