//! `transform_context` and `convert_to_llm`: requests contain their result, as far as the provider
//! accepts it. The view does not change.

use std::sync::Arc;

use plimsoll_context::{Message, Tokens};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{Agent, AgentBuilder, Messages, SessionId, ToolError, Window, tool};
use plimsoll_testkit::Warnings;
use serde_json::json;

use crate::{Nothing, texts};

fn agent(provider: &ScriptedProvider) -> (AgentBuilder, Warnings) {
    let look = |_: Nothing| async { Ok::<_, ToolError>("a line") };
    let warnings = Warnings::default();
    let builder = Agent::builder(provider.clone())
        .tool(tool("look", "Looks.", look))
        .observer(warnings.observer());
    (builder, warnings)
}

fn says(text: &str) -> Arc<Message> {
    Arc::new(Message::user(text))
}

#[tokio::test]
async fn what_is_sent_is_rewritten_and_the_view_is_not() {
    let provider = ScriptedProvider::new([
        Turn::say("one"),
        Turn::call("look", json!({})),
        Turn::say("two"),
    ]);
    let (builder, warnings) = agent(&provider);
    let agent = builder
        // Only the newest question and what has followed it, with a word before it.
        .transform_context(|messages: Messages| {
            let newest = messages
                .iter()
                .rposition(|message| message.is_user())
                .unwrap();
            let kept = messages[newest..].iter().cloned();
            std::iter::once(says("Be brief."))
                .chain(kept)
                .collect::<Messages>()
        })
        .convert_to_llm(|messages: Messages| async move {
            let loud = messages.into_iter().map(|message| match message.as_ref() {
                Message::User { .. } => says(&message.text().to_uppercase()),
                _ => message,
            });
            loud.collect::<Messages>()
        })
        .build()
        .unwrap();
    let mut session = agent.session(SessionId::new("s").unwrap()).await.unwrap();
    session.run("first").await.unwrap();
    assert_eq!(session.run("second").await.unwrap().text, "two");
    let requests = provider.requests();
    assert_eq!(texts(&requests[0]), ["user: BE BRIEF.", "user: FIRST"]);
    assert_eq!(texts(&requests[1]), ["user: BE BRIEF.", "user: SECOND"]);
    let last = [
        "user: BE BRIEF.",
        "user: SECOND",
        "assistant: ",
        "tool: a line",
    ];
    assert_eq!(texts(&requests[2]), last);
    let view = session.view().transcript().items().iter();
    let view: Vec<String> = view.map(|item| item.message.text()).collect();
    assert_eq!(view, ["first", "one", "second", "", "a line", "two"]);
    assert_eq!(warnings.all(), Vec::<String>::new());
}

/// What cannot be sent is not: the request goes as it was, with a warning.
#[tokio::test]
async fn what_a_provider_would_refuse_is_not_sent() {
    type Rewrite = fn(Messages) -> Messages;
    let cases: [(&str, Rewrite); 6] = [
        ("left nothing to send", |_| Vec::new()),
        ("without its result", |mut messages| {
            messages.retain(|message| !matches!(**message, Message::ToolResult(_)));
            messages.push(says("go on"));
            messages
        }),
        ("answers no call before it", |mut messages| {
            messages.retain(|message| !matches!(**message, Message::Assistant { .. }));
            messages
        }),
        ("an answer at the end", |mut messages| {
            messages.push(Arc::new(Message::Assistant {
                parts: vec![plimsoll_context::Part::text("so")],
            }));
            messages
        }),
        ("broke down: out of rum", |_| panic!("out of rum")),
        ("tokens larger, which is too much", |mut messages| {
            messages.insert(0, says(&"lorem ipsum ".repeat(3_000)));
            messages
        }),
    ];
    for (why, rewrite) in cases {
        let provider = ScriptedProvider::new([Turn::call("look", json!({})), Turn::say("Land!")]);
        let (builder, warnings) = agent(&provider);
        let agent = builder
            .window(Window::Known(Tokens(4_000)))
            .transform_context(move |messages: Messages| match messages.len() {
                1 => messages,
                _ => rewrite(messages),
            });
        let output = agent.build().unwrap().run("go").await.unwrap();
        assert_eq!(output.text, "Land!", "{why}");
        let sent = texts(&provider.requests()[1]);
        assert_eq!(sent, ["user: go", "assistant: ", "tool: a line"], "{why}");
        let warnings = warnings.all();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(why), "{warnings:?}");
    }
}

/// What is added within the line is sent, and what was counted is what was sent.
#[tokio::test]
async fn what_fits_is_sent_and_counted() {
    let provider = ScriptedProvider::new([])
        .then_always(Turn::say("Land!"))
        .with_window(Tokens(4_000));
    let (builder, warnings) = agent(&provider);
    let agent = builder
        .max_tokens(Tokens(500))
        .transform_context(|mut messages: Messages| {
            messages.insert(0, says(&"lorem ipsum ".repeat(300)));
            messages
        })
        .build()
        .unwrap();
    let mut session = agent.session(SessionId::new("s").unwrap()).await.unwrap();
    for number in 0..5 {
        let output = session.run(&format!("go {number}")).await.unwrap();
        assert!(output.reason.is_answer(), "{:?}", output.reason);
        assert_eq!(output.plans, 0);
    }
    assert_eq!(warnings.all(), Vec::<String>::new());
    for request in provider.requests() {
        assert!(texts(&request)[0].starts_with("user: lorem"));
        assert!(provider.weigh(&request) > Tokens(500));
    }
}
