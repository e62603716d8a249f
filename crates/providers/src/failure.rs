//! Converts a failed call into a [`Failure`]. Combines the verdict of `wire`'s classifier with the
//! HTTP status and headers, and adds advice if there is any. The messages quote the provider's text
//! up to a bound. They never contain a key.

use std::borrow::Cow;
use std::time::SystemTime;

use plimsoll_agent::{Failure, Request};
use plimsoll_context::Tokens;
use plimsoll_wire::overflow::{Basis, Verdict, weigh};
use reqwest::header::{HeaderMap, LOCATION};
use serde_json::{Map, Value};

use crate::base_url::BaseUrl;
use crate::http::{Silence, innermost};
use crate::model_ref::ModelRef;
use crate::receive::BrokenResponse;
use crate::retry_after::retry_after_ms;
use crate::vendor::{ServerLocation, Wire};
use plimsoll_core::Secret;

/// The advice if a reply is too large.
const FEWER: &str = "ask for fewer output tokens";
/// Error keys that the message already covers, or that do not help users.
const PLAIN_KEYS: [&str; 10] = [
    "message",
    "type",
    "param",
    "code",
    "status",
    "object",
    "n_prompt_tokens",
    "n_ctx",
    "request_id",
    "user_id",
];

/// A request smaller than `window / OVERFLOW_PART` is not believed to be too long if the error
/// message is ambiguous. The part is small because a server may have a smaller window than is
/// published, and the count may be too low.
const OVERFLOW_PART: u64 = 8;
/// The upper bound of this size. No server of a model with a large window has a smaller window.
const SURELY_LARGE: Tokens = Tokens(32_768);
/// This size if the window is unknown: half of the smallest window in use.
const UNKNOWN_WINDOW: Tokens = Tokens(1_024);

/// The count of a request may be too low by one part in 20 of the limit per minute. Making a
/// request smaller once is better than having it refused forever.
const UNSURE_PART: u64 = 20;

/// The header in which Bedrock names the kind of error. The body does not contain it.
const ERROR_TYPE: &str = "x-amzn-errortype";

/// The facts about a call that error messages and verdicts need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallContext<'a> {
    pub(crate) model: &'a ModelRef,
    pub(crate) base: &'a BaseUrl,
    /// The origin of the key, if one was sent.
    pub(crate) key_from: Option<&'a str>,
    /// The values that no message may contain.
    pub(crate) secrets: &'a [Secret],
    /// The facts about the request.
    pub(crate) facts: RequestFacts,
}

/// The facts about a request for interpreting its refusal. Tokens are in the provider's count, as
/// far as it can be estimated.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestFacts {
    /// Its output limit.
    pub(crate) max_output: Option<Tokens>,
    /// The size of the request.
    pub(crate) weight: Option<Tokens>,
    /// The reported size of the previous request.
    pub(crate) previous: Option<Tokens>,
    /// The model's window.
    pub(crate) window: Option<Tokens>,
}

impl RequestFacts {
    /// Collects the facts about a request that is sent with this output limit.
    pub(crate) fn of(request: &Request, max_output: Option<Tokens>) -> Self {
        let expects = &request.expects;
        Self {
            max_output,
            weight: Some(expects.input.unwrap_or(request.counted)),
            previous: expects.previous,
            window: expects.window,
        }
    }

    /// Checks whether the request is too small to exceed any window that the model may have.
    fn is_small(&self) -> bool {
        let least = self.window.map_or(UNKNOWN_WINDOW, |window| {
            Tokens(window.0 / OVERFLOW_PART).min(SURELY_LARGE)
        });
        self.weight.is_some_and(|weight| weight < least)
    }

    /// Checks whether the request alone exceeds the limit per minute.
    fn exceeds(&self, limit: Tokens) -> bool {
        self.weight.is_some_and(|weight| weight > sure_part(limit))
    }

    /// Checks whether the request may still succeed in another minute. Cached input does not count
    /// towards the limit, and everything except the messages since the previous request may be
    /// cached.
    fn may_pass(&self, limit: Tokens) -> bool {
        let new = self.weight.zip(self.previous);
        new.is_some_and(|(weight, previous)| weight.minus(previous) <= sure_part(limit))
    }
}

/// Returns the part of a limit per minute that a request fits into despite counting errors.
fn sure_part(limit: Tokens) -> Tokens {
    limit.minus(Tokens(limit.0 / UNSURE_PART))
}

impl CallContext<'_> {
    /// Converts an error response.
    pub(crate) fn refused(&self, status: u16, headers: &HeaderMap, body: &str) -> Failure {
        if (300..400).contains(&status) {
            return self.redirected(status, headers);
        }
        self.failure(Some(status), headers, &with_error_type(body, headers))
    }

    /// Converts a failure after a successful status.
    pub(crate) fn broken(&self, broken: BrokenResponse) -> Failure {
        let base = self.base;
        match broken {
            BrokenResponse::Refused(body) => self.failure(None, &HeaderMap::new(), &body),
            BrokenResponse::Idle(wait) => passing(format!(
                "{base} sent nothing for {} s in the middle of the response",
                wait.as_secs_f64()
            )),
            BrokenResponse::Wordless(wait) => passing(format!(
                "{base} kept the connection open for {} s and sent nothing",
                wait.as_secs_f64()
            )),
            BrokenResponse::Cut(why) => {
                passing(format!("the reply of {base} was cut in the middle: {why}"))
            }
            BrokenResponse::Empty => {
                passing(format!("{base} closed the connection without a reply"))
            }
            BrokenResponse::Html => refused(format!(
                "{base} answers with a page for people, not with an API; check --base-url"
            )),
            BrokenResponse::TooLarge(why) if !why.contains(FEWER) => {
                refused(format!("{why}; {FEWER}"))
            }
            BrokenResponse::TooLarge(why) | BrokenResponse::TooManyParts(why) => refused(why),
            BrokenResponse::Garbled(why) => Failure::Garbled {
                message: self.strike_out(why),
            },
        }
    }

    /// Converts a failure without a response.
    pub(crate) fn silence(&self, silence: &Silence) -> Failure {
        let base = self.base;
        let error = match silence {
            Silence::Timeout(wait) => {
                let wait = wait.as_secs_f64();
                return passing(format!("{base} did not answer within {wait} s"));
            }
            Silence::Error(error) => error,
        };
        let why = self.strike_out(innermost(error));
        if error.is_builder() {
            return refused(format!("the request cannot be sent: {why}"));
        }
        if why.contains("certificate") || why.contains("CertificateError") {
            return refused(format!(
                "{base} has no certificate that this machine trusts: {why}"
            ));
        }
        // The connector reports this if a proxy of the environment is not an HTTP proxy.
        if let Some((_, scheme)) = why.split_once("unsupported scheme ") {
            return refused(format!(
                "{base} is not reached: the proxy that the environment names is one of {scheme}, \
                 which is not spoken here; set HTTPS_PROXY to one of http, or NO_PROXY"
            ));
        }
        if !error.is_connect() {
            return passing(format!("the connection to {base} broke: {why}"));
        }
        if error.is_timeout() {
            return passing(format!(
                "{base} cannot be reached: no connection in time; check the network or --base-url"
            ));
        }
        let message = match (connection_refused(error), base.is_loopback()) {
            (true, true) => format!(
                "no server listens at {base} (connection refused); start it or give another \
                 address with --base-url"
            ),
            (true, false) => format!(
                "no server listens at {base}, or at the proxy before it (connection refused); \
                 check the server, the proxy or --base-url"
            ),
            (false, _) => {
                format!(
                    "{base} cannot be reached: {why}; check the network, the proxy or --base-url"
                )
            }
        };
        passing(message)
    }

    fn failure(&self, status: Option<u16>, headers: &HeaderMap, body: &str) -> Failure {
        let message = self.strike_out(words(status, body));
        let retry_after_ms = || retry_after_ms(headers, body, SystemTime::now());
        let (verdict, basis) = weigh(status, body);
        match verdict {
            Verdict::Overflow(_) if basis == Basis::Guessed && self.facts.is_small() => {
                Failure::Refused { status, message }
            }
            Verdict::Overflow(overflow) => Failure::Overflow {
                used: overflow.used,
                window: overflow.window,
                message,
            },
            // The failure includes the window; the run decides whether to shorten the output or the
            // input.
            Verdict::OutputTooLarge {
                used: used @ Some(_),
                window: window @ Some(_),
                ..
            } => Failure::Overflow {
                used,
                window,
                message,
            },
            Verdict::OutputTooLarge { limit, .. } => Failure::OutputTooLarge {
                limit: Some(limit),
                message,
            },
            // The requested tokens include the output limit. The rest is the size of the request.
            Verdict::SoftWindow { limit, requested } => Failure::SoftWindow {
                used: self.facts.max_output.map(|output| requested.minus(output)),
                limit,
                retry_after_ms: None,
                message,
            },
            Verdict::PerMinute { limit } if self.facts.exceeds(limit) => Failure::SoftWindow {
                used: self
                    .facts
                    .weight
                    .map(|weight| weight.max(limit + Tokens(1))),
                limit,
                retry_after_ms: self
                    .facts
                    .may_pass(limit)
                    .then(|| retry_after_ms().unwrap_or_default()),
                message,
            },
            Verdict::BodyTooLarge => Failure::BodyTooLarge { message },
            Verdict::RateLimited | Verdict::PerMinute { .. } => Failure::RateLimited {
                retry_after_ms: retry_after_ms(),
                message,
            },
            Verdict::Auth => Failure::Auth {
                message: format!("{message}{}", self.key_cure()),
            },
            Verdict::NotFound | Verdict::Invalid => Failure::Refused {
                status,
                message: match self.responses_cure(&message) {
                    Some(cure) => format!("{message}; {cure}"),
                    None if verdict == Verdict::NotFound => {
                        format!("{message}; check the model's name and --base-url")
                    }
                    None => message,
                },
            },
            Verdict::QuotaExceeded => Failure::Refused { status, message },
            Verdict::Transient => Failure::Transient {
                status,
                retry_after_ms: retry_after_ms(),
                message,
            },
        }
    }

    /// Reports a reply in a content encoding that was not requested.
    pub(crate) fn packed(&self, packed: &str) -> Failure {
        let base = self.base;
        refused(format!(
            "{base} answers in `{packed}`, which was not asked for and is not read here; check the \
             server, or the proxy before it"
        ))
    }

    fn redirected(&self, status: u16, headers: &HeaderMap) -> Failure {
        let to = headers.get(LOCATION).and_then(|to| to.to_str().ok());
        let to = to.and_then(|to| self.base.endpoint("").join(to).ok());
        let to = to.and_then(|to| BaseUrl::parse(to.as_str(), None).ok());
        let base = self.base;
        let message = match to {
            Some(to) => format!("{base} sends us on to {to}; give that address with --base-url"),
            None => format!("{base} answers with a redirect without an address; check --base-url"),
        };
        Failure::Refused {
            status: Some(status),
            message: self.strike_out(message),
        }
    }

    /// Returns the advice if Chat Completions refers to Responses.
    fn responses_cure(&self, message: &str) -> Option<String> {
        let vendor = self.model.vendor();
        let refers = vendor.wire == Wire::Chat && message.contains("v1/responses");
        let there = match vendor.place {
            ServerLocation::Hosted => "",
            _ => " with this --base-url",
        };
        refers.then(|| format!("use openai-responses/{}{there}", self.model.name()))
    }

    /// Returns a remark about the origin of the key, or the variable to set.
    fn key_cure(&self) -> String {
        let vendor = self.model.vendor();
        match (self.key_from, vendor.key_variables.first()) {
            (Some(from), _) => format!(" (the key is that in {from})"),
            (None, Some(variable)) => format!(" (no key was sent: set {variable})"),
            (None, None) => String::new(),
        }
    }

    pub(crate) fn strike_out(&self, text: String) -> String {
        let secrets = self.secrets.iter();
        secrets.fold(text, |text, secret| secret.strike_out(text))
    }
}

/// Returns a failure that a retry cannot fix.
pub(crate) fn refused(message: String) -> Failure {
    Failure::Refused {
        status: None,
        message,
    }
}

fn passing(message: String) -> Failure {
    Failure::Transient {
        status: None,
        retry_after_ms: None,
        message,
    }
}

fn connection_refused(error: &reqwest::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused) {
            return true;
        }
        source = error.source();
    }
    false
}

/// Returns the text of an error body: only its message if nothing else is informative, otherwise
/// the whole body.
fn words(status: Option<u16>, body: &str) -> String {
    let body = body.trim();
    let code = status.map(|status| format!("HTTP {status}"));
    if body.is_empty() {
        let code = code.unwrap_or_else(|| "an error".into());
        return format!("{code} without a word");
    }
    if body.starts_with('<') {
        let code = code.unwrap_or_else(|| "an answer".into());
        return match title(body) {
            Some(title) => format!("{code} with a page titled \"{title}\""),
            None => format!("{code} with a page for people"),
        };
    }
    let Ok(json) = serde_json::from_str::<Value>(body) else {
        return body.to_owned();
    };
    match sentence(&json) {
        (Some(sentence), false) => sentence.to_owned(),
        (Some(sentence), true) => format!("{sentence}: {body}"),
        (None, _) => body.to_owned(),
    }
}

/// Returns the message in an error, and whether the error contains more.
fn sentence(json: &Value) -> (Option<&str>, bool) {
    let error = json.get("error").unwrap_or(json);
    let (text, keys) = match error {
        Value::String(text) => (Some(text.as_str()), None),
        Value::Object(object) => {
            let text = ["message", "detail", "msg", "error"];
            let mut text = text.iter().filter_map(|key| object.get(*key)?.as_str());
            (text.next(), Some(object))
        }
        _ => (None, None),
    };
    let more = keys.is_some_and(|object| {
        let mut keys = object.iter().filter(|(_, value)| !value.is_null());
        keys.any(|(key, _)| !PLAIN_KEYS.contains(&key.as_str()) && key != "detail")
    });
    (text.filter(|text| !text.trim().is_empty()), more)
}

fn title(html: &str) -> Option<&str> {
    let (_, rest) = html.split_once("<title>")?;
    let (title, _) = rest.split_once("</title>")?;
    let title = title.trim();
    (!title.is_empty()).then_some(title)
}

/// Adds the kind of error from the header to a body.
fn with_error_type<'b>(body: &'b str, headers: &HeaderMap) -> Cow<'b, str> {
    let kind = headers.get(ERROR_TYPE).and_then(|kind| kind.to_str().ok());
    // `ValidationException:http://internal.amazon.com/…`
    let kind = kind.and_then(|kind| kind.split(':').next());
    let object: Result<Map<String, Value>, _> = serde_json::from_str(body);
    match (kind.filter(|kind| !kind.is_empty()), object) {
        (Some(kind), Ok(mut object)) => {
            object.entry("code").or_insert_with(|| kind.into());
            Value::Object(object).to_string().into()
        }
        _ => body.into(),
    }
}

#[cfg(test)]
mod tests;
