//! Messages to runs on other machines, and questions from them: rows that the operator of these
//! runs reads and answers. The session's log tells whether a message was delivered.

use plimsoll_agent::{Answer, Question};
use plimsoll_context::Bytes;
use plimsoll_core::{SessionId, StoreError};
use serde::{Deserialize, Serialize};

use super::write::text;
use super::{PostgresStore, fault};
use crate::columns::{from_column, to_column};

/// Maximum number of messages of one run. Further ones are refused.
pub const MAX_RUN_MESSAGES: u64 = 1_000;
/// Maximum size of the text of one message.
pub const MAX_RUN_MESSAGE: Bytes = Bytes(1024 * 1024);
/// Messages read at once.
const READ: u64 = 64;
/// Open questions read at once.
const MAX_QUESTIONS: u64 = 100;

/// A message to a run from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMessage {
    /// The sender's id for the message. A message with the same id is delivered once, however often
    /// it is sent.
    pub id: String,
    /// The purpose of the message.
    pub kind: RunMessageKind,
    /// The text; empty for an interrupt.
    #[serde(default)]
    pub text: String,
}

/// The purpose of a message to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMessageKind {
    /// Read before the next model call.
    Steer,
    /// Read after the run has produced its answer.
    FollowUp,
    /// Ends the run.
    Interrupt,
}

/// A tool call that waits for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Identifies the call.
    pub key: String,
    /// The name of the tool.
    pub tool: String,
    /// The arguments, as JSON.
    pub arguments: String,
    /// Whether the call would change a file that programs run or agents obey without asking.
    pub is_protected: bool,
}

/// The progress of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The number of entries in its log.
    pub entries: u64,
    /// The number of its calls, and of calls of agents that it has called, that wait for approval.
    /// At most 100 are counted.
    pub questions: usize,
}

impl RunMessageKind {
    fn word(self) -> &'static str {
        match self {
            Self::Steer => "steer",
            Self::FollowUp => "follow_up",
            Self::Interrupt => "interrupt",
        }
    }

    fn of(word: &str) -> Option<Self> {
        let all = [Self::Steer, Self::FollowUp, Self::Interrupt];
        all.into_iter().find(|kind| kind.word() == word)
    }
}

impl PostgresStore {
    /// Stores a message for the run of a request until that run has ended. A message with the same
    /// id is stored once.
    ///
    /// # Errors
    /// If the message is too long, if the run has [`MAX_RUN_MESSAGES`] already, or if it cannot be
    /// written.
    pub async fn post(
        &self,
        session: &SessionId,
        run: &str,
        message: &RunMessage,
    ) -> Result<(), StoreError> {
        let refused = |why: String| StoreError::Io {
            path: format!("session {session}"),
            why,
        };
        if message.text.len() as u64 > MAX_RUN_MESSAGE.0 {
            let most = MAX_RUN_MESSAGE.0;
            return Err(refused(format!(
                "the message is longer than {most} bytes; put it into a file that the agent can read"
            )));
        }
        let fault = fault(&self.place);
        let posted = sqlx::query(
            "INSERT INTO messages (session, run, id, kind, text) SELECT $1, $2, $3, $4, $5
             WHERE (SELECT count(*) FROM messages WHERE session = $1 AND run = $2) < $6
             ON CONFLICT DO NOTHING",
        )
        .bind(session.as_str())
        .bind(text(run))
        .bind(text(&message.id))
        .bind(message.kind.word())
        .bind(text(&message.text))
        .bind(to_column(MAX_RUN_MESSAGES))
        .execute(&self.pool)
        .await
        .map_err(&fault)?;
        if posted.rows_affected() > 0 {
            return Ok(());
        }
        let is_known: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM messages WHERE session = $1 AND run = $2 AND id = $3)",
        )
        .bind(session.as_str())
        .bind(text(run))
        .bind(text(&message.id))
        .fetch_one(&self.pool)
        .await
        .map_err(&fault)?;
        if is_known {
            Ok(())
        } else {
            Err(refused(format!(
                "its run was sent {MAX_RUN_MESSAGES} messages already; wait until it has ended"
            )))
        }
    }

    /// Returns messages for the run of a request after row `after`, oldest first, each with its
    /// row. Returns a limited number per call.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn messages(
        &self,
        session: &SessionId,
        run: &str,
        after: i64,
    ) -> Result<Vec<(i64, RunMessage)>, StoreError> {
        let fault = fault(&self.place);
        let rows: Vec<(i64, String, String, String)> = sqlx::query_as(
            "SELECT row, id, kind, text FROM messages
             WHERE session = $1 AND run = $2 AND row > $3 ORDER BY row LIMIT $4",
        )
        .bind(session.as_str())
        .bind(text(run))
        .bind(after)
        .bind(to_column(READ))
        .fetch_all(&self.pool)
        .await
        .map_err(&fault)?;
        let messages = rows.into_iter().map(|(row, id, kind, text)| {
            let kind = RunMessageKind::of(&kind).ok_or(sqlx::Error::RowNotFound);
            let kind = kind.map_err(&fault)?;
            Ok((row, RunMessage { id, kind, text }))
        });
        messages.collect()
    }

    /// Returns the row of the newest message of all runs, or 0 if there is none. The cost does not
    /// depend on the number of runs, so a worker need not query the messages of each.
    ///
    /// A message may be written later than one with a higher row. Therefore look for messages from
    /// time to time even if this value has not changed.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn newest_message(&self) -> Result<i64, StoreError> {
        sqlx::query_scalar("SELECT coalesce(max(row), 0) FROM messages")
            .fetch_one(&self.pool)
            .await
            .map_err(fault(&self.place))
    }

    /// Returns the progress of a session. This is a cheap query.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn progress(&self, session: &SessionId) -> Result<Progress, StoreError> {
        let (entries, questions): (Option<i64>, i64) = sqlx::query_as(
            "SELECT (SELECT entries FROM sessions WHERE id = $1) AS entries,
                    (SELECT count(*) FROM (
                       SELECT 1 FROM questions
                       WHERE answer IS NULL AND (session = $1 OR starts_with(session, $1 || '.'))
                       LIMIT $2) AS asked) AS questions",
        )
        .bind(session.as_str())
        .bind(to_column(MAX_QUESTIONS))
        .fetch_one(&self.pool)
        .await
        .map_err(fault(&self.place))?;
        Ok(Progress {
            entries: entries.map_or(0, from_column),
            questions: usize::try_from(questions).unwrap_or(usize::MAX),
        })
    }

    /// Asks whether a call may run. Returns the answer if there is one. Asking again adds nothing.
    ///
    /// # Errors
    /// If the question cannot be written.
    pub async fn ask(&self, question: &Question) -> Result<Option<Answer>, StoreError> {
        let key = question.key.to_string();
        sqlx::query(
            "INSERT INTO questions (key, session, tool, arguments, protected)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
        )
        .bind(&key)
        .bind(&*question.key.session)
        .bind(text(&question.call.name))
        .bind(text(&question.call.arguments))
        .bind(question.is_protected)
        .execute(&self.pool)
        .await
        .map_err(fault(&self.place))?;
        self.answer_to(&key).await
    }

    /// Returns the answer to a question, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn answer_to(&self, key: &str) -> Result<Option<Answer>, StoreError> {
        let answer: Option<Option<String>> =
            sqlx::query_scalar("SELECT answer FROM questions WHERE key = $1")
                .bind(key)
                .fetch_optional(&self.pool)
                .await
                .map_err(fault(&self.place))?;
        let answer = answer.flatten();
        Ok(answer.and_then(|json| serde_json::from_str(&json).ok()))
    }

    /// Answers a question of a session or of an agent that it has called. Only the first answer
    /// counts. Returns `false` if there is no such question.
    ///
    /// # Errors
    /// If the answer cannot be written.
    pub async fn answer(
        &self,
        session: &SessionId,
        key: &str,
        answer: &Answer,
    ) -> Result<bool, StoreError> {
        let fault = fault(&self.place);
        let json = serde_json::to_string(answer).map_err(|error| StoreError::Io {
            path: self.place.to_string(),
            why: error.to_string(),
        })?;
        let answered = sqlx::query(
            "UPDATE questions SET answer = coalesce(answer, $3)
             WHERE key = $2 AND (session = $1 OR starts_with(session, $1 || '.'))",
        )
        .bind(session.as_str())
        .bind(key)
        .bind(text(&json))
        .execute(&self.pool)
        .await
        .map_err(&fault)?;
        Ok(answered.rows_affected() > 0)
    }

    /// Returns the unanswered questions of a session and of agents that it has called.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn questions(&self, session: &SessionId) -> Result<Vec<OpenQuestion>, StoreError> {
        let rows: Vec<(String, String, String, bool)> = sqlx::query_as(
            "SELECT key, tool, arguments, protected FROM questions
             WHERE answer IS NULL AND (session = $1 OR starts_with(session, $1 || '.'))
             ORDER BY key LIMIT $2",
        )
        .bind(session.as_str())
        .bind(to_column(MAX_QUESTIONS))
        .fetch_all(&self.pool)
        .await
        .map_err(fault(&self.place))?;
        let questions = rows.into_iter();
        let questions = questions.map(|(key, tool, arguments, is_protected)| OpenQuestion {
            key,
            tool,
            arguments,
            is_protected,
        });
        Ok(questions.collect())
    }

    /// Removes the messages for a run that has ended, and the questions of its session.
    ///
    /// # Errors
    /// If they cannot be removed.
    pub async fn forget_run(&self, session: &SessionId, run: &str) -> Result<(), StoreError> {
        let fault = fault(&self.place);
        sqlx::query("DELETE FROM messages WHERE session = $1 AND run = $2")
            .bind(session.as_str())
            .bind(text(run))
            .execute(&self.pool)
            .await
            .map_err(&fault)?;
        sqlx::query("DELETE FROM questions WHERE session = $1 OR starts_with(session, $1 || '.')")
            .bind(session.as_str())
            .execute(&self.pool)
            .await
            .map_err(&fault)?;
        Ok(())
    }
}
