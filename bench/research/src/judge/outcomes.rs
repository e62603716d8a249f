//! Measures whether a summary reports exactly the failed tool calls as failed: 200 results of the
//! recorded sessions, marked by a person who read each call with its result.
//!
//! The set contains more failures than sessions do, so that there are enough to count. Each result
//! is therefore weighted by the frequency of its kind (source, error flag, words of trouble in the
//! text). This gives the precision that a reader of whole sessions experiences.
//!
//! `outcomes.tsv` contains the session, the index of the result's message and the mark, and no
//! text. `refused` is a call that a person refused or aborted. `unclear` is a result that two
//! readers would mark differently (a search that found nothing and ended with code 1, a script that
//! prints the error it was written to provoke); it is not counted. Marks are only changed if a
//! reader finds a mistake, never because a summary disagrees.

use std::collections::HashMap;

use plimsoll_context::{CallId, Message, Part, Tokens, ToolCall};
use regex::Regex;

use super::measure::{Share, pattern};
use super::sessions::Session;
use super::summary::Summary;
use super::{ours, percent};
use crate::error::Error;

/// One marked result per line: session, index of the message, mark.
const MARKS: &str = include_str!("outcomes.tsv");
/// Size of the summary of one call, in tokens: far more than needed.
const BUDGET: Tokens = Tokens(2_000);
/// The word by which a summary reports a failed call.
const FAILED: &str = r"\bfailed\b";
/// Words by which it may report that a person prevented the call.
const REFUSED: &str =
    r"\b(failed|refused|rejected|denied|declined|aborted|cancelled|interrupted)\b";

/// Words that suggest a failure.
const TROUBLE: &str =
    "(?i)error|fail|exception|traceback|not found|denied|reject|abort|panic|cannot|no such|invalid";

/// A reader's judgement of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Failed,
    Refused,
    Succeeded,
}

/// The accuracy of reported failures.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct ReportAccuracy {
    /// Calls reported as failed that did fail.
    precision: Share,
    /// Failed calls that are reported as failed.
    recall: Share,
    /// Successful calls that are reported as failed.
    false_alarms: Share,
}

/// The figures of both halves, and a line for each call that was reported wrongly.
#[derive(Debug, Default)]
struct Outcomes {
    /// The half that may be examined while `extract` is changed.
    open: ReportAccuracy,
    /// The half that is only counted.
    held_out: ReportAccuracy,
    wrong: Vec<String>,
    /// Weighted numbers of calls that are correctly reported as failed, and of all that are
    /// reported as failed.
    occurring: (f64, f64),
}

/// Source, error flag and words of trouble.
type Stratum = (String, bool, bool);

impl Outcomes {
    fn all(&self) -> ReportAccuracy {
        let mut all = self.open;
        all.precision.add(self.held_out.precision);
        all.recall.add(self.held_out.recall);
        all.false_alarms.add(self.held_out.false_alarms);
        all
    }

    /// Returns the precision, weighted by the frequency of each kind of result.
    fn precision_as_occurring(&self) -> Option<f64> {
        let (right, reported) = self.occurring;
        (reported > 0.0).then(|| right / reported)
    }
}

/// Prints the figures of both halves.
pub(super) fn print(sessions: &[Session]) -> Result<(), Error> {
    let outcomes = outcomes(sessions)?;
    println!("\n### Failures, of 200 marked results\n");
    println!("| half | reported that failed | failed that are reported | false alarms |");
    println!("|---|--:|--:|--:|");
    for (half, found) in [
        ("all", outcomes.all()),
        ("open", outcomes.open),
        ("held out", outcomes.held_out),
    ] {
        let cell = |share: Share| format!("{} of {}", percent(share.part()), share.of);
        println!(
            "| {half} | {} | {} | {} |",
            cell(found.precision),
            cell(found.recall),
            cell(found.false_alarms)
        );
    }
    println!(
        "\nWith each result as often as its kind occurs, {} of the reported did fail.",
        percent(outcomes.precision_as_occurring())
    );
    for line in &outcomes.wrong {
        println!("Reported wrongly: {line}");
    }
    Ok(())
}

/// Asks for a summary of each marked call alone.
fn outcomes(sessions: &[Session]) -> Result<Outcomes, Error> {
    let (as_failed, as_refused) = (pattern(FAILED)?, pattern(REFUSED)?);
    let trouble = pattern(TROUBLE)?;
    let mut by_id: HashMap<&str, &Session> = HashMap::new();
    let mut population: HashMap<Stratum, u32> = HashMap::new();
    for session in sessions {
        by_id.entry(&session.id).or_insert(session);
        for message in &session.messages {
            if let Some(stratum) = stratum(session, message, &trouble) {
                *population.entry(stratum).or_default() += 1;
            }
        }
    }
    let mut outcomes = Outcomes::default();
    let mut judged: Vec<(Stratum, bool, bool)> = Vec::new();
    for (id, index, mark) in marks() {
        let session = by_id.get(id);
        let found = session.zip(index.parse().ok());
        let found = found.and_then(|(session, index)| {
            let (call, result) = pair(session, index)?;
            Some((stratum(session, &result, &trouble)?, call, result))
        });
        let Some((stratum, call, result)) = found else {
            continue;
        };
        let messages = [
            Message::user("Please go on with the task."),
            Message::Assistant {
                parts: vec![Part::ToolCall(call.clone())],
            },
            result,
        ];
        let text = ours(&messages.iter().collect::<Vec<_>>(), BUDGET);
        let words = match mark {
            Mark::Refused => &as_refused,
            _ => &as_failed,
        };
        let reported = Summary::of(&text).reports_failure(&call, words);
        let failed = mark != Mark::Succeeded;
        let is_held_out = is_held_out(id, index);
        let half = if is_held_out {
            &mut outcomes.held_out
        } else {
            &mut outcomes.open
        };
        if reported {
            half.precision.count(failed);
        }
        if failed {
            half.recall.count(reported);
        } else {
            half.false_alarms.count(reported);
        }
        if reported != failed && !is_held_out {
            outcomes.wrong.push(format!("{id} {index}: {mark:?}"));
        }
        judged.push((stratum, failed, reported));
    }
    for (stratum, failed, reported) in &judged {
        let marked = judged.iter().filter(|other| other.0 == *stratum).count();
        let occurring = population.get(stratum).copied().unwrap_or_default();
        let weight = f64::from(occurring) / marked as f64;
        if *reported {
            outcomes.occurring.1 += weight;
            outcomes.occurring.0 += weight * f64::from(u8::from(*failed));
        }
    }
    Ok(outcomes)
}

/// Returns the marks that are clear: session, index of the message, mark.
fn marks() -> impl Iterator<Item = (&'static str, &'static str, Mark)> {
    MARKS.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        let (id, index) = (fields.next()?, fields.next()?);
        let mark = match fields.next()? {
            "failed" => Mark::Failed,
            "refused" => Mark::Refused,
            "succeeded" => Mark::Succeeded,
            _ => return None,
        };
        Some((id, index, mark))
    })
}

/// Returns the kind of a tool result; `None` for other messages.
fn stratum(session: &Session, message: &Message, trouble: &Regex) -> Option<Stratum> {
    let Message::ToolResult(result) = message else {
        return None;
    };
    let text = message.text();
    Some((
        session.source().to_owned(),
        result.is_error,
        trouble.is_match(&text),
    ))
}

/// Assigns half of the marks to the held-out half, by a hash of their place.
fn is_held_out(id: &str, index: &str) -> bool {
    let place = id.bytes().chain(index.bytes());
    let hash = place.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 33) & 1 == 1
}

/// Returns the result at `index` with its call.
fn pair(session: &Session, index: usize) -> Option<(ToolCall, Message)> {
    let Message::ToolResult(result) = session.messages.get(index)? else {
        return None;
    };
    let before = session.messages.get(..index)?;
    let mut calls = before.iter().rev().flat_map(|message| {
        // If a message has several calls with one id, the last one was answered.
        let calls: Vec<ToolCall> = message.calls().cloned().collect();
        calls.into_iter().rev()
    });
    let mut call = calls.find(|call| call.id == result.call)?;
    let mut result = result.clone();
    // Text-action agents give no ids, but a transcript needs them.
    if call.id.0.is_empty() {
        call.id = CallId("call_1".to_owned());
        result.call = call.id.clone();
    }
    Some((call, Message::ToolResult(result)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings::DATA;

    /// Minimum share of real failures among the reported ones, in percent.
    const PRECISION: f64 = 90.0;
    /// Minimum share of reported failures among the real ones, in percent.
    const RECALL: f64 = 80.0;

    #[test]
    fn failures_are_told_from_successes() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(DATA);
        let Some(sessions) = super::super::sessions::load(&folder).unwrap() else {
            println!("skipped: no ../shared/data/normalized");
            return;
        };
        let outcomes = outcomes(&sessions).unwrap();
        let percent = |share: Share| 100.0 * share.part().unwrap_or(1.0);
        let all = outcomes.all();
        assert_eq!(all.recall.of, 76);
        assert!(percent(all.precision) >= PRECISION);
        assert!(percent(all.recall) >= RECALL);
    }

    #[test]
    fn two_hundred_results_are_marked() {
        assert_eq!(marks().count(), 200);
        let held_out = marks().filter(|(id, index, _)| is_held_out(id, index));
        assert!((90..=110).contains(&held_out.count()));
    }
}
