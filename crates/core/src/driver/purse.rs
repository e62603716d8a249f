//! [`Purse`]: what a session's run may use, what its tool calls may use of that, and what they are
//! known to have used. It books; the machine decides what follows.

use std::collections::HashMap;

use plimsoll_agent::Input;
use plimsoll_context::CallId;

use crate::allowance::{Allowance, Books, Meter};
use crate::session::Session;
use crate::sub_agent::{Caller, Origin};

/// What a session's run may use.
#[derive(Debug, Default)]
pub(crate) struct Purse {
    books: Option<Books>,
    /// What was reserved for it, where it works for somebody.
    under: Option<Allowance>,
    /// Of the calls under way.
    meters: HashMap<CallId, Meter>,
}

impl Session {
    /// What the next run uses comes out of what was reserved for it.
    pub(crate) fn below(&mut self, allowance: &Allowance) {
        self.purse.under = Some(allowance.clone());
    }

    /// A run has begun.
    pub(super) fn open_books(&mut self) {
        let (tracker, own) = (self.run.tracker(), self.run.own());
        let purse = &mut self.purse;
        purse.meters.clear();
        let mut books = Books::of_run(&tracker.limits, purse.under.as_ref());
        books.carry(&own);
        books.book(&own);
        purse.books = Some(books);
    }

    /// Books what the run has used.
    pub(super) fn book(&mut self) {
        let own = self.run.own();
        if let Some(books) = &mut self.purse.books {
            books.book(&own);
        }
    }

    /// What a call that begins may use, and whose it is.
    pub(super) fn for_call(&mut self, call: &CallId) -> (Allowance, Origin) {
        self.book();
        let (own, tracker) = (self.run.own(), self.run.tracker());
        let last_answer = tracker.deadlines().map(|(last_answer, _)| last_answer);
        let until = last_answer.and_then(|at| self.started.checked_add(at));
        let books = self.purse.books.as_ref();
        let allowance = books.map_or_else(Allowance::unlimited, |books| books.for_call(until));
        let meter = allowance.meter().clone();
        self.purse.meters.insert(call.clone(), meter);
        let at_once = self.run.max_parallel_tools() as u64;
        let origin = Origin {
            of: self.run.place_of(call).map(|place| Caller {
                session: self.id().clone(),
                parts: std::sync::Arc::clone(&self.parts),
                place,
                beside: own.open_calls.min(at_once).max(1),
            }),
        };
        (allowance, origin)
    }

    /// The calls under way were cut off.
    pub(super) fn forget_calls(&mut self) {
        self.purse.meters.clear();
    }

    /// Tells the machine what calls have used that this input may cut off.
    pub(super) fn tell_meters(&mut self, input: &Input) {
        match input {
            Input::Interrupt | Input::Tick => {
                for (call, meter) in &self.purse.meters {
                    self.run.metered(call.clone(), meter.total());
                }
            }
            Input::ToolDone { result, .. } => {
                self.purse.meters.remove(&result.call);
            }
            _ => {}
        }
    }
}
