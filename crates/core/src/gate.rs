//! [`Gate`]: the door to a person's yes or no. An async decision, not an observer.

use async_trait::async_trait;
use plimsoll_agent::{Answer, Question};

/// Decides whether a tool call that asks may run.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Decides. The run waits; an interrupt ends the wait.
    async fn decide(&self, question: &Question) -> Answer;
}

/// Says yes to every call.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

/// Says no to every call that asks: where nobody can be asked, silence denies.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

#[async_trait]
impl Gate for AllowAll {
    async fn decide(&self, _question: &Question) -> Answer {
        Answer::Allow
    }
}

#[async_trait]
impl Gate for DenyAll {
    async fn decide(&self, question: &Question) -> Answer {
        let why = format!(
            "`{}` was not allowed: it must be approved and nobody can be asked here; go on without it",
            question.call.name
        );
        Answer::Deny { why }
    }
}
