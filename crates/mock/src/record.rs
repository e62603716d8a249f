//! [`RecordedRequest`]: a received request. A server keeps a limited list of them for tests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::rules::Fault;
use plimsoll_context::Tokens;
use serde_json::Value;

/// The maximum number of recorded requests; the oldest are dropped.
pub const MAX_RECORDED: usize = 10_000;
/// The maximum size of recorded bodies and headers, in bytes: some hundred long histories. Beyond
/// it, the oldest requests lose their bodies and headers.
pub const MAX_RECORDED_BYTES: usize = 256 * 1024 * 1024;

/// A request as received.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// The path.
    pub path: String,
    /// The headers, including keys, with names in lower case. Empty if they are not kept.
    pub headers: BTreeMap<String, String>,
    /// The parsed body; null if it was not JSON, or is not kept.
    pub body: Value,
    /// The received bytes of the body. Empty if they are not kept.
    pub raw: Arc<[u8]>,
    /// The size of the body in bytes.
    pub bytes: usize,
    /// The status of the answer.
    pub status: u16,
    /// The size of the request by the server's own count.
    pub tokens: Tokens,
    /// The broken rule for which the request was refused.
    pub fault: Option<Fault>,
}

/// The number of received requests, recorded or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestTotals {
    /// Requests with a body. Requests without one ask about the server itself.
    pub asked: u64,
    /// Requests with a body that were answered with a status other than 200.
    pub refused: u64,
}

/// The recorded requests.
#[derive(Debug)]
pub(crate) struct Record {
    kept: VecDeque<(RecordedRequest, usize)>,
    keeps_bodies: bool,
    /// The number of oldest requests that have lost their body and headers.
    outlines: usize,
    bytes: usize,
    most: usize,
    /// The number of all requests, with or without a body.
    so_far: u64,
    tally: RequestTotals,
}

impl Record {
    /// Creates an empty record, which keeps bodies and headers up to the size limits or not at all.
    pub(crate) fn new(keeps_bodies: bool) -> Self {
        Self {
            kept: VecDeque::new(),
            keeps_bodies,
            outlines: 0,
            bytes: 0,
            most: if keeps_bodies { MAX_RECORDED_BYTES } else { 0 },
            so_far: 0,
            tally: RequestTotals::default(),
        }
    }

    /// Records a request and returns its number, from 1.
    pub(crate) fn push(&mut self, mut one: RecordedRequest) -> u64 {
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
        if !self.keeps_bodies {
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

    pub(crate) fn all(&self) -> Vec<RecordedRequest> {
        self.kept.iter().map(|(one, _)| one.clone()).collect()
    }

    pub(crate) fn tally(&self) -> RequestTotals {
        self.tally
    }
}

impl RecordedRequest {
    fn size(&self) -> usize {
        let headers = self.headers.iter();
        let headers: usize = headers.map(|(name, value)| name.len() + value.len()).sum();
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

    fn one(status: u16, bytes: usize) -> RecordedRequest {
        RecordedRequest {
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
        let mut record = Record::new(true);
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
        let tally = RequestTotals {
            asked: 6,
            refused: 1,
        };
        assert_eq!(record.tally(), tally);
    }

    #[test]
    fn beyond_the_number_the_oldest_go() {
        let mut record = Record::new(true);
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
        let mut record = Record::new(false);
        record.push(one(200, 40));
        assert_eq!((whole(&record), record.bytes), (vec![false], 0));
    }
}
