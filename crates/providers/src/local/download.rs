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

/// The reasons why a file is not there.
pub(super) enum FetchError {
    /// Its source does not give it.
    Source(String),
    /// It cannot be written.
    Disk(LocalError),
}

impl From<LocalError> for FetchError {
    fn from(error: LocalError) -> Self {
        Self::Disk(error)
    }
}

impl FetchError {
    /// Converts the error, with this one for the fault of a source.
    pub(super) fn or(self, source: impl FnOnce(String) -> LocalError) -> LocalError {
        match self {
            Self::Source(reason) => source(reason),
            Self::Disk(error) => error,
        }
    }
}

/// Downloads a file. Errors do not contain the address, which may include a password.
pub(super) async fn fetch(
    wanted: &Wanted<'_>,
    to: &Path,
    watch: Watch<'_>,
) -> Result<(), FetchError> {
    let client = client(&wanted.url).map_err(FetchError::Source)?;
    let mut cut = String::new();
    for _ in 0..MAX_TRIES {
        let before = size(to).unwrap_or(0);
        match attempt(&client, wanted, to, watch).await? {
            None => return Ok(()),
            // Give up at once if an attempt received nothing.
            Some(reason) if size(to).unwrap_or(0) == before => {
                return Err(FetchError::Source(reason));
            }
            Some(reason) => cut = reason,
        }
    }
    let reason = format!("it broke off {MAX_TRIES} times: {cut}");
    Err(FetchError::Source(reason))
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

/// Downloads the missing bytes. Returns the reason if that is interrupted.
async fn attempt(
    client: &Client,
    wanted: &Wanted<'_>,
    to: &Path,
    watch: Watch<'_>,
) -> Result<Option<String>, FetchError> {
    let bytes = wanted.bytes;
    let mut have = size(to).unwrap_or(0);
    if have > bytes {
        remove_file(to)?;
        have = 0;
    }
    if have == bytes {
        return Ok(None);
    }
    let mut request = client.get(wanted.url.clone());
    if have > 0 {
        request = request.header(RANGE, format!("bytes={have}-"));
    }
    let refused = |reason: String| Err(FetchError::Source(reason));
    let mut answer = match timeout(SILENCE, request.send()).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return refused(innermost(&error.without_url())),
        Err(_) => return refused("no answer".to_owned()),
    };
    let on_disk = |error| LocalError::file(to, error);
    let file = match answer.status() {
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
            return refused(format!("status {}", status.as_u16()));
        }
    };
    let mut file = file.map_err(on_disk)?;
    let cut = loop {
        let piece = match timeout(SILENCE, answer.chunk()).await {
            Ok(Ok(Some(piece))) => piece,
            Ok(Ok(None)) if have == bytes => break None,
            Ok(Ok(None)) => break Some(format!("it ended after {have} of {bytes} bytes")),
            Ok(Err(error)) => break Some(innermost(&error.without_url())),
            Err(_) => break Some(format!("silent for {} s", SILENCE.as_secs())),
        };
        have += piece.len() as u64;
        if have > bytes {
            drop(file);
            remove_file(to)?;
            return refused(format!("it is larger than {bytes} bytes"));
        }
        file.write_all(&piece).await.map_err(on_disk)?;
        watch(Progress::At {
            label: wanted.label,
            done: (wanted.before + have).min(wanted.total),
            total: wanted.total,
        });
    };
    file.flush().await.map_err(on_disk)?;
    Ok(cut)
}

/// Returns the position at which a part of a file begins. Parses `bytes 100-199/200`.
fn start(answer: &Response) -> Option<u64> {
    let range = answer.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    let (start, _) = range.strip_prefix("bytes ")?.split_once('-')?;
    start.parse().ok()
}
