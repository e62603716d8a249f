//! The driver: the loop that carries out the steps of the state machine. Decisions are made in
//! `agent`.

mod call;
mod flush;
mod hook_calls;
mod rewrite;
mod tools;
mod usage;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use plimsoll_agent::{Answer, Event, HookInput, Input, Now, Outcome, Request, Run, Step};
use plimsoll_context::{Bytes, CallId, Gap, Part};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use crate::error::Error;
use crate::output::AgentOutput;
use crate::remote::{OpenInboxGuard, message_of};
use crate::session::Session;
use crate::telemetry::{self, RunSpan, ToolSpan};
use crate::tool::{TOOL_UPDATES, ToolContext, Update};

use flush::{finish_write, flush, is_point};
use hook_calls::{command, until};

/// All operations under way. Dropping it cancels them.
struct Underway {
    /// A model call, of the run itself or for a summary.
    call: Option<BoxFuture<'static, Input>>,
    tools: JoinSet<tools::FinishedCall>,
    updates: (mpsc::Sender<Update>, mpsc::Receiver<Update>),
    /// Cancelled on drop, so that no tool outlives the run.
    cancel: CancellationToken,
    _cancel_on_drop: DropGuard,
    asks: FuturesUnordered<BoxFuture<'static, (CallId, Answer)>>,
}

/// A run in progress. Dropping it cancels the operations under way.
pub(crate) struct Driven {
    underway: Underway,
    span: RunSpan,
    _open: OpenInboxGuard,
}

/// Carries out steps until the log reaches a point that another process could continue from, until
/// the run ends, or until an operation between two runs is done.
async fn follow(session: &mut Session, underway: &mut Underway) -> Result<Option<Outcome>, Error> {
    let parts = Arc::clone(&session.parts);
    loop {
        // A journal records a point before the next call begins. A process that continues from
        // there then knows that the call has not run.
        if session.chain.is_some() {
            if session.pending.last().is_some_and(is_point) {
                flush(session).await?;
            }
            if std::mem::take(&mut session.reached) {
                return Ok(None);
            }
        }
        match step(session) {
            Step::Call(mut request) => {
                flush(session).await?;
                request.cache.key.clone_from(&session.cache_key);
                warn_of_history(session, &request);
                rewrite::rewrite(session, &mut request).await;
                underway.call = Some(call::call(session, request, "turn"));
            }
            Step::Summarize(request) => {
                flush(session).await?;
                underway.call = Some(call::call(session, request, "summary"));
            }
            Step::Execute(tool_call) => {
                flush(session).await?;
                let tool = parts.tools.get(&tool_call.name).cloned();
                let call = tool_call.id.clone();
                let (reservation, caller) = session.for_call(&call);
                let updates = underway.updates.0.clone();
                let cx = ToolContext {
                    cancel: underway.cancel.child_token(),
                    updates: Some((updates, tool_call.name.clone())),
                    reservation,
                    permissions: Arc::clone(&session.run.setup().permissions),
                    variables: parts.variables.clone(),
                    shows_images: parts.provider.takes_images() == Some(true),
                    caller,
                    call,
                };
                let traced = ToolSpan::begin(&session.span_context("turn"), &tool_call);
                let hooks = hook_calls::context(session);
                let execute = tools::execute(Arc::clone(&parts), tool, tool_call, cx, hooks);
                let execute = execute.instrument(traced.span.clone());
                underway.tools.spawn(async move {
                    let done = execute.await;
                    traced.end(&done.result, done.fault);
                    done
                });
            }
            Step::Ask(question) => {
                let (call, cx) = (question.call.id.clone(), hook_calls::context(session));
                let decide = hook_calls::decide(Arc::clone(&parts), cx, question);
                let decide = decide.map(|answer| (call, answer));
                underway.asks.push(decide.boxed());
            }
            Step::Abort => {
                *underway = Underway::new();
                session.usage.forget_call();
                session.usage.calls.clear();
            }
            Step::Wait => {
                flush(session).await?;
                if !session.run.is_running() {
                    return Ok(None);
                }
                session.book();
                wait(session, underway).await;
            }
            Step::Finish(mut outcome) => {
                flush(session).await?;
                outcome.undelivered.extend(session.close_inbox());
                return Ok(Some(outcome));
            }
            Step::Before(moment) => {
                flush(session).await?;
                hook_calls::before(session, moment).await;
            }
            Step::After(moment) => {
                flush(session).await?;
                hook_calls::call(session, moment).await;
            }
            Step::Record(_) | Step::Notify(_) => {}
        }
    }
}

/// Warns once in a session if a request has more messages than it should.
fn warn_of_history(session: &mut Session, request: &Request) {
    let Some(limit) = session.parts.max_history_messages else {
        return;
    };
    let messages = request.messages.iter();
    let sent = messages
        .filter(|message| Gap::of(message).is_none())
        .count();
    if sent > limit && !std::mem::replace(&mut session.has_warned_of_history, true) {
        session.parts.warn([format!(
            "max_history_messages is {limit}, but {sent} messages are sent: the task and the newest \
             calls with their results stay"
        )]);
    }
}

/// Passes an input to the machine. Between tool calls and before an answer of the model is
/// processed, the host may steer.
async fn handle_input(session: &mut Session, input: Input) {
    if let Input::Reply(reply) = &input {
        session.answered = Some((Duration::ZERO, Instant::now()));
        if let Ok(reply) = reply.as_ref() {
            session.usage.call.arrived(reply);
        }
    }
    if matches!(input, Input::Reply(_) | Input::ToolDone { .. }) {
        hook_calls::poll(session, HookInput::Steering).await;
    }
    if matches!(input, Input::Reply(_)) {
        session.usage.call.answered();
    }
    session.handle(input);
}

impl Driven {
    /// Begins a run, or continues one that has already taken `elapsed`.
    pub(crate) fn begin(session: &mut Session, input: Input, elapsed: Duration) -> Self {
        end_open(session);
        session.attach_context();
        let now = tokio::time::Instant::now();
        session.started = now.checked_sub(elapsed).unwrap_or(now);
        session.answers_refused = 0;
        session.reached = false;
        let open = session.inbox.open();
        session.handle(input);
        session.open_ledger();
        Self {
            underway: Underway::new(),
            span: RunSpan::begin(
                session.run.setup(),
                session.parts.called.as_deref(),
                session.id(),
                session.run.state().runs(),
            ),
            _open: open,
        }
    }

    /// Continues until the log has a new reply of a model, result of a tool or end. Returns the
    /// outcome if the run has ended.
    pub(crate) async fn advance(
        &mut self,
        session: &mut Session,
    ) -> Result<Option<Outcome>, Error> {
        let span = self.span.0.clone();
        let advanced = follow(session, &mut self.underway);
        advanced.instrument(span).await
    }

    /// Ends the run after its outcome or a failed write.
    pub(crate) fn end(self, session: &mut Session, outcome: &Result<Outcome, Error>) {
        self.span.end(outcome);
        session.book();
        session.close_inbox();
    }
}

impl Underway {
    fn new() -> Self {
        let cancel = CancellationToken::new();
        Self {
            call: None,
            tools: JoinSet::new(),
            updates: mpsc::channel(TOOL_UPDATES),
            _cancel_on_drop: cancel.clone().drop_guard(),
            cancel,
            asks: FuturesUnordered::new(),
        }
    }
}

impl Session {
    /// Lets the machine do something between two runs, and carries out its steps. A run that was left
    /// open is ended first.
    ///
    /// # Errors
    /// If a write to the log fails, or has failed before.
    pub(crate) async fn between_runs<T>(
        &mut self,
        act: impl FnOnce(&mut Run) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.stale {
            return Err(Error::Stale);
        }
        finish_write(self).await?;
        end_open(self);
        self.restore();
        settle(self).await?;
        let done = act(&mut self.run)?;
        settle(self).await?;
        Ok(done)
    }

    /// Runs until the machine ends the run.
    pub(crate) async fn drive(&mut self, input: Input) -> Result<AgentOutput, Error> {
        let mut driven = Driven::begin(self, input, Duration::ZERO);
        let outcome = loop {
            if let Some(outcome) = driven.advance(self).await.transpose() {
                break outcome;
            }
        };
        driven.end(self, &outcome);
        self.output(outcome?)
    }

    /// Closes the inbox: from now on, senders learn that the run takes no more messages. Reports and returns the
    /// messages that the run has not taken.
    pub(crate) fn close_inbox(&mut self) -> Vec<Vec<Part>> {
        let left = self.inbox.close().into_iter();
        let left: Vec<_> = left.filter_map(message_of).collect();
        left.iter().for_each(|parts| self.parts.too_late(parts));
        left
    }

    /// Passes an input to the machine, with the facts of this moment.
    pub(crate) fn handle(&mut self, input: Input) {
        let now = Now {
            elapsed: self.started.elapsed(),
            since_call: self.idle(),
            partial_answers: self.usage.of_call(&input),
            tool_usage: self.usage.of_tools(&input),
        };
        let was_retried = matches!(input, Input::Retried);
        self.run.handle(now, input);
        if was_retried {
            self.usage.call.limit_output(self.run.max_output());
        }
    }
}

/// Returns the next step that is not an event. Queues its entry for the store, and reports the events
/// before it to the observers.
fn step(session: &mut Session) -> Step {
    loop {
        let step = session.run.poll();
        session.parts.observers.set_run(session.run.state().runs());
        let entry = match step {
            Step::Notify(event) => {
                let contents = session.parts.records_contents;
                telemetry::record(&event, session.run.setup(), contents);
                session.parts.tell(event);
                continue;
            }
            Step::Record(entry) => entry,
            step => return step,
        };
        if let Some(step) = session.steps.see(&entry, session.run.state().transcript()) {
            session.parts.tell(Event::Step(step.clone()));
        }
        let held = u64::try_from(session.steps.held()).unwrap_or(u64::MAX);
        session.run.set_held_beside(Bytes(held));
        session.pending.push(entry.clone());
        session.hold();
        return Step::Record(entry);
    }
}

/// Ends a run that was left open by a dropped future.
fn end_open(session: &mut Session) {
    if !session.run.is_running() {
        session.close_inbox();
    } else {
        for input in session.inbox.close() {
            session.handle(input);
        }
        session.handle(Input::Interrupt);
        while !matches!(step(session), Step::Finish(_) | Step::Wait) {}
    }
    session.usage.forget_call();
}

/// Carries out the machine's steps between two runs, such as those of a compaction. Dropping the
/// future drops a summary under way and leaves the view unchanged.
pub(crate) async fn settle(session: &mut Session) -> Result<(), Error> {
    follow(session, &mut Underway::new()).await?;
    Ok(())
}

/// Waits for the next event and handles it.
async fn wait(session: &mut Session, underway: &mut Underway) {
    let due = until(session);
    let Underway {
        call,
        tools,
        updates: (_, updates),
        asks,
        ..
    } = underway;
    let idle = call.is_none() && tools.is_empty() && asks.is_empty();
    let input = tokio::select! {
        biased;
        input = command(session) => input,
        () = due => Input::Tick,
        // Handled before the next attempt starts.
        () = session.usage.call.news() => Input::Retried,
        Some(input) = async { Some(call.as_mut()?.await) } => {
            *call = None;
            input
        }
        // Updates of a tool come before its result.
        Some(update) = updates.recv() => {
            // A tool that has returned reports no more progress.
            if session.usage.calls.contains_key(&update.call) {
                hook_calls::update(session, update).await;
            }
            return;
        }
        Some(ended) = tools.join_next() => match ended {
            Ok(tools::FinishedCall { result, spent, .. }) => Input::ToolDone { result, spent },
            // Only if the runtime ends.
            Err(_) => Input::Interrupt,
        },
        Some((call, answer)) = asks.next() => Input::Answer { call, answer },
        // The machine waits although nothing is under way. That is a bug; ending the run so that it
        // can be resumed is better than hanging.
        () = std::future::ready(()), if idle => Input::Interrupt,
    };
    handle_input(session, input).await;
}
