//! [`classify`]: what a refusal means, whoever refused. One table for all providers, because
//! proxies wrap each other's words. Says what a caller should do, not how; whether and when to
//! retry belongs to those who hold a clock.
//!
//! The order of decision: structured codes, then texts that only look like an overflow, then
//! providers' own texts, then general ones, then the status alone. A server that says nothing
//! and cuts silently is found by [`silent`].

mod envelope;
mod pattern;
pub mod silent;
mod table;

use plimsoll_context::Tokens;

use envelope::Envelope;
use pattern::Numbers;
use table::{Row, Says};

pub use envelope::{MAX_BODY, MAX_DEPTH};

/// What a refusal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The request is larger than the window: send a smaller one. Numbers where the text has
    /// them; the window is the true one, whatever was configured.
    Overflow(Overflow),
    /// Only the output limit is too large: ask for `limit` tokens or fewer. Where it was
    /// refused together with the request's size, `used` and `window` are set, and `limit` is
    /// what is left of the window.
    OutputTooLarge {
        /// The largest output limit that is accepted.
        limit: Tokens,
        /// What the request takes.
        used: Option<Tokens>,
        /// The window.
        window: Option<Tokens>,
    },
    /// One request asks for more than a minute may carry (Groq's and OpenAI's TPM). Waiting
    /// cannot help; a smaller request can. Output counts as asked for.
    SoftWindow {
        /// What a minute may carry.
        limit: Tokens,
        /// What was asked for, output limit included.
        requested: Tokens,
    },
    /// The body has too many bytes: send fewer or smaller images and files, then less text.
    BodyTooLarge,
    /// Too much in too little time: wait.
    RateLimited,
    /// The same, of a minute's allowance; whether this request alone exceeds it, is not said
    /// (Anthropic). A request that is larger will never be let through.
    PerMinute {
        /// What a minute may carry.
        limit: Tokens,
    },
    /// The money or the quota is used up: waiting does not help.
    QuotaExceeded,
    /// The key is missing, wrong, or may not do this.
    Auth,
    /// There is no such model, or no such address.
    NotFound,
    /// The request is wrong in another way; the same request will fail again, whatever the
    /// status was.
    Invalid,
    /// The server failed; the same request may succeed later.
    Transient,
}

/// An overflow, with the numbers that its text had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overflow {
    /// Tokens of the request without its output.
    pub used: Option<Tokens>,
    /// The window.
    pub window: Option<Tokens>,
    /// Tokens of output that were asked for.
    pub output: Option<Tokens>,
    /// By how much the request is too large, where only that was said.
    pub excess: Option<Tokens>,
}

impl Verdict {
    /// Whether a smaller request, in input or in output, may succeed.
    #[must_use]
    pub fn wants_less(&self) -> bool {
        matches!(
            self,
            Self::Overflow(_)
                | Self::OutputTooLarge { .. }
                | Self::SoftWindow { .. }
                | Self::BodyTooLarge
        )
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn may_retry(&self) -> bool {
        matches!(
            self,
            Self::RateLimited | Self::PerMinute { .. } | Self::Transient
        )
    }
}

/// Classifies a refusal by its HTTP status, where there was one, and its body. An error in the
/// middle of a stream has no status.
#[must_use]
pub fn classify(status: Option<u16>, body: &str) -> Verdict {
    weigh(status, body).0
}

/// On what a verdict rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// A code or a provider's own text, or the status where that is enough.
    Said,
    /// Words that may stand in any error, or none at all. An overflow on this basis is none where
    /// the request is far from filling a window.
    Guessed,
}

/// Classifies a refusal as [`classify`] does, and says on what that rests.
#[must_use]
pub fn weigh(status: Option<u16>, body: &str) -> (Verdict, Basis) {
    let envelope = Envelope::open(body);
    // 200 with an error in it: only the body's own code says how bad it is.
    let status = status
        .filter(|status| *status >= 400)
        .or(envelope.status)
        .or(status);
    let said = by_code(&envelope)
        .or_else(|| by_rows(&table::LOOKALIKES, &envelope))
        .or_else(|| by_rows(&table::PROVIDERS, &envelope));
    if let Some(verdict) = said {
        return (verdict, Basis::Said);
    }
    match general(status, &envelope).unwrap_or_else(|| by_status(status, &envelope)) {
        verdict @ Verdict::Overflow(_) => (verdict, Basis::Guessed),
        verdict => (verdict, Basis::Said),
    }
}

fn by_code(envelope: &Envelope) -> Option<Verdict> {
    // The numbers are in the text, if anywhere; the code has decided already.
    let says = table::CODES
        .iter()
        .find(|(code, _)| envelope.codes.iter().any(|found| found == code))
        .map(|(_, says)| *says)?;
    Some(match says {
        Says::Overflow => {
            let numbers = numbers(&table::PROVIDERS, envelope, Says::Overflow);
            overflow(numbers.unwrap_or_default(), envelope)
        }
        Says::RateLimited => {
            let numbers = numbers(&table::LOOKALIKES, envelope, Says::PerMinute);
            numbers.map_or(Verdict::RateLimited, per_minute)
        }
        says => verdict(says, Numbers::default(), envelope),
    })
}

fn by_rows(rows: &[Row], envelope: &Envelope) -> Option<Verdict> {
    rows.iter().find_map(|row| {
        let numbers = pattern::find(row.pattern, &envelope.text)?;
        Some(verdict(row.says, numbers, envelope))
    })
}

fn general(status: Option<u16>, envelope: &Envelope) -> Option<Verdict> {
    // A general text may stand in any error; with these statuses it is about something else.
    if matches!(status, Some(401..=404 | 429)) {
        return None;
    }
    by_rows(&table::GENERAL, envelope)
}

fn by_status(status: Option<u16>, envelope: &Envelope) -> Verdict {
    match status {
        // Cerebras and some proxies refuse what is too long without a word.
        Some(400 | 413) if envelope.is_empty => Verdict::Overflow(Overflow::default()),
        Some(413) => Verdict::BodyTooLarge,
        // A firewall, a country, a model that is not for everybody: no other key would help.
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

/// The numbers of the first row that says so and is in the text.
fn numbers(rows: &[Row], envelope: &Envelope, says: Says) -> Option<Numbers> {
    rows.iter()
        .filter(|row| row.says == says)
        .find_map(|row| pattern::find(row.pattern, &envelope.text))
}

fn verdict(says: Says, numbers: Numbers, envelope: &Envelope) -> Verdict {
    match says {
        Says::Overflow => overflow(numbers, envelope),
        Says::Output => numbers
            .limit
            .map_or(Verdict::Invalid, |limit| Verdict::OutputTooLarge {
                limit: Tokens(limit),
                used: None,
                window: None,
            }),
        Says::PerMinute => per_minute(numbers),
        Says::Body => Verdict::BodyTooLarge,
        Says::RateLimited => Verdict::RateLimited,
        Says::Quota => Verdict::QuotaExceeded,
        Says::Auth => Verdict::Auth,
        Says::NotFound => Verdict::NotFound,
        Says::Invalid => Verdict::Invalid,
        Says::Transient => Verdict::Transient,
    }
}

/// A request that alone exceeds a minute's allowance will never be let through.
fn per_minute(numbers: Numbers) -> Verdict {
    match (numbers.limit, numbers.requested) {
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

fn overflow(numbers: Numbers, envelope: &Envelope) -> Verdict {
    let window = envelope.n_ctx.or(numbers.window);
    let said = numbers
        .used
        .map(|used| used.saturating_add(numbers.tool.unwrap_or_default()));
    // A total without a split, or with only the output, still tells the rest.
    let left = numbers
        .total
        .map(|total| total.saturating_sub(numbers.output.unwrap_or_default()));
    let used = envelope.n_prompt_tokens.or(said).or(left);
    // What would not lower the output limit is no cure.
    if let (Some(used), Some(window), Some(output)) = (used, window, numbers.output)
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
        output: numbers.output.map(Tokens),
        excess: numbers.excess.map(Tokens),
    })
}
