//! [`Trail`]: a recording reduced to sizes, times and possible cuts, for ways that need no texts.
//!
//! Results are capped on arrival, as in our own policies, so that all ways work with the same
//! messages.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{
    Budget, Cap, Exchange, Message, Policy, PriceSheet, TokenCounter, Tokens, Transcript, Trigger,
};

use crate::meter::{Cache, SentMessage};
use crate::recording::Recording;
use crate::retention::Probes;

/// A recording reduced to sizes.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    /// Number and size of each message.
    pub(crate) sent: Vec<SentMessage>,
    /// `sums[n]` is the total size of the first `n` messages.
    sums: Vec<Tokens>,
    /// The start of each exchange, and the end of the recording.
    pub(crate) cuts: Vec<usize>,
    /// The requests.
    pub(crate) turns: Vec<TrailRequest>,
    /// Number of leading system messages.
    pub(crate) system: usize,
    /// Number of leading system messages, plus the task if it follows immediately.
    pub(crate) head: usize,
    /// The probes to search for in the views.
    pub(crate) probes: Arc<Probes>,
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrailRequest {
    /// Number of messages before the request.
    pub(crate) at: usize,
    /// The last position of a cut that removes nothing that must stay: the newest complete exchange
    /// and the messages that no request has contained yet.
    pub(crate) last_cut: usize,
    /// Size of the answer.
    pub(crate) answer: Tokens,
    /// Time since the previous request, if known.
    pub(crate) idle: Option<Duration>,
}

impl TrailRequest {
    pub(crate) fn cache(&self, sheet: &PriceSheet) -> Cache {
        if sheet.is_cold_after(self.idle) {
            Cache::Expired
        } else {
            Cache::Warm
        }
    }
}

impl Trail {
    pub(crate) fn of(
        recording: &Recording,
        budget: &Budget,
        counter: &Arc<dyn TokenCounter>,
    ) -> Self {
        let mut view = Transcript::new(Arc::clone(counter));
        let cap = Policy::new(vec![Arc::new(Cap::Arrivals)]);
        let roomy = Budget {
            limit: Tokens::MAX,
            trigger: Tokens::MAX,
            target: Tokens::MAX,
            ..*budget
        };
        let mut turns = Vec::new();
        for (at, message) in recording.messages.iter().enumerate() {
            if matches!(**message, Message::Assistant { .. }) && at > 0 {
                turns.push(TrailRequest {
                    at,
                    last_cut: 0,
                    answer: counter.message(message),
                    idle: recording.idle_before(at),
                });
            }
            view.push(Arc::clone(message));
            if let Some(plan) = cap.best_plan(&view, &roomy, Trigger::Request) {
                let _ = view.apply(&plan);
            }
            view.mark_sent();
        }
        let items = view.items();
        let sent: Vec<SentMessage> = items.iter().map(|item| (item.seq.0, item.tokens)).collect();
        let mut sums = vec![Tokens::ZERO];
        let mut sum = Tokens::ZERO;
        for item in items {
            sum += item.tokens;
            sums.push(sum);
        }
        let exchanges = Exchange::of(items);
        let mut cuts: Vec<usize> = exchanges.iter().map(|found| found.at.start).collect();
        cuts.push(items.len());
        let is = |at: usize, role: fn(&Message) -> bool| {
            items.get(at).is_some_and(|item| role(&item.message))
        };
        let system = (0..items.len())
            .take_while(|at| is(*at, |message| matches!(message, Message::System { .. })))
            .count();
        let head = system
            + usize::from(is(system, |message| {
                matches!(message, Message::User { .. })
            }));
        // The newest exchange is the last one that an assistant message began before the request.
        let mut newest = 0;
        for turn in &mut turns {
            turn.last_cut = newest.max(head.min(turn.at));
            newest = turn.at;
        }
        Self {
            sent,
            sums,
            cuts,
            turns,
            system,
            head,
            probes: Arc::clone(&recording.probes),
        }
    }

    /// Returns the total size of the messages from `from` up to `to`.
    pub(crate) fn weight(&self, from: usize, to: usize) -> Tokens {
        let sum = |at: usize| self.sums.get(at).copied().unwrap_or_default();
        sum(to).minus(sum(from))
    }

    /// Returns the cuts between `from` and `last`, inclusive.
    pub(crate) fn cuts(&self, from: usize, last: usize) -> &[usize] {
        let start = self.cuts.partition_point(|cut| *cut < from);
        let end = self.cuts.partition_point(|cut| *cut <= last);
        self.cuts.get(start..end).unwrap_or_default()
    }

    /// Returns the first cut after which at most `room` remains of the messages before `turn`, or
    /// the last allowed cut if there is none.
    pub(crate) fn fitting(&self, turn: &TrailRequest, from: usize, room: Tokens) -> usize {
        let cuts = self.cuts(from, turn.last_cut);
        let found = cuts.partition_point(|cut| self.weight(*cut, turn.at) > room);
        let last = cuts.last().copied().unwrap_or(from);
        cuts.get(found).copied().unwrap_or(last)
    }

    /// Returns the first `head` messages, and those from `from` up to the request.
    pub(crate) fn view(
        &self,
        head: usize,
        from: usize,
        to: usize,
    ) -> impl Iterator<Item = SentMessage> + '_ {
        let head = self.sent.get(..head.min(to)).unwrap_or_default();
        let rest = self.sent.get(from..to).unwrap_or_default();
        head.iter().chain(rest).copied()
    }
}

#[cfg(test)]
impl Trail {
    /// Creates a trail with a system prompt, a task, and exchanges of these sizes, each begun by an
    /// answer.
    pub(crate) fn of_weights(head: [u64; 2], exchanges: &[Vec<u64>]) -> Self {
        let mut weights = head.to_vec();
        let (mut cuts, mut turns) = (vec![0, 1], Vec::new());
        let mut newest = 2;
        for exchange in exchanges {
            let at = weights.len();
            cuts.push(at);
            turns.push(TrailRequest {
                at,
                last_cut: newest,
                answer: Tokens(exchange[0]),
                idle: None,
            });
            newest = at;
            weights.extend(exchange);
        }
        cuts.push(weights.len());
        let mut sums = vec![Tokens::ZERO];
        for weight in &weights {
            sums.push(*sums.last().unwrap() + Tokens(*weight));
        }
        Self {
            sent: (0..).zip(weights.into_iter().map(Tokens)).collect(),
            sums,
            cuts,
            turns,
            system: 1,
            head: 2,
            probes: Arc::default(),
        }
    }
}
