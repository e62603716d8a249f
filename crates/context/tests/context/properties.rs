//! Invariants for every history, policy and budget, checked on each request that would be sent. The
//! effects of a single stage are tables in `stages.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_context::{
    ArgumentDigest, Bpe, Budget, Calibration, CannotFit, Chars4, CompactionConfig, CompactionScope,
    ContextConfig, ContextStrategy, Draft, Edit, ExchangeKind, Fingerprint, Gap, Memo, Message,
    OwnStages, Plan, PlanContext, Policy, Ppm, ReadySummary, Recall, Rendition, Seq, SeqRange,
    SessionPruneConfig, SummaryConfig, TokenCounter, Tokens, Transcript, Trigger, ViewLimits,
};
use plimsoll_testkit::{Random, rounds};

use crate::histories::history;

/// The least that the last rung leaves of a result, in tokens.
const LEAST_RESULT: u64 = 64;

/// What was done, for BENCHMARKS.md.
#[derive(Debug, Default)]
struct Figures {
    histories: u64,
    requests: u64,
    plans: u64,
    cannot_fit: u64,
}

/// How a view is kept under its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A preset policy, asked before each request.
    Preset(&'static str),
    /// Pruning before each request.
    Eager,
    /// No edits until a request is refused, then the recovery.
    Refused,
    /// As a filter: every history is one request, and texts may give way.
    Filter,
    /// As a filter that sums up what it leaves out.
    FilterExtract,
    /// By a `ContextConfig`, with every setting of it at random.
    Configured,
}

impl Way {
    fn is_filter(self) -> bool {
        matches!(self, Way::Filter | Way::FilterExtract)
    }
}

#[test]
fn evict_keeps_every_request_whole_and_under_the_line() {
    hold(Way::Preset("evict"));
}

#[test]
fn sliding_window_keeps_every_request_whole_and_under_the_line() {
    hold(Way::Preset("sliding_window"));
}

#[test]
fn eager_pruning_keeps_every_request_whole_and_under_the_line() {
    hold(Way::Eager);
}

#[test]
fn recovery_makes_every_refused_request_whole_and_smaller() {
    hold(Way::Refused);
}

#[test]
fn a_filter_keeps_every_chat_whole_and_under_the_line() {
    hold(Way::Filter);
}

#[test]
fn summaries_that_fail_lie_and_overflow_keep_every_request_whole_and_under_the_line() {
    hold(Way::Preset("summarize"));
}

#[test]
fn extract_keeps_every_request_whole_and_under_the_line() {
    hold(Way::Preset("extract"));
}

#[test]
fn a_filter_that_extracts_keeps_every_chat_whole_and_under_the_line() {
    hold(Way::FilterExtract);
}

#[test]
fn configured_contexts_keep_every_request_whole_and_under_the_line() {
    hold(Way::Configured);
}

fn hold(way: Way) {
    let mut figures = Figures::default();
    for seed in 0..rounds() {
        // Exact counting of a fifth is enough; it is the same code for the policy.
        let counter: Arc<dyn TokenCounter> = match seed % 5 {
            0 => Arc::new(Memo::new(Bpe::o200k())),
            _ => Arc::new(Chars4),
        };
        Session::new(way, seed, counter).play(&mut figures);
    }
    println!("{way:?}: {figures:?}; 0 orphans, 0 unanswered, 0 over the line, 0 tasks lost");
    assert!(figures.plans * 10 > figures.histories, "{figures:?}");
    assert!(figures.cannot_fit * 2 < figures.histories, "{figures:?}");
}

/// One history played under one way and one budget.
struct Session {
    way: Way,
    seed: u64,
    random: Random,
    policy: Policy,
    line: ViewLimits,
    overhead: Tokens,
    view: Transcript,
    /// Every message as it was said.
    said: BTreeMap<Seq, Message>,
    /// The question that each message of the model and of its tools answers.
    questions: BTreeMap<Seq, Option<Seq>>,
    question: Option<Seq>,
    /// The messages that a summary has replaced.
    summarized: BTreeSet<Seq>,
    pinned: Vec<Seq>,
    /// The summary that a model has written.
    ready: Option<ReadySummary>,
    recall: Recall,
}

impl Session {
    fn new(way: Way, seed: u64, counter: Arc<dyn TokenCounter>) -> Self {
        let mut random = Random::new(seed);
        let size = Tokens(random.log_uniform(500, 200_000));
        let prune = SessionPruneConfig {
            eager: way == Way::Eager,
            ..SessionPruneConfig::default()
        };
        let explicit = random.chance(50).then_some(size);
        let strategy = match way {
            Way::Preset(name) => ContextStrategy::named(name, explicit).unwrap(),
            Way::FilterExtract => ContextStrategy::Extract {
                max_tokens: explicit,
            },
            Way::Eager | Way::Refused | Way::Filter | Way::Configured => ContextStrategy::Evict {
                max_tokens: explicit,
            },
        };
        let summary = SummaryConfig::default();
        let line = strategy.line(ViewLimits {
            window: Some(size),
            keep_recent: 1 + random.below(3) as usize,
            ..ViewLimits::default()
        });
        let (line, policy) = match way {
            Way::Refused => (line, Policy::recovery(prune, None)),
            Way::Filter => {
                let policy = strategy.policy(Some(prune), SummaryConfig::default());
                let policy = policy.for_filter();
                let policy = match seed % 3 {
                    0 => policy,
                    _ => policy.filled(),
                };
                (ViewLimits::exactly(size), policy)
            }
            Way::Configured => configured(&mut random, size, line.keep_recent),
            _ => {
                // Half of all sessions prune under any strategy.
                let prune = (way == Way::Eager || seed.is_multiple_of(2)).then_some(prune);
                (line, strategy.policy(prune, summary))
            }
        };
        Self {
            way,
            seed,
            overhead: Tokens(random.below(size.0 / 5)),
            random,
            policy,
            line,
            view: Transcript::new(counter),
            said: BTreeMap::new(),
            questions: BTreeMap::new(),
            question: None,
            summarized: BTreeSet::new(),
            pinned: Vec::new(),
            ready: None,
            recall: match seed % 2 {
                0 => Recall::Offered,
                _ => Recall::None,
            },
        }
    }

    fn play(&mut self, figures: &mut Figures) {
        figures.histories += 1;
        let Ok(mut budget) = self
            .line
            .budget(self.overhead, Tokens::ZERO, Calibration::default())
        else {
            figures.cannot_fit += 1;
            return;
        };
        if self.way == Way::Refused {
            // As the ladder does: one goal, and what comes nearest to it.
            budget.trigger = budget.target;
            budget.limit = budget.target;
        }
        let mut beats = history(&mut self.random).into_iter();
        while let Some(beat) = beats.next() {
            for message in beat.arrives {
                self.say(message);
            }
            if !self.way.is_filter() {
                if let Err(cannot_fit) = self.request(&budget, figures) {
                    self.check_cannot_fit(&budget, cannot_fit);
                    figures.cannot_fit += 1;
                    return;
                }
                self.view.mark_sent();
            }
            // A chat that waits for its results is no chat to send.
            if !self.way.is_filter()
                || beat.reply.calls().next().is_none()
                || !beats.as_slice().is_empty()
            {
                self.say(beat.reply);
            }
            self.view.mark_sent();
        }
        if self.way.is_filter() && self.request(&budget, figures).is_err() {
            figures.cannot_fit += 1;
        }
    }

    fn say(&mut self, message: Message) {
        let seq = self.view.push(message.clone());
        match message {
            Message::User { .. } => self.question = Some(seq),
            Message::Assistant { .. } | Message::ToolResult(_) => {
                self.questions.insert(seq, self.question);
            }
            _ => {}
        }
        self.said.insert(seq, message);
        if self.random.below(200) == 0 {
            assert!(self.view.pin(seq));
            self.pinned.push(seq);
        }
    }

    /// Plans, checks the plan, applies it and checks what would be sent.
    fn request(&mut self, budget: &Budget, figures: &mut Figures) -> Result<(), CannotFit> {
        figures.requests += 1;
        let why = match self.way {
            Way::Refused => Trigger::Overflow,
            Way::Filter | Way::FilterExtract => Trigger::Asked,
            _ => Trigger::Request,
        };
        let plan = match self.way {
            Way::Refused => self.policy.best_plan(&self.view, budget, why),
            _ => self.propose(budget, why)?,
        };
        let quiet = self.view.tokens() <= budget.trigger
            && self.way != Way::Eager
            && (self.way.is_filter()
                || self.view.unsent().iter().all(|item| {
                    !matches!(*item.message, Message::ToolResult(_))
                        || item.tokens <= budget.max_result
                }));
        if quiet {
            assert_eq!(plan, None, "{}: nothing was due", self.name());
        }
        if let Some(plan) = plan {
            figures.plans += 1;
            self.apply(&plan);
            self.check_end(&plan, budget);
            if self.way != Way::Refused {
                let means = PlanContext {
                    recall: self.recall,
                    ..PlanContext::default()
                };
                let again = self.policy.propose(&self.view, budget, why, &means);
                let again = again.unwrap().plan;
                assert_eq!(again, None, "{}: planning again is empty", self.name());
            }
        }
        if self.way != Way::Refused {
            assert!(self.view.tokens() <= budget.limit, "{}", self.name());
        }
        self.check_whole();
        self.check_questions();
        self.check_protected(budget);
        self.check_forms();
        Ok(())
    }

    /// As the run does: a summary that is wanted is asked of a model, which answers as it likes.
    fn propose(&mut self, budget: &Budget, why: Trigger) -> Result<Option<Plan>, CannotFit> {
        let mut means = PlanContext {
            recall: self.recall,
            can_summarize: true,
            ready: self.ready.take(),
        };
        let proposal = self.policy.propose(&self.view, budget, why, &means)?;
        let Some(span) = proposal.wants else {
            self.ready = means.ready.filter(|_| proposal.plan.is_none());
            return Ok(proposal.plan);
        };
        let weight: Tokens = span
            .seqs
            .iter()
            .map(|seq| self.view.get(*seq).unwrap().tokens)
            .sum();
        assert_eq!(span.tokens, weight);
        assert!(span.max < span.tokens, "{}", self.name());
        let words = self.random.log_uniform(1, 50_000) as usize;
        let text: String = "a lie 謊 🦀 ".chars().cycle().take(words).collect();
        let ready = match self.random.below(4) {
            // It fails, or is too late.
            0 => None,
            // It is of something else.
            1 => Some(ReadySummary {
                fingerprint: Fingerprint::of([&Message::user("other")]),
                seqs: span.seqs,
                text: text.into(),
            }),
            _ => Some(ReadySummary {
                fingerprint: span.fingerprint,
                seqs: span.seqs,
                text: text.into(),
            }),
        };
        means.can_summarize = false;
        means.ready = ready;
        Ok(self.policy.propose(&self.view, budget, why, &means)?.plan)
    }

    fn name(&self) -> String {
        format!("{:?}, seed {}", self.way, self.seed)
    }

    fn apply(&mut self, plan: &Plan) {
        let old = self.view.clone();
        let released = self.view.apply(plan).unwrap();
        assert_eq!(released.freed, plan.frees);
        assert!(self.view.tokens() < old.tokens());
        assert_eq!(plan.after(), self.view.tokens());
        let sum: Tokens = self.view.items().iter().map(|item| item.tokens).sum();
        assert_eq!(sum, self.view.tokens(), "{}", self.name());
        let at = released.items.iter().map(|item| item.seq).min().unwrap();
        let rewrites = (at < old.sent()).then_some(at);
        assert_eq!(plan.rewrites_from, rewrites, "{}", self.name());
        // As a log keeps it, on another machine.
        let json = serde_json::to_string(plan).unwrap();
        let mut replayed = old;
        replayed
            .replay(&serde_json::from_str(&json).unwrap())
            .unwrap();
        for edit in &plan.edits {
            match edit {
                Edit::Summarize { covers, to } => self.covered(covers, &to.message),
                Edit::Drop {
                    first,
                    last,
                    marker,
                } => self.dropped(*first, *last, marker),
                Edit::Shrink { .. } => {}
            }
        }
        assert_eq!(replayed.tokens(), self.view.tokens());
        for (one, other) in replayed.items().iter().zip(self.view.items()) {
            assert_eq!(one.message, other.message);
            assert_eq!(one.tokens, other.tokens);
        }
    }

    /// A summary that another has followed may leave; it is not the last one when that is covered.
    /// The marker is what stands there from now on.
    fn dropped(&mut self, first: Seq, last: Seq, marker: &Rendition) {
        let gap = Gap::of(&marker.message).expect("it is a marker");
        let removed = self.said.range(first..=last).map(|(_, said)| match said {
            Message::Summary { text } => Gap::split_summary(text).0.map_or(1, |gap| gap.messages),
            said => Gap::of(said).map_or(1, |gap| gap.messages),
        });
        assert_eq!(gap.messages, removed.sum::<u64>(), "{}", self.name());
        assert!(self.recall == Recall::Offered || gap.recall.is_none());
        let is_summary = |message: &Message| matches!(message, Message::Summary { .. });
        let newest = self.said.iter().rev().find(|(_, said)| is_summary(said));
        if let Some((seq, _)) = newest {
            assert!(!(first..=last).contains(seq), "{}", self.name());
        }
        self.said.retain(|seq, _| !(first..=last).contains(seq));
        self.said.insert(first, Message::clone(&marker.message));
    }

    /// What a summary covers is neither the task nor the newest question; from now on the summary
    /// is what was said there.
    fn covered(&mut self, covers: &[SeqRange], summary: &Message) {
        let users = || self.said.iter().filter(|(_, said)| said.is_user());
        let stay = [users().next(), users().next_back()].map(|user| user.map(|(seq, _)| *seq));
        for range in covers {
            for seq in stay.iter().flatten() {
                assert!(!(range.first..=range.last).contains(seq), "{}", self.name());
            }
            let gone: Vec<Seq> = self
                .said
                .range(range.first..=range.last)
                .map(|(seq, _)| *seq)
                .collect();
            for seq in gone {
                self.said.remove(&seq);
            }
            // The last one may have been a marker, which stands for those behind it as well.
            let behind = (range.last.0 + 1..self.view.next_seq().0)
                .take_while(|seq| self.view.get(Seq(*seq)).is_none());
            let numbers = (range.first.0..=range.last.0).chain(behind);
            self.summarized.extend(numbers.map(Seq));
        }
        assert!(matches!(summary, Message::Summary { .. }));
        self.said.insert(covers[0].first, summary.clone());
    }

    /// A plan ends at its target, unless it only cut what had arrived or nothing more may leave:
    /// else the next request would plan again, and lose the provider's cache again. A filter may
    /// leave small turns.
    fn check_end(&self, plan: &Plan, budget: &Budget) {
        let arrivals = match self.way {
            Way::Eager => plan
                .stages
                .iter()
                .all(|stage| stage == "cap" || stage == "prune"),
            _ => plan.stages == ["cap"],
        };
        let draft = Draft::new(&self.view, budget.keep_recent);
        let is_said = |kind| !matches!(kind, ExchangeKind::Summary | ExchangeKind::Gap);
        let may_leave: Vec<usize> = (0..draft.exchanges().len())
            .filter(|index| !draft.is_protected(*index) && is_said(draft.exchanges()[*index].kind))
            .collect();
        assert!(
            plan.after() <= budget.target
                || arrivals && plan.after() <= budget.trigger
                || may_leave.is_empty()
                || self.way.is_filter()
                    && draft.weight_of(&may_leave) <= Tokens(budget.limit.0 / 8),
            "{}: {:?} ended at {}, above {}",
            self.name(),
            plan.stages,
            plan.after(),
            budget.target
        );
    }

    /// Every call has its result right behind it, in call order; no result stands elsewhere.
    fn check_whole(&self) {
        let mut open = Vec::new();
        for item in self.view.items() {
            if let Message::ToolResult(result) = item.message.as_ref() {
                assert!(!open.is_empty(), "{}: an orphan", self.name());
                assert_eq!(open.remove(0), result.call, "{}", self.name());
            } else {
                assert!(open.is_empty(), "{}: {open:?} unanswered", self.name());
                open = item.message.calls().map(|call| call.id.clone()).collect();
            }
        }
        assert!(open.is_empty(), "{}: {open:?} unanswered", self.name());
    }

    /// Every answer stands behind its own question, and every gap has a marker.
    fn check_questions(&self) {
        let mut question = None;
        let mut marked = true;
        let mut next = Seq(0);
        for item in self.view.items() {
            let stands_for_others = matches!(*item.message, Message::Summary { .. })
                || Gap::of(&item.message).is_some();
            // What a summary replaces behind a message that stays, the summary counts.
            let replaced = (next.0..item.seq.0).all(|seq| self.summarized.contains(&Seq(seq)));
            assert!(marked || replaced, "{}: an unmarked gap", self.name());
            (marked, next) = (stands_for_others, item.seq.next());
            match *item.message {
                Message::User { .. } => question = Some(item.seq),
                Message::Assistant { .. } | Message::ToolResult(_) => assert_eq!(
                    self.questions[&item.seq],
                    question,
                    "{}: {} stands behind another question",
                    self.name(),
                    item.seq
                ),
                _ => {}
            }
        }
    }

    /// Task, newest question, newest exchanges, last summary and pins are there; only results of
    /// them give way, and where a filter asks, texts.
    fn check_protected(&self, budget: &Budget) {
        let is_user = |message: &Message| message.is_user();
        let is_summary = |message: &Message| matches!(message, Message::Summary { .. });
        let said = |is: fn(&Message) -> bool| self.said.iter().filter(move |(_, m)| is(m));
        for seq in &self.pinned {
            let item = self.view.get(*seq).expect("a pin stays");
            assert_eq!(*item.message, self.said[seq], "{}: a pin", self.name());
        }
        let stay = [
            (said(is_user).next(), "the task"),
            (said(is_user).next_back(), "the newest question"),
            (said(is_summary).next_back(), "the last summary"),
        ];
        for (message, what) in stay {
            let Some((seq, message)) = message else {
                continue;
            };
            let Some(item) = self.view.get(*seq) else {
                panic!("{}: {what} was lost", self.name());
            };
            if !self.way.is_filter() {
                assert_eq!(*item.message, *message, "{}: {what}", self.name());
            }
        }
        let all = || self.said.values();
        let now = || self.view.items().iter().map(|item| item.message.as_ref());
        assert!(!matches!(now().next(), Some(Message::Assistant { .. })));
        let answers = |message: &&Message| matches!(message, Message::Assistant { .. });
        let calls = |message: &Message| -> Vec<_> { message.calls().cloned().collect() };
        let (kept, said) = (now().filter(answers), all().filter(answers));
        let (kept, said): (Vec<_>, Vec<_>) = (kept.collect(), said.collect());
        for back in 1..=budget.keep_recent.min(said.len()) {
            let (kept, said) = (kept[kept.len() - back], said[said.len() - back]);
            assert_eq!(
                calls(kept).iter().map(|call| &call.id).collect::<Vec<_>>(),
                calls(said).iter().map(|call| &call.id).collect::<Vec<_>>()
            );
        }
        let system = |message: &&Message| message.is_system();
        let (said, kept): (Vec<_>, Vec<_>) = (
            all().filter(system).collect(),
            now().filter(system).collect(),
        );
        assert_eq!(
            kept,
            said,
            "{}: instructions stay as they were",
            self.name()
        );
    }

    /// What stays is what was said or a lighter form of it, in the same order.
    fn check_forms(&self) {
        let mut last = None;
        for item in self.view.items() {
            assert!(last < Some(item.seq));
            last = Some(item.seq);
            let said = &self.said[&item.seq];
            if item.message.as_ref() == said {
                continue;
            }
            let counter = self.view.counter();
            assert!(item.tokens < counter.message(said), "{}", self.name());
            assert_eq!(item.tokens, counter.message(&item.message));
            match (item.message.as_ref(), said) {
                (Message::ToolResult(now), Message::ToolResult(was)) => {
                    assert_eq!((&now.call, now.is_error), (&was.call, was.is_error));
                    assert!(!now.parts.is_empty());
                }
                // Arguments of old calls do, by a digest.
                (now, was) if self.way == Way::Configured && now.calls().next().is_some() => {
                    let calls = |message: &Message| -> Vec<_> {
                        message.calls().map(|call| call.id.clone()).collect()
                    };
                    assert_eq!(calls(now), calls(was), "{}", self.name());
                }
                _ => assert!(self.way.is_filter(), "only results give way"),
            }
        }
    }

    /// It really cannot: not even with every result at its least.
    fn check_cannot_fit(&self, budget: &Budget, cannot_fit: CannotFit) {
        assert!(cannot_fit.minimum > cannot_fit.limit, "{}", self.name());
        assert_eq!(cannot_fit.limit, budget.limit + self.overhead);
        let draft = Draft::new(&self.view, budget.keep_recent);
        let mut least = Tokens::ZERO;
        // Between what stays there is a marker.
        let widest = Gap {
            messages: 1_000_000,
            recall: Some((Seq(1_000_000), Seq(1_000_000))),
        };
        let marker = self.view.counter().message(&widest.message());
        let mut in_gap = false;
        for (index, exchange) in draft.exchanges().iter().enumerate() {
            if !draft.is_protected(index) {
                if !std::mem::replace(&mut in_gap, true) {
                    least += marker;
                }
                continue;
            }
            in_gap = false;
            assert_ne!(exchange.kind, ExchangeKind::Orphan);
            for item in &self.view.items()[exchange.at.clone()] {
                least += match *item.message {
                    Message::ToolResult(_) if item.pin.is_none() => {
                        item.tokens.min(Tokens(LEAST_RESULT))
                    }
                    _ => item.tokens,
                };
            }
        }
        assert!(
            least > budget.limit,
            "{}: {least} would fit {}",
            self.name(),
            budget.limit
        );
    }
}

/// A line and a policy by a configuration of which every setting is at random.
fn configured(random: &mut Random, size: Tokens, keep_recent: usize) -> (ViewLimits, Policy) {
    let explicit = random.chance(30).then_some(size);
    let config = ContextConfig {
        max_context_tokens: size,
        system_prompt_tokens: Tokens(random.below(1 + size.0 / 4)),
        compaction: CompactionConfig {
            compact_at_pct: Ppm(700_000 + random.below(300_001)),
            compact_budget_threshold_pct: Ppm(random.below(200_000)),
            compaction_scope: match random.below(3) {
                0 => CompactionScope::TokenBudget,
                count => CompactionScope::FixedCount(count as usize - 1),
            },
            keep_first_turns: random.below(4) as usize,
            keep_recent_turns: 1 + random.below(12) as usize,
            max_summary_tokens: Tokens(1 + random.below(3_000)),
            tool_output_max_lines: 1 + random.below(60) as usize,
            trigger: explicit,
            target: None,
            summarization: random.chance(75),
        },
    };
    assert_eq!(config.faults(), []);
    let line = ViewLimits {
        window: Some(size),
        keep_recent,
        ..ViewLimits::default()
    };
    let digest = random.chance(50).then(ArgumentDigest::default);
    let policy = config.policy(SummaryConfig::default(), digest, OwnStages::default());
    (config.line(line, Tokens::ZERO), policy)
}
