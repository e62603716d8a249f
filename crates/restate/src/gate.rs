//! [`PostgresGate`]: asks whoever answers for a session, wherever they are. The question is a row, and so is
//! the answer; another worker that asks again finds it.

use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::{Answer, Question};
use plimsoll_core::Gate;
use plimsoll_store::PostgresStore;

/// The first pause between two looks for an answer. Each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Waits for an answer in the store. How long is for the agent's `gate_timeout` to say.
#[derive(Debug, Clone)]
pub struct PostgresGate(PostgresStore);

impl PostgresGate {
    /// A gate whose questions are in a store.
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
            // While the database is away nobody can answer.
            if let Ok(Some(answer)) = self.0.ask(question).await {
                return answer;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
