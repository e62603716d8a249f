//! Calls the host's hooks. Meanwhile the driver still accepts messages, and an interrupt or the end
//! of the run's time cancels the hook.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};

use plimsoll_agent::{
    AffectedItem, Answer, Approver, Decision, Event, HookEvent, HookPoint, Input, PendingPlan,
    Question, Verdict,
};
use plimsoll_context::{CallId, Form, Gap, Message, Part, Seq};
use tokio::time::Instant;

use super::{Parts, until};
use crate::hooks::{
    ANSWER_RETRIES, EvictedMessage, Eviction, HookAnswer, HookInput, HostMessageKind,
};
use crate::recall::LogMessages;
use crate::remote::RemoteCommand;
use crate::session::Session;
use crate::store::SessionId;
use crate::tool::Update;

/// How long hooks after the end of a run may take if the time of the run is used up.
const LAST_HOOK: Duration = Duration::from_secs(1);

/// Waits for a hook. Returns `None` if it is cut off; the run then ends or continues without it.
pub(super) async fn attend<T>(session: &mut Session, hook: impl Future<Output = T>) -> Option<T> {
    let mut hook = pin!(hook);
    loop {
        let listens = session.run.is_running();
        let due = if listens {
            until(session)
        } else {
            until_after_end(session)
        };
        let command = tokio::select! {
            biased;
            command = super::command(session), if listens => Some(command),
            had = &mut hook => return Some(had),
            () = due => None,
        };
        match command {
            Some(RemoteCommand::Say(spoken)) => session.handle(spoken.into_input()),
            Some(RemoteCommand::Interrupt) => {
                session.handle(Input::Interrupt);
                return None;
            }
            // The machine's reaction is carried out at its next wait.
            None => {
                session.run.pass_time(session.started.elapsed());
                return None;
            }
        }
    }
}

/// Completes when a hook after the end of a run is cut off: at the end of the run's time, but not
/// before [`LAST_HOOK`] has passed.
fn until_after_end(session: &Session) -> BoxFuture<'static, ()> {
    let limit = session.run.setup().limits.max_duration;
    let ends = limit.and_then(|limit| session.started.checked_add(limit));
    match ends {
        Some(ends) => tokio::time::sleep_until(ends.max(Instant::now() + LAST_HOOK)).boxed(),
        None => pending().boxed(),
    }
}

/// Asks the host and passes its decision to the machine.
pub(super) async fn before(session: &mut Session, parts: &Arc<Parts>, moment: HookEvent) {
    let decision = match moment {
        HookEvent::FollowUp => match check_answer(session, parts).await {
            AnswerCheck::Accepted => {
                poll(session, parts, HostMessageKind::FollowUps).await;
                Decision::Go
            }
            AnswerCheck::AskedAgain => Decision::Go,
            AnswerCheck::NotAccepted(why) => Decision::No { why },
        },
        moment => {
            let seen = seen(session, moment.point());
            let name = moment.point().name();
            let answer = attend(session, parts.hooks.before(&moment, seen)).await;
            answered(session, parts, name, answer, Decision::Go)
        }
    };
    session.handle(Input::Decided(decision));
}

/// Notifies the host.
pub(super) async fn after(session: &mut Session, parts: &Arc<Parts>, moment: HookEvent) {
    let seen = seen(session, moment.point());
    let name = moment.point().name();
    let told = attend(session, parts.hooks.after(moment, seen)).await;
    warn(parts, told.unwrap_or_else(|| vec![cut_off(name)]));
}

/// Asks whether a plan may be applied.
///
/// Hooks are called for compactions only, not for results that are shortened before the model first
/// reads them.
pub(super) async fn keep(
    session: &mut Session,
    parts: &Arc<Parts>,
    pending: &PendingPlan,
) -> Verdict {
    if pending.plan.is_compaction() {
        let seen = seen(session, HookPoint::BeforeCompactionStart);
        let answer = attend(session, parts.hooks.before_compaction(seen, pending)).await;
        let name = HookPoint::BeforeCompactionStart.name();
        if let Decision::No { why } = answered(session, parts, name, answer, Decision::Go) {
            return Verdict::Veto { why };
        }
    }
    Verdict::Go
}

/// Reports an applied plan and its evicted messages to the host.
pub(super) async fn gone(session: &mut Session, parts: &Arc<Parts>, pending: &PendingPlan) {
    if pending.plan.is_compaction() {
        let messages = session.run.state().transcript().items().len();
        let tokens = session.run.tokens();
        let seen = seen(session, HookPoint::AfterCompactionEnd);
        let told = parts
            .hooks
            .after_compaction(pending, &seen, messages, tokens);
        let told = attend(session, told).await;
        let late = || vec![cut_off("a hook after a compaction")];
        warn(parts, told.unwrap_or_else(late));
    }
    if !parts.hooks.evicts() {
        return;
    }
    let evicted = evicted(parts, session.id(), pending).await;
    if evicted.items.is_empty() {
        return;
    }
    let seen = seen(session, HookPoint::OnEvict);
    let told = attend(session, parts.hooks.evicted(evicted, seen)).await;
    warn(
        parts,
        told.unwrap_or_else(|| vec![cut_off(HookPoint::OnEvict.name())]),
    );
}

/// Returns the originals of the messages that a plan removes or shortens. Messages shortened by an
/// earlier plan are read from the log.
async fn evicted(parts: &Parts, session: &SessionId, pending: &PendingPlan) -> Eviction {
    let affected = || pending.items.iter().filter(|affected| is_message(affected));
    let is_whole = |affected: &AffectedItem| affected.item.form == Form::Original;
    let mut log = LogMessages::default();
    let mut items = Vec::new();
    for affected in affected() {
        let (seq, shown) = (affected.item.seq, &affected.item.message);
        let original = match is_whole(affected) {
            true => Ok(None),
            false => match log.update(parts.store.as_ref(), session).await {
                Ok(()) => log.message(parts.store.as_ref(), session, seq).await,
                Err(error) => Err(error),
            },
        };
        let original = original.unwrap_or_else(|error| {
            let text = format!("on_evict gets shortened messages: {error}");
            warn(parts, vec![text]);
            None
        });
        items.push(EvictedMessage {
            seq,
            removed: affected.removed,
            tool: affected.tool.clone(),
            message: original.unwrap_or_else(|| Arc::clone(shown)),
        });
    }
    Eviction { items }
}

/// Returns `true` for a real message, and `false` for a marker or a summary made by a plan.
fn is_message(affected: &AffectedItem) -> bool {
    let made = matches!(*affected.item.message, Message::Summary { .. });
    Gap::of(&affected.item.message).is_none() && !(made && affected.item.form != Form::Original)
}

/// Gets messages from the host's hooks.
pub(super) async fn poll(session: &mut Session, parts: &Arc<Parts>, what: HostMessageKind) {
    if !parts.hooks.polls(what) {
        return;
    }
    let seen = seen(session, HookPoint::FollowUp);
    let answer = attend(session, parts.hooks.messages(what, seen)).await;
    let Some(HookAnswer { says, faults }) = answer else {
        return;
    };
    warn(parts, faults);
    for message in says {
        // A message to an ended run would start a new one. Blank messages are ignored.
        if session.run.is_running()
            && let Ok(message) = message.checked()
        {
            session.handle(match what {
                HostMessageKind::Steering => Input::User(message.into()),
                HostMessageKind::FollowUps => Input::FollowUp(message.into()),
            });
        }
    }
}

/// The result of checking an answer.
enum AnswerCheck {
    /// The run may end with the answer.
    Accepted,
    /// The model was told the reason and answers again.
    AskedAgain,
    /// The run ends without an accepted answer.
    NotAccepted(String),
}

/// Checks the answer.
async fn check_answer(session: &mut Session, parts: &Arc<Parts>) -> AnswerCheck {
    let items = session.run.state().transcript().items();
    let answer = items.last().map(|item| item.message.text());
    let Some(answer) = answer.filter(|_| parts.hooks.checks_answers()) else {
        return AnswerCheck::Accepted;
    };
    let checked = attend(session, parts.hooks.refusal(answer)).await;
    let Some(HookAnswer { says, faults }) = checked else {
        return AnswerCheck::NotAccepted(cut_off("check_answer"));
    };
    warn(parts, faults.clone());
    match says {
        Some(why) if session.answers_refused < ANSWER_RETRIES => {
            session.answers_refused += 1;
            let text = format!("Your answer was not accepted: {why}\n\nAnswer again, in full.");
            session.handle(Input::FollowUp(vec![Part::text(text)].into()));
            AnswerCheck::AskedAgain
        }
        Some(why) => AnswerCheck::NotAccepted(why),
        None if faults.is_empty() => AnswerCheck::Accepted,
        None => AnswerCheck::NotAccepted(faults.join("; ")),
    }
}

/// Publishes a progress update of a tool, unless a hook suppresses it.
pub(super) async fn update(session: &mut Session, parts: &Arc<Parts>, update: Update) {
    let Update { call, name, text } = update;
    let text = parts.secrets.strike_out(text);
    let args = (name.clone(), call.clone(), text.clone());
    let answer = attend(session, parts.hooks.before_update(args.clone())).await;
    let point = "before_tool_execution_update";
    if answered(session, parts, point, answer, Decision::Go) != Decision::Go {
        return;
    }
    parts.tell(Event::ToolUpdate { call, name, text });
    let told = attend(session, parts.hooks.after_update(args)).await;
    let late = || vec![cut_off("after_tool_execution_update")];
    warn(parts, told.unwrap_or_else(late));
}

/// Decides whether a tool call may run: asks the hook first, then the gate. Silence of either
/// denies.
pub(super) async fn decide(
    parts: Arc<Parts>,
    seen: HookInput,
    question: Question,
) -> (CallId, Answer) {
    let call = question.call.id.clone();
    if matches!(question.whom, Approver::Hook | Approver::Both) {
        let arguments = super::tools::arguments(&question.call);
        let name = &question.call.name;
        let answer = parts.hooks.before_tool(&seen, name, &call, arguments);
        let HookAnswer { says, faults } = answer.await;
        warn(&parts, faults.clone());
        if let Decision::No { why } = says {
            let why = format!("`{name}` was skipped: {why}");
            return (call, Answer::Skip { why });
        }
        if let Some(fault) = faults.first() {
            let why = format!(
                "`{name}` was not allowed, because the hook that guards it failed: \
                               {fault}"
            );
            return (call, Answer::Deny { why });
        }
    }
    let answer = match question.whom {
        Approver::Hook => Answer::Allow,
        Approver::Gate | Approver::Both => parts.ask_gate(&question).await,
    };
    (call, answer)
}

/// Returns the answer of a hook, or `otherwise` if it was cut off. Reports its faults as warnings.
fn answered<T>(
    session: &Session,
    parts: &Parts,
    name: &str,
    answer: Option<HookAnswer<T>>,
    otherwise: T,
) -> T {
    match answer {
        Some(HookAnswer { says, faults }) => {
            warn(parts, faults);
            says
        }
        None => {
            if session.run.is_running() {
                warn(parts, vec![cut_off(name)]);
            }
            otherwise
        }
    }
}

fn cut_off(name: &str) -> String {
    format!("{name} was cut off: the run is interrupted, or its time is used up")
}

pub(super) fn warn(parts: &Parts, texts: Vec<String>) {
    for text in texts {
        parts.tell(Event::Warning { text });
    }
}

/// Returns the part of the session that hooks at this point receive.
pub(super) fn seen(session: &Session, point: HookPoint) -> HookInput {
    let items = session.run.state().transcript().items();
    let from = match point {
        HookPoint::BeforeLoop | HookPoint::BeforeTurn | HookPoint::AfterTurn => Seq::default(),
        HookPoint::AfterLoop => session.began,
        _ => Seq(u64::MAX),
    };
    let shown = items.iter().filter(|item| item.seq >= from);
    HookInput {
        state: Arc::clone(&session.state),
        run: session.run.state().runs(),
        messages: shown.map(|item| Arc::clone(&item.message)).collect(),
    }
}
