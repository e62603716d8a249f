//! [`fetch_table`]: a table of models from an address, bounded in size and time. What it says is
//! read in `table.rs`.

use std::time::Duration;

use plimsoll_context::Bytes;
use reqwest::{Client, Url, redirect};

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

/// Fetches a table.
///
/// # Errors
/// A sentence that says what is wrong.
pub async fn fetch_table(url: &str) -> Result<Vec<u8>, String> {
    let parsed = Url::parse(url).map_err(|error| format!("{url} is no address: {error}"))?;
    let mut client = Client::builder()
        .user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION")))
        .timeout(PATIENCE)
        .redirect(redirect::Policy::limited(MAX_REDIRECTS));
    if parsed.scheme() == "http" {
        client = client.no_proxy().tls_certs_only([]);
    }
    let said = |error: reqwest::Error| format!("{url} cannot be fetched: {}", innermost(&error));
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
