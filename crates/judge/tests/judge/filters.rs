//! `trim` and `clear-tool-uses` on each protocol: the result is valid, keeps every instruction, and
//! does not change when it is filtered again.

use std::sync::Arc;

use plimsoll_context::{
    Chars4, ClearToolUses, ClearTrigger, Message, Policy, TokenCounter, Tokens, Trim, TrimRole,
    TrimStrategy, ViewLimits,
};
use plimsoll_judge::body::{Body, BodyCut, CutError};
use plimsoll_judge::canonical::{Reasoning, Target, repair_request};
use proptest::prelude::*;
use serde_json::Value;

use crate::cutting::weighs;
use crate::random_chats::{chat, claude, history, step};
use crate::targets::{chats, claudes, responses};

type FilterOutcome = Result<Option<BodyCut>, CutError>;

fn chars4() -> Arc<dyn TokenCounter> {
    Arc::new(Chars4)
}

fn trim(text: &str, target: &Target, trim: &Trim, max: u64) -> FilterOutcome {
    let mut body = Body::read(text, target).unwrap();
    let view = body.transcript(&chars4());
    body.trim(&view, trim, Tokens(max))
}

fn clear(text: &str, target: &Target, clear: &ClearToolUses) -> FilterOutcome {
    let mut body = Body::read(text, target).unwrap();
    let view = body.transcript(&chars4());
    let policy = Policy::new(vec![Arc::new(clear.clone())]);
    body.cut(&view, &policy, &ViewLimits::exactly(Tokens::MAX))
}

/// The results of a body, and its instructions.
fn told(text: &str, target: &Target) -> (usize, Vec<String>) {
    let messages = Body::read(text, target).unwrap().messages;
    let is_result = |message: &&Message| matches!(message, Message::ToolResult(_));
    let system = messages.iter().filter(|message| message.is_system());
    let system = system.map(Message::text).collect();
    (messages.iter().filter(is_result).count(), system)
}

fn check(
    text: &str,
    target: &Target,
    cut: &BodyCut,
    again: FilterOutcome,
) -> Result<(), TestCaseError> {
    let what = || format!("{target:?}\n{text}\n{}", cut.text);
    let sent: Value = serde_json::from_str(&cut.text).unwrap();
    let mut faults = target.validate(&sent);
    faults.retain(|fault| fault.place.starts_with(target.list()));
    prop_assert!(faults.is_empty(), "{faults:?}\n{}", what());
    prop_assert_eq!(
        told(text, target).1,
        told(&cut.text, target).1,
        "{}",
        what()
    );
    prop_assert!(matches!(again, Ok(None)), "{:?}\n{}", again, what());
    Ok(())
}

fn judge(
    request: &Value,
    target: &Target,
    options: &Trim,
    edit: &ClearToolUses,
    share: u64,
) -> Result<(), TestCaseError> {
    let repaired = repair_request(&request.to_string(), target, Reasoning::Keep);
    let text = repaired.unwrap().request;
    let max = (weighs(&text, target, &chars4()) * share / 100).max(1);
    match trim(&text, target, options, max) {
        Ok(None) => {}
        Ok(Some(cut)) => {
            prop_assert!(weighs(&cut.text, target, &chars4()) <= max);
            check(&text, target, &cut, trim(&cut.text, target, options, max))?;
        }
        Err(CutError::CannotFit(error)) => {
            let least = trim(&text, target, options, error.minimum.0);
            prop_assert!(least.is_ok(), "{target:?} {error} {least:?}\n{text}");
        }
        Err(error) => prop_assert!(matches!(error, CutError::NoSuchRole), "{error}"),
    }
    let cleared = clear(&text, target, edit).unwrap();
    if let Some(cut) = cleared {
        prop_assert_eq!(told(&text, target).0, told(&cut.text, target).0);
        check(&text, target, &cut, clear(&cut.text, target, edit))?;
    }
    Ok(())
}

fn roles() -> impl Strategy<Value = Vec<TrimRole>> {
    prop_oneof![
        2 => Just(Vec::new()),
        1 => Just(vec![TrimRole::User]),
        1 => Just(vec![TrimRole::User, TrimRole::Tool]),
        1 => Just(vec![TrimRole::Assistant]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_filtered_is_valid(
        steps in prop::collection::vec(step(), 1..14),
        share in 5_u64..105,
        first in any::<bool>(),
        (start_on, end_on) in (roles(), roles()),
        allow_partial in any::<bool>(),
        keep in 0_usize..4,
        clear_tool_inputs in any::<bool>(),
        one in 0_usize..100,
    ) {
        let options = Trim {
            strategy: if first { TrimStrategy::First } else { TrimStrategy::Last },
            start_on: if first { Vec::new() } else { start_on },
            end_on,
            allow_partial,
        };
        let edit = ClearToolUses {
            trigger: ClearTrigger::InputTokens(Tokens(share)),
            keep,
            clear_tool_inputs,
            ..ClearToolUses::default()
        };
        let (chats, responses, claudes) = (chats(), responses(), claudes());
        judge(&chat(&steps), &chats[one % chats.len()], &options, &edit, share)?;
        judge(&history(&steps, first), &responses[one % responses.len()], &options, &edit, share)?;
        judge(&claude(&steps, false), &claudes[one % claudes.len()], &options, &edit, share)?;
    }
}
