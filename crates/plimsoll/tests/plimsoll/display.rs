//! What a program prints has a text of one line.

use plimsoll::hooks::HookPoint;
use plimsoll::limits::LimitKind;
use plimsoll::pricing::Cost;
use plimsoll::session::new_session_id;
use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::tokens::Bytes;
use plimsoll::{
    Agent, ContextStrategy, EndReason, Money, PermissionMode, SessionId, ThinkingLevel, Tokens,
    Usage,
};

#[test]
fn amounts_and_settings_are_printed() {
    let usage = Usage {
        input: Tokens(29),
        cache_read: Tokens(71),
        output: Tokens(7),
        ..Usage::default()
    };
    let known = Money::from_dollars(0.0012).unwrap();
    let evict = ContextStrategy::Evict {
        max_tokens: Some(Tokens(4_000)),
    };
    for (printed, text) in [
        (usage.to_string(), "read 100 (71 % cached), wrote 7"),
        (Cost { known, unpriced: 0 }.to_string(), "$0.0012"),
        (
            Cost { known, unpriced: 1 }.to_string(),
            "$0.0012 and 1 call of unknown price",
        ),
        (
            Cost {
                known: Money(0),
                unpriced: 2,
            }
            .to_string(),
            "2 calls of unknown price",
        ),
        (evict.to_string(), "evict above 4000 tokens"),
        (ContextStrategy::default().to_string(), "extract"),
        (PermissionMode::Ask.to_string(), "ask"),
        (ThinkingLevel::Low.to_string(), "low"),
        (HookPoint::BeforeTurn.to_string(), "before_turn"),
        (Bytes(12).to_string(), "12"),
        (SessionId::new("voyage").unwrap().to_string(), "voyage"),
        (
            EndReason::Limit {
                kind: LimitKind::MaxTurns,
                used: 5,
                limit: 5,
            }
            .to_string(),
            "Max turns reached (5/5)",
        ),
        (EndReason::Interrupted.to_string(), "Interrupted"),
    ] {
        assert_eq!(printed, text);
    }
}

#[tokio::test]
async fn the_output_of_a_run_is_printed() {
    let agent = Agent::builder(ScriptedProvider::new([Turn::say("Land!")]))
        .build()
        .unwrap();
    let mut session = agent.session(new_session_id()).await.unwrap();
    let printed = session.run("Go.").await.unwrap().to_string();
    assert!(
        printed.starts_with("answered: 1 turn, 0 tool calls, read "),
        "{printed}"
    );
    assert!(!printed.contains('\n'), "{printed}");
}
