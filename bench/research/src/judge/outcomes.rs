//! Measures whether a summary reports exactly the failed tool calls as failed: 200 results of the
//! recorded sessions, marked by a person who read each call with its result.
//!
//! The set contains more failures than sessions do, so that there are enough to count.
//!
//! `outcomes.tsv` contains the session, the index of the result's message and the mark, and no
//! text. `refused` is a call that a person refused or aborted. `unclear` is a result that two
//! readers would mark differently (a search that found nothing and ended with code 1, a script that
//! prints the error it was written to provoke); it is not counted. Marks are only changed if a
//! reader finds a mistake, never because a summary disagrees.

use std::collections::HashMap;

use plimsoll_context::{CallId, Message, Part, Tokens, ToolCall};

use super::cuts::half;
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

/// Prints the figures, and the wrongly reported calls of half *a*: those of the other half are only
/// counted.
pub(super) fn print(sessions: &[Session]) -> Result<(), Error> {
    let (found, wrong) = accuracy(sessions)?;
    let cell = |share: Share| format!("{} of {}", percent(share.part()), share.of);
    println!("\n### Failures, of 200 marked results\n");
    println!("| reported that failed | failed that are reported | false alarms |");
    println!("|--:|--:|--:|");
    println!(
        "| {} | {} | {} |",
        cell(found.precision),
        cell(found.recall),
        cell(found.false_alarms)
    );
    for line in wrong {
        println!("Reported wrongly: {line}");
    }
    Ok(())
}

/// Asks for a summary of each marked call alone. Returns the wrongly reported ones, too.
fn accuracy(sessions: &[Session]) -> Result<(ReportAccuracy, Vec<String>), Error> {
    let (as_failed, as_refused) = (pattern(FAILED)?, pattern(REFUSED)?);
    let by_id: HashMap<&str, &Session> = sessions
        .iter()
        .rev()
        .map(|one| (one.id.as_str(), one))
        .collect();
    let mut accuracy = ReportAccuracy::default();
    let mut wrong = Vec::new();
    for (id, index, mark) in marks() {
        let found = by_id.get(id).zip(index.parse().ok());
        let found = found.and_then(|(session, index)| pair(session, index));
        let Some((call, result)) = found else {
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
        if reported {
            accuracy.precision.count(failed);
        }
        if failed {
            accuracy.recall.count(reported);
        } else {
            accuracy.false_alarms.count(reported);
        }
        if reported != failed && half(id) == 'a' {
            wrong.push(format!("{id} {index}: {mark:?}"));
        }
    }
    Ok((accuracy, wrong))
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
        let (all, _) = accuracy(&sessions).unwrap();
        let percent = |share: Share| 100.0 * share.part().unwrap_or(1.0);
        assert_eq!(all.recall.of, 76);
        assert!(percent(all.precision) >= PRECISION);
        assert!(percent(all.recall) >= RECALL);
    }

    #[test]
    fn two_hundred_results_are_marked() {
        assert_eq!(marks().count(), 200);
    }
}
