//! [`AgentState`]: what a host attaches to a session.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use crate::store::SessionId;

/// Data that a host attaches to a session.
#[derive(Debug, Clone)]
pub struct AgentState {
    /// Id of the session.
    pub session_id: SessionId,
    /// Text sent after the history of each request of the next run, outside the log. `None` uses
    /// the agent's own.
    pub dynamic_context: Option<String>,
    /// Arbitrary values of the host, by type.
    pub extensions: Extensions,
}

/// Values by their type.
#[derive(Debug, Clone, Default)]
pub struct Extensions(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Extensions {
    /// Inserts a value. Returns the previous value of the same type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) -> Option<Arc<T>> {
        let old = self.0.insert(TypeId::of::<T>(), Arc::new(value))?;
        old.downcast().ok()
    }

    /// Returns the value of this type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}
