//! [`HostPins`]: pins that the host has set between two runs. Undoing a run must not lose them.
//! Pins set during a run are undone with it.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_agent::{Entry, Event};
use plimsoll_context::{Message, PinnedPart, Seq};

use crate::error::Error;
use crate::session::Session;

/// Pins that the host has set between runs and not removed.
#[derive(Debug, Default)]
pub(crate) struct HostPins {
    /// Pinned rules, as the host has written them.
    rules: Vec<Message>,
    /// Pinned items, and the pinned part of each.
    items: BTreeMap<Seq, PinnedPart>,
}

impl HostPins {
    /// Reads the pins from a log, if they are still `pinned`. After a crash during a run,
    /// everything before the end of the next run counts as part of the run.
    pub(crate) fn of<'a>(log: &[Entry], pinned: impl Iterator<Item = (Seq, &'a Message)>) -> Self {
        let mut running = false;
        let (mut added, mut items) = (Vec::new(), BTreeMap::new());
        for entry in log {
            match entry {
                Entry::RunStarted { .. } => running = true,
                Entry::RunEnded { .. } => running = false,
                Entry::Message { message, .. } if !running => added.push(&**message),
                Entry::Pinned { seq, pin } if !running => {
                    items.insert(*seq, pin.what);
                }
                _ => {}
            }
        }
        let pinned: Vec<(Seq, &Message)> = pinned.collect();
        let seqs: BTreeSet<Seq> = pinned.iter().map(|(seq, _)| *seq).collect();
        items.retain(|seq, _| seqs.contains(seq));
        let rules = pinned.into_iter().map(|(_, message)| message);
        let rules = rules.filter(|message| added.contains(message));
        Self {
            rules: rules.cloned().collect(),
            items,
        }
    }

    /// Restores missing pins: items that are still in the view, and all rules.
    pub(crate) async fn restore(self, session: &mut Session) -> Result<(), Error> {
        let left: BTreeSet<Seq> = session.pinned().map(|(seq, _)| seq).collect();
        let items = session.view().transcript().items().iter();
        let lost = items.filter_map(|item| Some((item.seq, *self.items.get(&item.seq)?)));
        let lost: Vec<(Seq, PinnedPart)> = lost.filter(|(seq, _)| !left.contains(seq)).collect();
        for (seq, what) in lost {
            let pinned = session.pin(seq, what).await;
            warn(session, pinned)?;
        }
        for message in &self.rules {
            if session.pinned().any(|(_, there)| there == message) {
                continue;
            }
            // The first line marks the text as a rule. Pinning adds it again.
            if let Message::Notice { text } = message
                && let Some((_, rule)) = text.split_once('\n')
            {
                let pinned = session.pin_text(rule).await.map(|_| ());
                warn(session, pinned)?;
            }
        }
        Ok(())
    }
}

/// Reports a pin that no longer fits as a warning; the undo still succeeds.
fn warn(session: &Session, pinned: Result<(), Error>) -> Result<(), Error> {
    match pinned {
        Err(Error::Pin(why)) => {
            session.parts.tell(Event::Warning {
                text: format!("a pin is lost: {why}"),
            });
            Ok(())
        }
        pinned => pinned,
    }
}
