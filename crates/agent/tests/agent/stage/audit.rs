//! The invariants after every play: requests are complete and within the limit, the log folds to
//! the same view, and a run can continue from every prefix of the log.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use plimsoll_agent::{
    EndReason, Entry, Event, HookPoint, Input, MAX_SUMMARY_CALLS, Request, State, ToolNames,
};
use plimsoll_context::{
    Calibration, CallId, Message, Part, Pin, Ppm, Seq, StopReason, Threshold, Tokens, Usage,
    ViewLimits,
};

use super::{SentRequest, Stage};

/// Everything; the prefixes too.
pub(crate) fn audit(stage: &Stage) {
    whole(stage);
    for end in 0..=stage.log.len() {
        carried_on(stage, end, Input::User(vec![Part::text("and now?")].into()));
        carried_on(stage, end, Input::Continue);
    }
}

/// What holds of the play itself.
pub(crate) fn whole(stage: &Stage) {
    let json = |entry: &Entry| serde_json::to_string(entry).unwrap();
    for entry in &stage.log {
        assert_eq!(serde_json::from_str::<Entry>(&json(entry)).unwrap(), *entry);
    }
    sound(stage);
}

fn sound(stage: &Stage) {
    for sent in &stage.requests {
        request(stage, sent);
    }
    for pair in stage.requests.windows(2) {
        if pair[1].again {
            let (one, two) = (&pair[0].request, &pair[1].request);
            let asks = |request: &Request| request.max_output.unwrap_or(Tokens::MAX);
            let less = two.counted < one.counted || asks(two) < asks(one);
            assert!(
                less || two.tool_choice != one.tool_choice || two.tools.len() != one.tools.len(),
                "sent again as it was"
            );
        }
    }
    for pair in stage.requests.windows(2) {
        grows_at_its_end(stage, &pair[0], &pair[1]);
    }
    folds(stage);
    limits(stage);
    spent(stage);
    kept(stage);
    delivered_once(stage);
    summed_up(stage);
    for call in &stage.executed {
        let known = stage
            .setup
            .tools
            .iter()
            .any(|tool| tool.spec.name == call.name);
        assert!(known, "there is no tool {}", call.name);
        let arguments = call.arguments.trim();
        let object = serde_json::from_str::<serde_json::Map<_, _>>(arguments);
        assert!(object.is_ok() || arguments.is_empty(), "{arguments}");
    }
    assert!(stage.at_once <= stage.setup.max_parallel_tools);
    for outcome in &stage.outcomes {
        assert!(!outcome.text.trim().is_empty(), "an outcome says something");
    }
    let ended = stage.log[stage.born..]
        .iter()
        .filter_map(|entry| match entry {
            Entry::RunEnded { outcome } => Some(outcome),
            _ => None,
        });
    assert!(ended.eq(&stage.outcomes), "the log says how each run ended");
}

/// Between two plans the view only grows at its end: that is what the provider's cache lives on.
fn grows_at_its_end(stage: &Stage, one: &SentRequest, two: &SentRequest) {
    let between = &stage.log[one.at..two.at];
    if between
        .iter()
        .any(|entry| matches!(entry, Entry::PlanApplied { .. } | Entry::RolledBack { .. }))
    {
        return;
    }
    let (old, new) = (&one.request.messages, &two.request.messages);
    let begins = new.iter().take(old.len()).eq(old.iter());
    assert!(begins, "rewritten without a plan");
}

/// The request is one that a strict provider takes, counted rightly and under its line.
fn request(stage: &Stage, sent: &SentRequest) {
    let request = &sent.request;
    let messages: Vec<&Message> = request.messages.iter().map(AsRef::as_ref).collect();
    paired(&messages);
    assert!(messages.iter().any(|message| message.is_user()), "headless");
    let first = messages.first().unwrap();
    assert!(!matches!(first, Message::Assistant { .. }), "{first:?}");
    let last = messages.last().unwrap();
    let mut replies = stage.log[..sent.at].iter().rev();
    let newest = replies.find_map(|entry| match entry {
        Entry::Reply { stop, .. } => Some(*stop),
        _ => None,
    });
    // A turn that was only paused goes back as it stands.
    assert!(
        !matches!(last, Message::Assistant { .. }) || newest == Some(StopReason::Paused),
        "it ends with an answer: {}",
        super::words::show(request)
    );
    for message in &messages {
        let says = |part: &Part| part.as_text().is_none_or(|text| !text.trim().is_empty());
        match message {
            Message::Notice { text } | Message::Summary { text } => assert!(!text.is_empty()),
            other => assert!(other.parts().iter().any(says), "an empty {other:?}"),
        }
    }
    let counter = &stage.setup.counter;
    let view: Tokens = messages.iter().map(|m| counter.message(m)).sum();
    assert_eq!(request.counted, stage.setup.overhead() + view);
    if !stage.setup.policy.stages().is_empty() && !sent.again {
        let calibration = calibration(&stage.log[..sent.at]);
        // What the host wanted left as it is must fit the window all the same.
        let line = if sent.vetoed {
            ViewLimits {
                trigger: Threshold::Share(Ppm::ONE),
                ..sent.line
            }
        } else {
            sent.line
        };
        let overhead = stage.setup.overhead();
        let budget = line.budget(overhead, Tokens::ZERO, calibration);
        let limit = budget.expect("it was sent").limit;
        assert!(view <= limit, "{view} is over the line at {limit}");
        let exact = line.budget(overhead, Tokens::ZERO, Calibration::default());
        let exact = exact.expect("it was sent").limit;
        assert!(view <= exact, "{view} is over {exact} by our own count");
    }
}

/// Each run's outcome says what its calls used, those for summaries among them.
fn spent(stage: &Stage) {
    let (mut run, mut used) = (0, Usage::default());
    for entry in &stage.log {
        match entry {
            Entry::RunStarted { run: number, .. } if *number != run => {
                (run, used) = (*number, Usage::default());
            }
            Entry::Reply {
                usage: Some(usage), ..
            }
            | Entry::Summarized { usage, .. }
            | Entry::PartialReply { usage, .. } => used = used.combine(*usage),
            Entry::RunEnded { outcome } => assert_eq!(outcome.tokens_used, used, "run {run}"),
            _ => {}
        }
    }
}

/// Every message as it was said, whatever became of it.
fn originals(stage: &Stage) -> State {
    let said = stage.log.iter().filter(|entry| {
        !matches!(
            entry,
            Entry::PlanApplied { .. }
                | Entry::Pinned { .. }
                | Entry::Unpinned { .. }
                | Entry::RolledBack { .. }
        )
    });
    State::fold(stage.setup.counter.clone(), said).unwrap()
}

/// A pinned message is in every request, as it was said; each offered id is in the log; and the host
/// is shown the messages as they were said.
fn kept(stage: &Stage) {
    let said = originals(stage);
    let original = |seq: Seq| &said.transcript().get(seq).unwrap().message;
    let mut pins: BTreeMap<Seq, Pin> = BTreeMap::new();
    let mut at = 0;
    for sent in &stage.requests {
        for (n, entry) in stage.log[at..sent.at].iter().enumerate() {
            match entry {
                Entry::RolledBack { .. } => pins = pinned(stage, at + n),
                Entry::Pinned { seq, pin } => {
                    pins.insert(*seq, pin.clone());
                }
                Entry::Unpinned { seq } => {
                    pins.remove(seq);
                }
                _ => {}
            }
        }
        at = sent.at;
        for seq in pins.keys() {
            let said = original(*seq);
            let there = sent.request.messages.iter().any(|one| one == said);
            assert!(there, "what was pinned at {seq} is not sent");
        }
        for message in sent.request.messages.iter() {
            for id in offered(&message.text()) {
                assert!(
                    said.transcript().get(Seq(id)).is_some(),
                    "m{id} is offered and not in the log: {}",
                    super::words::show(&sent.request)
                );
            }
        }
    }
    let mut told = BTreeSet::new();
    for gone in &stage.gone {
        // Of a log that is carried on, an earlier plan may have shortened it.
        for of in gone
            .iter()
            .filter(|of| told.insert(of.seq) && stage.born == 0)
        {
            assert_eq!(of.message, *original(of.seq));
        }
        assert!(gone.is_sorted_by_key(|of| of.seq), "in view order");
    }
    let planned = |entry: &&Entry| matches!(entry, Entry::PlanApplied { .. });
    let planned = stage.log[stage.born..].iter().filter(planned).count();
    if stage.setup.hooks.contains(&HookPoint::OnEvict) {
        assert!(stage.gone.len() <= planned, "once for every plan")
    } else {
        assert!(stage.gone.is_empty() && stage.leaving == 0)
    }
}

/// What is pinned after so many entries and one.
fn pinned(stage: &Stage, last: usize) -> BTreeMap<Seq, Pin> {
    let state = State::fold(stage.setup.counter.clone(), &stage.log[..=last]).unwrap();
    let items = state.transcript().items().iter();
    items
        .filter_map(|item| Some((item.seq, item.pin.clone()?)))
        .collect()
}

/// Each message that waited came to exactly one end, or waits still.
fn delivered_once(stage: &Stage) {
    let mut waiting = BTreeSet::new();
    let mut ever = 0;
    for entry in &stage.log {
        match entry {
            Entry::Queued { id, .. } => {
                assert!(*id > ever, "{id} comes after {ever}");
                ever = *id;
                waiting.insert(*id);
            }
            Entry::Message {
                queued: Some(id), ..
            } => assert!(waiting.remove(id), "{id} is said twice"),
            Entry::Undelivered { ids } => {
                for id in ids {
                    assert!(waiting.remove(id), "{id} is given up twice");
                }
            }
            // It waits in the session that this one is a fork of.
            Entry::Forked { .. } => waiting.clear(),
            Entry::RunEnded { outcome } => {
                assert!(waiting.is_empty(), "{waiting:?} is forgotten: {outcome:?}");
            }
            _ => {}
        }
    }
}

/// The numbers that markers offer for recall.
fn offered(text: &str) -> Vec<u64> {
    let numbers = text.split("recall m").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse().ok()
    });
    numbers.collect()
}

/// One summary lives at a time, each that was begun ends, and no model is asked without end.
fn summed_up(stage: &Stage) {
    for sent in &stage.requests {
        let messages = sent.request.messages.iter();
        let summaries = messages.filter(|m| matches!(***m, Message::Summary { .. }));
        assert!(
            summaries.count() <= 1,
            "{}",
            super::words::show(&sent.request)
        );
    }
    let (mut open, mut since) = (0, 0);
    let steers = stage.log.iter();
    let steers = steers
        .filter(|entry| matches!(entry, Entry::Message { .. }))
        .count();
    for event in &stage.events {
        match event {
            Event::SummaryStarted { .. } => {
                (open, since) = (open + 1, since + 1);
                assert!(since <= 3 + steers, "{since} summaries for one request");
            }
            Event::SummaryEnded { calls, .. } => {
                open -= 1;
                assert!((1..=MAX_SUMMARY_CALLS as u64).contains(calls));
            }
            Event::TurnStart { .. } => since = 0,
            Event::AgentEnd { .. } => assert_eq!(open, 0, "a summary without an end"),
            _ => {}
        }
    }
    for request in &stage.asked_for {
        let window = stage
            .setup
            .summary_model
            .as_ref()
            .and_then(|model| model.window);
        let most = request.counted + request.max_output.unwrap_or_default();
        assert!(
            window.is_none_or(|window| most <= window),
            "{most} over {window:?}: {}",
            request.messages.first().unwrap().text()
        );
        assert!(request.tools.is_empty());
    }
}

/// No run has more turns or tool calls than it may, crashes or not.
fn limits(stage: &Stage) {
    let limits = &stage.setup.limits;
    let (mut run, mut turns, mut calls) = (0, 0, 0);
    for entry in &stage.log {
        match entry {
            Entry::RunStarted { run: number, .. } if *number != run => {
                (run, turns, calls) = (*number, 0, 0);
            }
            Entry::Reply { .. } => turns += 1,
            Entry::ToolStarted { .. } => calls += 1,
            _ => {}
        }
        assert!(turns <= limits.max_turns(), "{turns} turns");
        let most = limits.max_tool_calls.unwrap_or(u64::MAX);
        assert!(calls <= most, "{calls} tool calls");
    }
}

fn paired(messages: &[&Message]) {
    let mut open: Vec<CallId> = Vec::new();
    for message in messages {
        if let Message::ToolResult(result) = message {
            assert!(!open.is_empty(), "{} is an orphan", result.call);
            assert_eq!(open.remove(0), result.call, "results in call order");
        } else {
            assert!(open.is_empty(), "{open:?} are unanswered");
            open = message.calls().map(|call| call.id.clone()).collect();
        }
    }
    assert!(open.is_empty(), "{open:?} are unanswered");
}

/// What the entries say of the provider's tokens.
pub(crate) fn calibration(log: &[Entry]) -> Calibration {
    let mut calibration = Calibration::default();
    let mut last = None;
    for entry in log {
        match entry {
            Entry::RunStarted { model, .. } => {
                if last.is_some_and(|last| last != model) {
                    calibration = Calibration::default();
                }
                last = Some(model);
            }
            Entry::Reply {
                usage: Some(usage),
                counted,
                ..
            } => calibration.observe(*counted, usage.processed()),
            Entry::WindowLearned {
                used: Some((counted, used)),
                ..
            } => calibration.refused(*counted, *used),
            _ => {}
        }
    }
    calibration
}

/// The log is the truth: folded, it gives the live view.
fn folds(stage: &Stage) {
    let state = State::fold(stage.setup.counter.clone(), &stage.log).unwrap();
    let (live, folded) = (stage.run.state(), &state);
    assert_eq!(live.transcript().tokens(), folded.transcript().tokens());
    assert_eq!(live.transcript().sent(), folded.transcript().sent());
    let (live_items, items) = (live.transcript().items(), folded.transcript().items());
    assert_eq!(live_items.len(), items.len());
    for (live, item) in live_items.iter().zip(items) {
        assert_eq!(live.seq, item.seq);
        assert_eq!(live.tokens, item.tokens);
        assert_eq!(live.message, item.message);
        assert_eq!(live.pin, item.pin);
        assert_eq!(live.form, item.form);
    }
    assert_eq!(live.usage(), folded.usage());
    assert_eq!(live.runs(), folded.runs());
    assert_eq!(live.learned_window(), folded.learned_window());
}

/// The process died after `end` entries. A new one carries on.
pub(crate) fn carried_on(stage: &Stage, end: usize, input: Input) {
    let log = stage.log[..end].to_vec();
    let says_something = log
        .iter()
        .any(|entry| matches!(entry, Entry::Message { .. }));
    let dangerous = dangerous(stage, &log);
    let mut next = Stage::resume(log, stage.setup.clone());
    let asks = matches!(input, Input::User(_));
    next.tell(input);
    next.finish();
    sound(&next);
    for call in &next.executed {
        assert!(!dangerous.contains(&call.id), "{} ran twice", call.id);
    }
    let outcome = next.outcome();
    if !asks && !says_something {
        assert!(next.requests.is_empty());
        assert_eq!(outcome.reason, EndReason::NothingToDo);
    }
    if asks && next.requests.is_empty() {
        // Neither the window nor the limits may have room for it.
        let fits_not = matches!(outcome.reason, EndReason::CannotFit { .. });
        assert!(fits_not || outcome.reason.is_limit(), "{outcome:?}");
    }
}

/// Calls that must not run again: those that have their result, and those that may have run and
/// are not idempotent. Only of the last answer: an id may come again later.
fn dangerous(stage: &Stage, log: &[Entry]) -> HashSet<CallId> {
    let last = log
        .iter()
        .rposition(|entry| matches!(entry, Entry::Reply { .. }));
    let Some(Entry::Reply { message, .. }) = last.map(|at| &log[at]) else {
        return HashSet::new();
    };
    let tools = || stage.setup.tools.iter();
    let names = ToolNames::new(tools().map(|tool| tool.spec.name.as_str()));
    let idempotent = |name: &str| {
        let name = names.resolve(name).unwrap_or(name);
        let tool = tools().find(|tool| tool.spec.name == name);
        tool.is_some_and(|tool| tool.idempotent)
    };
    let after = &log[last.unwrap()..];
    let mut dangerous = HashSet::new();
    for call in message.calls() {
        let began = after.contains(&Entry::ToolStarted {
            call: call.id.clone(),
        });
        let returned = after.iter().any(|entry| {
            matches!(entry, Entry::ToolResult { message, .. } if matches!(message.as_ref(),
                Message::ToolResult(result) if result.call == call.id))
        });
        if returned || began && !idempotent(&call.name) {
            dangerous.insert(call.id.clone());
        }
    }
    dangerous
}
