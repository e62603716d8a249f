//! A compaction requested between two runs. No model is called except the summarizer.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use plimsoll_agent::{Failure, Input, Step};
use plimsoll_context::Reply;
use tracing::Instrument;

use crate::driver::{call, flush, hooked, step};
use crate::error::Error;
use crate::session::Session;

/// Carries out steps until nothing is under way. Dropping the future drops the summary and leaves
/// the view unchanged.
pub(crate) async fn plan(session: &mut Session) -> Result<(), Error> {
    let parts = Arc::clone(&session.parts);
    let mut summary: Option<BoxFuture<'static, Result<Reply, Failure>>> = None;
    loop {
        match step(session) {
            Step::Summarize(request) => {
                flush(session).await?;
                let scene = session.scene();
                let losses = Arc::clone(&session.losses.summary);
                let asked = call::summarize(Arc::clone(&parts), request, scene, losses);
                summary = Some(asked.instrument(session.spans.of_summary()).boxed());
            }
            Step::BeforePlan(leaving) => {
                flush(session).await?;
                let span = session.spans.leave(&leaving);
                let verdict = hooked::keep(session, &parts, &leaving)
                    .instrument(span)
                    .await;
                session.handle(Input::PlanVerdict(verdict));
            }
            Step::AfterPlan(leaving) => {
                flush(session).await?;
                hooked::gone(session, &parts, &leaving).await;
            }
            Step::Abort => summary = None,
            Step::Wait | Step::Finish(_) => {
                flush(session).await?;
                match summary.take() {
                    Some(summary) if session.run.is_running() => {
                        let reply = Input::Summarized(Box::new(summary.await));
                        session.handle(reply);
                    }
                    _ => return Ok(()),
                }
            }
            // Between two runs, the machine makes no other requests.
            _ => {}
        }
    }
}
