//! [`Gate`]: the extension trait for approving tool calls.

use async_trait::async_trait;
use plimsoll_agent::{Answer, Question};

/// Decides whether a tool call that needs approval may run.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Returns the decision. The run waits for it; an interrupt ends the wait.
    async fn decide(&self, question: &Question) -> Answer;
}

/// Approves every call.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

/// Denies every call that needs approval. Used if nobody can be asked.
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
            "`{}` was not allowed: it requires approval, and there is nobody to ask; continue without it",
            question.call.name
        );
        Answer::Deny { why }
    }
}
