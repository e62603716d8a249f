//! [`fetch_table`]: a table of models from an address, bounded in size and time. What it says is
//! read in `table.rs`.

use std::time::Duration;

use plimsoll_context::Bytes;
use reqwest::{Url, redirect};

use crate::http::innermost;

/// Where LiteLLM keeps its table.
pub const TABLE_URL: &str =
    "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json";
/// A table, at most: LiteLLM's has 3 MB.
pub const MAX_TABLE: Bytes = Bytes(32 * 1024 * 1024);
/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often an address may point to another.
const MAX_REDIRECTS: usize = 3;

/// An address as it may be shown and kept: without the user, the query and the fragment, where
/// credentials stand. What is no address is shown as nothing.
#[must_use]
pub fn table_address(url: &str) -> String {
    Url::parse(url).map_or_else(|_| "the table's address".to_owned(), |url| shown(&url))
}

/// Fetches a table. Credentials in the address are used, and never shown. A redirect does not lead
/// away from `https`.
///
/// # Errors
/// A sentence that says what is wrong.
pub async fn fetch_table(url: &str) -> Result<Vec<u8>, String> {
    let parsed =
        Url::parse(url).map_err(|error| format!("what is given is no address: {error}"))?;
    let scheme = parsed.scheme().to_owned();
    let url = shown(&parsed);
    if !["http", "https"].contains(&scheme.as_str()) {
        return Err(format!("{url} is no address of http or https"));
    }
    let mut client = crate::tls::client()
        .user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION")))
        .timeout(PATIENCE)
        .https_only(scheme == "https")
        .redirect(redirect::Policy::limited(MAX_REDIRECTS));
    if scheme == "http" {
        client = client.no_proxy().tls_certs_only([]);
    }
    let said = |error: reqwest::Error| {
        let error = error.without_url();
        format!("{url} cannot be fetched: {}", innermost(&error))
    };
    let client = client.build().map_err(said)?;
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
