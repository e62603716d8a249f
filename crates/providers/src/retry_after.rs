//! Reads how long a provider asks to wait: from `Retry-After`, or from Google's error. Whether to wait is
//! decided elsewhere.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;

/// Returns the wait before the next attempt, in milliseconds. [`u64::MAX`] if it does not fit.
pub(crate) fn retry_after_ms(headers: &HeaderMap, body: &str, now: SystemTime) -> Option<u64> {
    let wait = standard(headers, now).or_else(|| in_body(body))?;
    Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
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

/// Reads the wait in an error of Google's, which sends no header: `"retryDelay": "34.1s"`.
fn in_body(body: &str) -> Option<Duration> {
    let (_, rest) = body.split_once("\"retryDelay\"")?;
    let (number, _) = rest.trim_start_matches([':', ' ', '"']).split_once('s')?;
    numeral(number).and_then(seconds)
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
    use std::time::UNIX_EPOCH;

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
        retry_after_ms(&headers.collect(), body, now)
    }

    #[test]
    fn headers_are_read_in_their_order() {
        type Headers = &'static [(&'static str, &'static str)];
        let rows: [(Headers, Option<u64>); 13] = [
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
                    ("x-ratelimit-remaining-tokens", "0"),
                    ("x-ratelimit-reset-tokens", "6m0s"),
                ],
                None,
            ),
        ];
        for (headers, expected) in rows {
            assert_eq!(wait(headers, ""), expected, "{headers:?}");
        }
    }

    #[test]
    fn an_error_of_googles_is_read_where_no_header_says_it() {
        for (body, expected) in [
            (
                r#"{"error":{"details":[{"retryDelay": "34s"}]}}"#,
                Some(34_000),
            ),
            (r#"{"retryDelay":"0.25s"}"#, Some(250)),
            (r#"{"retryDelay":"soon"}"#, None),
            (r#"{"retryDelay":"-1s"}"#, None),
            ("Please try again in a while", None),
            ("", None),
        ] {
            assert_eq!(wait(&[], body), expected, "{body}");
        }
        let body = r#"{"retryDelay":"9s"}"#;
        assert_eq!(wait(&[("retry-after", "1")], body), Some(1_000));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = wait(&[], &format!("\"retryDelay\": \"{text}"));
        }
    }
}
