//! The driver: the one loop that does what the machine says. It decides nothing; see `agent`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use plimsoll_agent::{
    Answer, Decision, Event, Failure, Input, Leaving, Outcome, Request, Spend, Step, Verdict,
};
use plimsoll_context::{CallId, Part, Reply, Tokens, ToolCall, ToolResult, head_tail};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::archive::Archived;
use crate::error::Error;
use crate::gate::Gate;
use crate::heard::heard;
use crate::hooks::{Before, Hooks};
use crate::observer::Observer;
use crate::provider::Provider;
use crate::retry::RetryConfig;
use crate::session::{Command, Session};
use crate::store::SessionStore;
use crate::tool::{MAX_TOOL_OUTPUT, Pins, Tool, ToolContext, ToolError, ToolOutput};
use crate::window::told;

/// Everything a driver acts through.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) provider: Arc<dyn Provider>,
    /// Who writes summaries.
    pub(crate) summarizer: Arc<dyn Provider>,
    /// Whether that is another model than the run's own, with a window of its own.
    pub(crate) asks_summarizer: bool,
    pub(crate) summary_timeout: Duration,
    pub(crate) hooks: Hooks,
    pub(crate) tools: HashMap<String, Arc<dyn Tool>>,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) retry: RetryConfig,
    /// How often a call of an idempotent tool is made again after a timeout.
    pub(crate) tool_retries: u32,
    /// How long the gate may say nothing.
    pub(crate) gate_timeout: Option<Duration>,
}

/// What is under way. Dropping it ends all of it.
#[derive(Default)]
struct Underway {
    call: Option<BoxFuture<'static, Result<Reply, Failure>>>,
    summary: Option<BoxFuture<'static, Result<Reply, Failure>>>,
    tools: JoinSet<Done>,
    /// Cancelled on drop, so that no tool outlives the run.
    cancel: CancellationToken,
    _cancel_on_drop: Option<DropGuard>,
    asks: FuturesUnordered<BoxFuture<'static, (CallId, Answer)>>,
}

/// Runs until the machine says that the run has ended.
pub(crate) async fn drive(session: &mut Session, input: Input) -> Result<Outcome, Error> {
    let parts = Arc::clone(&session.parts);
    end_open(session);
    while session.inbox.try_recv().is_ok() {}
    session.run.set_idle(session.idle());
    session.run.handle(input);
    let mut underway = Underway::new();
    loop {
        match step(session) {
            Step::Call(mut request) => {
                flush(session).await?;
                request.cache.key.clone_from(&session.cache_key);
                underway.call = Some(Box::pin(call(Arc::clone(&parts), request)));
            }
            Step::Summarize(request) => {
                flush(session).await?;
                underway.summary = Some(Box::pin(summarize(Arc::clone(&parts), request)));
            }
            Step::Leave(leaving) => {
                flush(session).await?;
                let verdict = keep(session, &leaving).await;
                session.run.handle(Input::Left(verdict));
            }
            Step::Gone(leaving) => {
                flush(session).await?;
                let messages = session.run.state().transcript().items().len();
                let tokens = session.run.tokens();
                let told = parts.hooks.gone(&leaving, &session.state, messages, tokens);
                for text in told.await {
                    parts.tell(&Event::Warning { text });
                }
            }
            Step::Execute(tool_call) => {
                flush(session).await?;
                let cancel = underway.cancel.child_token();
                let tool = session.tools.get(&tool_call.name);
                let tool = tool.or_else(|| parts.tools.get(&tool_call.name)).cloned();
                underway.tools.spawn(execute(tool, tool_call, cancel));
            }
            Step::Ask(question) => {
                let gate = Arc::clone(&parts.gate);
                underway.asks.push(Box::pin(async move {
                    let answer = gate.decide(&question).await;
                    (question.call.id, answer)
                }));
            }
            Step::Abort => underway = Underway::new(),
            Step::Wait => {
                flush(session).await?;
                let input = wait(&mut session.inbox, &mut underway).await;
                if matches!(input, Input::Reply(_)) {
                    session.called = Some(Instant::now());
                }
                session.run.set_idle(session.idle());
                session.run.handle(input);
            }
            Step::Finish(outcome) => {
                flush(session).await?;
                return Ok(outcome);
            }
            Step::Before(_) => session.run.handle(Input::Decided(Decision::Go)),
            Step::After(_) => flush(session).await?,
            Step::Record(_) | Step::Notify(_) => {}
        }
    }
}

impl Underway {
    fn new() -> Self {
        let cancel = CancellationToken::new();
        let guard = cancel.clone().drop_guard();
        Self {
            cancel,
            _cancel_on_drop: Some(guard),
            ..Self::default()
        }
    }
}

/// The next step, entries set aside for the store and events told to the observers.
fn step(session: &mut Session) -> Step {
    let step = session.run.poll();
    match &step {
        Step::Record(entry) => session.pending.push(entry.clone()),
        Step::Notify(event) => session.parts.tell(event),
        _ => {}
    }
    step
}

impl Parts {
    /// Tells the observers.
    pub(crate) fn tell(&self, event: &Event) {
        for observer in &self.observers {
            observer.see(event);
        }
    }
}

/// Ends a run that a future which was dropped half-way has left open.
fn end_open(session: &mut Session) {
    if session.run.is_running() {
        session.run.handle(Input::Interrupt);
        while !matches!(step(session), Step::Finish(_) | Step::Wait) {}
    }
}

/// Makes a session ready for what is done between two runs.
///
/// # Errors
/// Where it is not known what of it was written.
pub(crate) fn between_runs(session: &mut Session) -> Result<(), Error> {
    if session.stale {
        return Err(Error::Stale);
    }
    end_open(session);
    Ok(())
}

/// Does what the machine says between two runs.
pub(crate) async fn settle(session: &mut Session) -> Result<(), Error> {
    while !matches!(step(session), Step::Wait | Step::Finish(_)) {}
    flush(session).await
}

/// Makes what was recorded durable.
async fn flush(session: &mut Session) -> Result<(), Error> {
    if session.pending.is_empty() {
        return Ok(());
    }
    // Until it is known that it was written, the session counts as ahead of its log.
    session.stale = true;
    session
        .parts
        .store
        .append(&session.lease, &session.pending)
        .await?;
    let told = told(&session.pending);
    session.pending.clear();
    session.stale = false;
    if let Some(window) = told {
        remember(session, window).await;
    }
    Ok(())
}

/// Keeps what a provider has told of its window for other sessions. To forget it costs them one
/// refused request, and no run.
async fn remember(session: &Session, window: Tokens) {
    let parts = &session.parts;
    if let Err(error) = parts.store.learn_window(&session.endpoint, window).await {
        parts.tell(&Event::Warning {
            text: format!("the window that was learned is not remembered: {error}"),
        });
    }
}

async fn wait(inbox: &mut tokio::sync::mpsc::Receiver<Command>, underway: &mut Underway) -> Input {
    let Underway {
        call,
        summary,
        tools,
        asks,
        ..
    } = underway;
    tokio::select! {
        biased;
        Some(command) = inbox.recv() => match command {
            Command::Steer(parts) => Input::User(parts),
            Command::Interrupt => Input::Interrupt,
        },
        Some(reply) = async { Some(call.as_mut()?.await) } => {
            *call = None;
            Input::Reply(Box::new(reply))
        }
        Some(reply) = async { Some(summary.as_mut()?.await) } => {
            *summary = None;
            Input::Summarized(Box::new(reply))
        }
        Some(Ok(done)) = tools.join_next() => Input::ToolDone {
            result: done.result,
            pins: done.pins,
            spent: Spend::default(),
        },
        Some((call, answer)) = asks.next() => Input::Answer { call, answer },
        // The machine waits for nothing that is under way: it can only be a fault of ours, and an
        // end that can be resumed beats a hang.
        else => Input::Interrupt,
    }
}

/// Keeps what is about to leave, and says whether it may.
async fn keep(session: &Session, leaving: &Leaving) -> Verdict {
    match session.parts.hooks.before(leaving) {
        Before::Yes => {}
        Before::No(why) => return Verdict::Veto { why },
        Before::Fault(text) => session.parts.tell(&Event::Warning { text }),
    }
    if !session.archives {
        return Verdict::Go;
    }
    let why = format!(
        "{}: {}",
        leaving.plan.why.word(),
        leaving.plan.stages.join(", ")
    );
    let originals = leaving.originals().map(|leaving| Archived {
        seq: leaving.item.seq,
        message: Arc::clone(&leaving.item.message),
        tool: leaving.tool.clone(),
        why: why.clone(),
    });
    let originals: Vec<Archived> = originals.collect();
    match session
        .parts
        .store
        .archive(&session.lease, &originals)
        .await
    {
        Ok(()) => Verdict::Go,
        Err(error) => Verdict::NotKept {
            why: error.to_string(),
        },
    }
}

/// One call for a summary. It may be made again like any other, but not for ever: the run waits.
async fn summarize(parts: Arc<Parts>, request: Box<Request>) -> Result<Reply, Failure> {
    let wait = parts.summary_timeout;
    let mut attempt = 1;
    let work = async {
        loop {
            let failure = match parts.summarizer.call(&request, &|_| {}).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            match parts.retry.wait(attempt, &failure) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(failure),
            }
            attempt += 1;
        }
    };
    match tokio::time::timeout(wait, work).await {
        Ok(reply) => reply,
        Err(_) => Err(Failure::Transient {
            status: None,
            retry_after_ms: None,
            message: format!("there was no summary within {} s", wait.as_secs_f32()),
        }),
    }
}

/// One model call, made again where that may help.
async fn call(parts: Arc<Parts>, request: Box<Request>) -> Result<Reply, Failure> {
    let mut attempt = 1;
    loop {
        let deltas = |delta| parts.tell(&Event::Delta(delta));
        let reply = parts.provider.call(&request, &deltas).await;
        let failure = match reply.and_then(|reply| heard(reply, &request)) {
            Ok(reply) => return Ok(reply),
            Err(failure) => failure,
        };
        let Some(wait) = parts.retry.wait(attempt, &failure) else {
            return Err(failure);
        };
        attempt += 1;
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        parts.tell(&Event::Retrying {
            attempt,
            wait_ms,
            why: failure.to_string(),
        });
        tokio::time::sleep(wait).await;
    }
}

/// One tool call; whatever happens, it has a result.
async fn execute(tool: Option<Arc<dyn Tool>>, call: ToolCall, cancel: CancellationToken) -> Done {
    let pins = Pins::default();
    let result = work(tool, call, cancel, pins.clone()).await;
    Done {
        result,
        pins: pins.take(),
    }
}

/// What a tool call came to.
struct Done {
    result: ToolResult,
    pins: Vec<String>,
}

async fn work(
    tool: Option<Arc<dyn Tool>>,
    call: ToolCall,
    cancel: CancellationToken,
    pins: Pins,
) -> ToolResult {
    let id = call.id.clone();
    let name = call.name.clone();
    let Some(tool) = tool else {
        return failed(id, format!("there is no tool `{name}`"));
    };
    let timeout = tool.timeout();
    let cx = ToolContext {
        call: call.id,
        cancel: cancel.clone(),
        pins,
    };
    let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| serde_json::json!({}));
    // A task of its own contains a panic.
    let mut work = JoinSet::new();
    work.spawn(async move { tool.call(arguments, cx).await });
    match tokio::time::timeout(timeout, work.join_next()).await {
        Ok(Some(Ok(Ok(output)))) => done(id, output),
        Ok(Some(Ok(Err(ToolError(text))))) => failed(id, text),
        Ok(Some(Err(error))) if error.is_panic() => {
            failed(id, panic_text(&name, error.into_panic()))
        }
        Ok(_) => failed(id, format!("`{name}` was stopped before it ended")),
        Err(_) => {
            cancel.cancel();
            failed(
                id,
                format!(
                    "`{name}` did not end within {} s and was stopped",
                    timeout.as_secs_f32()
                ),
            )
        }
    }
}

fn done(call: CallId, output: ToolOutput) -> ToolResult {
    let mut parts = output.parts;
    for part in &mut parts {
        if let Part::Text { text } = part
            && let Some(short) = head_tail(text, MAX_TOOL_OUTPUT)
        {
            *text = short;
        }
    }
    let says_nothing = |part: &Part| part.as_text().is_some_and(|text| text.trim().is_empty());
    if parts.iter().all(says_nothing) {
        parts = vec![Part::text("(no output)")];
    }
    ToolResult {
        call,
        parts,
        is_error: false,
    }
}

fn failed(call: CallId, text: String) -> ToolResult {
    let text = head_tail(&text, MAX_TOOL_OUTPUT).unwrap_or(text);
    let text = if text.trim().is_empty() {
        "failed without a message".to_owned()
    } else {
        text
    };
    ToolResult {
        call,
        parts: vec![Part::text(text)],
        is_error: true,
    }
}

fn panic_text(name: &str, panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    format!("`{name}` broke down: {text}")
}
