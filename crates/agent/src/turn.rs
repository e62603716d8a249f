//! One turn: the request and what its reply leads to. Tools are in `work.rs`, refusals for length
//! in `ladder.rs`.

use std::sync::Arc;

use plimsoll_context::{
    Budget, CachePlan, CannotFit, Message, Money, Outlook, Part, Ppm, PriceSheet, Proposal, Reply,
    StopReason, Tokens, Trigger, Usage, price_with_head,
};

use crate::entry::{Entry, Waiting};
use crate::event::{Event, TurnTrigger};
use crate::failure::Failure;
use crate::inbox::QueueMode;
use crate::leave::Next;
use crate::limits::AtLimit;
use crate::notice;
use crate::opening::Deciding;
use crate::outcome::EndReason;
use crate::request::{Expects, Request, ToolChoice};
use crate::run::{Answered, Calling, Phase, Run};
use crate::state::is_empty;
use crate::step::Step;
use crate::tracker::{ExecutionTracker, NextCall};

/// Empty answers in a row that end a run.
const MAX_EMPTY_REPLIES: u32 = 2;
/// By how much a provider may count more of a request than our calibrated counter: what comes newly into a
/// view has another density than what the calibration has heard of. A limit of the answer that fills the
/// window to the last token would be refused for it.
const UNCOUNTED: Ppm = Ppm(30_000);

/// Whether the view is under its line.
enum Kept {
    /// It is.
    Under,
    /// It will be; the request is made then.
    Waiting,
    /// It cannot be.
    Not(CannotFit),
}

impl Run {
    /// Makes the next request: limits, the host's leave, messages that wait, plan, call.
    pub(crate) fn request(&mut self) {
        if !self.in_turn {
            if self.check_limits() {
                self.decide(Deciding::Turn);
            }
            return;
        }
        // A summary may have used what was left.
        if !self.is_allowed() {
            return;
        }
        if self.setup.steering == QueueMode::All {
            self.deliver(Waiting::Steer);
        }
        let budget = match self.budget() {
            Ok(budget) => budget,
            Err(cannot_fit) => return self.cannot_fit(cannot_fit),
        };
        let priced = self.priced(&budget);
        if self.measures(&priced) {
            return;
        }
        match self.keep_under(&budget, &priced) {
            Kept::Under => {}
            Kept::Waiting => return,
            Kept::Not(cannot_fit) => return self.cannot_fit(cannot_fit),
        }
        if let Some(seq) = self.state.transcript.broken_pin() {
            let message = format!("what was pinned at {seq} does not stand there any more");
            return self.finish(EndReason::Failed {
                failure: Failure::Garbled { message },
            });
        }
        self.call(0, None);
    }

    /// The turn may begin.
    pub(crate) fn begin_turn(&mut self) {
        let budget = match self.budget() {
            Ok(budget) => self.priced(&budget),
            Err(cannot_fit) => return self.cannot_fit(cannot_fit),
        };
        let trigger = (budget.trigger != Tokens::MAX).then(|| budget.trigger + self.overhead);
        if self.waits(Waiting::Steer) {
            self.cause = TurnTrigger::Steer;
        }
        self.notify(Event::TurnStart {
            turn: self.state.tally.turns + 1,
            cause: self.cause,
            tokens: self.tokens(),
            trigger,
            window: self.line().window,
        });
        self.deliver(Waiting::Steer);
        self.in_turn = true;
        self.phase = Phase::Ready;
    }

    /// The budget to plan with: its trigger is where a plan pays.
    pub(crate) fn priced(&self, line: &Budget) -> Budget {
        let (view, sheet) = (&self.state.transcript, self.setup.sheet.as_ref());
        let economy = self.setup.economy;
        economy.budget(line, view, sheet, &self.outlook())
    }

    /// What to expect of the rest of the run.
    pub(crate) fn outlook(&self) -> Outlook {
        let left = self
            .setup
            .limits
            .max_turns
            .saturating_sub(self.state.tally.turns);
        let sheet = self.setup.sheet.as_ref();
        let cold_now = sheet.map_or(Ppm(0), |sheet| sheet.cold_after(self.idle));
        self.state.pace.outlook(Some(left), cold_now)
    }

    /// Asks the policy. What it proposes is applied before the request is made; a summary that it
    /// would rather have is asked for first.
    fn keep_under(&mut self, line: &Budget, budget: &Budget) -> Kept {
        let view = &self.state.transcript;
        if self.vetoed {
            return match view.tokens() > budget.limit {
                true => Kept::Not(budget.cannot_fit(view.tokens())),
                false => Kept::Under,
            };
        }
        let means = self.means();
        let propose =
            |budget: &Budget| (self.setup.policy).propose(view, budget, Trigger::Request, &means);
        let mut proposal = propose(budget);
        let mut line = *line;
        // Tools that join with the plan have to fit beside what it leaves.
        if self.joins > Tokens::ZERO
            && let Ok(Proposal { plan: Some(_), .. }) = proposal
        {
            line = match self.budget_planned() {
                Ok(line) => line,
                Err(cannot_fit) => return Kept::Not(cannot_fit),
            };
            let priced = self.priced(&line);
            proposal = propose(&Budget {
                trigger: priced.trigger.min(budget.trigger),
                ..priced
            });
        }
        let plan = match proposal {
            Ok(Proposal { plan, wants }) => {
                if let Some(span) = wants
                    && self.wants_summary(span)
                {
                    return Kept::Waiting;
                }
                plan
            }
            Err(cannot_fit) => match self.give_up_the_past(Trigger::Request) {
                Some(plan) => Some(plan),
                None => return Kept::Not(cannot_fit),
            },
        };
        match plan {
            Some(mut plan) => {
                let (view, sheet) = (&self.state.transcript, self.setup.sheet.as_ref());
                let (head, outlook) = (self.rewritten_head(), self.outlook());
                plan.price = Some(price_with_head(&plan, view, head, &line, sheet, &outlook));
                self.leave(plan, Next::Request);
                Kept::Waiting
            }
            None => Kept::Under,
        }
    }

    /// Sends the view as it stands, with so much of an answer at most as a refusal has left room for.
    pub(crate) fn call(&mut self, rung: u32, left: Option<Tokens>) {
        // What a refused request has used counts too.
        if self.is_spent() {
            return;
        }
        self.vetoed = false;
        let counted = self.tokens();
        let tool_choice = if self.finalizing.is_some() {
            ToolChoice::None
        } else {
            ToolChoice::Auto
        };
        // What is asked for must fit behind the request, or providers refuse it unread.
        let reported = self.state.calibration.reported(counted);
        let line = self.line();
        let room = line.window.map(|window| {
            let behind = window.minus(reported);
            let sure = behind.minus(reported.share(UNCOUNTED));
            // What is set aside for the answer is never given away.
            sure.max(behind.min(line.reserve())).max(Tokens(1))
        });
        let room = [room, left].into_iter().flatten().min();
        let max_output = match (self.max_output, room) {
            (Some(asked), Some(room)) => Some(asked.min(room)),
            (None, room) if self.names_limit => room,
            (asked, _) => asked,
        };
        let request = Request {
            tool_choice,
            max_output,
            cache: self.cache_plan(),
            expects: self.expects(counted, max_output, room),
            ..self.as_request(counted)
        };
        self.queue.push_back(Step::Call(Box::new(request)));
        self.phase = Phase::Calling(Calling {
            counted,
            max_output,
            rung,
            not_view: self.not_view(tool_choice),
        });
    }

    /// The view as a request of this weight, with nothing asked of the cache.
    pub(crate) fn as_request(&self, counted: Tokens) -> Request {
        let items = self.state.transcript.items();
        Request {
            system: Arc::clone(&self.setup.system),
            tools: Arc::clone(&self.specs),
            hosted_tools: Arc::clone(&self.setup.hosted_tools),
            messages: items.iter().map(|item| Arc::clone(&item.message)).collect(),
            dynamic_context: self.setup.dynamic_context.clone(),
            tool_choice: ToolChoice::Auto,
            format: None,
            max_output: self.max_output,
            sampling: self.setup.sampling,
            counted,
            cache: CachePlan::default(),
            expects: Expects::default(),
        }
    }

    /// A model call has ended.
    pub(crate) fn replied(&mut self, reply: Result<Reply, Failure>) {
        let Phase::Calling(ref calling) = self.phase else {
            return;
        };
        let calling = calling.clone();
        match reply {
            Ok(reply) => self.take_reply(reply, &calling),
            Err(failure) => self.failed(failure, calling),
        }
    }

    fn take_reply(&mut self, reply: Reply, calling: &Calling) {
        let counted = calling.counted;
        let Reply {
            parts, stop, usage, ..
        } = reply;
        let message = Arc::new(Message::Assistant { parts });
        let cost = self.price_of(usage, counted, &message);
        self.record(Entry::Replied {
            message: Arc::clone(&message),
            stop,
            usage,
            counted,
            cost,
        });
        self.in_turn = false;
        self.cut_off = matches!(
            stop,
            StopReason::Length | StopReason::Window | StopReason::ContentFilter
        );
        self.turn_end = Some(Answered {
            turn: self.state.tally.turns,
            stop,
            usage,
        });
        self.tell_miss(calling);
        if is_empty(&message) && self.finalizing.is_none() {
            return self.nothing_said();
        }
        self.empty_replies = 0;
        if self.state.batch.is_some() {
            self.decode_batch();
            return;
        }
        self.end_turn();
        if let Some(reason) = self.finalizing.take() {
            self.finish(reason);
        } else if stop == StopReason::Paused || self.waits(Waiting::Steer) {
            // What was only paused goes on from where it stands.
            self.phase = Phase::Ready;
        } else {
            self.decide(Deciding::FollowUp);
        }
    }

    /// What a call cost; where the provider does not say what it used, by our own count.
    fn price_of(&self, usage: Option<Usage>, counted: Tokens, reply: &Message) -> Option<Money> {
        let sheet = self.setup.sheet.as_ref()?;
        let usage = usage.unwrap_or_else(|| Usage {
            input: counted,
            output: self.setup.counter.message(reply),
            ..Usage::default()
        });
        self.cost(usage, sheet)
    }

    /// What usage costs. A limit on money holds for tokens of an unknown price too: they count at most.
    pub(crate) fn cost(&self, usage: Usage, sheet: &PriceSheet) -> Option<Money> {
        let known = sheet.cost(usage);
        match self.setup.limits.max_cost {
            Some(_) => known.or_else(|| sheet.at_most().cost(usage)),
            None => known,
        }
    }

    fn nothing_said(&mut self) {
        self.empty_replies += 1;
        self.end_turn();
        if self.empty_replies >= MAX_EMPTY_REPLIES {
            let message = format!("it was empty {MAX_EMPTY_REPLIES} times in a row");
            return self.finish(EndReason::Failed {
                failure: Failure::Garbled { message },
            });
        }
        self.notice(notice::EMPTY_REPLY.to_owned());
        self.phase = Phase::Ready;
    }

    /// Whether one more call is allowed; where it is the last, the model is asked to finish.
    fn check_limits(&mut self) -> bool {
        if self.is_spent() {
            return false;
        }
        if self.finalizing.is_some() {
            return true;
        }
        let (tracker, now) = (self.tracker(), self.elapsed);
        let used_up = tracker.used_up().filter(|reason| match reason {
            EndReason::ToolLimit { .. } => tracker.turns > 0 && !self.setup.tools.is_empty(),
            _ => true,
        });
        let finalizes = tracker.limits.at_limit == AtLimit::Finalize;
        match used_up {
            Some(reason) if finalizes => self.ask_to_finish(reason),
            Some(reason) => {
                self.finish(reason);
                return false;
            }
            None => match tracker.is_last(self.next_call(&tracker), now) {
                Some(reason) if finalizes => self.ask_to_finish(reason),
                _ => self.tell_near(&tracker),
            },
        }
        true
    }

    /// Whether a limit ends the run here.
    fn is_spent(&mut self) -> bool {
        let Some(reason) = self.tracker().spent(self.elapsed) else {
            return false;
        };
        let reason = self.finalizing.take().unwrap_or(reason);
        self.finish(reason);
        true
    }

    /// Whether the turn that has begun may still call the model; where that is the last call by now, the
    /// model is asked to finish.
    fn is_allowed(&mut self) -> bool {
        if self.is_spent() {
            return false;
        }
        let tracker = self.tracker();
        if self.finalizing.is_none()
            && tracker.limits.at_limit == AtLimit::Finalize
            && let Some(reason) = tracker.is_last(self.next_call(&tracker), self.elapsed)
        {
            self.ask_to_finish(reason);
        }
        true
    }

    /// What the next call will take, as far as that can be known.
    pub(crate) fn next_call(&self, tracker: &ExecutionTracker) -> NextCall {
        let tally = &self.state.tally;
        let calibration = self.state.calibration;
        // The provider has said what the request before this one was; the rest is what has grown.
        let processed = match self.state.heard {
            Some((counted, said)) if counted <= self.tokens() => {
                said + self.tokens().minus(counted).share(calibration.ratio())
            }
            _ => calibration.reported(self.tokens()),
        };
        NextCall {
            tokens: tally.next(tracker.limits.count_tokens, processed),
            // Much of the view is in the cache, or is not: the call before knows.
            cost: tally.newest_cost.known,
        }
    }

    /// Tells the model, once each, which limits are near.
    fn tell_near(&mut self, tracker: &ExecutionTracker) {
        let warned = &self.state.tally.warned;
        let mut near = tracker.near(self.elapsed);
        near.retain(|near| !warned.contains(near));
        if near.is_empty() {
            return;
        }
        let texts = near
            .iter()
            .map(|(kind, _)| notice::near(*kind, tracker, self.elapsed));
        let mut texts: Vec<String> = texts.collect();
        texts.dedup();
        for (limit, near) in near {
            self.record(Entry::Warned { limit, near });
        }
        let text = format!("[{}. Use what is left well.]", texts.join("; "));
        self.notice(text.clone());
        self.notify(Event::LimitNear { notice: text });
    }

    pub(crate) fn ask_to_finish(&mut self, reason: EndReason) {
        let text = notice::finalize(&reason);
        let said = Message::Notice { text: text.clone() };
        let last = self.state.transcript.items().last();
        // A run that died right after it was told is not told twice.
        if last.is_none_or(|item| *item.message != said) {
            self.notice(text.clone());
        }
        self.notify(Event::LimitReached { notice: text });
        self.finalizing = Some(reason);
    }

    /// The text of an outcome: what the model said last in this run or, where it said nothing, a
    /// sentence that says why.
    pub(crate) fn closing_text(&self, reason: &EndReason) -> String {
        let items = self.state.transcript.items();
        let last = items
            .iter()
            .rev()
            .take_while(|item| !item.message.is_user())
            .find_map(|item| {
                let Message::Assistant { parts } = item.message.as_ref() else {
                    return None;
                };
                Some((parts, notice::text_of(parts))).filter(|(_, text)| !text.is_empty())
            });
        let stopped = notice::stopped(reason);
        let whole = |text: String| match self.cut_off {
            true => format!("{text}\n\n{}", notice::CUT_OFF),
            false => text,
        };
        match last {
            Some((_, text)) if reason.is_answer() => whole(text),
            // Asked to finish, and it did.
            Some((parts, text)) if is_final(parts) && self.was_last(parts) => whole(text),
            Some((_, text)) => format!("{text}\n\n{stopped}"),
            None => stopped,
        }
    }

    fn was_last(&self, parts: &[Part]) -> bool {
        let last = self.state.transcript.items().last();
        last.is_some_and(|item| matches!(item.message.as_ref(), Message::Assistant { parts: last } if last == parts))
    }
}

fn is_final(parts: &[Part]) -> bool {
    !parts.iter().any(|part| matches!(part, Part::ToolCall(_)))
}
