//! [`Meter`]: the common pricing of all ways.
//!
//! The prefix that a request shares with its predecessor is read from the provider's cache; the
//! rest is written to it. If the recording has no times (λ = 0), cache entries never expire.

use plimsoll_context::{Message, PriceSheet, Tokens, Usage};

use crate::bill::Bill;
use crate::retention::{Probes, RetentionTracker};

/// The number and size of a sent message. Equal values mean the same message.
pub(crate) type SentMessage = (u64, Tokens);

/// Whether the view was compacted for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutStatus {
    Made,
    None,
}

/// Whether the provider's cache still holds the previous request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    Warm,
    Expired,
}

/// One request of a session.
#[derive(Debug)]
pub(crate) struct MeteredRequest {
    /// The sent messages.
    pub(crate) view: Vec<SentMessage>,
    /// Number of messages in the session so far.
    pub(crate) length: usize,
    /// Size of the recorded answer.
    pub(crate) answer: Tokens,
    pub(crate) cut: CutStatus,
    pub(crate) cache: Cache,
}

/// Reads the requests of one session and writes its bill.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    sheet: PriceSheet,
    limit: Tokens,
    before: Vec<SentMessage>,
    bill: Bill,
    retention: RetentionTracker<'a>,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(sheet: &PriceSheet, limit: Tokens, probes: &'a Probes) -> Self {
        Self {
            sheet: *sheet,
            limit,
            before: Vec::new(),
            bill: Bill::default(),
            retention: RetentionTracker::new(probes),
        }
    }

    /// Records the contents of a message in the view that is not an original.
    pub(crate) fn note_edited(&mut self, sent: SentMessage, message: &Message) {
        self.retention.note_edited(sent, message);
    }

    /// Adds a request and its recorded answer.
    pub(crate) fn request(&mut self, made: MeteredRequest) {
        let MeteredRequest {
            view: messages,
            answer,
            cut,
            ..
        } = made;
        self.retention.observe(&messages, made.length);
        let same = self.before.iter().zip(&messages);
        let same: Vec<_> = same.take_while(|(before, now)| before == now).collect();
        let is_prefix = same.len() == self.before.len();
        let common = match made.cache {
            Cache::Warm => same.iter().map(|((_, tokens), _)| *tokens).sum(),
            Cache::Expired => Tokens::ZERO,
        };
        let total = messages.iter().map(|(_, tokens)| *tokens).sum();
        self.before = messages;
        let bill = &mut self.bill;
        bill.prefix_breaks += u64::from(!is_prefix);
        bill.expired += u64::from(made.cache == Cache::Expired);
        bill.largest = bill.largest.max(total);
        if cut == CutStatus::Made {
            bill.plans += 1;
            bill.kept += total;
        }
        bill.unfit += u64::from(total > self.limit);
        bill.requests += 1;
        bill.answers += answer;
        bill.usage = bill.usage.combine(Usage {
            output: answer,
            ..billed(common, total, least(&self.sheet))
        });
    }

    /// Adds a separate call, such as a summary, that shares no prefix with the session's requests.
    pub(crate) fn aside(&mut self, input: Tokens, output: Tokens) {
        self.bill.usage = self.bill.usage.combine(Usage {
            input,
            output,
            ..Usage::default()
        });
    }

    /// Like [`Self::aside`], for a call that extends the last request.
    pub(crate) fn aside_cached(&mut self, input: Tokens, output: Tokens) {
        let before: Tokens = self.before.iter().map(|(_, tokens)| *tokens).sum();
        self.bill.usage = self.bill.usage.combine(Usage {
            output,
            ..billed(before, before + input, least(&self.sheet))
        });
    }

    /// Returns the bill.
    pub(crate) fn bill(self) -> Bill {
        Bill {
            money: self.bill.usage.estimated_cost(&self.sheet.rates),
            retention: self.retention.retention(),
            ..self.bill
        }
    }
}

/// Returns the minimum size that the provider caches, or zero if unknown.
pub(crate) fn least(sheet: &PriceSheet) -> Tokens {
    sheet.min_cacheable.unwrap_or(Tokens::ZERO)
}

/// Returns the billed usage of `total` input tokens, of which `common` were sent before.
pub(crate) fn billed(common: Tokens, total: Tokens, least: Tokens) -> Usage {
    if total < least {
        return Usage {
            input: total,
            ..Usage::default()
        };
    }
    let read = if common < least { Tokens::ZERO } else { common };
    Usage {
        cache_read: read,
        cache_write: total.minus(read),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(read: u64, write: u64, input: u64) -> Usage {
        Usage {
            input: Tokens(input),
            cache_read: Tokens(read),
            cache_write: Tokens(write),
            ..Usage::default()
        }
    }

    #[test]
    fn each_token_is_billed_as_what_it_was() {
        let table = [
            ((0, 500), usage(0, 0, 500)),
            ((400, 1_023), usage(0, 0, 1_023)),
            ((400, 1_024), usage(0, 1_024, 0)),
            ((1_023, 2_000), usage(0, 2_000, 0)),
            ((1_024, 2_000), usage(1_024, 976, 0)),
        ];
        for ((common, total), expected) in table {
            let found = billed(Tokens(common), Tokens(total), Tokens(1_024));
            assert_eq!(found, expected, "{common} of {total}");
        }
    }

    #[test]
    fn only_what_is_the_same_from_the_beginning_is_read() {
        let sheet = PriceSheet::of(plimsoll_context::Rates::FREE);
        let probes = Probes::default();
        let mut meter = Meter::new(&sheet, Tokens(100), &probes);
        let sent = |ids: &[u64]| ids.iter().map(|id| (*id, Tokens(10))).collect();
        let made = |view: Vec<SentMessage>, answer, cut| MeteredRequest {
            length: view.len(),
            view,
            answer: Tokens(answer),
            cut,
            cache: Cache::Warm,
        };
        meter.request(made(sent(&[1, 2, 3]), 5, CutStatus::None));
        meter.request(made(sent(&[1, 2, 3, 4]), 5, CutStatus::None));
        meter.request(made(sent(&[1, 3, 4, 5]), 5, CutStatus::Made));
        let last = vec![(1, Tokens(10)), (3, Tokens(9))];
        meter.request(made(last, 0, CutStatus::None));
        meter.aside(Tokens(7), Tokens(2));
        let bill = meter.bill();
        assert_eq!(bill.usage.cache_read, Tokens(30 + 10 + 10));
        assert_eq!(bill.usage.cache_write, Tokens(30 + 10 + 30 + 9));
        assert_eq!(
            (bill.usage.input, bill.usage.output),
            (Tokens(7), Tokens(17))
        );
        assert_eq!((bill.requests, bill.plans, bill.kept), (4, 1, Tokens(40)));
        assert_eq!((bill.answers, bill.unfit), (Tokens(15), 0));
        assert_eq!((bill.prefix_breaks, bill.largest), (2, Tokens(40)));
    }

    #[test]
    fn an_expired_cache_is_written_anew() {
        let sheet = PriceSheet::of(plimsoll_context::Rates::FREE);
        let probes = Probes::default();
        let mut meter = Meter::new(&sheet, Tokens(100), &probes);
        for cache in [Cache::Warm, Cache::Warm, Cache::Expired] {
            meter.request(MeteredRequest {
                view: vec![(1, Tokens(10))],
                length: 1,
                answer: Tokens(0),
                cut: CutStatus::None,
                cache,
            });
        }
        let bill = meter.bill();
        assert_eq!(bill.usage.cache_write, Tokens(20));
        assert_eq!((bill.expired, bill.prefix_breaks), (1, 0));
    }
}
