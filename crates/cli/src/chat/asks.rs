//! [`Asks`]: the gate of a chat. Its questions are answered by lines, like everything else, so that
//! an interrupt and a steer get through while somebody thinks.

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll::Gate;
use plimsoll::permissions::{Answer, Question};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

use crate::approvals::Approvals;
use crate::ask::{self, Reply};

/// Questions that wait for the chat to take them, at most; further calls wait.
const WAITING: usize = 16;

/// Asks whoever chats.
pub(crate) struct Asks {
    questions: Sender<Asked>,
    approvals: Arc<Approvals>,
}

/// A question that waits for an answer. Where it is dropped, the answer is no.
pub(crate) struct Asked {
    pub(crate) question: Question,
    answer: oneshot::Sender<Reply>,
}

impl Asks {
    /// The gate, and what it asks.
    pub(crate) fn new(approvals: Arc<Approvals>) -> (Self, Receiver<Asked>) {
        let (questions, asked) = channel(WAITING);
        let gate = Self {
            questions,
            approvals,
        };
        (gate, asked)
    }
}

impl Asked {
    /// Answers it. False where nobody waits for that any more.
    pub(crate) fn answer(self, reply: Reply) -> bool {
        self.answer.send(reply).is_ok()
    }

    /// Whether somebody waits for the answer.
    pub(crate) fn is_open(&self) -> bool {
        !self.answer.is_closed()
    }
}

#[async_trait]
impl Gate for Asks {
    async fn decide(&self, question: &Question) -> Answer {
        let name = &question.call.name;
        if self.approvals.allow(question) {
            return Answer::Allow;
        }
        let (answer, reply) = oneshot::channel();
        let asked = Asked {
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
