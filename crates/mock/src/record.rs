//! [`Recorded`]: a request as it came in, and the list of those that a server keeps to be looked at,
//! which has bounds. Not what they were answered with.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use plimsoll_context::Tokens;
use plimsoll_judge::Fault;
use serde_json::Value;

/// Requests that are kept to look at, at most; of more, the newest.
pub const MAX_RECORDED: usize = 10_000;
/// Bytes of their bodies and headers that are kept, at most: some hundred long histories. Beyond
/// that the oldest have neither any more.
pub const MAX_RECORDED_BYTES: usize = 256 * 1024 * 1024;

/// A request as it came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its path.
    pub path: String,
    /// Its headers, keys among them; names are in lower case. None where they are not kept.
    pub headers: BTreeMap<String, String>,
    /// Its body; null where it was no JSON, or is not kept.
    pub body: Value,
    /// Its body as it came in, byte for byte. Empty if it is not kept.
    pub raw: Arc<[u8]>,
    /// How many bytes its body had.
    pub bytes: usize,
    /// The status of the answer.
    pub status: u16,
    /// What it weighs by the server's own count.
    pub tokens: Tokens,
    /// The rule that it broke, and for which it was refused.
    pub fault: Option<Fault>,
}

/// How many there were, kept or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests with a body: those without ask about the server itself.
    pub asked: u64,
    /// Those of them with another answer than 200.
    pub refused: u64,
}

/// What is kept of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All of it, as far as the bounds let it.
    #[default]
    Whole,
    /// All but its body and its headers.
    Outline,
}

/// The requests that are kept.
#[derive(Debug)]
pub(crate) struct Record {
    kept: VecDeque<(Recorded, usize)>,
    keep: Keep,
    /// How many of the oldest are kept in outline only.
    outlines: usize,
    bytes: usize,
    most: usize,
    /// All there were, with a body or without.
    so_far: u64,
    tally: Tally,
}

impl Record {
    pub(crate) fn new(keep: Keep) -> Self {
        Self {
            kept: VecDeque::new(),
            keep,
            outlines: 0,
            bytes: 0,
            most: match keep {
                Keep::Whole => MAX_RECORDED_BYTES,
                Keep::Outline => 0,
            },
            so_far: 0,
            tally: Tally::default(),
        }
    }

    /// Keeps one more; says its number, from 1.
    pub(crate) fn push(&mut self, mut one: Recorded) -> u64 {
        self.so_far += 1;
        if one.bytes > 0 {
            self.tally.asked += 1;
            self.tally.refused += u64::from(one.status != 200);
        }
        if self.kept.len() == MAX_RECORDED
            && let Some((_, size)) = self.kept.pop_front()
        {
            self.bytes -= size;
            self.outlines = self.outlines.saturating_sub(1);
        }
        if self.keep == Keep::Outline {
            one.outline();
        }
        let size = one.size();
        self.bytes += size;
        self.kept.push_back((one, size));
        while self.bytes > self.most
            && let Some((oldest, size)) = self.kept.get_mut(self.outlines)
        {
            oldest.outline();
            self.bytes -= std::mem::take(size);
            self.outlines += 1;
        }
        self.so_far
    }

    pub(crate) fn all(&self) -> Vec<Recorded> {
        self.kept.iter().map(|(one, _)| one.clone()).collect()
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }
}

impl Recorded {
    fn size(&self) -> usize {
        let headers = self.headers.iter();
        let headers: usize = headers.map(|(name, given)| name.len() + given.len()).sum();
        match self.body {
            Value::Null => headers,
            _ => headers + self.bytes,
        }
    }

    fn outline(&mut self) {
        self.body = Value::Null;
        self.raw = Arc::default();
        self.headers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(status: u16, bytes: usize) -> Recorded {
        Recorded {
            path: "/p".into(),
            headers: BTreeMap::from([("a".into(), "b".into())]),
            body: json!({"n": bytes}),
            raw: Arc::default(),
            bytes,
            status,
            tokens: Tokens::ZERO,
            fault: None,
        }
    }

    fn whole(record: &Record) -> Vec<bool> {
        let all = record.all().into_iter();
        all.map(|one| !one.body.is_null() && !one.headers.is_empty())
            .collect()
    }

    #[test]
    fn beyond_the_bytes_the_oldest_have_no_body() {
        let mut record = Record::new(Keep::Whole);
        record.most = 100;
        for (number, bytes) in [(1, 40), (2, 40), (3, 40)] {
            assert_eq!(record.push(one(200, bytes)), number);
        }
        assert_eq!(whole(&record), [false, true, true]);
        assert_eq!(record.all()[0].bytes, 40, "that there was one is known");
        record.push(one(400, 98));
        assert_eq!(whole(&record), [false, false, false, true]);
        record.push(one(200, 500));
        assert_eq!(whole(&record), [false; 5], "one that is too large alone");
        record.push(one(200, 1));
        assert_eq!(whole(&record).last(), Some(&true));
        let tally = Tally {
            asked: 6,
            refused: 1,
        };
        assert_eq!(record.tally(), tally);
    }

    #[test]
    fn beyond_the_number_the_oldest_go() {
        let mut record = Record::new(Keep::Whole);
        record.most = 42 * 3;
        for _ in 0..MAX_RECORDED + 5 {
            record.push(one(500, 40));
        }
        assert_eq!(record.kept.len(), MAX_RECORDED);
        assert_eq!(record.bytes, 42 * 3);
        let whole = whole(&record);
        assert_eq!(whole.iter().filter(|whole| **whole).count(), 3);
        assert_eq!(whole.last(), Some(&true));
        assert_eq!(record.tally().refused, MAX_RECORDED as u64 + 5);
    }

    #[test]
    fn an_outline_has_no_body() {
        let mut record = Record::new(Keep::Outline);
        record.push(one(200, 40));
        assert_eq!((whole(&record), record.bytes), (vec![false], 0));
    }
}
