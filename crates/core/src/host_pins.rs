//! [`HostPins`]: what a host has pinned between two runs, so that undoing a run does not lose it. Not
//! what a run has pinned; that is undone with the run.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_agent::{Entry, Event};
use plimsoll_context::{Message, Pinned, Seq};

use crate::error::Error;
use crate::session::Session;

/// What the host has pinned between runs and has not taken off.
#[derive(Debug, Default)]
pub(crate) struct HostPins {
    /// Rules, as they were said.
    said: Vec<Message>,
    /// Items, and what of them.
    items: BTreeMap<Seq, Pinned>,
}

impl HostPins {
    /// Those of a log, as far as they are `pinned` still. Where a crash has ended a run, all until the
    /// next run's end counts as that run's.
    pub(crate) fn of<'a>(log: &[Entry], pinned: impl Iterator<Item = (Seq, &'a Message)>) -> Self {
        let mut running = false;
        let (mut said, mut items) = (Vec::new(), BTreeMap::new());
        for entry in log {
            match entry {
                Entry::Started { .. } => running = true,
                Entry::Ended { .. } => running = false,
                Entry::Said { message, .. } if !running => said.push(&**message),
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
        let rules = rules.filter(|message| said.contains(message));
        Self {
            said: rules.cloned().collect(),
            items,
        }
    }

    /// Pins again what is not pinned any more: an item where it is still in the view, a rule in any case.
    pub(crate) async fn restore(self, session: &mut Session) -> Result<(), Error> {
        let left: BTreeSet<Seq> = session.pinned().map(|(seq, _)| seq).collect();
        let items = session.view().transcript().items().iter();
        let lost = items.filter_map(|item| Some((item.seq, *self.items.get(&item.seq)?)));
        let lost: Vec<(Seq, Pinned)> = lost.filter(|(seq, _)| !left.contains(seq)).collect();
        for (seq, what) in lost {
            let pinned = session.pin(seq, what).await;
            warn(session, pinned)?;
        }
        for message in &self.said {
            if session.pinned().any(|(_, there)| there == message) {
                continue;
            }
            // The first line says that it is a rule, and is said anew.
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

/// A pin that there is no room for any more undoes nothing.
fn warn(session: &Session, pinned: Result<(), Error>) -> Result<(), Error> {
    match pinned {
        Err(Error::Pin(why)) => {
            session.parts.tell(&Event::Warning {
                text: format!("a pin is lost: {why}"),
            });
            Ok(())
        }
        pinned => pinned,
    }
}
