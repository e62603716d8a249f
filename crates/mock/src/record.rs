//! [`RecordedRequest`]: a received request. A server keeps a limited list of them for tests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::rules::Fault;
use plimsoll_context::Tokens;
use serde_json::Value;

/// The maximum number of recorded requests; the oldest are dropped.
pub const MAX_RECORDED: usize = 10_000;
/// The maximum size of recorded bodies and headers, in bytes: some hundred long histories. Beyond
/// it, the oldest requests are dropped.
pub const MAX_RECORDED_BYTES: usize = 256 * 1024 * 1024;

/// A request as received.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// The path.
    pub path: String,
    /// The headers, including keys, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The parsed body; null if it was not JSON.
    pub body: Value,
    /// The received bytes of the body.
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
    kept: VecDeque<RecordedRequest>,
    /// The size of all bodies and headers, and its maximum.
    bytes: usize,
    most: usize,
    /// The number of all requests, with or without a body.
    so_far: u64,
    tally: RequestTotals,
}

impl Record {
    pub(crate) fn new() -> Self {
        Self {
            kept: VecDeque::new(),
            bytes: 0,
            most: MAX_RECORDED_BYTES,
            so_far: 0,
            tally: RequestTotals::default(),
        }
    }

    /// Records a request and returns its number, from 1.
    pub(crate) fn push(&mut self, one: RecordedRequest) -> u64 {
        self.so_far += 1;
        if one.bytes > 0 {
            self.tally.asked += 1;
            self.tally.refused += u64::from(one.status != 200);
        }
        self.bytes += one.size();
        self.kept.push_back(one);
        while self.kept.len() > MAX_RECORDED || self.bytes > self.most {
            let oldest = self.kept.pop_front();
            self.bytes -= oldest.map_or(self.bytes, |oldest| oldest.size());
        }
        self.so_far
    }

    pub(crate) fn all(&self) -> Vec<RecordedRequest> {
        self.kept.iter().cloned().collect()
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

    fn sizes(record: &Record) -> Vec<usize> {
        record.all().iter().map(|one| one.bytes).collect()
    }

    #[test]
    fn the_oldest_go_beyond_the_bytes() {
        let mut record = Record::new();
        record.most = 100;
        for (number, bytes) in [(1, 40), (2, 41), (3, 42)] {
            assert_eq!(record.push(one(200, bytes)), number);
        }
        assert_eq!(sizes(&record), [41, 42]);
        record.push(one(400, 98));
        assert_eq!(sizes(&record), [98]);
        record.push(one(200, 500));
        assert_eq!(sizes(&record), [0; 0], "one that is too large alone");
        record.push(one(200, 1));
        assert_eq!(sizes(&record), [1]);
        let tally = RequestTotals {
            asked: 6,
            refused: 1,
        };
        assert_eq!(record.tally(), tally);
    }

    #[test]
    fn the_oldest_go_beyond_the_number() {
        let mut record = Record::new();
        for _ in 0..MAX_RECORDED + 5 {
            record.push(one(500, 40));
        }
        assert_eq!(record.kept.len(), MAX_RECORDED);
        assert_eq!(record.bytes, 42 * MAX_RECORDED);
        assert_eq!(record.tally().refused, MAX_RECORDED as u64 + 5);
    }
}
