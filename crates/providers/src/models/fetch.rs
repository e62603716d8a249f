//! [`fetch_table`]: downloads a table of models, with bounded size and time. `table.rs` parses it.

use std::time::Duration;

use plimsoll_context::Bytes;
use reqwest::{Url, redirect};

use crate::http::innermost;
use crate::tls;

/// The address of LiteLLM's table.
pub const TABLE_URL: &str =
    "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json";
/// The maximum size of a table. LiteLLM's is about 3 MB.
pub const MAX_TABLE: Bytes = Bytes(32 * 1024 * 1024);
/// The timeout of the whole download.
const PATIENCE: Duration = Duration::from_secs(120);
/// The maximum number of redirects.
const MAX_REDIRECTS: usize = 3;

/// Returns an address that is safe to print and store: without the user, the query and the
/// fragment, which may contain credentials. A text that is not an address is replaced.
#[must_use]
pub fn table_address(url: &str) -> String {
    Url::parse(url).map_or_else(|_| "the table's address".to_owned(), |url| shown(&url))
}

/// Downloads a table. Credentials in the address are used but never shown. A redirect from `https`
/// to `http` is refused.
///
/// # Errors
/// If the address is invalid, or the download fails or is too large.
pub async fn fetch_table(url: &str) -> Result<Vec<u8>, String> {
    let parsed = Url::parse(url).map_err(|error| format!("not a valid address: {error}"))?;
    let scheme = parsed.scheme().to_owned();
    let url = shown(&parsed);
    if !["http", "https"].contains(&scheme.as_str()) {
        return Err(format!("{url} is no address of http or https"));
    }
    let client = match scheme.as_str() {
        "http" => tls::plain_client(),
        _ => tls::client().map(|client| client.https_only(true)),
    };
    let client = client.map_err(|error| format!("{url} cannot be fetched: {error}"))?;
    let said = |error: reqwest::Error| {
        let error = error.without_url();
        format!("{url} cannot be fetched: {}", innermost(&error))
    };
    let client = client
        .timeout(PATIENCE)
        .redirect(redirect::Policy::limited(MAX_REDIRECTS))
        .build()
        .map_err(said)?;
    let mut answer = client.get(parsed).send().await.map_err(said)?;
    let status = answer.status();
    if !status.is_success() {
        return Err(format!("{url} answers with status {}", status.as_u16()));
    }
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(said)? {
        if (body.len() + piece.len()) as u64 > MAX_TABLE.0 {
            return Err(format!(
                "{url} has more than {MAX_TABLE} bytes, which no table has"
            ));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map_or(String::new(), |port| format!(":{port}"));
    format!("{}://{host}{port}{}", url.scheme(), url.path())
}
