//! [`Driven`]: one run, advanced from point to point of its log. The steps between two points are
//! in `driver.rs`.

use std::time::Duration;

use plimsoll_agent::{Entry, Input, Outcome};
use tracing::Instrument;

use super::{Pause, Underway, end_open, follow};
use crate::error::Error;
use crate::remote::{InboxMessage, OpenInboxGuard};
use crate::session::Session;
use crate::telemetry::RunSpan;

/// A run in progress. Dropping it cancels the operations under way.
pub(crate) struct Driven {
    underway: Underway,
    /// Messages that came too late for the run.
    late: Vec<InboxMessage>,
    span: RunSpan,
    _open: OpenInboxGuard,
}

impl Driven {
    /// Begins a run, or continues one that has already taken `elapsed`.
    pub(crate) fn begin(session: &mut Session, input: Input, elapsed: Duration) -> Self {
        end_open(session);
        let now = tokio::time::Instant::now();
        session.started = now.checked_sub(elapsed).unwrap_or(now);
        session.began = session.run.state().transcript().next_seq();
        session.answers_refused = 0;
        session.reached = false;
        let open = session.inbox.open();
        session.handle(input);
        session.open_ledger();
        Self {
            underway: Underway::new(),
            late: Vec::new(),
            span: RunSpan::begin(session),
            _open: open,
        }
    }

    /// Continues until the log has a new reply of a model, result of a tool or end. Returns the
    /// outcome if the run has ended.
    pub(crate) async fn advance(
        &mut self,
        session: &mut Session,
    ) -> Result<Option<Outcome>, Error> {
        let span = self.span.span();
        let advanced = follow(session, &mut self.underway, &mut self.late);
        Ok(match advanced.instrument(span).await? {
            Pause::End(outcome) => Some(*outcome),
            Pause::Point | Pause::Idle => None,
        })
    }

    /// Ends the run after its outcome or a failed write.
    pub(crate) fn end(self, session: &mut Session, outcome: &Result<Outcome, Error>) {
        self.span.end(outcome);
        session.book();
        let left = session.inbox.close();
        left.iter()
            .for_each(|message| session.parts.too_late(&message.parts));
    }
}

/// Checks whether another process that continues from here would have less work to do than before.
pub(super) fn is_point(entry: &Entry) -> bool {
    matches!(
        entry,
        Entry::Reply { .. }
            | Entry::ToolResult { .. }
            | Entry::Summarized { .. }
            | Entry::ReplyDiscarded { .. }
    )
}
