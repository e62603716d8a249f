//! Rewrites requests by the host's hooks: `transform_context` and `convert_to_llm`.
//!
//! The rewritten request is sent if a provider would accept it and it is within its limit. The view
//! does not change.

use std::sync::Arc;

use plimsoll_agent::{HookInput, HookPoint, Input, Messages, Request};
use plimsoll_context::{Breakpoint, Message, Tokens};

use super::hook_calls::call;
use crate::hooks::HookOutcome;
use crate::session::Session;

/// Lets the host rewrite a request. If the result cannot be sent, the request stays unchanged.
pub(super) async fn rewrite(session: &mut Session, request: &mut Request) {
    // Without hooks nothing is copied, since a request may have ten thousand messages.
    if !session.parts.hooks.has(HookPoint::TransformContext) {
        return;
    }
    let messages = Messages::clone(&request.messages);
    let outcome = call(session, HookInput::TransformContext { messages }).await;
    let Some(HookOutcome {
        input: HookInput::TransformContext { messages },
        ..
    }) = outcome
    else {
        return;
    };
    let pairs = request.messages.iter().zip(&messages);
    let same = pairs.take_while(|(one, other)| Arc::ptr_eq(one, other) || one == other);
    let kept = same.count();
    if kept == messages.len() && kept == request.messages.len() {
        return;
    }
    let counter = &session.run.setup().counter;
    let weigh = |message: &Arc<Message>| counter.message(message);
    let before: Tokens = request.messages.iter().map(weigh).sum();
    let now: Tokens = messages.iter().map(weigh).sum();
    let grown = now.minus(before);
    if grown > Tokens::ZERO && session.run.room() < grown {
        session.parts.warn([format!(
            "transform_context or convert_to_llm made the request {grown} tokens larger, which is too much; it is sent without them"
        )]);
        return;
    }
    request.counted = request.counted.minus(before) + now;
    // Growth reduces the maximum length of the answer.
    let left = |limit: Tokens| limit.minus(grown).max(Tokens(1));
    request.max_output = request.max_output.map(left);
    // The predictions for the original request no longer apply.
    request.expects.input = None;
    request.expects.previous = None;
    let is_kept =
        |breakpoint: &Breakpoint| !matches!(breakpoint, Breakpoint::Message(at) if *at >= kept);
    request.cache.breakpoints.retain(is_kept);
    request.messages = messages.into();
    session.handle(Input::Rewritten {
        counted: request.counted,
    });
}
