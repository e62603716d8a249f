//! Summaries by a model, during the run or before a plan.
//!
//! A failed summary never ends a run: the policy makes another plan without it.

use std::sync::Arc;

use plimsoll_context::{
    Message, Money, PlanContext, Reply, Span, Summarizer, SummaryTiming, Usage,
};

use crate::digest::{Digest, Progress};
use crate::entry::Entry;
use crate::event::Event;
use crate::failure::Failure;
use crate::run::{Phase, Run};
use crate::setup::SummaryModel;
use crate::step::Step;

/// Number of consecutive failures after which a run stops asking the summary model. Each attempt may
/// cost money and time.
pub const MAX_SUMMARY_FAILURES: u32 = 3;

impl Run {
    /// Returns the means that the policy can use now.
    pub(crate) fn plan_context(&self) -> PlanContext {
        let summarizer = match &self.digest {
            _ if self.setup.summary_model.is_none() || self.summary_failed => Summarizer::None,
            _ if self.summary_failures >= MAX_SUMMARY_FAILURES => Summarizer::None,
            Some(_) => Summarizer::Busy,
            None => Summarizer::Free,
        };
        PlanContext {
            recall: self.recall,
            summarizer,
            ready: self.ready.clone(),
        }
    }

    /// Starts a summary that the policy asks for. Returns `true` if its plan should wait for it.
    pub(crate) fn wants_summary(&mut self, span: Span) -> bool {
        let when = span.when;
        // A summary for later is useless before the run's last call.
        if when == SummaryTiming::Soon && self.finalizing.is_some() {
            return false;
        }
        let under_way = self.digest.is_some() || self.begin_digest(span);
        let waits = under_way && when == SummaryTiming::Now;
        if waits {
            self.phase = Phase::Summarizing;
        }
        waits
    }

    fn begin_digest(&mut self, span: Span) -> bool {
        let Some(model) = self.setup.summary_model.clone() else {
            return false;
        };
        let model = SummaryModel {
            window: model.window.or(self.line().window),
            prompt: match &self.compacting {
                Some(compacting) => compacting.prompt(&model.prompt),
                None => model.prompt,
            },
            ..model
        };
        let items = span
            .seqs
            .iter()
            .filter_map(|seq| self.state.transcript.get(*seq));
        let messages: Vec<Arc<Message>> = items.map(|item| Arc::clone(&item.message)).collect();
        let started = Event::SummaryStarted {
            model: model.model.clone(),
            messages: messages.len(),
            tokens: span.tokens,
        };
        let counter = Arc::clone(&self.setup.counter);
        let digest = Digest::new(span, messages, model, counter, self.setup.sampling);
        let Some(digest) = digest else {
            // The window stays too small for the rest of the run, so the warning is not repeated.
            self.summary_failures = MAX_SUMMARY_FAILURES;
            self.warn(
                "the summariser's window is unknown or too small for a summary; extract writes it instead".to_owned(),
            );
            return false;
        };
        let request = digest.request();
        if self
            .exceeded_by_summary(&request, Usage::default())
            .is_some()
        {
            return false;
        }
        self.ready = None;
        self.notify(started);
        self.queue.push_back(Step::Summarize(Box::new(request)));
        self.digest = Some(digest);
        true
    }

    /// Handles the end of a model call for a summary.
    pub(crate) fn summarized(&mut self, reply: Result<Reply, Failure>) {
        let Some(mut digest) = self.digest.take() else {
            return;
        };
        digest.calls += 1;
        // The usage of failed attempts and of a failed call.
        let lost = [
            self.unanswered.summary.take(),
            reply.as_ref().err().and_then(Failure::usage),
        ];
        let lost = lost.into_iter().flatten();
        digest.usage = lost.fold(digest.usage, Usage::combine);
        let progress = match reply {
            Ok(reply) => digest.take(&reply),
            Err(failure) => Progress::Failed(failure.to_string()),
        };
        let failure = match progress {
            Progress::More
                if self
                    .exceeded_by_summary(&digest.request(), digest.usage)
                    .is_some() =>
            {
                self.summary_failed = true;
                Some("the limits of the run leave nothing for the rest of it".to_owned())
            }
            Progress::More => {
                let request = digest.request();
                self.queue.push_back(Step::Summarize(Box::new(request)));
                self.digest = Some(digest);
                return;
            }
            Progress::Done(ready) => {
                self.ready = Some(ready);
                self.summary_failures = 0;
                None
            }
            Progress::Failed(why) => {
                self.summary_failed = true;
                self.summary_failures += 1;
                Some(why)
            }
        };
        self.end_digest(&digest, failure);
        if matches!(self.phase, Phase::Summarizing) {
            self.phase = Phase::Ready;
        }
    }

    /// Ends a summary in progress at the end of the run. Its usage so far is recorded.
    pub(crate) fn drop_digest(&mut self) {
        if let Some(mut digest) = self.digest.take() {
            // The call in progress, with its known usage.
            digest.calls += 1;
            let used = self.unanswered.summary.take().unwrap_or_default();
            digest.usage = digest.usage.combine(used);
            self.end_digest(
                &digest,
                Some("the run ended before it was written".to_owned()),
            );
        }
    }

    fn summary_cost(&self, digest: &Digest) -> Option<Money> {
        let sheet = self.setup.summary_model.as_ref()?.sheet?;
        self.cost(digest.usage, &sheet)
    }

    fn end_digest(&mut self, digest: &Digest, failure: Option<String>) {
        self.record(Entry::Summarized {
            cost: self.summary_cost(digest),
            of: digest.span().fingerprint,
            calls: digest.calls,
            usage: digest.usage,
            failure: failure.clone(),
        });
        self.notify(Event::SummaryEnded {
            calls: digest.calls,
            usage: digest.usage,
            failure,
        });
    }
}
