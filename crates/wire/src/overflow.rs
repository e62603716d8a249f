//! [`classify`]: the meaning of a refusal, for all providers.
//!
//! There is one table for all, because proxies wrap each other's error texts. The result says which
//! reaction helps. The caller decides whether and when to retry.
//!
//! The order of decision: structured codes, then texts that only look like an overflow, then providers'
//! own texts, then general ones, then the status alone.

mod envelope;
mod pattern;
mod table;

use plimsoll_context::Tokens;

use envelope::Envelope;
use pattern::MatchedNumbers;
use table::{OverflowMeaning, OverflowRow, TABLE};

pub use envelope::{MAX_BODY, MAX_DEPTH};

/// The meaning of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The request is larger than the window: send a smaller one. Contains the numbers of the error
    /// text. The reported window is the actual one, whatever was configured.
    Overflow(Overflow),
    /// Only the output limit is too large: request at most `limit` tokens.
    ///
    /// If it was refused together with the request's size, `used` and `window` are set, and `limit` is
    /// the rest of the window.
    OutputTooLarge {
        /// The largest accepted output limit.
        limit: Tokens,
        /// The tokens of the request.
        used: Option<Tokens>,
        /// The window.
        window: Option<Tokens>,
    },
    /// One request exceeds the tokens allowed per minute (Groq's and OpenAI's TPM). Waiting cannot
    /// help, but a smaller request can. The requested output counts.
    SoftWindow {
        /// The tokens allowed per minute.
        limit: Tokens,
        /// The requested tokens, output limit included.
        requested: Tokens,
    },
    /// The body has too many bytes: send fewer or smaller images and files, then less text.
    BodyTooLarge,
    /// Too much in too little time: wait.
    RateLimited,
    /// Like `RateLimited`, for the tokens allowed per minute. The error does not report whether this
    /// request alone exceeds them (Anthropic). A larger request never succeeds.
    PerMinute {
        /// The tokens allowed per minute.
        limit: Tokens,
    },
    /// The money or the quota is used up: waiting does not help.
    QuotaExceeded,
    /// The key is missing, wrong, or has no permission.
    Auth,
    /// The model or the address does not exist.
    NotFound,
    /// The request is wrong in another way. The same request will fail again, whatever the status was.
    Invalid,
    /// The server failed. The same request may succeed later.
    Transient,
}

/// An overflow, with the numbers of the error text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overflow {
    /// The tokens of the request without its output.
    pub used: Option<Tokens>,
    /// The window.
    pub window: Option<Tokens>,
    /// The requested output tokens.
    pub output: Option<Tokens>,
    /// The number of tokens by which the request is too large, if only that was reported.
    pub excess: Option<Tokens>,
}

/// Classifies a refusal by its HTTP status, if there was one, and its body. An error in the middle of a
/// stream has no status.
#[must_use]
pub fn classify(status: Option<u16>, body: &str) -> Verdict {
    weigh(status, body).0
}

/// The evidence for a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// A code or a provider's own text, or the status if that is sufficient.
    Said,
    /// Words that may occur in any error, or no text at all. If the request is far from filling a
    /// window, a verdict of overflow on this basis is wrong.
    Guessed,
}

/// Classifies a refusal like [`classify`], and returns the evidence, too.
#[must_use]
pub fn weigh(status: Option<u16>, body: &str) -> (Verdict, Basis) {
    let envelope = Envelope::open(body);
    // For status 200 with an error in the body, only the body's own code counts.
    let status = status
        .filter(|status| *status >= 400)
        .or(envelope.status)
        .or(status);
    let specific = by_code(&envelope)
        .or_else(|| by_rows(TABLE.rows("[lookalikes]"), &envelope))
        .or_else(|| by_rows(TABLE.rows("[providers]"), &envelope));
    if let Some(verdict) = specific {
        return (verdict, Basis::Said);
    }
    match general(status, &envelope).unwrap_or_else(|| by_status(status, &envelope)) {
        verdict @ Verdict::Overflow(_) => (verdict, Basis::Guessed),
        verdict => (verdict, Basis::Said),
    }
}

fn by_code(envelope: &Envelope) -> Option<Verdict> {
    // The code has decided already, but only the text can contain numbers.
    let mut codes = TABLE.rows("[codes]").iter();
    let row = codes.find(|row| envelope.codes.iter().any(|found| found == row.pattern))?;
    Some(match row.meaning {
        OverflowMeaning::Overflow => {
            let numbers = numbers(
                TABLE.rows("[providers]"),
                envelope,
                OverflowMeaning::Overflow,
            );
            overflow(&numbers.unwrap_or_default(), envelope)
        }
        OverflowMeaning::RateLimited => {
            let numbers = numbers(
                TABLE.rows("[lookalikes]"),
                envelope,
                OverflowMeaning::PerMinute,
            );
            numbers.map_or(Verdict::RateLimited, |numbers| per_minute(&numbers))
        }
        meaning => verdict(meaning, &MatchedNumbers::default(), envelope),
    })
}

fn by_rows(rows: &[OverflowRow], envelope: &Envelope) -> Option<Verdict> {
    rows.iter().find_map(|row| {
        let numbers = pattern::find(row.pattern, &envelope.text)?;
        Some(verdict(row.meaning, &numbers, envelope))
    })
}

fn general(status: Option<u16>, envelope: &Envelope) -> Option<Verdict> {
    // A general text may occur in any error. With these statuses, it has another cause.
    if matches!(status, Some(401..=404 | 429)) {
        return None;
    }
    by_rows(TABLE.rows("[general]"), envelope)
}

fn by_status(status: Option<u16>, envelope: &Envelope) -> Verdict {
    match status {
        // Cerebras and some proxies refuse a request that is too long with an empty body.
        Some(400 | 413) if envelope.is_empty => Verdict::Overflow(Overflow::default()),
        Some(413) => Verdict::BodyTooLarge,
        // A firewall, a blocked country, or a restricted model: another key would not help.
        Some(403) if !envelope.is_empty && !envelope.is_of_a_key() => Verdict::Invalid,
        Some(401 | 403) => Verdict::Auth,
        Some(402) => Verdict::QuotaExceeded,
        Some(404) => Verdict::NotFound,
        Some(429) => Verdict::RateLimited,
        Some(408 | 409 | 425) => Verdict::Transient,
        Some(400..=499 | 501 | 505) => Verdict::Invalid,
        _ => Verdict::Transient,
    }
}

/// Returns the numbers of the first matching row with this meaning.
fn numbers(
    rows: &[OverflowRow],
    envelope: &Envelope,
    meaning: OverflowMeaning,
) -> Option<MatchedNumbers> {
    rows.iter()
        .filter(|row| row.meaning == meaning)
        .find_map(|row| pattern::find(row.pattern, &envelope.text))
}

fn verdict(meaning: OverflowMeaning, numbers: &MatchedNumbers, envelope: &Envelope) -> Verdict {
    match meaning {
        OverflowMeaning::Overflow => overflow(numbers, envelope),
        OverflowMeaning::Output => {
            numbers
                .get("limit")
                .map_or(Verdict::Invalid, |limit| Verdict::OutputTooLarge {
                    limit: Tokens(limit),
                    used: None,
                    window: None,
                })
        }
        OverflowMeaning::PerMinute => per_minute(numbers),
        OverflowMeaning::Body => Verdict::BodyTooLarge,
        OverflowMeaning::RateLimited => Verdict::RateLimited,
        OverflowMeaning::Quota => Verdict::QuotaExceeded,
        OverflowMeaning::Auth => Verdict::Auth,
        OverflowMeaning::NotFound => Verdict::NotFound,
        OverflowMeaning::Invalid => Verdict::Invalid,
        OverflowMeaning::Transient => Verdict::Transient,
    }
}

/// Returns the verdict for a limit per minute. A request that alone exceeds it will never succeed.
fn per_minute(numbers: &MatchedNumbers) -> Verdict {
    match (numbers.get("limit"), numbers.get("requested")) {
        (Some(limit), Some(requested)) if requested > limit => Verdict::SoftWindow {
            limit: Tokens(limit),
            requested: Tokens(requested),
        },
        (Some(limit), None) => Verdict::PerMinute {
            limit: Tokens(limit),
        },
        _ => Verdict::RateLimited,
    }
}

fn overflow(numbers: &MatchedNumbers, envelope: &Envelope) -> Verdict {
    let window = envelope.n_ctx.or(numbers.get("window"));
    let reported = numbers
        .get("used")
        .map(|used| used.saturating_add(numbers.get("tool").unwrap_or_default()));
    // A total without its parts, or with only the output, is sufficient to compute the rest.
    let left = numbers
        .get("total")
        .map(|total| total.saturating_sub(numbers.get("output").unwrap_or_default()));
    let used = envelope.n_prompt_tokens.or(reported).or(left);
    // The verdict only helps if it lowers the output limit.
    if let (Some(used), Some(window), Some(output)) = (used, window, numbers.get("output"))
        && used < window
        && window - used < output
    {
        return Verdict::OutputTooLarge {
            limit: Tokens(window - used),
            used: Some(Tokens(used)),
            window: Some(Tokens(window)),
        };
    }
    Verdict::Overflow(Overflow {
        used: used.map(Tokens),
        window: window.map(Tokens),
        output: numbers.get("output").map(Tokens),
        excess: numbers.get("excess").map(Tokens),
    })
}
