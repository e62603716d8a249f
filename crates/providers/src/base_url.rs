//! [`BaseUrl`]: the address of a server's API. Accepts common variants (no scheme, no `/v1`, the
//! full path of an endpoint).

use std::fmt;
use std::net::IpAddr;

use plimsoll_core::telemetry::ServerAddress;
use reqwest::Url;

use crate::error::ProviderError;
use plimsoll_core::Secret;

/// The endpoint paths that users often copy together with the address.
const ENDPOINTS: [&str; 3] = ["/chat/completions", "/responses", "/messages"];
/// The path of the API if the address has none. Nearly all servers use it.
const USUAL_PATH: &str = "/v1";

/// Query parameters that are not secret. Error messages mention the version that they reject.
const OPEN: [&str; 1] = ["api-version"];

/// The address of an API.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    url: Url,
}

impl BaseUrl {
    /// Parses an address. If the text has neither a scheme nor a port, the port of the vendor's
    /// usual address is used.
    ///
    /// # Errors
    /// [`ProviderError::BadBaseUrl`] if the text is not an HTTP address or contains a user or a
    /// password.
    pub fn parse(text: &str, usual: Option<&str>) -> Result<Self, ProviderError> {
        let text = text.trim();
        // Somebody may have taken a key for an address.
        let is_key = !text.contains('/') && Secret::new(text).looks_like_a_key();
        let bad = |reason: &str| ProviderError::BadBaseUrl {
            given: Self::masked(if is_key { "***" } else { text }),
            reason: reason.to_owned(),
        };
        if text.is_empty() {
            return Err(bad("it is empty"));
        }
        let mut url = match text.contains("://") {
            true => Url::parse(text).map_err(|error| bad(&error.to_string()))?,
            false => bare(text, usual).ok_or_else(|| bad("it is no address"))?,
        };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("it is neither http nor https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad(
                "it has a user or a password in it, which belong into a key",
            ));
        }
        if ip(&url).is_some_and(|ip| ip.is_unspecified())
            && url.set_host(Some("127.0.0.1")).is_err()
        {
            return Err(bad("it has no host"));
        }
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/');
        let copied = ENDPOINTS.iter().find_map(|end| path.strip_suffix(end));
        let path = copied.unwrap_or(path);
        let path = if path.is_empty() { USUAL_PATH } else { path }.to_owned();
        url.set_path(&path);
        Ok(Self { url })
    }

    /// Returns an address without the parameters that may contain a key, so that it may be stored.
    #[must_use]
    pub fn without_secrets(address: &str) -> String {
        let address = address.split('#').next().unwrap_or_default();
        let Some((address, query)) = address.split_once('?') else {
            return address.to_owned();
        };
        let name = |piece: &&str| OPEN.contains(&piece.split('=').next().unwrap_or_default());
        let open: Vec<&str> = query.split(['&', ';']).filter(name).collect();
        match open.as_slice() {
            [] => address.to_owned(),
            open => format!("{address}?{}", open.join("&")),
        }
    }

    /// Returns a text that may be an address without its user, password, query and fragment, for
    /// messages.
    #[must_use]
    pub fn masked(text: &str) -> String {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (format!("{scheme}://"), rest),
            None => (String::new(), text),
        };
        // A password may contain any character, so everything up to the last `@` may belong to it.
        let (user, rest) = match rest.rsplit_once('@') {
            Some((_, rest)) => ("***@", rest),
            None => ("", rest),
        };
        match rest.split_once(['?', '#']) {
            Some((place, _)) => format!("{scheme}{user}{place}?***"),
            None => format!("{scheme}{user}{rest}"),
        }
    }

    /// Returns the host and port, for spans and metrics.
    #[must_use]
    pub(crate) fn server(&self) -> Option<ServerAddress> {
        Some(ServerAddress {
            host: self.url.host_str()?.to_owned(),
            port: self.url.port_or_known_default()?,
        })
    }

    /// Checks whether this is a regional address of `other`: its host is a subdomain, and the rest
    /// is equal.
    #[must_use]
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        let [own, host] = [self, other].map(|base| base.url.host_str().unwrap_or_default());
        let region = own.strip_suffix(host);
        let is_region = region.is_some_and(|region| region.len() > 1 && region.ends_with('.'));
        let same = |url: &Url| {
            let port = url.port_or_known_default();
            (url.scheme().to_owned(), port, url.path().to_owned())
        };
        is_region && !host.is_empty() && same(&self.url) == same(&other.url)
    }

    /// Returns the address of an endpoint below this address.
    #[must_use]
    pub(crate) fn endpoint(&self, path: &str) -> Url {
        self.with_path(&format!("{}/{path}", self.url.path()))
    }

    /// Checks whether the path ends with a version of the API, such as `/v1`.
    #[must_use]
    pub(crate) fn has_version(&self) -> bool {
        self.url.path().ends_with(USUAL_PATH)
    }

    /// Returns the address of an endpoint beside the API, such as `/props`. Servers keep endpoints
    /// there that OpenAI's API does not have.
    #[must_use]
    pub(crate) fn at_root(&self, path: &str) -> Url {
        let base = self.url.path();
        let base = base.strip_suffix(USUAL_PATH).unwrap_or(base);
        self.with_path(&format!("{base}/{path}"))
    }

    /// Checks whether the server is on this machine. Such requests bypass proxies and need no
    /// certificates.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let name = self.url.host_str().unwrap_or_default();
        let local = name == "localhost" || name.ends_with(".localhost");
        local || ip(&self.url).is_some_and(|ip| ip.is_loopback())
    }

    /// Returns the values of the query parameters, as written and decoded. Some servers expect a
    /// key there and repeat it in their replies.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let raw = self.url.query().unwrap_or_default().split('&');
        let raw = raw.map(|piece| piece.split_once('=').unwrap_or(("", piece)));
        let read = self.url.query_pairs();
        let read = read.map(|(name, value)| {
            if value.is_empty() {
                (String::new(), name.into_owned())
            } else {
                (name.into_owned(), value.into_owned())
            }
        });
        let raw = raw.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let said = raw
            .chain(read)
            .filter(|(name, _)| !OPEN.contains(&name.as_str()));
        said.map(|(_, value)| Secret::new(&value)).collect()
    }

    fn with_path(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(path);
        url
    }
}

impl fmt::Display for BaseUrl {
    /// Writes the address without its query, which may contain a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.url.clone();
        url.set_query(None);
        f.write_str(url.as_str())
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BaseUrl({self})")
    }
}

/// Parses an address without a scheme. Uses http for `localhost` and IP addresses, and https
/// otherwise.
fn bare(text: &str, usual: Option<&str>) -> Option<Url> {
    let mut url = Url::parse(&format!("http://{text}")).ok()?;
    let usual = usual.and_then(|usual| Url::parse(usual).ok());
    // The parser drops port 80 as the default, so look for it in the text.
    let host = text.split(['/', '?']).next().unwrap_or_default();
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| {
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    if let (false, Some(usual)) = (has_port, usual) {
        url.set_port(usual.port()).ok()?;
    }
    let name = url.host_str().unwrap_or_default();
    if name != "localhost" && ip(&url).is_none() {
        // A word alone is more likely a mistake than the name of a server.
        if !has_port && url.port().is_none() && !name.contains('.') {
            return None;
        }
        url.set_scheme("https").ok()?;
    }
    Some(url)
}

fn ip(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    let host = host.strip_prefix('[').unwrap_or(host);
    host.strip_suffix(']').unwrap_or(host).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLLAMA: Option<&str> = Some("http://127.0.0.1:11434/v1");

    #[test]
    fn an_address_to_be_stored_has_no_key() {
        for (address, stored) in [
            ("localhost:8080", "localhost:8080"),
            ("https://gate.example/v1#key=k", "https://gate.example/v1"),
            (
                "https://a.example/v1?api-version=1;key=k",
                "https://a.example/v1?api-version=1",
            ),
            (
                "https://gate.example/v1?key=k-123",
                "https://gate.example/v1",
            ),
            (
                "https://a.example/v1?key=k-123&api-version=2026-01-01",
                "https://a.example/v1?api-version=2026-01-01",
            ),
        ] {
            assert_eq!(BaseUrl::without_secrets(address), stored);
        }
    }

    #[test]
    fn what_people_write_is_understood() {
        for (text, usual, endpoint) in [
            (
                "https://api.openai.com/v1",
                None,
                "https://api.openai.com/v1/models",
            ),
            (
                "https://api.openai.com/v1/",
                None,
                "https://api.openai.com/v1/models",
            ),
            (
                "http://127.0.0.1:8080",
                None,
                "http://127.0.0.1:8080/v1/models",
            ),
            ("http://h:1/v1/messages", None, "http://h:1/v1/models"),
            (
                " http://h:1/x/chat/completions ",
                None,
                "http://h:1/x/models",
            ),
            ("localhost:8080", None, "http://localhost:8080/v1/models"),
            ("[::1]:8080", None, "http://[::1]:8080/v1/models"),
            ("192.168.0.7:80/v1", OLLAMA, "http://192.168.0.7/v1/models"),
            ("0.0.0.0", OLLAMA, "http://127.0.0.1:11434/v1/models"),
            (
                "http://[::]:11434",
                OLLAMA,
                "http://127.0.0.1:11434/v1/models",
            ),
            ("example.com", None, "https://example.com/v1/models"),
            (
                "example.com/api?api-version=2",
                None,
                "https://example.com/api/models?api-version=2",
            ),
        ] {
            let base = BaseUrl::parse(text, usual).unwrap();
            assert_eq!(base.endpoint("models").as_str(), endpoint, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_secrets() {
        for text in [
            "",
            "  ",
            "ftp://h/v1",
            "http://",
            "http://me:hush@h/v1",
            "h h",
            "me:hush@h:x",
            "me:hu?hush@h:x",
            "foo",
            "foo/v1",
        ] {
            let error = BaseUrl::parse(text, None).unwrap_err().to_string();
            assert!(!error.contains("hush"), "{error}");
        }
        let base = BaseUrl::parse("https://h/v1?key=hush", None).unwrap();
        assert_eq!(base.to_string(), "https://h/v1");
        assert_eq!(format!("{base:?}"), "BaseUrl(https://h/v1)");
        let base = "https://h/v1?key=hush%2Fhush+hush&api-version=2024-10-21&hushhushhush";
        let secrets = BaseUrl::parse(base, None).unwrap().secrets();
        for said in ["hush%2Fhush+hush", "hush/hush hush", "hushhushhush"] {
            let struck = secrets
                .iter()
                .fold(said.to_owned(), |text, secret| secret.strike_out(text));
            assert_eq!(struck, "[secret]", "{said}");
        }
        let said = "there is no version 2024-10-21".to_owned();
        let struck = secrets
            .iter()
            .fold(said.clone(), |text, secret| secret.strike_out(text));
        assert_eq!(struck, said);
    }

    #[test]
    fn this_machine_is_known() {
        for (text, here) in [
            ("127.0.0.1:1", true),
            ("127.8.0.1:1", true),
            ("localhost:1", true),
            ("http://a.localhost:1", true),
            ("[::1]:1", true),
            ("0.0.0.0:1", true),
            ("192.168.0.7:1", false),
            ("https://localhost.example.com", false),
        ] {
            assert_eq!(
                BaseUrl::parse(text, None).unwrap().is_loopback(),
                here,
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_beside_the_api_is_found() {
        for (text, beside) in [
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/props"),
            (
                "http://127.0.0.1:8080/llama/v1",
                "http://127.0.0.1:8080/llama/props",
            ),
            (
                "http://127.0.0.1:8080/api",
                "http://127.0.0.1:8080/api/props",
            ),
        ] {
            let base = BaseUrl::parse(text, None).unwrap();
            assert_eq!(base.at_root("props").as_str(), beside);
        }
    }
}
