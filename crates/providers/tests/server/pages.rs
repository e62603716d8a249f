//! The pages of servers about themselves, and the window and the provider that they show: the cases in
//! `tests/cases/pages.txt`.
//!
//! `page` is the status, the path and the body of an answer. `window` asks a client of that model for its window,
//! `detect` looks for a server in the place of that provider's. The outcome ends with the requests: the paths,
//! whether a key was sent, and bodies.

use std::path::Path;

use plimsoll_core::Provider;
use plimsoll_providers::{BaseUrl, Vendor, detect_servers};
use plimsoll_testkit::cases::{self, Case};

use super::chat;
use super::mocked::Fake;

#[test]
fn each_server_is_understood() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/pages.txt");
    cases::check(&file, |case| runtime.block_on(understood(case)));
}

async fn understood(case: &Case) -> Vec<String> {
    let mut fake = Fake::new("openai", []).await;
    for page in case.all("page") {
        let [status, path, body] = page.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("no page: {page}");
        };
        fake = fake.page(path, status.parse().unwrap(), cases::json(body));
    }
    let mut lines = Vec::new();
    if let Some(model) = case.get("window") {
        let window = chat(model, &fake).window().await;
        lines.push(format!("window {:?}", window.map(|tokens| tokens.0)));
    }
    if let Some(vendor) = case.get("detect") {
        let base = BaseUrl::parse(&fake.address, None).unwrap();
        let found = detect_servers([(Vendor::named(vendor).unwrap(), base)]).await;
        let found = &found[0];
        assert_eq!(found.base_url, format!("{}/v1", fake.address));
        lines.push(format!("{} {:?}", found.provider, found.state));
    }
    let asked = fake.asked().into_iter().map(|asked| {
        let key = asked.headers.contains_key("authorization");
        let key = if key { " with the key" } else { "" };
        let body = asked
            .body
            .as_object()
            .map_or_else(String::new, |_| format!(" {}", asked.body));
        format!("asked {}{key}{body}", asked.path)
    });
    let mut asked: Vec<String> = asked.collect();
    // A detection asks for several pages at once.
    if case.get("detect").is_some() {
        asked.sort();
    }
    lines.extend(asked);
    lines
}
