//! [`ChatGate`]: the gate of a chat. Its questions are answered by typed lines, like everything
//! else, so the user can still interrupt or steer the run while a question waits.

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll::Gate;
use plimsoll::permissions::{Answer, Question};
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

use crate::approvals::Approvals;
use crate::ask::{self, Reply};

/// Maximum number of questions that wait for the chat. Further calls wait.
pub(crate) const QUESTIONS: usize = 16;

/// Asks the user of the chat.
pub(crate) struct ChatGate {
    pub(crate) questions: Sender<PendingQuestion>,
    pub(crate) approvals: Arc<Approvals>,
}

/// A question that waits for an answer. Dropping it denies the call.
pub(crate) struct PendingQuestion {
    pub(crate) question: Question,
    pub(crate) answer: oneshot::Sender<Reply>,
}

impl PendingQuestion {
    /// Returns `true` if the call still waits for the answer.
    pub(crate) fn is_open(&self) -> bool {
        !self.answer.is_closed()
    }
}

#[async_trait]
impl Gate for ChatGate {
    async fn decide(&self, question: &Question) -> Answer {
        let name = &question.call.name;
        if self.approvals.allow(question) {
            return Answer::Allow;
        }
        let (answer, reply) = oneshot::channel();
        let asked = PendingQuestion {
            question: question.clone(),
            answer,
        };
        let reply = match self.questions.send(asked).await {
            Ok(()) => reply.await.unwrap_or(Reply::Nobody),
            Err(_) => Reply::Nobody,
        };
        ask::answer(name, reply)
    }
}
