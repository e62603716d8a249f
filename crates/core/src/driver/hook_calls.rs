//! Calls the host's hooks. Meanwhile the driver still accepts messages, and an interrupt or the end
//! of the run's time cancels the hook.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};

use plimsoll_agent::{Answer, Decision, Event, HookInput, HookPoint, Input, Question};
use plimsoll_context::Part;
use tokio::time::Instant;

use crate::hooks::{ANSWER_RETRIES, HookContext, HookOutcome};
use crate::parts::Parts;
use crate::remote::checked;
use crate::session::Session;
use crate::tool::Update;

/// How long hooks after the end of a run may take if the time of the run is used up.
const LAST_HOOK: Duration = Duration::from_secs(1);

/// Waits for a hook. Returns `None` if it is cut off; the run then ends or continues without it.
async fn attend<T>(session: &mut Session, hook: impl Future<Output = T>) -> Option<T> {
    let mut hook = pin!(hook);
    loop {
        let listens = session.run.is_running();
        let due = until(session);
        let input = tokio::select! {
            biased;
            input = command(session), if listens => input,
            had = &mut hook => return Some(had),
            // The machine's reaction is carried out at its next wait.
            () = due => {
                session.run.pass_time(session.started.elapsed());
                return None;
            }
        };
        let is_interrupt = matches!(input, Input::Interrupt);
        session.handle(input);
        if is_interrupt {
            return None;
        }
    }
}

/// Completes at the machine's next deadline. After the end of a run, that is the end of the run's time,
/// but not before [`LAST_HOOK`] has passed.
pub(super) fn until(session: &Session) -> BoxFuture<'static, ()> {
    let (run, soonest) = (&session.run, Instant::now() + LAST_HOOK);
    let ends = |limit| session.started.checked_add(limit);
    let time = if run.is_running() {
        run.deadline().and_then(ends)
    } else {
        let limit = run.setup().limits.max_duration;
        limit.and_then(ends).map(|ends| ends.max(soonest))
    };
    match time {
        Some(time) => tokio::time::sleep_until(time).boxed(),
        None => pending().boxed(),
    }
}

/// Returns the next message or an interrupt. Messages wait in the inbox while the machine has no
/// room.
pub(super) async fn command(session: &Session) -> Input {
    session.inbox.next(session.run.has_room()).await
}

/// Calls the hooks of a point. Returns `None` if they were cut off.
pub(super) async fn call(session: &mut Session, input: HookInput) -> Option<HookOutcome> {
    let (point, cx, parts) = (input.point(), context(session), Arc::clone(&session.parts));
    let outcome = attend(session, parts.call_hooks(&cx, input)).await;
    if outcome.is_none() && (session.run.is_running() || !point.decides()) {
        parts.warn([cut_off(point.name())]);
    }
    outcome
}

/// Calls the hooks of a point. Returns the reason if they refuse.
async fn refusal(session: &mut Session, input: HookInput) -> Option<String> {
    call(session, input).await?.denied
}

/// Asks the host and passes its decision to the machine.
pub(super) async fn before(session: &mut Session, input: HookInput) {
    let refused = match input {
        HookInput::FollowUp => follow_up(session).await,
        input => refusal(session, input).await,
    };
    session.handle(Input::Decided(match refused {
        Some(why) => Decision::No { why },
        None => Decision::Go,
    }));
}

/// Gets messages from the host's hooks, at `Steering` or `FollowUp`.
pub(super) async fn poll(session: &mut Session, input: HookInput) {
    let point = input.point();
    if !session.parts.hooks.has(point) {
        return;
    }
    let outcome = call(session, input).await;
    for message in outcome.into_iter().flat_map(|outcome| outcome.messages) {
        // A message to an ended run would start a new one. Blank messages are ignored.
        if session.run.is_running()
            && let Ok(message) = checked(message)
        {
            session.handle(match point {
                HookPoint::Steering => Input::User(message),
                _ => Input::FollowUp(message),
            });
        }
    }
}

/// Asks `check_answer` about the newest answer and, if it is accepted, the host for more to do.
/// Returns the reason if the answer is not accepted and the run has to end.
async fn follow_up(session: &mut Session) -> Option<String> {
    let answer = session.run.state().transcript().items().last();
    let answer = answer.filter(|_| session.parts.hooks.has(HookPoint::CheckAnswer));
    if let Some(answer) = answer.map(|item| item.message.text()) {
        let checked = call(session, HookInput::CheckAnswer { answer }).await;
        let Some(HookOutcome { denied, faults, .. }) = checked else {
            return Some(cut_off("check_answer"));
        };
        match denied {
            Some(why) if session.answers_refused < ANSWER_RETRIES => {
                session.answers_refused += 1;
                let text = format!("Your answer was not accepted: {why}\n\nAnswer again, in full.");
                session.handle(Input::FollowUp(vec![Part::text(text)].into()));
                return None;
            }
            Some(why) => return Some(why),
            None if !faults.is_empty() => return Some(faults.join("; ")),
            None => {}
        }
    }
    poll(session, HookInput::FollowUp).await;
    None
}

/// Publishes a progress update of a tool, unless a hook suppresses it.
pub(super) async fn update(session: &mut Session, update: Update) {
    let Update {
        call: id,
        name,
        text,
    } = update;
    let text = session.parts.secrets.strike_out(text);
    let input = HookInput::BeforeToolExecutionUpdate {
        tool: name.clone(),
        call: id.clone(),
        text: text.clone(),
    };
    if refusal(session, input).await.is_some() {
        return;
    }
    let input = HookInput::AfterToolExecutionUpdate {
        tool: name.clone(),
        call: id.clone(),
        text: text.clone(),
    };
    session.parts.tell(Event::ToolUpdate {
        call: id,
        name,
        text,
    });
    call(session, input).await;
}

/// Decides whether a tool call may run: asks the hooks first, then the gate. Silence of either
/// denies. Rewritten arguments go back to the machine, which checks the rules and may ask again.
pub(super) async fn decide(parts: Arc<Parts>, cx: HookContext, question: Question) -> Answer {
    let (call, name) = (&question.call, &question.call.name);
    if question.asks_hook {
        let input = HookInput::BeforeToolExecution {
            tool: name.clone(),
            call: call.id.clone(),
            arguments: super::tools::arguments(call),
        };
        let outcome = parts.call_hooks(&cx, input).await;
        if let Some(why) = outcome.denied {
            let why = format!("`{name}` was skipped: {why}");
            return Answer::Skip { why };
        }
        if let Some(fault) = outcome.faults.first() {
            let why = format!(
                "`{name}` was not allowed, because the hook that guards it failed: {fault}"
            );
            return Answer::Deny { why };
        }
        if let HookInput::BeforeToolExecution { arguments, .. } = &outcome.input
            && outcome.is_rewritten
        {
            let arguments = arguments.to_string();
            return Answer::Rewrite { arguments };
        }
    }
    if question.asks_gate {
        parts.ask_gate(&question).await
    } else {
        Answer::Allow
    }
}

fn cut_off(name: &str) -> String {
    format!("{name} was cut off: the run is interrupted, or its time is used up")
}

/// Returns the session that hooks are called for.
pub(super) fn context(session: &Session) -> HookContext {
    HookContext {
        state: Arc::clone(&session.state),
        run: session.run.state().runs(),
    }
}
