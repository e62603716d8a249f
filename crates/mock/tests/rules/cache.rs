//! The cache requests of each dialect. Those with breakpoints are cases in `tests/cases/rendered/chat.txt`.

use plimsoll_context::{Breakpoint, CachePlan, Message};
use plimsoll_wire::RenderInput;
use plimsoll_wire::openai_chat::{Dialect, render};
use serde_json::Value;

#[test]
fn a_dialect_without_words_for_breakpoints_sends_none() {
    let plan = CachePlan {
        breakpoints: vec![Breakpoint::System, Breakpoint::Message(0)],
        key: Some("session-1".into()),
        ..CachePlan::default()
    };
    for name in Dialect::names() {
        let input = RenderInput {
            model: "m",
            system: Some("Be brief."),
            cache: Some(&plan),
            ..RenderInput::default()
        };
        let dialect = Dialect::named(name).unwrap();
        let rendered = render(&input, &[Message::user("the task")], &dialect).unwrap();
        let body: Value = serde_json::from_slice(&rendered.body).unwrap();
        assert!(!body.to_string().contains("cache_control"), "{name}");
        let key = (name == "openai").then_some("session-1");
        assert_eq!(body["prompt_cache_key"].as_str(), key, "{name}");
    }
}
