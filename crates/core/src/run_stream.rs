//! [`RunStream`]: a run in progress as a stream of its events.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use plimsoll_agent::{Event, Input, SessionEvent, UserMessage};
use tokio::sync::mpsc::{self, Receiver};

use crate::error::{Error, lock};
use crate::loop_config::AgentLoopConfig;
use crate::output::AgentOutput;
use crate::remote::{Remote, checked};
use crate::session::Session;

/// Maximum number of events that wait for the reader of a [`RunStream`](crate::RunStream). While they
/// wait, further ones are dropped, except for the end of the run.
pub const MAX_WAITING_EVENTS: usize = 8_192;

/// A run in progress: a stream of its events, and after them its output.
///
/// It is created by [`Session::start`], and is also a [`Stream`]. The events are those of this run
/// only, in order, except that [`Event::AgentEnd`] is the last one, after all hooks. Events of
/// sub-agents are part of it as [`Event::SubAgent`].
///
/// Like every future, the run advances only while [`Self::next`] or [`Self::output`] is awaited. So
/// a slow reader slows the run, and its time limits continue to count. Only running tools and
/// sub-agents go on meanwhile. Their events wait, up to [`MAX_WAITING_EVENTS`](crate::MAX_WAITING_EVENTS); see [`Self::dropped`].
///
/// Dropping the stream interrupts the run; the session can be continued. To steer or interrupt the run
/// while it works, use [`Self::remote`].
#[must_use = "a run does nothing unless its events or its output are awaited"]
pub struct RunStream<'s> {
    run: BoxFuture<'s, Result<AgentOutput, Error>>,
    output: Option<Result<AgentOutput, Error>>,
    remote: Remote,
    events: Receiver<Event>,
    /// The end of the run, which comes last and is never dropped.
    end: Arc<Mutex<Option<Event>>>,
    dropped: Arc<AtomicU64>,
}

impl Session {
    /// Starts a run and returns a stream of its events, which also returns its output.
    ///
    /// The run begins when the stream is first awaited. Dropping the stream interrupts it, as
    /// dropping the future of [`Self::run`] does.
    ///
    /// ```
    /// use plimsoll_agent::Event;
    /// use plimsoll_context::Delta;
    /// use plimsoll_core::Agent;
    /// # use plimsoll_core::testing::{ScriptedProvider, Turn};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), plimsoll_core::Error> {
    /// # let provider = ScriptedProvider::new([Turn::say("Land!")]);
    /// let agent = Agent::builder(provider).build()?;
    /// let mut session = agent.session(plimsoll_core::new_session_id()).await?;
    /// let mut run = session.start("What do you see?");
    /// while let Some(event) = run.next().await {
    ///     if let Event::Delta(Delta::Text { text }) = event {
    ///         print!("{text}");
    ///     }
    /// }
    /// assert_eq!(run.output().await?.text, "Land!");
    /// # Ok(())
    /// # }
    /// ```
    pub fn start(&mut self, task: impl Into<UserMessage>) -> RunStream<'_> {
        self.start_with(task, AgentLoopConfig::default())
    }

    /// Starts a run with settings of its own, like [`agent_loop`](crate::agent_loop). Settings that
    /// are not set are those of the agent.
    pub fn start_with(
        &mut self,
        task: impl Into<UserMessage>,
        config: AgentLoopConfig,
    ) -> RunStream<'_> {
        let input = checked(task).map(Input::User);
        let (sender, events) = mpsc::channel(MAX_WAITING_EVENTS);
        let (end, dropped) = (Arc::new(Mutex::new(None)), Arc::new(AtomicU64::default()));
        let (ended, lost) = (Arc::clone(&end), Arc::clone(&dropped));
        let sink = move |seen: &SessionEvent| {
            let event = seen.event.clone();
            if matches!(event, Event::AgentEnd { .. }) {
                *lock(&ended) = Some(event);
            } else if sender.try_send(event).is_err() {
                lost.fetch_add(1, Ordering::Relaxed);
            }
        };
        let remote = self.remote();
        let run = async move { self.with(&config, input?, Some(Arc::new(sink))).await };
        RunStream {
            run: Box::pin(run),
            output: None,
            remote,
            events,
            end,
            dropped,
        }
    }
}

impl RunStream<'_> {
    /// Returns the next event, or `None` after the end of the run.
    ///
    /// If the future is dropped, no event is lost, and a later call continues the run.
    pub async fn next(&mut self) -> Option<Event> {
        if self.output.is_none() {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return Some(event),
                output = &mut self.run => self.output = Some(output),
            }
        }
        // The channel may still be open, because tools that were given up hold the other end.
        let left = self.events.try_recv().ok();
        left.or_else(|| lock(&self.end).take())
    }

    /// Runs to the end and returns the output. Events that were not read are dropped.
    ///
    /// # Errors
    /// If the task is empty, the configuration is faulty, the log cannot be written, or the model
    /// cannot be called ([`Error::Failed`]).
    pub async fn output(self) -> Result<AgentOutput, Error> {
        let Self {
            run,
            output,
            events,
            ..
        } = self;
        drop(events);
        match output {
            Some(output) => output,
            None => run.await,
        }
    }

    /// Returns a remote that steers or interrupts the run. It has an effect from the first event on.
    #[must_use]
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Returns the number of events that were dropped because [`MAX_WAITING_EVENTS`](crate::MAX_WAITING_EVENTS) others were
    /// waiting. The end of the run is never dropped, and the output is complete in any case.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Stream for RunStream<'_> {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        // A future of `next` holds nothing that a new one lacks.
        std::pin::pin!(self.get_mut().next()).poll(cx)
    }
}

impl fmt::Debug for RunStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream")
            .field("has_ended", &self.output.is_some())
            .finish_non_exhaustive()
    }
}
