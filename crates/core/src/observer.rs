//! [`Observer`]: receives events live, but cannot influence the run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_agent::{Event, SessionEvent};

use crate::error::{lock, panic_message};

/// Maximum number of events that wait for an observer. While they wait, further ones are dropped
/// with a warning.
pub const MAX_OBSERVER_BACKLOG: usize = 10_000;
/// The longest time that a run waits for observers that have not seen all events, at its end and before
/// it asks a gate.
const PATIENCE: Duration = Duration::from_secs(1);

/// Receives every event of all sessions of an agent, as it happens.
///
/// It is called on a thread of its own, one event after another, so it delays no run: up to
/// [`MAX_OBSERVER_BACKLOG`] events wait for it, and a run waits for it at most a second at its end, and
/// before a [`Gate`](crate::Gate) is asked.
/// An observer that panics receives no more events, and a warning is sent to the others.
/// To follow a single run, use [`Session::start`](crate::Session::start) instead.
///
/// ```
/// use plimsoll_agent::SessionEvent;
/// use plimsoll_core::Agent;
/// use plimsoll_core::testing::ScriptedProvider;
///
/// let agent = Agent::builder(ScriptedProvider::new([]))
///     .observer(|seen: &SessionEvent| println!("{} {}: {:?}", seen.session, seen.run, seen.event))
///     .build()?;
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
pub trait Observer: Send + Sync {
    /// Handles one event.
    fn see(&self, seen: &SessionEvent);
}

impl<F: Fn(&SessionEvent) + Send + Sync> Observer for F {
    fn see(&self, seen: &SessionEvent) {
        self(seen);
    }
}

/// The observers of an agent, and the session whose events they receive. Clones share the threads.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    /// Observers of the host.
    threads: Vec<Arc<ObserverThread>>,
    /// Observers of our own, which never block.
    direct: Vec<Arc<dyn Observer>>,
    source: Arc<EventSource>,
}

/// What is sent to the thread of an observer.
enum Delivery {
    Event(Arc<SessionEvent>),
    /// Answered when all events before it have been seen.
    Flush(SyncSender<()>),
}

/// The thread that calls one observer. It ends with the last agent and session that send to it.
struct ObserverThread {
    events: SyncSender<Delivery>,
    /// Whether it lost events already.
    lossy: AtomicBool,
    /// Why it receives no more events, until that is reported.
    fault: Arc<Mutex<Option<String>>>,
}

/// The session that events come from.
#[derive(Default)]
struct EventSource {
    session: Arc<str>,
    run: AtomicU64,
}

impl ObserverThread {
    fn spawn(observer: Arc<dyn Observer>) -> Self {
        let (events, deliveries) = mpsc::sync_channel(MAX_OBSERVER_BACKLOG);
        let fault = Arc::<Mutex<Option<String>>>::default();
        let told = Arc::clone(&fault);
        let work = move || {
            let work = || deliver(&deliveries, &*observer);
            let panicked = catch_unwind(AssertUnwindSafe(work));
            if let Err(panic) = panicked {
                *lock(&told) = Some(format!(
                    "an observer panicked and receives no more events: {}",
                    panic_message(&*panic)
                ));
            }
        };
        let thread = thread::Builder::new().name("plimsoll-observer".to_owned());
        if let Err(error) = thread.spawn(work) {
            *lock(&fault) = Some(format!(
                "an observer has no thread and sees nothing: {error}"
            ));
        }
        Self {
            events,
            lossy: AtomicBool::new(false),
            fault,
        }
    }

    /// Sends an event without waiting. Returns a warning for the other observers, if there is one.
    fn send(&self, seen: &Arc<SessionEvent>) -> Option<String> {
        let full = match self.events.try_send(Delivery::Event(Arc::clone(seen))) {
            Ok(()) => false,
            Err(TrySendError::Full(_)) => !self.lossy.swap(true, Ordering::Relaxed),
            // Its fault says why.
            Err(TrySendError::Disconnected(_)) => false,
        };
        let slow = || {
            format!("an observer is {MAX_OBSERVER_BACKLOG} events behind and loses further ones")
        };
        lock(&self.fault).take().or_else(|| full.then(slow))
    }
}

/// Calls the observer until nobody sends to it any more, or it panics.
fn deliver(deliveries: &Receiver<Delivery>, observer: &dyn Observer) {
    for delivery in deliveries {
        match delivery {
            Delivery::Event(seen) => observer.see(&seen),
            Delivery::Flush(done) => {
                // Whoever asked may have given up.
                let _ = done.send(());
            }
        }
    }
}

impl Observers {
    /// Adds an observer of the host, with a thread of its own.
    pub(crate) fn push(&mut self, observer: Arc<dyn Observer>) {
        self.threads.push(Arc::new(ObserverThread::spawn(observer)));
    }

    /// Adds observers that never block.
    pub(crate) fn extend_direct(&mut self, observers: impl IntoIterator<Item = Arc<dyn Observer>>) {
        self.direct.extend(observers);
    }

    /// Returns the same observers for the events of a session with this number of runs.
    pub(crate) fn of_session(&self, session: &str, runs: u64) -> Self {
        Self {
            source: Arc::new(EventSource {
                session: session.into(),
                run: runs.into(),
            }),
            ..self.clone()
        }
    }

    /// Sets the number of the session's newest run.
    pub(crate) fn set_run(&self, run: u64) {
        self.source.run.store(run, Ordering::Relaxed);
    }

    /// Sends an event to all working observers. Never waits for one, and no panic of one ends a run.
    pub(crate) fn tell(&self, event: Event) {
        if self.threads.is_empty() && self.direct.is_empty() {
            return;
        }
        let seen = Arc::new(SessionEvent {
            session: Arc::clone(&self.source.session),
            run: self.source.run.load(Ordering::Relaxed),
            event,
        });
        for observer in &self.direct {
            observer.see(&seen);
        }
        let faults = self.threads.iter().filter_map(|thread| thread.send(&seen));
        let faults: Vec<_> = faults.collect();
        for text in faults {
            // Terminates, because each observer has at most two warnings.
            self.tell(Event::Warning { text });
        }
    }

    /// Waits until the observers have seen all events, at most [`PATIENCE`].
    pub(crate) async fn catch_up(&self) {
        let threads = self.threads.clone();
        if threads.is_empty() {
            return;
        }
        let wait = move || {
            let end = Instant::now() + PATIENCE;
            let flush = |thread: Arc<ObserverThread>| {
                let (done, flushed) = mpsc::sync_channel(1);
                // The queue of one that is slow may be full.
                let _ = thread.events.try_send(Delivery::Flush(done));
                flushed
            };
            let flushes: Vec<_> = threads.into_iter().map(flush).collect();
            for flushed in flushes {
                let left = end.saturating_duration_since(Instant::now());
                // One that panics is reported with the next event, one that is slow goes on.
                let _ = flushed.recv_timeout(left);
            }
        };
        // A thread of the runtime's own may not wait.
        let _ = tokio::task::spawn_blocking(wait).await;
        let faults = self
            .threads
            .iter()
            .filter_map(|thread| lock(&thread.fault).take());
        for text in faults.collect::<Vec<_>>() {
            self.tell(Event::Warning { text });
        }
    }
}
