//! A run counts its requests itself: no server is asked, even if it could count them.

use plimsoll_agent::EndReason;
use plimsoll_context::Tokens;
use plimsoll_core::{Agent, Error, Window};
use plimsoll_mock::Mock;
use plimsoll_providers::{ModelClient, Secret};
use serde_json::Value;

use super::KEY;
use super::mocked::{Fake, Turn};

/// A model that answers whatever it is asked.
fn cheap() -> Mock {
    Mock::messages().then(|_, _| Turn::say("done"))
}

/// One whose tokens are as long as twelve bytes of a request, and that can say so.
async fn cheap_by_weight() -> Fake {
    Fake::exactly(cheap().weighing(weight), []).await
}

fn weight(body: &Value) -> u64 {
    body.to_string().len() as u64 / 12
}

fn agent(fake: &Fake) -> Agent {
    let provider = ModelClient::builder("anthropic/claude-opus-5")
        .base_url(&fake.address)
        .key(Secret::new(KEY))
        .build_with(&|_| None)
        .unwrap();
    let window = Window::Known(Tokens(16_000));
    Agent::builder(provider).window(window).build().unwrap()
}

#[tokio::test]
async fn a_lower_count_of_the_provider_loosens_nothing() {
    // Too much by our count for a window of which 12,000 tokens are for the request.
    let task = "All of this is seen, and more of it is to come. ".repeat(1_300);
    for fake in [cheap_by_weight().await, Fake::of(cheap(), []).await] {
        let output = agent(&fake).run(&task).await;
        let output = output.or_else(Error::into_output).unwrap();
        let unfit = matches!(output.reason, EndReason::CannotFit { .. });
        assert!(unfit, "{:?}", output.reason);
        assert!(fake.paths().is_empty(), "nobody is asked");
    }
}

#[tokio::test]
async fn nobody_is_asked_what_a_request_weighs() {
    let fake = cheap_by_weight().await;
    let output = agent(&fake).run("Say done.").await.unwrap();
    assert_eq!(output.text, "done");
    assert_eq!(fake.paths(), ["/v1/messages"]);
}
