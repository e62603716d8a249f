//! Downloads a file over HTTP and resumes an interrupted download. Checks the length; the caller
//! checks the checksum.

use std::path::Path;
use std::time::Duration;

use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use tokio::fs::OpenOptions;
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

/// A file to download, which may be a part of a larger one.
pub(super) struct Wanted<'a> {
    pub(super) url: Url,
    /// Its exact size.
    pub(super) bytes: u64,
    /// The name of the whole, its size, and the bytes of it that are there already.
    pub(super) label: &'a str,
    pub(super) total: u64,
    pub(super) before: u64,
}

/// Whether a file is there, or the reason why its source does not give it. The error is one of the disk.
pub(super) type Fetched = Result<Result<(), String>, LocalError>;

/// Downloads a file. Reasons do not contain the address, which may include a password.
pub(super) async fn fetch(wanted: &Wanted<'_>, to: &Path, watch: Watch<'_>) -> Fetched {
    let client = match client(&wanted.url) {
        Ok(client) => client,
        Err(reason) => return Ok(Err(reason)),
    };
    let mut cut = String::new();
    for _ in 0..MAX_TRIES {
        let before = size(to).unwrap_or(0);
        match attempt(&client, wanted, to, watch).await? {
            // Give up at once if an attempt received nothing.
            Err(reason) if size(to).unwrap_or(0) != before => cut = reason,
            done => return Ok(done),
        }
    }
    Ok(Err(format!("it broke off {MAX_TRIES} times: {cut}")))
}

/// Creates a client for an address.
pub(super) fn client(url: &Url) -> Result<Client, String> {
    let client = match url.scheme() {
        "http" => tls::plain_client(),
        _ => tls::client(),
    };
    client
        .map_err(|error| error.to_string())?
        .connect_timeout(CONNECT_WAIT)
        .redirect(redirect::Policy::limited(MAX_REDIRECTS))
        .build()
        .map_err(|error| innermost(&error))
}

/// Downloads the missing bytes once.
async fn attempt(client: &Client, wanted: &Wanted<'_>, to: &Path, watch: Watch<'_>) -> Fetched {
    let bytes = wanted.bytes;
    let mut have = size(to).unwrap_or(0);
    if have > bytes {
        remove_file(to)?;
        have = 0;
    }
    if have == bytes {
        return Ok(Ok(()));
    }
    let mut request = client.get(wanted.url.clone());
    if have > 0 {
        request = request.header(RANGE, format!("bytes={have}-"));
    }
    let mut answer = match timeout(SILENCE, request.send()).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Ok(Err(innermost(&error.without_url()))),
        Err(_) => return Ok(Err("no answer".to_owned())),
    };
    let is_rest = match answer.status() {
        StatusCode::OK => false,
        StatusCode::PARTIAL_CONTENT if start(&answer) == Some(have) => true,
        status => {
            // The partial file may be the reason.
            remove_file(to)?;
            return Ok(Err(format!("status {}", status.as_u16())));
        }
    };
    if !is_rest {
        remove_file(to)?;
        have = 0;
    }
    let on_disk = |error| LocalError::file(to, error);
    let file = OpenOptions::new().create(true).append(true).open(to).await;
    let mut file = file.map_err(on_disk)?;
    let done = loop {
        let piece = match timeout(SILENCE, answer.chunk()).await {
            Ok(Ok(Some(piece))) => piece,
            Ok(Ok(None)) if have == bytes => break Ok(()),
            Ok(Ok(None)) => break Err(format!("it ended after {have} of {bytes} bytes")),
            Ok(Err(error)) => break Err(innermost(&error.without_url())),
            Err(_) => break Err(format!("silent for {} s", SILENCE.as_secs())),
        };
        have += piece.len() as u64;
        if have > bytes {
            drop(file);
            remove_file(to)?;
            return Ok(Err(format!("it is larger than {bytes} bytes")));
        }
        file.write_all(&piece).await.map_err(on_disk)?;
        watch(Progress::At {
            label: wanted.label,
            done: (wanted.before + have).min(wanted.total),
            total: wanted.total,
        });
    };
    file.flush().await.map_err(on_disk)?;
    Ok(done)
}

/// Returns the position at which a part of a file begins. Parses `bytes 100-199/200`.
fn start(answer: &Response) -> Option<u64> {
    let range = answer.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    let (start, _) = range.strip_prefix("bytes ")?.split_once('-')?;
    start.parse().ok()
}
