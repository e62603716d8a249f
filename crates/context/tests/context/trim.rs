//! The published examples of LangChain's `trim_messages` and Anthropic's
//! `clear_tool_uses_20250919`, with the same sizes, options and remaining messages.

use std::sync::Arc;

use plimsoll_context::{
    CLEARED, Calibration, CallId, ClearToolUses, ClearTrigger, Message, Part, Policy, Seq,
    TokenCounter, Tokens, ToolCall, Transcript, Trigger, Trim, TrimRole, TrimStrategy, ViewLimits,
};

/// The counter of the examples: 6 tokens a message, and 4 for each of its parts.
#[derive(Debug)]
struct Parts;

impl TokenCounter for Parts {
    fn name(&self) -> &str {
        "parts"
    }

    fn text(&self, text: &str) -> Tokens {
        Tokens(text.len() as u64)
    }

    fn message(&self, message: &Message) -> Tokens {
        Tokens(6 + 4 * message.parts().len() as u64)
    }
}

fn view(counter: Arc<dyn TokenCounter>, messages: Vec<Message>) -> Transcript {
    let mut view = Transcript::new(counter);
    for message in messages {
        view.push(Arc::new(message));
    }
    view.mark_sent();
    view
}

/// A system message, a question, an answer of two parts, a question and an answer.
fn example() -> Transcript {
    let two = Message::Assistant {
        parts: vec![Part::text("b1"), Part::text("b2")],
    };
    let messages = vec![
        Message::system("s"),
        Message::user("first"),
        two,
        Message::user("third"),
        Message::assistant("fourth"),
    ];
    view(Arc::new(Parts), messages)
}

fn last() -> Trim {
    Trim::default()
}

fn first() -> Trim {
    Trim {
        strategy: TrimStrategy::First,
        ..Trim::default()
    }
}

/// The texts that are kept, each message's parts joined by `+`.
fn kept(view: &Transcript, trim: &Trim, limit: u64) -> String {
    let kept = match trim.keep(view, Tokens(limit)) {
        Ok(kept) => kept,
        Err(least) => return format!("{least:?}"),
    };
    let text = |at: usize, part: Option<&Message>| {
        let message = part.unwrap_or(&view.items()[at].message);
        message.text().trim_end().replace('\n', "+")
    };
    let texts = kept.iter().map(|one| text(one.at, one.part.as_ref()));
    texts.collect::<Vec<_>>().join(" ")
}

#[test]
fn trim_keeps_what_the_published_examples_keep() {
    let partial = |trim: Trim| Trim {
        allow_partial: true,
        ..trim
    };
    let on_human = vec![TrimRole::User];
    let end_on_human = |trim: Trim| Trim {
        end_on: on_human.clone(),
        ..trim
    };
    let start_on_human = |trim: Trim| Trim {
        start_on: on_human.clone(),
        ..trim
    };
    for (what, trim, limit, expected) in [
        ("first 30", first(), 30, "s first"),
        ("first 30, partial", partial(first()), 30, "s first b1"),
        (
            "first 30, partial, end on human",
            end_on_human(partial(first())),
            30,
            "s first",
        ),
        (
            "last 30 with the system message",
            last(),
            30,
            "s third fourth",
        ),
        (
            "last 40 with the system message, partial",
            partial(last()),
            40,
            "s b2 third fourth",
        ),
        (
            "last 30 with the system message, partial, end on human",
            end_on_human(partial(last())),
            30,
            "s b2 third",
        ),
        (
            "last 40 with the system message, partial, start on human",
            start_on_human(partial(last())),
            40,
            "s third fourth",
        ),
        ("all of it", last(), 54, "s first b1+b2 third fourth"),
        // Where `trim_messages` returns nothing or the system message alone, the least size that keeps
        // a message.
        ("last 19", last(), 19, "Some(Tokens(20))"),
        (
            "last 12, end on human",
            end_on_human(last()),
            12,
            "Some(Tokens(20))",
        ),
        (
            "first 15, end on human",
            end_on_human(first()),
            15,
            "Some(Tokens(20))",
        ),
        (
            "no such role",
            Trim {
                end_on: vec![TrimRole::Tool],
                ..last()
            },
            50,
            "None",
        ),
    ] {
        assert_eq!(kept(&example(), &trim, limit), expected, "{what}");
    }
}

#[test]
fn trim_keeps_lines_of_a_text_without_other_parts() {
    #[derive(Debug)]
    struct Lines;
    impl TokenCounter for Lines {
        fn name(&self) -> &str {
            "lines"
        }
        fn text(&self, text: &str) -> Tokens {
            Tokens(text.lines().count() as u64 * 10)
        }
    }
    let view = view(
        Arc::new(Lines),
        vec![Message::user("1\n2\n3\n4"), Message::assistant("5")],
    );
    let partial = |strategy| Trim {
        strategy,
        allow_partial: true,
        ..Trim::default()
    };
    assert_eq!(
        kept(&view, &partial(TrimStrategy::Last), 14 + 4 + 25),
        "3+4 5"
    );
    assert_eq!(kept(&view, &partial(TrimStrategy::First), 4 + 25), "1+2");
}

#[test]
fn trim_parts_no_call_from_its_results_and_keeps_every_instruction() {
    let call = |id: &str| {
        Part::ToolCall(ToolCall {
            id: CallId(id.into()),
            name: "read".into(),
            arguments: "{}".into(),
            opaque: None,
        })
    };
    let calls = Message::Assistant {
        parts: vec![call("a"), call("b")],
    };
    let mut view = view(
        Arc::new(Parts),
        vec![
            Message::user("task"),
            calls,
            Message::result(CallId("a".into()), "ra"),
            Message::result(CallId("b".into()), "rb"),
            Message::system("late"),
            Message::assistant("end"),
        ],
    );
    // A result alone would fit.
    assert_eq!(kept(&view, &last(), 35), "late end");
    assert_eq!(kept(&view, &last(), 54), " ra rb late end");
    // What ends with the calls would have no results.
    let ends_on_the_model = Trim {
        end_on: vec![TrimRole::Assistant],
        ..first()
    };
    assert_eq!(kept(&view, &ends_on_the_model, 60), "Some(Tokens(64))");
    assert!(view.pin(Seq(0)));
    assert_eq!(kept(&view, &last(), 35), "task late end");
}

/// Tool uses with results of 1,000 bytes, each of another tool: `t0`, `t1` and so on.
fn worked(uses: usize) -> Transcript {
    let mut messages = vec![Message::user("task")];
    for n in 0..uses {
        let id = CallId(format!("c{n}"));
        messages.push(Message::Assistant {
            parts: vec![Part::ToolCall(ToolCall {
                id: id.clone(),
                name: format!("t{n}"),
                arguments: "{\"path\":\"a/long/path/to/some/file\"}".into(),
                opaque: None,
            })],
        });
        messages.push(Message::result(id, "r".repeat(1_000)));
    }
    view(Arc::new(plimsoll_context::Chars4), messages)
}

/// The results that are left, by their numbers, and the calls whose arguments are left.
fn cleared(view: &Transcript, clear: ClearToolUses) -> (String, String) {
    let policy = Policy::new(vec![Arc::new(clear)]);
    let line = ViewLimits::exactly(Tokens::MAX);
    let budget = line.budget(Tokens(100), Tokens::ZERO, Calibration::default());
    let budget = budget.unwrap();
    let mut after = view.clone();
    let plan = policy.plan(view, &budget, Trigger::Asked).unwrap();
    if let Some(plan) = &plan {
        after.apply(plan).unwrap();
        assert_eq!(policy.plan(&after, &budget, Trigger::Asked), Ok(None));
    }
    let (mut results, mut inputs) = (String::new(), String::new());
    for item in after.items() {
        match item.message.as_ref() {
            Message::ToolResult(result) if item.message.text() != CLEARED => {
                results += result.call.0.trim_start_matches('c');
            }
            message => {
                for call in message.calls().filter(|call| call.arguments != "{}") {
                    inputs += call.id.0.trim_start_matches('c');
                }
            }
        }
    }
    (results, inputs)
}

#[test]
fn clear_tool_uses_follows_the_published_rules() {
    let pair = |results: &str, inputs: &str| (results.to_owned(), inputs.to_owned());
    let all = "01234567";
    let view = worked(8);
    let low = ClearToolUses {
        trigger: ClearTrigger::InputTokens(Tokens(500)),
        ..ClearToolUses::default()
    };
    // The defaults: above 100,000 input tokens, all but the newest 3.
    assert_eq!(cleared(&view, ClearToolUses::default()), pair(all, all));
    assert_eq!(cleared(&view, low.clone()), pair("567", all));
    // The trigger counts what is sent besides the messages, and is exceeded, not reached.
    let weight = view.tokens().0 + 100;
    for (trigger, left) in [(weight, all), (weight - 1, "567")] {
        let clear = ClearToolUses {
            trigger: ClearTrigger::InputTokens(Tokens(trigger)),
            ..low.clone()
        };
        assert_eq!(cleared(&view, clear), pair(left, all), "{trigger}");
    }
    for (uses, left) in [(8, all), (7, "567")] {
        let clear = ClearToolUses {
            trigger: ClearTrigger::ToolUses(uses),
            ..ClearToolUses::default()
        };
        assert_eq!(cleared(&view, clear), pair(left, all), "{uses}");
    }
    // Five uses are cleared or none: each frees about 245 tokens.
    for (clear_at_least, left) in [(1_200, "567"), (1_300, all)] {
        let clear = ClearToolUses {
            clear_at_least: Tokens(clear_at_least),
            ..low.clone()
        };
        assert_eq!(cleared(&view, clear), pair(left, all), "{clear_at_least}");
    }
    let clear = ClearToolUses {
        keep: 5,
        exclude_tools: vec!["t1".into()],
        clear_tool_inputs: true,
        ..low.clone()
    };
    assert_eq!(cleared(&view, clear), pair("134567", "134567"));
    let clear = ClearToolUses { keep: 0, ..low };
    assert_eq!(cleared(&view, clear), pair("", all));
}
