//! Tools that join with the first plan, if the model has called them before: a provider may refuse
//! calls of tools that the request does not declare.

use std::sync::Arc;

use plimsoll_agent::{
    Entry, Input, KnownTool, LOG_FORMAT, Now, Request, Run, Setup, Step, TargetOf,
};
use plimsoll_context::{
    CallId, Chars4, ContextStrategy, Message, Part, ToolCall, ToolResult, ToolSpec,
};

fn tool(name: &str, after_plan: bool) -> KnownTool {
    KnownTool {
        spec: ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            schema: serde_json::json!({"type": "object"}),
        },
        idempotent: true,
        asks: false,
        edits_files: false,
        after_plan,
        target: TargetOf::default(),
    }
}

/// A session that another client has begun, whose model has called this tool.
fn log(name: &str) -> Vec<Entry> {
    let call = CallId("c1".to_owned());
    let messages = [
        Message::user("go"),
        Message::Assistant {
            parts: vec![Part::ToolCall(ToolCall {
                id: call.clone(),
                name: name.to_owned(),
                arguments: "{}".to_owned(),
                opaque: None,
            })],
        },
        Message::ToolResult(ToolResult {
            call,
            parts: vec![Part::text("nothing")],
            is_error: false,
        }),
        Message::Assistant {
            parts: vec![Part::text("done")],
        },
    ];
    let said = messages.map(|message| Entry::Message {
        message: Arc::new(message),
        queued: None,
    });
    let opened = Entry::Opened { format: LOG_FORMAT };
    std::iter::once(opened).chain(said).collect()
}

fn first_request(log: &[Entry]) -> (Box<Request>, Vec<String>) {
    let policy = ContextStrategy::default().policy(Default::default(), Default::default());
    let setup = Setup {
        tools: vec![tool("recall", true), tool("read", false)],
        ..Setup::new("test/one", Arc::new(Chars4), policy)
    };
    let mut run = Run::resume(log, setup).unwrap();
    run.handle(
        Now::default(),
        Input::User(vec![Part::text("go on")].into()),
    );
    let mut started = Vec::new();
    loop {
        match run.poll() {
            Step::Call(request) => return (request, started),
            Step::Record(Entry::RunStarted { tools, .. }) => started = tools,
            Step::Wait | Step::Finish(_) => panic!("no request"),
            _ => {}
        }
    }
}

#[test]
fn a_call_in_the_view_has_its_tool() {
    for (called, declared) in [("recall", &["read", "recall"][..]), ("read", &["read"])] {
        let (request, started) = first_request(&log(called));
        let names: Vec<&str> = request
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        assert_eq!(names, declared, "{called}");
        assert_eq!(started, declared, "{called}");
        let weight: plimsoll_context::Tokens = (request.tools.iter())
            .map(|tool| plimsoll_context::TokenCounter::tool(&Chars4, tool))
            .sum();
        assert!(request.counted > weight);
    }
}
