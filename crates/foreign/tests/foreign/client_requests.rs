//! Requests of real clients, as `cargo xtask clients` records them.

use std::path::{Path, PathBuf};

use plimsoll_wire::Target;
use serde_json::Value;

/// A client and the requests that it sent.
pub(crate) struct Client {
    pub(crate) name: String,
    /// `client.json`: version, protocol, refused requests.
    pub(crate) about: Value,
    /// File and text of each request.
    pub(crate) requests: Vec<(PathBuf, String)>,
}

impl Client {
    /// Returns the server that a request is for.
    pub(crate) fn target(&self, request: &Value) -> Target {
        let protocol = self.about["protocol"].as_str().unwrap();
        Target::of_protocol(protocol, request["model"].as_str()).unwrap()
    }
}

/// Returns the folder of the recordings.
pub(crate) fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    );
    target.join("clients/requests")
}

/// Returns all clients, or `None` with a message if none was recorded.
pub(crate) fn clients() -> Option<Vec<Client>> {
    if !folder().is_dir() {
        println!("skipped: no recorded requests; `cargo xtask clients` records them");
        return None;
    }
    let clients = sorted(&folder()).into_iter().map(|client| {
        let about = std::fs::read_to_string(client.join("client.json")).unwrap();
        let requests = sorted(&client)
            .into_iter()
            .filter(|path| !path.ends_with("client.json"))
            .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()));
        Client {
            name: client.file_name().unwrap().to_string_lossy().into_owned(),
            about: serde_json::from_str(&about).unwrap(),
            requests: requests.collect(),
        }
    });
    Some(clients.collect())
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}
