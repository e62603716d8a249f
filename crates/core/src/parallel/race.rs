//! [`Race`]: starts the branches, collects their results and cancels them. The strategy makes the
//! choice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plimsoll_agent::{EndReason, Event};
use plimsoll_context::Part;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::branch::{Branch, BranchResult, RunningBranch, Trunk};
use super::outcome::{BranchEnd, ParallelLoopResult};
use super::strategy::EvaluationStrategy;
use super::{BRANCHES_AT_ONCE, Losers, ParallelOptions};
use crate::error::Error;
use crate::remote::{InboxMessage, RemoteCommand};
use crate::reservation::Reservation;
use crate::session::Session;

/// How long to wait for cancelled branches to close their logs.
const CLOSING: Duration = Duration::from_secs(10);

/// The branches of an evaluation in progress.
pub(super) struct Race<'a> {
    session: &'a Session,
    trunk: Arc<Trunk>,
    branches: Vec<Branch>,
    strategy: &'a dyn EvaluationStrategy,
    options: ParallelOptions,
    waiting: VecDeque<usize>,
    tasks: JoinSet<Result<BranchResult, Error>>,
    /// The branch of each task.
    running: HashMap<Id, (usize, RunningBranch)>,
    /// The results of the branches that have ended.
    pub(super) results: Vec<Option<ParallelLoopResult>>,
    /// The number of branches that have ended.
    count: usize,
    /// The deadline for cancelled branches.
    closing: Option<Instant>,
    pub(super) interrupted: bool,
    pub(super) undelivered: Vec<Vec<Part>>,
}

impl<'a> Race<'a> {
    pub(super) fn new(
        session: &'a Session,
        trunk: Arc<Trunk>,
        branches: Vec<Branch>,
        strategy: &'a dyn EvaluationStrategy,
        options: ParallelOptions,
    ) -> Self {
        Self {
            session,
            trunk,
            waiting: (0..branches.len()).collect(),
            results: branches.iter().map(|_| None).collect(),
            branches,
            strategy,
            options,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            count: 0,
            closing: None,
            interrupted: false,
            undelivered: Vec::new(),
        }
    }

    /// Runs all branches to their end.
    pub(super) async fn run(&mut self, reservation: &Reservation) {
        let at_once = self.options.at_once.unwrap_or(BRANCHES_AT_ONCE);
        loop {
            while self.running.len() < at_once
                && let Some(index) = self.waiting.pop_front()
            {
                self.begin(index, reservation).await;
            }
            if self.running.is_empty() && self.waiting.is_empty() {
                return;
            }
            let closing = self.closing;
            let late = async move {
                match closing {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended),
                command = self.session.inbox.next() => match command {
                    RemoteCommand::Interrupt => {
                        self.interrupted = true;
                        self.cancel();
                    }
                    RemoteCommand::Say(InboxMessage { kind, parts, .. }) => {
                        let mut taken = false;
                        for (_, begun) in self.running.values() {
                            if let Some(remote) = begun.remote.get() {
                                taken |= remote.pass(kind, parts.clone());
                            }
                        }
                        if !taken {
                            self.undelivered.push(parts);
                        }
                    }
                },
                () = late => self.tasks.abort_all(),
            }
        }
    }

    fn ended(&mut self, ended: Result<(Id, Result<BranchResult, Error>), JoinError>) {
        let died = |why: String| (BranchEnd::Died { why: why.clone() }, why);
        let (id, (end, text)) = match ended {
            Ok((id, Ok(done))) => (id, (BranchEnd::Ended(done.reason), done.text)),
            Ok((id, Err(error))) => (id, died(error.to_string())),
            Err(error) if error.is_panic() => (error.id(), died(format!("it broke down: {error}"))),
            Err(error) => (error.id(), died("it was stopped".to_owned())),
        };
        if let Some((index, begun)) = self.running.remove(&id) {
            self.end(index, &begun, end, text);
        }
    }

    async fn begin(&mut self, index: usize, reservation: &Reservation) {
        let Some(branch) = self.branches.get(index).cloned() else {
            return;
        };
        let stop = CancellationToken::new();
        let mut begun = RunningBranch {
            session: self
                .trunk
                .name(index, 0)
                .unwrap_or_else(|| self.trunk.session.clone()),
            began: Instant::now(),
            reservation: None,
            remote: Arc::new(OnceLock::new()),
            stop: stop.clone(),
        };
        let parts = self.waiting.len() as u64 + 1 + self.strategy.shares();
        let turns = self
            .options
            .limits
            .as_ref()
            .and_then(|limits| limits.max_turns);
        let reserved = match branch.reserve(reservation, turns, parts) {
            Ok(reserved) => reserved,
            Err(why) => return self.not_started(index, &begun, why),
        };
        let lease = match self.trunk.fork(index).await {
            Ok(lease) => lease,
            Err(error) => return self.not_started(index, &begun, error.to_string()),
        };
        begun.session = lease.session().clone();
        begun.reservation = Some(reserved.0.clone());
        let remote = Arc::clone(&begun.remote);
        let run = branch.run(Arc::clone(&self.trunk), lease, reserved, remote, stop);
        let task = self.tasks.spawn(run.in_current_span());
        self.running.insert(task.id(), (index, begun));
    }

    fn not_started(&mut self, index: usize, begun: &RunningBranch, why: String) {
        let end = BranchEnd::NotStarted { why: why.clone() };
        self.end(index, begun, end, why);
    }

    /// Stores the result of a branch. This may decide the evaluation.
    fn end(&mut self, index: usize, begun: &RunningBranch, end: BranchEnd, text: String) {
        let end = match end {
            BranchEnd::Ended(EndReason::Interrupted) | BranchEnd::Died { .. }
                if begun.stop.is_cancelled() =>
            {
                BranchEnd::Cancelled
            }
            end => end,
        };
        let Some(branch) = self.branches.get(index) else {
            return;
        };
        let mut result = branch.result(index, &self.trunk, begun, end, text);
        result.rank = self.count;
        self.count += 1;
        self.session.parts.tell(Event::BranchEnded {
            branch: index,
            record: result.record(),
        });
        if let Some(slot) = self.results.get_mut(index) {
            *slot = Some(result);
        }
        if self.options.losers == Losers::Cancel
            && self.closing.is_none()
            && self.strategy.is_decided(&self.results)
        {
            self.cancel();
        }
    }

    /// Cancels running and waiting branches.
    fn cancel(&mut self) {
        if self.closing.is_some() {
            return;
        }
        self.closing = Some(Instant::now() + CLOSING);
        for (_, begun) in self.running.values() {
            begun.stop.cancel();
        }
        for index in std::mem::take(&mut self.waiting) {
            let name = self.trunk.name(index, 0);
            let begun = RunningBranch {
                session: name.unwrap_or_else(|| self.trunk.session.clone()),
                began: Instant::now(),
                reservation: None,
                remote: Arc::default(),
                stop: CancellationToken::new(),
            };
            self.end(
                index,
                &begun,
                BranchEnd::Cancelled,
                "[Not begun.]".to_owned(),
            );
        }
    }
}
