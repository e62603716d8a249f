//! Summaries by a model, before a plan that needs one.
//!
//! A failed summary never ends a run: the policy makes another plan without it.

use std::sync::Arc;

use plimsoll_context::{Message, Money, ReadySummary, Reply, SummaryRange, Usage};

use crate::between_runs::RequestedCompaction;
use crate::entry::Entry;
use crate::event::Event;
use crate::failure::Failure;
use crate::phase::{Phase, PlanFor};
use crate::run::Run;
use crate::setup::SummaryModel;
use crate::step::Step;
use crate::summary_writer::{Progress, SummaryWriter};

/// Number of consecutive failures after which a run stops asking the summary model. Each attempt may
/// cost money and time.
pub const MAX_SUMMARY_FAILURES: u32 = 3;

/// The summaries of a session: at most one in progress, and one that the next plan may use.
///
/// It does not see the run: the caller passes the usage of calls and decides about limits.
#[derive(Debug, Default)]
pub(crate) struct Summaries {
    in_progress: Option<SummaryWriter>,
    /// A finished summary.
    pub(crate) ready: Option<ReadySummary>,
    /// The next plan is made without a model's summary, because one has just failed.
    pub(crate) is_skipped: bool,
    /// Consecutive failures in this run.
    failures: u32,
}

/// The next step after an answer of the summary model.
enum SummaryProgress {
    /// One more call is needed.
    More(Box<SummaryWriter>),
    /// The summary has ended, with the reason of its failure.
    Ended(Box<SummaryWriter>, Option<String>),
}

impl Summaries {
    /// Begins a run or a compaction.
    pub(crate) fn begin(&mut self) {
        self.is_skipped = false;
        self.failures = 0;
    }

    /// Handles a plan that was applied: a finished summary no longer matches the view.
    pub(crate) fn planned(&mut self) {
        self.ready = None;
        self.is_skipped = false;
    }

    /// Returns whether the policy can get a summary from a model.
    pub(crate) fn can_ask(&self) -> bool {
        !self.is_skipped && self.failures < MAX_SUMMARY_FAILURES
    }

    fn start(&mut self, digest: SummaryWriter) {
        self.ready = None;
        self.in_progress = Some(digest);
    }

    /// Takes an answer of the model. Returns `None` if no summary is in progress.
    fn take(&mut self, reply: Result<Reply, Failure>) -> Option<SummaryProgress> {
        let mut digest = self.in_progress.take()?;
        digest.calls += 1;
        let progress = match reply {
            Ok(reply) => digest.take(&reply),
            Err(failure) => {
                digest.usage = digest.usage.combine(failure.usage().unwrap_or_default());
                Progress::Failed(failure.to_string())
            }
        };
        Some(match progress {
            Progress::More => SummaryProgress::More(Box::new(digest)),
            Progress::Done(ready) => {
                self.ready = Some(ready);
                self.failures = 0;
                SummaryProgress::Ended(Box::new(digest), None)
            }
            Progress::Failed(why) => {
                self.is_skipped = true;
                self.failures += 1;
                SummaryProgress::Ended(Box::new(digest), Some(why))
            }
        })
    }

    /// Aborts the summary in progress.
    fn abort(&mut self) -> Option<SummaryWriter> {
        let mut digest = self.in_progress.take()?;
        digest.calls += 1;
        Some(digest)
    }
}

impl Run {
    /// Starts a summary that the policy asks for, for a request or for a compaction that the user asked
    /// for. Returns `false` if no model can write it.
    pub(crate) fn start_summary(
        &mut self,
        span: SummaryRange,
        compacting: Option<&RequestedCompaction>,
    ) -> bool {
        let Some(model) = self.setup.summary_model.clone() else {
            return false;
        };
        let model = SummaryModel {
            window: model.window.or(self.line().window),
            prompt: match compacting {
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
        let all = self.state.transcript.items().iter();
        let task = all
            .map(|item| item.message.as_ref())
            .find(|message| message.is_user());
        let sampling = self.setup.sampling;
        let digest = SummaryWriter::new(span, messages, task, model, counter, sampling);
        let Some(digest) = digest else {
            // The window stays too small for the rest of the run, so the warning is not repeated.
            self.summaries.failures = MAX_SUMMARY_FAILURES;
            self.warn(
                "the summariser's window is unknown or too small for a summary; extract writes it instead".to_owned(),
            );
            return false;
        };
        let request = digest.request();
        let exceeded = self.exceeded_by_summary(&request, Usage::default());
        if exceeded.is_some() {
            return false;
        }
        self.summaries.start(digest);
        self.notify(started);
        self.queue.push_back(Step::Summarize(Box::new(request)));
        true
    }

    /// Handles the end of a model call for a summary.
    pub(crate) fn summarized(&mut self, reply: Result<Reply, Failure>) {
        self.book_partial_summaries();
        match self.summaries.take(reply) {
            None => return,
            Some(SummaryProgress::More(digest)) => {
                if self.ask_summary_again(*digest) {
                    return;
                }
            }
            Some(SummaryProgress::Ended(digest, failure)) => self.end_digest(&digest, failure),
        }
        match std::mem::replace(&mut self.phase, Phase::Preparing) {
            Phase::Summarizing(PlanFor::Request) => {}
            Phase::Summarizing(PlanFor::Compaction(compacting)) => {
                self.phase = Phase::Compacting(compacting);
            }
            other => self.phase = other,
        }
    }

    /// Makes the next call of a summary, or ends the summary if the limits do not allow another call.
    /// Returns `true` if the call is made.
    fn ask_summary_again(&mut self, digest: SummaryWriter) -> bool {
        let request = digest.request();
        let exceeded = self.exceeded_by_summary(&request, digest.usage);
        if exceeded.is_some() {
            self.summaries.is_skipped = true;
            let why = "the limits of the run do not allow the rest of it";
            self.end_digest(&digest, Some(why.to_owned()));
            return false;
        }
        self.summaries.in_progress = Some(digest);
        self.queue.push_back(Step::Summarize(Box::new(request)));
        true
    }

    /// Adds the usage of the attempts without a reply to the summary in progress.
    pub(crate) fn book_partial_summaries(&mut self) {
        let answers = std::mem::take(&mut self.now.partial_summaries);
        if let Some(digest) = &mut self.summaries.in_progress {
            answers.iter().for_each(|answer| digest.lost(answer));
        }
    }

    /// Ends a summary in progress at the end of the run. Its usage so far is recorded.
    pub(crate) fn drop_digest(&mut self) {
        self.book_partial_summaries();
        if let Some(digest) = self.summaries.abort() {
            let why = "the run ended before it was written";
            self.end_digest(&digest, Some(why.to_owned()));
        }
    }

    fn summary_cost(&self, digest: &SummaryWriter) -> Option<Money> {
        let sheet = self.setup.summary_model.as_ref()?.sheet?;
        self.setup.cost(digest.usage, &sheet)
    }

    fn end_digest(&mut self, digest: &SummaryWriter, failure: Option<String>) {
        self.record(Entry::Summarized {
            cost: self.summary_cost(digest),
            of: digest.span().fingerprint,
            calls: digest.calls,
            usage: digest.usage,
            failure: failure.clone(),
        });
        let has_failed = failure.is_some();
        self.notify(Event::SummaryEnded {
            calls: digest.calls,
            usage: digest.usage,
            failure,
        });
        if has_failed && self.summaries.failures == MAX_SUMMARY_FAILURES {
            self.warn(format!(
                "{MAX_SUMMARY_FAILURES} summaries in a row failed, so extract writes them for the \
                 rest of the run"
            ));
        }
    }
}
