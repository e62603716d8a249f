//! Downloads a file over HTTP and resumes an interrupted download. Checks the length; the caller
//! checks the checksum.

use std::path::Path;
use std::time::Duration;

use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::error::LocalError;
use super::{Progress, Watch, remove_file, size};
use crate::http::innermost;
use crate::tls;

/// The time to establish a connection. After that the mirror is faster.
pub const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// The time without a single received byte.
pub const SILENCE: Duration = Duration::from_secs(30);
/// The maximum number of attempts after interruptions.
pub const MAX_TRIES: u32 = 8;
/// The maximum number of redirects. Large files are stored on another host.
const MAX_REDIRECTS: usize = 5;

/// The result of one attempt.
enum Try {
    Whole,
    /// The download was interrupted, for this reason.
    Cut(String),
    /// Another attempt would fail as well, for this reason.
    Refused(String),
}

/// Fetches `url` into a file of exactly `bytes` bytes.
pub(super) async fn fetch(
    url: &str,
    to: &Path,
    bytes: u64,
    label: &str,
    watch: Watch<'_>,
) -> Result<(), LocalError> {
    let parsed = Url::parse(url).ok();
    let host = parsed
        .as_ref()
        .and_then(Url::host_str)
        .unwrap_or(url)
        .to_owned();
    let no = |reason: String| LocalError::Official {
        host: host.clone(),
        reason,
    };
    let client = client(parsed.as_ref()).map_err(&no)?;
    let mut last = String::new();
    for _ in 0..MAX_TRIES {
        let before = size(to);
        match attempt(&client, url, to, bytes, label, watch).await? {
            Try::Whole => return Ok(()),
            Try::Refused(reason) => return Err(no(reason)),
            // Give up at once if an attempt received nothing.
            Try::Cut(reason) if size(to).unwrap_or(0) == before.unwrap_or(0) => {
                return Err(no(reason));
            }
            Try::Cut(reason) => last = reason,
        }
    }
    Err(no(format!("it broke off {MAX_TRIES} times: {last}")))
}

fn client(url: Option<&Url>) -> Result<Client, String> {
    let client = match url.map(Url::scheme) {
        Some("http") => tls::plain_client(),
        _ => tls::client(),
    };
    client
        .map_err(|error| error.to_string())?
        .connect_timeout(CONNECT_WAIT)
        .redirect(redirect::Policy::limited(MAX_REDIRECTS))
        .build()
        .map_err(|error| innermost(&error))
}

async fn attempt(
    client: &Client,
    url: &str,
    to: &Path,
    bytes: u64,
    label: &str,
    watch: Watch<'_>,
) -> Result<Try, LocalError> {
    let mut have = size(to).unwrap_or(0);
    if have > bytes {
        remove_file(to)?;
        have = 0;
    }
    if have == bytes {
        return Ok(Try::Whole);
    }
    let mut request = client.get(url);
    if have > 0 {
        request = request.header(RANGE, format!("bytes={have}-"));
    }
    let mut answer = match timeout(SILENCE, request.send()).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Ok(Try::Refused(innermost(&error))),
        Err(_) => return Ok(Try::Refused("no answer".to_owned())),
    };
    let mut file = match answer.status() {
        StatusCode::OK => {
            have = 0;
            File::create(to).await
        }
        StatusCode::PARTIAL_CONTENT if start(&answer) == Some(have) => {
            OpenOptions::new().append(true).open(to).await
        }
        status => {
            // The partial file may be the reason, so remove it.
            remove_file(to)?;
            return Ok(Try::Refused(format!("status {}", status.as_u16())));
        }
    }
    .map_err(|error| LocalError::file(to, error))?;
    let ended = loop {
        let piece = match timeout(SILENCE, answer.chunk()).await {
            Ok(Ok(Some(piece))) => piece,
            Ok(Ok(None)) if have == bytes => break Try::Whole,
            Ok(Ok(None)) => break Try::Cut(format!("it ended after {have} of {bytes} bytes")),
            Ok(Err(error)) => break Try::Cut(innermost(&error)),
            Err(_) => break Try::Cut(format!("silent for {} s", SILENCE.as_secs())),
        };
        have += piece.len() as u64;
        if have > bytes {
            drop(file);
            remove_file(to)?;
            return Ok(Try::Refused(format!("it is larger than {bytes} bytes")));
        }
        file.write_all(&piece)
            .await
            .map_err(|error| LocalError::file(to, error))?;
        watch(Progress::At {
            label,
            done: have,
            total: bytes,
        });
    };
    file.flush()
        .await
        .map_err(|error| LocalError::file(to, error))?;
    Ok(ended)
}

/// Returns the position at which a part of a file begins. Parses `bytes 100-199/200`.
fn start(answer: &Response) -> Option<u64> {
    let range = answer.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    let (start, _) = range.strip_prefix("bytes ")?.split_once('-')?;
    start.parse().ok()
}
