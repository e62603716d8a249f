//! The driver: the one loop that does what the machine says. It decides nothing; see `agent`.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use plimsoll_agent::{Answer, Event, Failure, Input, Outcome, Request, Step};
use plimsoll_context::{CallId, Part, Reply, ToolCall, ToolResult, head_tail};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::Error;
use crate::gate::Gate;
use crate::observer::Observer;
use crate::provider::Provider;
use crate::retry::RetryConfig;
use crate::session::{Command, Session};
use crate::store::SessionStore;
use crate::tool::{MAX_TOOL_OUTPUT, Tool, ToolContext, ToolError, ToolOutput};

/// Everything a driver acts through.
pub(crate) struct Parts {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) tools: HashMap<String, Arc<dyn Tool>>,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) retry: RetryConfig,
}

/// What is under way. Dropping it ends all of it.
#[derive(Default)]
struct Underway {
    call: Option<BoxFuture<'static, Result<Reply, Failure>>>,
    tools: JoinSet<ToolResult>,
    /// Cancelled on drop, so that no tool outlives the run.
    cancel: CancellationToken,
    _cancel_on_drop: Option<DropGuard>,
    asks: FuturesUnordered<BoxFuture<'static, (CallId, Answer)>>,
}

/// Runs until the machine says that the run has ended.
pub(crate) async fn drive(session: &mut Session, input: Input) -> Result<Outcome, Error> {
    let parts = Arc::clone(&session.parts);
    // A future that was dropped half-way left a run open.
    if session.run.is_running() {
        session.run.handle(Input::Interrupt);
        while !matches!(step(session), Step::Finish(_) | Step::Wait) {}
    }
    while session.inbox.try_recv().is_ok() {}
    session.run.handle(input);
    let mut underway = Underway::new();
    loop {
        match step(session) {
            Step::Call(request) => {
                flush(session).await?;
                underway.call = Some(Box::pin(call(Arc::clone(&parts), request)));
            }
            Step::Execute(tool_call) => {
                flush(session).await?;
                let cancel = underway.cancel.child_token();
                underway.tools.spawn(execute(
                    parts.tools.get(&tool_call.name).cloned(),
                    tool_call,
                    cancel,
                ));
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
                session.run.handle(input);
            }
            Step::Finish(outcome) => {
                flush(session).await?;
                return Ok(outcome);
            }
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
        Step::Notify(event) => tell(&session.parts, event),
        _ => {}
    }
    step
}

fn tell(parts: &Parts, event: &Event) {
    for observer in &parts.observers {
        observer.see(event);
    }
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
    session.pending.clear();
    session.stale = false;
    Ok(())
}

async fn wait(inbox: &mut tokio::sync::mpsc::Receiver<Command>, underway: &mut Underway) -> Input {
    let Underway {
        call, tools, asks, ..
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
        Some(Ok(result)) = tools.join_next() => Input::ToolDone(result),
        Some((call, answer)) = asks.next() => Input::Answer { call, answer },
        // The machine waits for nothing that is under way: it can only be a fault of ours, and an
        // end that can be resumed beats a hang.
        else => Input::Interrupt,
    }
}

/// One model call, made again where that may help.
async fn call(parts: Arc<Parts>, request: Box<Request>) -> Result<Reply, Failure> {
    let mut attempt = 1;
    loop {
        let deltas = |delta| tell(&parts, &Event::Delta(delta));
        let failure = match parts.provider.call(&request, &deltas).await {
            Ok(reply) => return Ok(reply),
            Err(failure) => failure,
        };
        let Some(wait) = parts.retry.wait(attempt, &failure) else {
            return Err(failure);
        };
        attempt += 1;
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        tell(
            &parts,
            &Event::Retrying {
                attempt,
                wait_ms,
                why: failure.to_string(),
            },
        );
        tokio::time::sleep(wait).await;
    }
}

/// One tool call; whatever happens, it has a result.
async fn execute(
    tool: Option<Arc<dyn Tool>>,
    call: ToolCall,
    cancel: CancellationToken,
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
