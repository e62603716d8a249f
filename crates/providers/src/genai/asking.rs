//! [`target`]: where a request goes. The address is ours and the headers are the client's, so that
//! a base URL, a proxy's query, a header given by hand and the key work as with other providers;
//! of the library only the body is taken.

use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use reqwest::Url;

use super::api::Api;
use crate::connection::Connection;

/// What the library cuts from the beginning of a name.
const NAMESPACE: &str = "::";

/// Where a request goes.
pub(super) fn target(line: &Connection, api: &Api) -> ServiceTarget {
    let name = line.model.name();
    // An ARN has what the library takes for the end of a namespace.
    let known = match name.contains(NAMESPACE) {
        true => format!("plimsoll{NAMESPACE}{name}"),
        false => name.to_owned(),
    };
    ServiceTarget {
        endpoint: Endpoint::from_static(""),
        auth: AuthData::RequestOverride {
            url: url(line, api).into(),
            headers: Headers::default(),
        },
        model: ModelIden::new(api.kind(), known),
    }
}

fn url(line: &Connection, api: &Api) -> Url {
    let base = &line.http.base;
    let name = segment(line.model.name());
    match api {
        Api::Gemini(_) => {
            let path = format!("models/{name}:streamGenerateContent");
            // A base without a path has been given the usual `/v1`, which knows less.
            streamed(match base.has_version() {
                true => base.beside(&format!("v1beta/{path}")),
                false => base.endpoint(&path),
            })
        }
        Api::Vertex(_) => {
            let path = format!("publishers/google/models/{name}:streamGenerateContent");
            streamed(base.endpoint(&path))
        }
        Api::Converse(_) => base.beside(&format!("model/{name}/converse-stream")),
        Api::Ollama(_) => base.beside("api/chat"),
    }
}

/// As events, not as one long list.
fn streamed(mut url: Url) -> Url {
    url.query_pairs_mut().append_pair("alt", "sse");
    url
}

/// A name as one segment of a path: ids of models hold `:` and `/`.
fn segment(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                segment.push(char::from(byte));
            }
            _ => segment.push_str(&format!("%{byte:02X}")),
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment() {
        assert_eq!(segment("amazon.nova-pro-v1:0"), "amazon.nova-pro-v1%3A0");
        assert_eq!(segment("arn:aws:x/y ü"), "arn%3Aaws%3Ax%2Fy%20%C3%BC");
        assert_eq!(segment("gemini-2.5-pro"), "gemini-2.5-pro");
    }
}
