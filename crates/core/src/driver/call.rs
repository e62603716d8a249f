//! Model calls, made again where that may help. Not when they are made; the machine says that.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use plimsoll_agent::{Event, Failure, Request};
use plimsoll_context::{Delta, Reply, Tokens};
use tracing::Instrument;

use super::Parts;
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
) -> Result<Reply, Failure> {
    let tell = |event| parts.tell(&event);
    let asked = (scene, Purpose::Turn);
    attempts(
        &*parts.provider,
        &request,
        &parts.retry,
        heard,
        &tell,
        asked,
    )
    .await
}

/// One call for a summary. It may be made again like any other, but not for ever: the run waits.
pub(super) async fn summarize(
    parts: Arc<Parts>,
    request: Box<Request>,
    scene: Scene,
) -> Result<Reply, Failure> {
    let wait = parts.summary_timeout;
    let as_it_is = |reply, _: &Request| Ok(reply);
    let work = attempts(
        &*parts.summarizer,
        &request,
        &parts.retry,
        as_it_is,
        &|_| {},
        (scene, Purpose::Summary),
    );
    tokio::time::timeout(wait, work).await.unwrap_or_else(|_| {
        Err(Failure::Transient {
            status: None,
            retry_after_ms: None,
            message: format!("there was no summary within {} s", wait.as_secs_f32()),
        })
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

/// One call that no run makes; it may be made again like any other.
pub(crate) async fn ask(
    provider: &dyn Provider,
    request: &Request,
    retry: &RetryConfig,
) -> Result<Reply, Failure> {
    let as_it_is = |reply, _: &Request| Ok(reply);
    let asked = (Scene::default(), Purpose::Choice);
    attempts(provider, request, retry, as_it_is, &|_| {}, asked).await
}

/// Calls until there is a reply that `judge` lets pass, or nothing is to be gained any more.
async fn attempts(
    provider: &dyn Provider,
    request: &Request,
    retry: &RetryConfig,
    judge: fn(Reply, &Request) -> Result<Reply, Failure>,
    tell: &(dyn Fn(Event) + Send + Sync),
    (scene, purpose): (Scene, Purpose),
) -> Result<Reply, Failure> {
    let mut attempt = 1;
    loop {
        let traced = trace_call(provider, request, &scene, purpose, attempt);
        let deltas = |delta| match delta {
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
            Ok(reply) => return Ok(reply),
            Err(failure) => failure,
        };
        let Some(wait) = retry.wait(attempt, &failure) else {
            return Err(failure);
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
