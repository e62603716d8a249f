//! [`Restate`]: a client that sends work to sessions through a server's ingress.

use std::time::Duration;

use plimsoll_providers::tls;
use plimsoll_store::RunMessage;
use reqwest::{Client, Method, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::RestateError;
use crate::protocol::{
    Approval, EventsReply, EventsRequest, RunReply, RunRequest, SERVICE, SessionStatus,
};

/// The timeout of a request. Longer than a worker waits for events.
const ANSWER: Duration = Duration::from_secs(60);
/// The timeout for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// Maximum size of a response in bytes. Larger than any page of events.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// The HTTP status if the result is not available yet.
const NOT_READY: u16 = 470;
/// Maximum length of a refusal in error messages, in characters.
const TOLD: usize = 2_000;

/// A client of a Restate server.
#[derive(Debug, Clone)]
pub struct Restate {
    base: String,
    client: Client,
    token: Option<String>,
}

/// The state of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestState {
    /// It is queued or running.
    NotYet,
    /// Its run has ended.
    Ended(RunReply),
}

impl Restate {
    /// Creates a client for an address such as `restate://127.0.0.1:8080`, or `restates://` for
    /// TLS. `token` is sent with every request, if the server requires one.
    ///
    /// # Errors
    /// If the address is invalid.
    pub fn new(address: &str, token: Option<String>) -> Result<Self, RestateError> {
        let wrong = || RestateError::Address(address.to_owned());
        let (scheme, host) = address.split_once("://").ok_or_else(wrong)?;
        let scheme = match scheme {
            "restate" => "http",
            "restates" => "https",
            _ => return Err(wrong()),
        };
        let host = host.trim_end_matches('/');
        // A password in an address would appear in errors.
        if host.is_empty()
            || host.contains(['/', '@', '?', '#'])
            || host.contains(char::is_whitespace)
        {
            return Err(wrong());
        }
        let client = tls::client()
            .map_err(|_| wrong())?
            .connect_timeout(CONNECT)
            .timeout(ANSWER)
            .build()
            .map_err(|_| wrong())?;
        Ok(Self {
            base: format!("{scheme}://{host}"),
            client,
            token,
        })
    }

    /// Submits a request to a session, once per key, and returns the id of its invocation.
    ///
    /// # Errors
    /// If the server cannot be reached or has no worker.
    pub async fn submit(
        &self,
        session: &str,
        request: &RunRequest,
    ) -> Result<String, RestateError> {
        let path = format!("/{SERVICE}/{session}/run/send");
        let sent: Value = self.call(&path, request, request.key.as_deref()).await?;
        let id = sent.get("invocationId").and_then(Value::as_str);
        let id = id.ok_or_else(|| self.strange("it names no invocation"))?;
        Ok(id.to_owned())
    }

    /// Returns the state of a request.
    ///
    /// # Errors
    /// If the server cannot be reached, or if the request was refused or ended from outside.
    pub async fn output(&self, invocation: &str) -> Result<RequestState, RestateError> {
        let path = format!("/restate/invocation/{invocation}/output");
        let reply = self.send(Method::GET, &path, None, None).await?;
        if reply.status().as_u16() == NOT_READY {
            return Ok(RequestState::NotYet);
        }
        if reply.status() == StatusCode::NOT_FOUND {
            return Err(RestateError::Refused {
                status: reply.status().as_u16(),
                why: "Restate no longer knows this run: its state was lost, restored or removed; \
                      the session keeps all that was done, and another run with --session \
                      continues it"
                    .to_owned(),
            });
        }
        self.read(reply).await.map(RequestState::Ended)
    }

    /// Sends a message to the active run, or ends it.
    ///
    /// # Errors
    /// If the server cannot be reached, or no run is active.
    pub async fn post(&self, session: &str, message: &RunMessage) -> Result<(), RestateError> {
        self.tell(session, "post", message).await
    }

    /// Answers a question about a tool call.
    ///
    /// # Errors
    /// If the server cannot be reached, or there is no such question.
    pub async fn approve(&self, session: &str, approval: &Approval) -> Result<(), RestateError> {
        self.tell(session, "approve", approval).await
    }

    /// Returns the status of a session.
    ///
    /// # Errors
    /// If the server cannot be reached or has no worker.
    pub async fn status(&self, session: &str) -> Result<SessionStatus, RestateError> {
        let path = format!("/{SERVICE}/{session}/status");
        let reply = self.send(Method::POST, &path, None, None).await?;
        self.read(reply).await
    }

    /// Returns the entries of a session's log after a given entry.
    ///
    /// # Errors
    /// If the server cannot be reached or has no worker.
    pub async fn events(
        &self,
        session: &str,
        request: &EventsRequest,
    ) -> Result<EventsReply, RestateError> {
        let path = format!("/{SERVICE}/{session}/events");
        self.call(&path, request, None).await
    }

    async fn tell(
        &self,
        session: &str,
        handler: &str,
        what: &impl Serialize,
    ) -> Result<(), RestateError> {
        let path = format!("/{SERVICE}/{session}/{handler}");
        let body = serde_json::to_string(what).map_err(|error| self.strange(error))?;
        let reply = self.send(Method::POST, &path, Some(body), None).await?;
        if reply.status().is_success() {
            Ok(())
        } else {
            Err(self.refusal(reply).await)
        }
    }

    async fn call<T: DeserializeOwned>(
        &self,
        path: &str,
        what: &impl Serialize,
        key: Option<&str>,
    ) -> Result<T, RestateError> {
        let body = serde_json::to_string(what).map_err(|error| self.strange(error))?;
        let reply = self.send(Method::POST, path, Some(body), key).await?;
        self.read(reply).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        key: Option<&str>,
    ) -> Result<Response, RestateError> {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))
    }

    async fn read<T: DeserializeOwned>(&self, reply: Response) -> Result<T, RestateError> {
        if !reply.status().is_success() {
            return Err(self.refusal(reply).await);
        }
        let text = bounded(reply)
            .await
            .map_err(|error| self.unreachable(&error))?;
        serde_json::from_str(&text).map_err(|error| self.strange(error))
    }

    async fn refusal(&self, reply: Response) -> RestateError {
        let status = reply.status();
        match reply_text(reply).await {
            Ok(why) if status == StatusCode::NOT_FOUND && why.contains("service") => {
                RestateError::NoWorker {
                    place: self.base.clone(),
                }
            }
            Ok(why) => RestateError::Refused {
                status: status.as_u16(),
                why,
            },
            Err(error) => self.unreachable(&error),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> RestateError {
        RestateError::Unreachable {
            place: self.base.clone(),
            why: cause(error),
        }
    }

    fn strange(&self, why: impl ToString) -> RestateError {
        RestateError::Strange {
            place: self.base.clone(),
            why: why.to_string(),
            role: "ingress",
        }
    }
}

/// Returns the message of a refusal.
pub(crate) async fn reply_text(reply: Response) -> Result<String, reqwest::Error> {
    let status = reply.status();
    let text = bounded(reply).await?;
    let json: Option<Value> = serde_json::from_str(&text).ok();
    let message = json.as_ref().and_then(|json| json.get("message"));
    let text = message.and_then(Value::as_str).unwrap_or(&text).trim();
    Ok(match text {
        "" => status.to_string(),
        text => text.chars().take(TOLD).collect(),
    })
}

/// Returns the innermost cause, which is the most specific.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Reads a response's text up to the maximum size.
async fn bounded(mut reply: Response) -> Result<String, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = reply.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_ANSWER {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_restate() {
        for (address, base) in [
            ("restate://127.0.0.1:8080", Some("http://127.0.0.1:8080")),
            (
                "restates://x.restate.cloud:8080/",
                Some("https://x.restate.cloud:8080"),
            ),
            ("http://127.0.0.1:8080", None),
            ("restate://", None),
            ("restate://user:word@host", None),
            ("restate://host/path", None),
            ("127.0.0.1:8080", None),
        ] {
            let server = Restate::new(address, None).ok();
            assert_eq!(server.map(|it| it.base).as_deref(), base, "{address}");
        }
    }
}
