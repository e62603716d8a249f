//! [`RunFollower`]: follows a run on another machine through its log.

use std::collections::HashSet;
use std::time::Duration;

use plimsoll::SessionEvent;
use plimsoll::durable::{EventsRequest, LogFollower, Restate, RestateError};
use plimsoll::machine::Outcome;
use plimsoll::store::OpenQuestion;

/// How long one request waits for news.
const WAIT: Duration = Duration::from_secs(10);
/// The pause before an unreachable server is asked again.
const PAUSE: Duration = Duration::from_millis(300);
/// Maximum number of consecutive failures to reach the server.
const TRIES: u32 = 20;

/// A followed run.
pub(super) struct RunFollower {
    server: Restate,
    session: String,
    after: u64,
    follower: LogFollower,
    /// The questions that were shown already.
    told: HashSet<String>,
    /// The number of open questions.
    open: usize,
    failures: u32,
}

/// New events and questions.
#[derive(Default)]
pub(super) struct News {
    pub(super) events: Vec<SessionEvent>,
    pub(super) questions: Vec<OpenQuestion>,
}

impl RunFollower {
    /// Follows the run of a request that begins after an entry of the session's log.
    pub(super) fn new(server: Restate, session: &str, request: &str, after: u64) -> Self {
        Self {
            server,
            session: session.to_owned(),
            after,
            follower: LogFollower::new(session, request),
            told: HashSet::new(),
            open: 0,
            failures: 0,
        }
    }

    /// Returns the outcome of the run after it has ended.
    pub(super) fn outcome(&self) -> Option<&Outcome> {
        self.follower.outcome()
    }

    /// Waits for news for at most some seconds. Retries if the server is temporarily unreachable.
    pub(super) async fn news(&mut self, wait: bool) -> Result<News, RestateError> {
        let wait_ms = if wait { WAIT.as_millis() as u64 } else { 0 };
        let request = EventsRequest {
            after: self.after,
            wait_ms,
            questions: self.open,
        };
        let reply = match self.server.events(&self.session, &request).await {
            Ok(reply) => reply,
            Err(error @ RestateError::Unreachable { .. }) => {
                self.failures += 1;
                if self.failures >= TRIES {
                    return Err(error);
                }
                tokio::time::sleep(PAUSE).await;
                return Ok(News::default());
            }
            Err(error) => return Err(error),
        };
        self.failures = 0;
        let mut news = News::default();
        for (number, entry) in &reply.entries {
            self.after = *number;
            news.events.extend(self.follower.see(entry));
        }
        self.open = reply.questions.len();
        let told = &mut self.told;
        let questions = reply.questions.into_iter();
        news.questions = questions
            .filter(|question| told.insert(question.key.clone()))
            .collect();
        Ok(news)
    }
}
