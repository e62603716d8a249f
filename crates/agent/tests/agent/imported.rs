//! Sessions whose messages come from another program: none of them was sent by this one.

use std::sync::Arc;

use plimsoll_agent::{EndReason, Entry, LOG_FORMAT};
use plimsoll_context::{CallId, ContextStrategy, Message, Part, ToolCall};

use crate::stage::{Stage, filler, strategy};

/// The log of an imported session: a task, `reads` of `bytes` each, and a report.
fn imported(reads: usize, bytes: usize) -> Vec<Entry> {
    let mut messages = vec![Message::user("Port the parser. Never touch vendor/.")];
    for n in 0..reads {
        let id = CallId(format!("c{n}"));
        messages.push(Message::Assistant {
            parts: vec![Part::ToolCall(ToolCall {
                id: id.clone(),
                name: "read".into(),
                arguments: format!(r#"{{"path":"src/f{n}.rs"}}"#),
                opaque: None,
            })],
        });
        messages.push(Message::result(id, filler(n, bytes)));
    }
    messages.push(Message::assistant("Half of the parser is ported."));
    let messages = messages.into_iter().map(|message| Entry::Message {
        message: Arc::new(message),
        queued: None,
    });
    [Entry::Opened { format: LOG_FORMAT }]
        .into_iter()
        .chain(messages)
        .collect()
}

#[test]
fn a_session_that_does_not_fit_is_summarised_and_not_thrown_away() {
    for (reads, bytes) in [(40, 4_000), (400, 4_000), (3, 60_000)] {
        let setup = strategy(ContextStrategy::default(), Some(16_000));
        let mut stage = Stage::resume(imported(reads, bytes), setup);
        stage.say("go on");
        let request = stage.last_request();
        assert!(request.contains("Never touch vendor/."), "{request}");
        assert!(
            request.contains("Half of the parser is ported."),
            "{request}"
        );
        assert!(
            reads == 3 || !stage.seen_summaries().is_empty(),
            "{reads}: {request}"
        );
        stage.text("done");
        assert_eq!(stage.outcome().reason, EndReason::Answered);
    }
}
