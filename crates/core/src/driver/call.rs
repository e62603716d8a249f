//! Model calls, made again where that may help. Not when they are made; the machine says that.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use plimsoll_agent::{Event, Failure, Request};
use plimsoll_context::{Delta, Reply, Tokens};
use tracing::Instrument;

use super::Parts;
use super::losses::Losses;
use crate::heard::heard;
use crate::hooks::said_by;
use crate::provider::Provider;
use crate::retry::RetryConfig;
use crate::telemetry::{Purpose, Scene, retried, trace_call};

/// How long a provider may take to say what a request weighs: the run waits for it, and the number
/// is worth no more than that.
const COUNT_TIMEOUT: Duration = Duration::from_secs(10);

/// One call of the run's own model. What it says is told as it comes.
pub(super) async fn call(
    parts: Arc<Parts>,
    request: Box<Request>,
    scene: Scene,
    losses: Arc<Losses>,
) -> Result<Reply, Failure> {
    let tell = |event| parts.tell(&event);
    let heard = Hearing {
        judge: heard,
        tell: &tell,
        losses: &losses,
    };
    let asked = (scene, Purpose::Turn);
    attempts(&*parts.provider, &request, &parts.retry, heard, asked).await
}

/// One call for a summary. It may be made again like any other, but not for ever: the run waits.
pub(super) async fn summarize(
    parts: Arc<Parts>,
    request: Box<Request>,
    scene: Scene,
    losses: Arc<Losses>,
) -> Result<Reply, Failure> {
    let wait = parts.summary_timeout;
    let asked = (scene, Purpose::Summary);
    let heard = Hearing::quiet(&losses);
    let work = attempts(&*parts.summarizer, &request, &parts.retry, heard, asked);
    tokio::time::timeout(wait, work).await.unwrap_or_else(|_| {
        let failure = Failure::Transient {
            status: None,
            retry_after_ms: None,
            message: format!("there was no summary within {} s", wait.as_secs_f32()),
        };
        losses.failed(&failure);
        Err(failure)
    })
}

/// What the provider says that a request weighs. Where it does not, our own count holds.
pub(super) async fn count(parts: Arc<Parts>, request: Box<Request>) -> Option<Tokens> {
    let asked = AssertUnwindSafe(async { parts.provider.count(&request).await });
    let asked = tokio::time::timeout(COUNT_TIMEOUT, asked.catch_unwind());
    let why = match asked.await {
        Ok(Ok(Ok(reported))) => return reported,
        Ok(Ok(Err(failure))) => failure.to_string(),
        Ok(Err(panic)) => format!("its client broke down: {}", said_by(&*panic)),
        Err(_) => format!("nothing came within {} s", COUNT_TIMEOUT.as_secs()),
    };
    parts.tell(&Event::Warning {
        text: format!(
            "the provider did not say what the request weighs, so our count holds: {why}"
        ),
    });
    None
}

/// One call that no run makes; it may be made again like any other. What it used without a reply,
/// also where it is dropped, is in `losses`.
pub(crate) async fn ask(
    provider: &dyn Provider,
    request: &Request,
    retry: &RetryConfig,
    losses: &Losses,
) -> Result<Reply, Failure> {
    let asked = (Scene::default(), Purpose::Choice);
    attempts(provider, request, retry, Hearing::quiet(losses), asked).await
}

/// What becomes of what a call says.
struct Hearing<'a> {
    judge: fn(Reply, &Request) -> Result<Reply, Failure>,
    tell: &'a (dyn Fn(Event) + Send + Sync),
    losses: &'a Losses,
}

impl<'a> Hearing<'a> {
    /// Nobody is told, and a reply is taken as it is.
    fn quiet(losses: &'a Losses) -> Self {
        Self {
            judge: |reply, _| Ok(reply),
            tell: &|_| {},
            losses,
        }
    }
}

/// Calls until there is a reply that `judge` lets pass, or nothing is to be gained any more.
async fn attempts(
    provider: &dyn Provider,
    request: &Request,
    retry: &RetryConfig,
    heard: Hearing<'_>,
    (scene, purpose): (Scene, Purpose),
) -> Result<Reply, Failure> {
    let Hearing {
        judge,
        tell,
        losses,
    } = heard;
    let mut attempt = 1;
    loop {
        let traced = trace_call(provider, request, &scene, purpose, attempt);
        let deltas = |delta| match delta {
            Delta::Used { usage } => {
                traced.used(usage);
                losses.hear(usage);
            }
            Delta::Refused { status } => traced.refused(status),
            Delta::Warning { text } => tell(Event::Warning { text }),
            delta => {
                traced.chunk();
                tell(Event::Delta(delta));
            }
        };
        // A client that breaks down is a model that could not be reached.
        let call = AssertUnwindSafe(async { provider.call(request, &deltas).await });
        let call = call.catch_unwind().instrument(traced.span());
        let reply = call.await.unwrap_or_else(|panic| {
            Err(Failure::Transient {
                status: None,
                retry_after_ms: None,
                message: format!("its client broke down: {}", said_by(&*panic)),
            })
        });
        let reply = reply.and_then(|reply| judge(reply, request));
        traced.end(&reply);
        let failure = match reply {
            Ok(reply) => {
                losses.answered();
                return Ok(reply);
            }
            Err(failure) => failure,
        };
        losses.failed(&failure);
        let Some(wait) = retry.wait(attempt, &failure) else {
            return Err(retry.given_up(attempt, failure));
        };
        attempt += 1;
        retried(provider, attempt, wait, &failure);
        tell(Event::Retrying {
            attempt,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            why: failure.to_string(),
        });
        tokio::time::sleep(wait).await;
    }
}
