//! [`Meter`]: a running total of spending. It does not enforce limits.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_agent::Spend;

use super::tree::NodeId;
use super::{SharedTree, amounts, lock};

/// The spending of one node and everything below it. Clones share the same meter.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<MeterInner>);

#[derive(Debug, Default)]
struct MeterInner {
    spent: Mutex<Spend>,
    above: Option<Meter>,
    ledger: Option<(SharedTree, NodeId)>,
}

impl Meter {
    pub(super) fn at(above: Option<Meter>, ledger: Option<(SharedTree, NodeId)>) -> Self {
        Self(Arc::new(MeterInner {
            spent: Mutex::default(),
            above,
            ledger,
        }))
    }

    /// Adds spending, for example by a model or a service that a tool has called.
    pub fn add(&self, spend: &Spend) {
        if let Some((tree, node)) = &self.0.ledger {
            lock(tree).spend(*node, amounts(spend));
        }
        self.seen(spend);
    }

    /// Returns the total so far.
    #[must_use]
    pub fn total(&self) -> Spend {
        *self.0.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds spending that the ledger already contain.
    pub(super) fn seen(&self, spend: &Spend) {
        let mut meter = Some(self);
        while let Some(Self(inner)) = meter {
            let mut spent = inner.spent.lock().unwrap_or_else(PoisonError::into_inner);
            *spent = spent.combine(*spend);
            meter = inner.above.as_ref();
        }
    }
}
