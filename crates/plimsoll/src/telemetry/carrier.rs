//! [`Carrier`]: sends exports to the collector from the exporter's runtime and records the first
//! failure. It does not retry, because the next export follows soon and no run waits for it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use plimsoll_providers::tls;
use reqwest::{Client, Url, redirect};
use tokio::runtime::Handle;

/// The maximum number of bytes that are read of a collector's response.
pub const MAX_ANSWER: usize = 64 * 1024;

/// The reason of the first failed export.
pub(super) type FirstFault = Arc<OnceLock<String>>;

/// Sends exports to a collector.
#[derive(Debug)]
pub(super) struct Carrier {
    client: Client,
    runtime: Handle,
    /// The collector's scheme, host and port, without a path or a key.
    to: String,
    fault: FirstFault,
}

impl Carrier {
    pub(super) fn new(
        to: &Url,
        timeout: Duration,
        runtime: Handle,
        fault: FirstFault,
    ) -> Result<Self, String> {
        let host = to.host_str().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        let client = if host == "localhost" || address.is_ok_and(|address| address.is_loopback()) {
            tls::plain_client()
        } else {
            tls::client()
        };
        let client = client.map_err(|error| error.to_string())?;
        let client = client.timeout(timeout).redirect(redirect::Policy::none());
        Ok(Self {
            client: client.build().map_err(|error| innermost(&error))?,
            runtime,
            to: to.origin().ascii_serialization(),
            fault,
        })
    }

    fn failed(&self, why: impl std::fmt::Display) -> HttpError {
        let text = format!("{}: {why}", self.to);
        self.fault.get_or_init(|| text.clone());
        text.into()
    }
}

#[async_trait]
impl HttpClient for Carrier {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = request.try_into().map_err(|error| self.failed(error))?;
        let sent = carry(self.client.clone(), request);
        let answer = match self.runtime.spawn(sent).await {
            Ok(answer) => answer.map_err(|error| self.failed(innermost(&error.without_url())))?,
            Err(error) => return Err(self.failed(error)),
        };
        if !answer.status().is_success() {
            self.fault
                .get_or_init(|| format!("{}: it answered {}", self.to, answer.status()));
        }
        Ok(answer)
    }
}

async fn carry(client: Client, request: reqwest::Request) -> reqwest::Result<Response<Bytes>> {
    let mut answer = client.execute(request).await?;
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await?
        && body.len() + piece.len() <= MAX_ANSWER
    {
        body.extend_from_slice(&piece);
    }
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = answer.status();
    Ok(response)
}

/// Returns the message of the innermost error.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
