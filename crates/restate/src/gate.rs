//! [`PostgresGate`]: asks for approval through the database. Questions and answers are rows, so
//! another worker that asks again finds the answer.

use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::{Answer, Question};
use plimsoll_core::Gate;
use plimsoll_store::PostgresStore;

/// The first pause between two checks for an answer. Each is twice as long as the previous one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between two checks.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Waits for an answer in the store. The agent's `gate_timeout` limits the wait.
#[derive(Debug, Clone)]
pub struct PostgresGate(PostgresStore);

impl PostgresGate {
    /// Creates a gate with its questions in a store.
    #[must_use]
    pub fn new(store: PostgresStore) -> Self {
        Self(store)
    }
}

#[async_trait]
impl Gate for PostgresGate {
    async fn decide(&self, question: &Question) -> Answer {
        let mut pause = FIRST_PAUSE;
        loop {
            // Nobody can answer while the database is down.
            if let Ok(Some(answer)) = self.0.ask(question).await {
                return answer;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
