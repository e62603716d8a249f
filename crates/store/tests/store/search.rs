//! Random archives and queries: every store returns the same hits as a search of every item.

use std::sync::Arc;

use plimsoll_context::{CallId, Message, Seq};
use plimsoll_core::archive::SearchQuery;
use plimsoll_core::{ArchiveBounds, ArchivedItem, Hit, SessionId};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::script::{Case, stores};

const LIMIT: usize = 40;
/// Words of every form: some begin others, one has parts, one is written without spaces.
const WORDS: [&str; 10] = [
    "ledger",
    "led",
    "harbour",
    "harbourMaster",
    "ship-7",
    "ship",
    "7",
    "文件",
    "e0277",
    "x",
];

fn text() -> impl Strategy<Value = String> {
    let word = proptest::sample::select(&WORDS[..]);
    proptest::collection::vec(word, 1..6).prop_map(|words| words.join(" "))
}

#[test]
fn every_store_finds_what_a_look_at_every_item_finds() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bounds = ArchiveBounds {
        session_items: 30,
        ..ArchiveBounds::default()
    };
    let stores = runtime.block_on(stores(bounds));
    // An item may be archived again under its number.
    let items = proptest::collection::vec((0..40_u64, text()), 1..60);
    let cases = Config {
        cases: 40,
        ..Config::default()
    };
    let round = std::cell::Cell::new(0);
    let ran = TestRunner::new(cases).run(&(items, text()), |(items, query)| {
        round.set(round.get() + 1);
        let session = SessionId::new(format!("s{}", round.get())).unwrap();
        let found: Vec<Vec<Hit>> = stores
            .iter()
            .map(|Case { store, .. }| {
                runtime.block_on(async {
                    let lease = store.acquire(&session).await.unwrap();
                    for (seq, text) in &items {
                        let item = ArchivedItem {
                            seq: Seq(*seq),
                            message: Arc::new(Message::result(CallId("c".to_owned()), text)),
                            tool: None,
                            why: "test".to_owned(),
                        };
                        store.archive(&lease, &[item]).await.unwrap();
                    }
                    store.search(&session, &query, LIMIT).await.unwrap()
                })
            })
            .collect();
        let [first, others @ ..] = found.as_slice() else {
            unreachable!("there is a store in memory");
        };
        for other in others {
            prop_assert_eq!(other, first, "{}", query);
        }

        // The newest thirty, each once.
        let mut held: Vec<&(u64, String)> = Vec::new();
        for item in items.iter().rev() {
            if held.len() < 30 && held.iter().all(|had| had.0 != item.0) {
                held.push(item);
            }
        }
        let query = SearchQuery::parse(&query).unwrap();
        let found = |text| query.find(text).map_or(0, |found| found.terms);
        let most = held.iter().map(|(_, text)| found(text)).max().unwrap_or(0);
        let all = query.terms().len();
        let mut wanted: Vec<(u64, usize)> = held
            .iter()
            .map(|(seq, text)| (*seq, found(text)))
            .filter(|(_, terms)| *terms > 0 && (most < all || *terms == all))
            .collect();
        wanted.sort_unstable();
        let mut hits: Vec<(u64, usize)> = first.iter().map(|hit| (hit.id.0.0, hit.terms)).collect();
        hits.sort_unstable();
        prop_assert_eq!(hits, wanted, "{:?}", query);
        prop_assert!(first.is_sorted_by_key(|hit| std::cmp::Reverse(hit.terms)));
        Ok(())
    });
    ran.unwrap();
}
