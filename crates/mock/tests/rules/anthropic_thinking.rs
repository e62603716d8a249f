//! Thinking over many turns: it is returned byte for byte as long as allowed, for whole tool loops
//! at a time, and a server that verifies its signatures accepts every request.

use plimsoll_context::{CallId, Message, Part, ToolSpec};
use plimsoll_mock::rules::anthropic::{sign, validate};
use plimsoll_wire::anthropic::{MessagesProfile, MessagesStreamState, render};
use plimsoll_wire::{Effort, EncodedRequest, LeftOut, RenderInput, StreamDecoder};
use serde_json::{Value, json};

/// Thinks by a budget, signs only the block.
const BUDGET: &str = "claude-sonnet-4-5";
/// Thinks as it sees fit, binds thinking to what stands before it.
const BOUND: &str = "claude-opus-5-5";

/// A session with a server that only looks like the API.
struct Session {
    model: &'static str,
    system: String,
    context: Option<&'static str>,
    messages: Vec<Message>,
    calls: usize,
}

impl Session {
    fn new(model: &'static str) -> Self {
        Self {
            model,
            system: "Be brief.".into(),
            context: None,
            messages: vec![Message::user("the task")],
            calls: 0,
        }
    }

    fn rendered(&self) -> EncodedRequest {
        let tools = [ToolSpec {
            name: "read".into(),
            description: "Reads a file.".into(),
            schema: json!({"type": "object"}),
        }];
        let input = RenderInput {
            model: self.model,
            tools: &tools,
            system: Some(&self.system),
            effort: Some(Effort::Low),
            max_output: Some(8_000),
            context: self.context,
            ..RenderInput::default()
        };
        render(
            &input,
            &self.messages,
            &MessagesProfile::of_model(self.model),
        )
        .unwrap()
    }

    /// The request as the server reads it; it has to be valid.
    fn request(&self) -> Value {
        let body: Value = serde_json::from_slice(&self.rendered().body).unwrap();
        let faults = validate(&body, &MessagesProfile::of_model(self.model));
        assert!(faults.is_empty(), "{faults:?} {body:#}");
        body
    }

    fn notes(&self) -> Vec<LeftOut> {
        let mut notes: Vec<_> = self.rendered().notes.into_iter().map(|n| n.what).collect();
        notes.dedup();
        notes
    }

    /// The server thinks aloud and calls two tools, which answer.
    fn turn(&mut self) {
        let request = self.request();
        let thought = format!("thought {}", self.calls);
        let mut state = MessagesStreamState::new();
        let (one, two) = (self.calls, self.calls + 1);
        self.calls += 2;
        let block = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
        let delta =
            |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
        let use_of = |id: usize| json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": "read", "input": {}});
        for event in [
            json!({"type": "message_start", "message": {"model": format!("{}-20990101", self.model)}}),
            block(
                0,
                json!({"type": "thinking", "thinking": "", "signature": ""}),
            ),
            delta(json!({"type": "thinking_delta", "thinking": thought})),
            delta(json!({"type": "signature_delta", "signature": sign(&request, &thought)})),
            block(
                1,
                json!({"type": "redacted_thinking", "data": sign(&request, "")}),
            ),
            block(2, use_of(one)),
            block(3, use_of(two)),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        ] {
            state.push(&event.to_string()).unwrap();
        }
        let reply = self.rendered().prefix.bind(state.finish().unwrap());
        let parts = reply.parts;
        self.messages.push(Message::Assistant { parts });
        for id in [one, two] {
            let id = CallId(format!("toolu_{id}"));
            self.messages.push(Message::result(id, "done"));
        }
    }

    fn end_loop(&mut self) {
        self.messages.push(Message::assistant("done"));
        self.messages.push(Message::user("and now?"));
    }

    /// Thinking blocks of the request.
    fn thoughts(&self) -> usize {
        self.request().to_string().matches("thinking\",").count()
    }
}

#[test]
fn thinking_goes_back_through_many_loops() {
    for model in [BUDGET, BOUND] {
        let mut session = Session::new(model);
        let mut older: Option<Vec<u8>> = None;
        for _ in 0..3 {
            for _ in 0..4 {
                session.turn();
                let body = session.rendered().body;
                if let Some(older) = older.replace(body.clone()) {
                    let end = older.windows(9).rposition(|w| w == b"]}],\"max_").unwrap();
                    assert!(body.starts_with(&older[..end]));
                }
            }
            session.end_loop();
        }
        assert_eq!(session.thoughts(), 24, "{model}");
        assert_eq!(session.notes(), []);
    }
}

#[test]
fn a_change_before_bound_thinking_removes_it_from_the_whole_loop() {
    let grown = || {
        let mut session = Session::new(BOUND);
        session.turn();
        session.end_loop();
        session.turn();
        session.turn();
        session
    };
    let mut system = grown();
    system.system = "Be very brief.".into();
    assert_eq!(
        (system.thoughts(), system.notes()),
        (0, vec![LeftOut::OtherPrefix])
    );
    // The first loop ends before the change; of the second one nothing stays.
    let mut result = grown();
    let last = result.messages.len() - 4;
    assert!(matches!(result.messages[last], Message::ToolResult(_)));
    result.messages[last] = Message::result(CallId("toolu_3".into()), "shrunk");
    let result_notes = result.notes();
    assert_eq!(
        (result.thoughts(), result_notes),
        (2, vec![LeftOut::OtherPrefix])
    );
    // A summary in place of the first loop.
    let mut summary = grown();
    summary.messages.splice(
        1..4,
        [Message::Summary {
            text: "read".into(),
        }],
    );
    assert_eq!(summary.thoughts(), 0);
    // It goes on from there: new thinking is bound to the new prefix.
    summary.turn();
    summary.end_loop();
    summary.turn();
    assert_eq!(summary.thoughts(), 2);
    // A model that signs only the block takes all of it back.
    let mut own = Session::new(BUDGET);
    own.turn();
    own.turn();
    own.system = "Be very brief.".into();
    assert_eq!((own.thoughts(), own.notes()), (4, vec![]));
}

#[test]
fn context_of_one_request_is_part_of_what_was_read() {
    let mut session = Session::new(BOUND);
    session.context = Some("It is late.");
    for _ in 0..3 {
        session.turn();
    }
    assert_eq!(
        (session.thoughts(), session.notes()),
        (0, vec![LeftOut::OtherPrefix])
    );
    let mut own = Session::new(BUDGET);
    own.context = Some("It is late.");
    own.turn();
    own.turn();
    assert_eq!(own.thoughts(), 4);
}

#[test]
fn another_models_thinking_stays_away_and_the_loop_goes_on_without() {
    let mut session = Session::new("claude-opus-4-5");
    session.turn();
    session.model = BUDGET;
    let body = session.request();
    assert_eq!(body.get("thinking"), None, "the loop has begun without");
    assert_eq!(session.notes(), [LeftOut::OtherModel, LeftOut::ThinkingOff]);
    session.end_loop();
    let body = session.request();
    assert_eq!(
        body["thinking"],
        json!({"type": "enabled", "budget_tokens": 2_048})
    );
}

#[test]
fn thinking_that_nobody_knows_the_prefix_of_stays_for_the_loop_under_way() {
    let mut session = Session::new(BOUND);
    session.turn();
    session.turn();
    // As it is read from a request that somebody else wrote.
    for message in &mut session.messages {
        let Message::Assistant { parts } = message else {
            continue;
        };
        for part in parts {
            if let Part::Thinking(thinking) = part {
                let opaque = thinking.opaque.as_mut().unwrap();
                let whole: Value = serde_json::from_str(&opaque.data).unwrap();
                opaque.data = whole["block"].to_string();
            }
        }
    }
    assert_eq!((session.thoughts(), session.notes()), (4, vec![]));
    session.end_loop();
    assert_eq!(
        (session.thoughts(), session.notes()),
        (0, vec![LeftOut::UnknownPrefix])
    );
}

#[test]
fn foreign_thinking_takes_the_loop_with_it() {
    let mut session = Session::new(BUDGET);
    session.turn();
    let Message::Assistant { parts } = session.messages[1].clone() else {
        panic!("the first turn");
    };
    let mut parts: Vec<Part> = parts.into_iter().rev().collect();
    parts.push(Part::Thinking(plimsoll_context::Thinking {
        text: "of another provider".into(),
        opaque: None,
    }));
    parts.reverse();
    session.messages[1] = Message::Assistant { parts };
    assert_eq!(session.thoughts(), 0);
    assert_eq!(
        session.notes(),
        [LeftOut::ForeignThinking, LeftOut::ThinkingOff]
    );
}

#[test]
fn thinking_stays_away_where_none_is_asked_for() {
    let mut session = Session::new(BUDGET);
    session.turn();
    session.end_loop();
    session.turn();
    session.turn();
    let profile = MessagesProfile::of_model(BUDGET);
    let plain = RenderInput {
        model: BUDGET,
        system: Some(&session.system),
        effort: Some(Effort::Low),
        max_output: Some(8_000),
        ..RenderInput::default()
    };
    for (input, why) in [
        (
            RenderInput {
                max_output: Some(1_000),
                ..plain.clone()
            },
            Some(LeftOut::ThinkingOff),
        ),
        (
            RenderInput {
                effort: None,
                ..plain.clone()
            },
            None,
        ),
    ] {
        let rendered = render(&input, &session.messages, &profile).unwrap();
        let body: Value = serde_json::from_slice(&rendered.body).unwrap();
        assert_eq!(validate(&body, &profile), [], "{body:#}");
        assert_eq!(body.get("thinking"), None);
        // So does that of the loop before, or a longer request would not begin as this one.
        assert_eq!(
            body.to_string().matches("thinking\",").count(),
            0,
            "{body:#}"
        );
        let mut notes: Vec<_> = rendered.notes.iter().map(|note| note.what).collect();
        notes.dedup();
        let mut expected = vec![LeftOut::UnaskedThinking];
        expected.extend(why);
        assert_eq!(notes, expected);
    }
    // A server that only speaks like the API may need it back whatever it is asked.
    let input = RenderInput {
        effort: None,
        ..plain
    };
    let other = MessagesProfile::compatible();
    let rendered = render(&input, &session.messages, &other).unwrap();
    let body = String::from_utf8(rendered.body).unwrap();
    assert_eq!(body.matches("thinking\",").count(), 6, "{body}");
}
