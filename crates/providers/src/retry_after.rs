//! Reads how long a provider asks to wait: from `Retry-After`, then its message, then its rate
//! limit headers. Whether to wait is decided elsewhere.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::HeaderMap;
use serde_json::Value;

/// The longest wait taken from the reset time of a limit. The reset time says when a limit is full
/// again, but the next request needs much less. Most limits are per minute.
pub const MAX_RESET_WAIT: Duration = Duration::from_secs(60);

/// Returns the wait before the next attempt, in milliseconds. [`u64::MAX`] if it does not fit.
pub(crate) fn retry_after_ms(headers: &HeaderMap, body: &str, now: SystemTime) -> Option<u64> {
    let wait = standard(headers, now).or_else(|| in_body(body, now))?;
    Some(millis(wait))
}

/// Like [`retry_after_ms`], after a rate limit was reached. Only then do the rate limit headers
/// count.
pub(crate) fn limit_retry_after_ms(
    headers: &HeaderMap,
    body: &str,
    now: SystemTime,
) -> Option<u64> {
    retry_after_ms(headers, body, now).or_else(|| reset(headers, now).map(millis))
}

fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

/// Reads `retry-after-ms`, then `Retry-After` in seconds or as a date.
fn standard(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let in_ms = number(headers, "retry-after-ms").and_then(|ms| seconds(ms / 1000.0));
    in_ms.or_else(|| {
        let text = text(headers, "retry-after")?;
        match numeral(text).and_then(seconds) {
            Some(wait) => Some(wait),
            None => {
                let date = httpdate::parse_http_date(text).ok()?;
                // Use the server's clock if it sends the time; the local clock may be wrong.
                let now = self::text(headers, "date")
                    .and_then(|date| httpdate::parse_http_date(date).ok())
                    .unwrap_or(now);
                Some(date.duration_since(now).unwrap_or_default())
            }
        }
    })
}

/// Returns the time until every exhausted limit is full again. OpenAI and Groq report requests and
/// tokens separately, others report one limit. A limit that is not exhausted says nothing about
/// this request.
fn reset(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let limits = [
        (
            "x-ratelimit-remaining-requests",
            "x-ratelimit-reset-requests",
        ),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
        ("x-ratelimit-remaining", "x-ratelimit-reset"),
        ("ratelimit-remaining", "ratelimit-reset"),
    ];
    let empty = limits
        .iter()
        .filter(|(left, _)| number(headers, left) == Some(0.0));
    let waits = empty.filter_map(|(_, reset)| moment(text(headers, reset)?, now));
    waits.max().map(|wait| wait.min(MAX_RESET_WAIT))
}

fn in_body(body: &str, now: SystemTime) -> Option<Duration> {
    let json = serde_json::from_str::<Value>(body).ok();
    // OpenRouter forwards the upstream's headers.
    let upstream = json
        .as_ref()
        .and_then(|json| json.pointer("/error/metadata/headers/X-RateLimit-Reset"))
        .and_then(|value| match value {
            Value::String(text) => moment(text, now),
            other => moment(&other.to_string(), now),
        });
    upstream.or_else(|| {
        // OpenAI, Groq and Azure; then Google.
        let marks = [
            "try again in ",
            "retry after ",
            "\"retryDelay\": \"",
            "\"retryDelay\":\"",
        ];
        marks.iter().find_map(|mark| {
            let (_, rest) = body.split_once(mark)?;
            duration(rest)
        })
    })
}

/// Parses a point in time or a wait: milliseconds or seconds since 1970, seconds, or `6m0s`.
fn moment(text: &str, now: SystemTime) -> Option<Duration> {
    let Some(number) = numeral(text.trim()) else {
        return duration(text);
    };
    let since_1970 = match number {
        ms if ms >= 1e12 => seconds(ms / 1000.0)?,
        s if s >= 1e9 => seconds(s)?,
        s => return seconds(s),
    };
    let then = UNIX_EPOCH.checked_add(since_1970)?;
    Some(then.duration_since(now).unwrap_or_default())
}

/// Parses a duration at the beginning of a text: `7.66s`, `1m30s`, `250ms`, `20 seconds`, or a
/// number of seconds.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start();
    let mut total = None;
    loop {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let Some((number, after)) = rest.split_at_checked(digits) else {
            break;
        };
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else {
            break;
        };
        let after = after.trim_start();
        let letters = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(letters)?;
        let scale = match unit {
            "ms" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ if total.is_none() => 1.0,
            _ => break,
        };
        total = Some(total.unwrap_or_default() + number * scale);
        rest = after;
    }
    total.and_then(seconds)
}

/// Converts seconds to a duration. Returns `None` for a negative number, and the longest duration
/// for a larger one.
fn seconds(number: f64) -> Option<Duration> {
    let wait = || Duration::try_from_secs_f64(number).unwrap_or(Duration::MAX);
    (number >= 0.0).then(wait)
}

fn number(headers: &HeaderMap, name: &str) -> Option<f64> {
    numeral(text(headers, name)?)
}

/// Parses a number in digits, so that `inf` is rejected.
fn numeral(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches('-');
    digits
        .starts_with(|first: char| first.is_ascii_digit() || first == '.')
        .then(|| text.parse().ok())?
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    Some(headers.get(name)?.to_str().ok()?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use reqwest::header::HeaderName;

    /// 2026-01-01 00:00:00 UTC.
    const NOW: u64 = 1_767_225_600;

    fn wait(headers: &[(&str, &str)], body: &str) -> Option<u64> {
        let headers = headers.iter().map(|(name, value)| {
            let name: HeaderName = name.parse().unwrap();
            (name, value.parse().unwrap())
        });
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        limit_retry_after_ms(&headers.collect(), body, now)
    }

    #[test]
    fn headers_are_read_in_their_order() {
        type Headers = &'static [(&'static str, &'static str)];
        let rows: [(Headers, Option<u64>); 20] = [
            (&[], None),
            (&[("retry-after", "7")], Some(7_000)),
            (&[("retry-after", " 0.5 ")], Some(500)),
            (&[("retry-after", "0")], Some(0)),
            (
                &[("retry-after", "7"), ("retry-after-ms", "1500")],
                Some(1_500),
            ),
            (
                &[("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT")],
                Some(30_000),
            ),
            (&[("retry-after", "Wed, 01 Jan 2025 00:00:30 GMT")], Some(0)),
            (
                &[
                    ("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT"),
                    ("date", "Thu, 01 Jan 2026 00:00:20 GMT"),
                ],
                Some(10_000),
            ),
            (&[("retry-after", "-5")], None),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "inf")], None),
            (
                &[("retry-after", "99999999999999999999999999")],
                Some(u64::MAX),
            ),
            (
                &[
                    ("x-ratelimit-remaining-requests", "0"),
                    ("x-ratelimit-reset-requests", "30.5s"),
                    ("x-ratelimit-remaining-tokens", "9000"),
                    ("x-ratelimit-reset-tokens", "45s"),
                ],
                Some(30_500),
            ),
            // The time until the limit is full, which is longer than the next request needs.
            (
                &[
                    ("x-ratelimit-remaining-tokens", "0"),
                    ("x-ratelimit-reset-tokens", "6m0s"),
                ],
                Some(60_000),
            ),
            // OpenAI: the limit is not exhausted, but the request exceeded the rest.
            (
                &[
                    ("x-ratelimit-remaining-tokens", "120"),
                    ("x-ratelimit-reset-tokens", "6m0s"),
                ],
                None,
            ),
            // Azure.
            (
                &[
                    ("x-ratelimit-remaining-tokens", "-1"),
                    ("x-ratelimit-reset-tokens", "0"),
                ],
                None,
            ),
            (&[("x-ratelimit-reset-requests", "6m0s")], None),
            (
                &[
                    ("x-ratelimit-remaining", "0"),
                    ("x-ratelimit-reset", "1767225605000"),
                ],
                Some(5_000),
            ),
            (
                &[
                    ("x-ratelimit-remaining", "0"),
                    ("x-ratelimit-reset", "1767225605"),
                ],
                Some(5_000),
            ),
            (
                &[("ratelimit-remaining", "0"), ("ratelimit-reset", "12")],
                Some(12_000),
            ),
        ];
        for (headers, expected) in rows {
            assert_eq!(wait(headers, ""), expected, "{headers:?}");
        }
    }

    #[test]
    fn what_a_limit_has_left_is_asked_last_and_only_of_limits() {
        let headers = [
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ];
        let text = "Rate limit reached. Please try again in 1.2s.";
        assert_eq!(wait(&headers, text), Some(1_200));
        let headers = headers.map(|(name, value)| {
            let name: HeaderName = name.parse().unwrap();
            (name, value.parse().unwrap())
        });
        let headers = headers.into_iter().collect();
        assert_eq!(retry_after_ms(&headers, "oops", UNIX_EPOCH), None);
    }

    #[test]
    fn a_body_is_read_where_no_header_says_it() {
        for (body, expected) in [
            (
                r#"{"error":{"message":"Rate limit reached. Please try again in 7.66s. Visit …"}}"#,
                Some(7_660),
            ),
            ("Please try again in 1h2m3s.", Some(3_723_000)),
            ("Please retry after 20 seconds.", Some(20_000)),
            ("Please try again in 250ms", Some(250)),
            (
                r#"{"error":{"details":[{"retryDelay": "34s"}]}}"#,
                Some(34_000),
            ),
            (
                r#"{"error":{"code":429,"metadata":{"headers":{"X-RateLimit-Reset":"1767225603000"}}}}"#,
                Some(3_000),
            ),
            ("Please try again in a while", None),
            ("try again in ", None),
            ("", None),
        ] {
            assert_eq!(wait(&[], body), expected, "{body}");
        }
        assert_eq!(
            wait(&[("retry-after", "1")], "try again in 9s"),
            Some(1_000)
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}", number in any::<f64>()) {
            let _ = wait(&[], &format!("try again in {text}"));
            let _ = duration(&format!("{number}{text}"));
            let _ = moment(&number.to_string(), UNIX_EPOCH);
        }
    }
}
