//! The contract of archives: the same test checks every store that has one.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Message, Part, Seq, Tokens, ToolCall};
use plimsoll_core::archive::{RecallTools, SNIPPET};
use plimsoll_core::{
    ArchiveBounds, ArchivedItem, ArchivedKind, Hit, Lease, MemoryStore, RecallError, RecallId,
    RecallKey, SessionId, SessionStore, StoreError, Tool, ToolContext, recall_tools,
};
use plimsoll_store::{ARCHIVE, SqliteStore};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::script::{id, options, stores};

fn m(seq: u64) -> RecallId {
    RecallId(Seq(seq))
}

fn result(seq: u64, call: &str, text: &str) -> ArchivedItem {
    ArchivedItem {
        seq: Seq(seq),
        message: Arc::new(Message::result(CallId(call.to_owned()), text)),
        tool: Some("read".to_owned()),
        why: "request: prune".to_owned(),
    }
}

fn said(seq: u64, message: Message) -> ArchivedItem {
    ArchivedItem {
        seq: Seq(seq),
        message: Arc::new(message),
        tool: None,
        why: "request: evict".to_owned(),
    }
}

async fn text(
    store: &dyn SessionStore,
    session: &SessionId,
    key: &str,
) -> Result<String, RecallError> {
    let recalled = store.recall(session, &RecallKey::from(key)).await?;
    Ok(recalled.text())
}

async fn found(store: &dyn SessionStore, session: &SessionId, query: &str) -> Vec<RecallId> {
    let hits = store.search(session, query, 20).await.unwrap();
    hits.iter().map(|hit| hit.id).collect()
}

async fn leased(store: &dyn SessionStore, name: &str) -> (SessionId, Lease) {
    let session = id(name);
    let lease = store.acquire(&session).await.unwrap();
    (session, lease)
}

#[tokio::test]
async fn every_byte_comes_back_whatever_it_is() {
    let texts = [
        "",
        "0",
        "false",
        "null",
        "  \r\n ",
        "\u{0}\u{1}\u{7f}",
        "é文🦀e\u{301}",
        "\"'`;--",
    ];
    for case in stores(ArchiveBounds::default()).await {
        let store = case.store.as_ref();
        let (session, lease) = leased(store, "s").await;
        store.archives().await.unwrap();
        let items: Vec<ArchivedItem> = (0..)
            .zip(texts)
            .map(|(seq, text)| result(seq, &format!("call_{seq}"), text))
            .collect();
        store.archive(&lease, &items).await.unwrap();
        for (seq, text_in) in (0..).zip(texts) {
            let item = store.recall(&session, &m(seq).into()).await.unwrap();
            assert_eq!(item.text(), text_in, "{}", case.name);
            assert_eq!(item.message, items[usize::try_from(seq).unwrap()].message);
            assert_eq!((item.id, item.kind), (m(seq), ArchivedKind::ToolResult));
            assert_eq!(item.tool.as_deref(), Some("read"));
            assert_eq!(item.call, Some(CallId(format!("call_{seq}"))));
            assert_eq!(item.why, "request: prune");
            for key in [
                format!("m{seq}"),
                format!("{seq}"),
                format!("call_{seq}"),
                format!("#{seq}"),
            ] {
                assert_eq!(text(store, &session, &key).await.unwrap(), text_in, "{key}");
            }
        }
    }
}

#[tokio::test]
async fn every_kind_of_message_comes_back_whole() {
    let call = ToolCall {
        id: CallId("c".to_owned()),
        name: "write".to_owned(),
        arguments: "{\"text\":  1.50}".to_owned(),
        opaque: None,
    };
    let messages = [
        (Message::system("rules"), ArchivedKind::System),
        (Message::user("task"), ArchivedKind::User),
        (
            Message::Assistant {
                parts: vec![Part::text("I write."), Part::ToolCall(call)],
            },
            ArchivedKind::Assistant,
        ),
        (
            Message::error_result(CallId("c".to_owned()), "no such file"),
            ArchivedKind::ToolResult,
        ),
        (
            Message::Notice {
                text: "a limit".to_owned(),
            },
            ArchivedKind::Notice,
        ),
        (
            Message::Summary {
                text: "what was".to_owned(),
            },
            ArchivedKind::Summary,
        ),
    ];
    for case in stores(ArchiveBounds::default()).await {
        let store = case.store.as_ref();
        let (session, lease) = leased(store, "s").await;
        let items: Vec<ArchivedItem> = (0..)
            .zip(&messages)
            .map(|(seq, (message, _))| said(seq, message.clone()))
            .collect();
        store.archive(&lease, &items).await.unwrap();
        for (seq, (message, kind)) in (0..).zip(&messages) {
            let item = store.recall(&session, &m(seq).into()).await.unwrap();
            assert_eq!(
                (item.message.as_ref(), item.kind),
                (message, *kind),
                "{}",
                case.name
            );
        }
        let rows = store.archived(&session).await.unwrap();
        assert_eq!(rows.len(), messages.len());
        assert_eq!(
            text(store, &session, "m2").await.unwrap(),
            "I write.\nwrite {\"text\":  1.50}"
        );
        assert!(rows.iter().all(|row| !row.expired));
    }
}

/// A log that was begun anew, or was cut, numbers its items again: what an item says is what was
/// archived last under its number, and nothing of the former one is found.
#[tokio::test]
async fn a_number_that_is_used_again_means_the_new_item_alone() {
    for case in stores(ArchiveBounds::default()).await {
        let (store, name) = (case.store.as_ref(), case.name);
        let (session, lease) = leased(store, "s").await;
        let old = [result(4, "c", "the oldlog"), result(5, "d", "untouched")];
        store.archive(&lease, &old).await.unwrap();
        let new = [
            said(4, Message::user("a newlog question")),
            result(6, "e", "one"),
            result(6, "e", "two"),
        ];
        store.archive(&lease, &new).await.unwrap();
        store.archive(&lease, &[]).await.unwrap();
        let item = store.recall(&session, &m(4).into()).await.unwrap();
        assert_eq!(item.text(), "a newlog question", "{name}");
        assert_eq!((item.kind, item.call), (ArchivedKind::User, None), "{name}");
        assert_eq!(item.why, "request: evict", "{name}");
        assert_eq!(found(store, &session, "oldlog").await, [], "{name}");
        assert_eq!(found(store, &session, "newlog").await, [m(4)], "{name}");
        assert!(text(store, &session, "c").await.is_err(), "{name}");
        assert_eq!(text(store, &session, "m5").await.unwrap(), "untouched");
        assert_eq!(text(store, &session, "m6").await.unwrap(), "two");
        let unknown = text(store, &session, "m3").await.unwrap_err();
        assert!(
            matches!(unknown, RecallError::Unknown(_)),
            "{name}: {unknown}"
        );
        let rows = store.archived(&session).await.unwrap();
        let ids: Vec<RecallId> = rows.iter().map(|row| row.id).collect();
        assert_eq!(ids, [m(4), m(5), m(6)], "{name}");
    }
}

#[tokio::test]
async fn nothing_is_found_of_what_the_log_has_not_said() {
    let bounds = ArchiveBounds {
        session_items: 2,
        ..ArchiveBounds::default()
    };
    for case in stores(bounds).await {
        let (store, name) = (case.store.as_ref(), case.name);
        let (session, lease) = leased(store, "s").await;
        let (other, other_lease) = leased(store, "t").await;
        for lease in [&lease, &other_lease] {
            for seq in 0..4 {
                let item = result(seq, "c", "of the oldlog");
                store.archive(lease, &[item]).await.unwrap();
            }
        }
        for (next, held) in [(4, &[m(2), m(3)][..]), (3, &[m(2)]), (0, &[])] {
            store.archive_up_to(&lease, Seq(next)).await.unwrap();
            let mut hits = found(store, &session, "oldlog").await;
            hits.sort();
            assert_eq!(hits, held, "{name}");
            for seq in next..4 {
                let error = text(store, &session, &format!("m{seq}")).await.unwrap_err();
                assert!(matches!(error, RecallError::Unknown(_)), "{name}: {error}");
            }
        }
        assert_eq!(store.archived(&session).await.unwrap(), [], "{name}");
        assert_eq!(found(store, &other, "oldlog").await.len(), 2, "{name}");
    }
}

#[tokio::test]
async fn whatever_is_archived_is_held_also_what_had_expired_or_is_the_oldest() {
    let bounds = ArchiveBounds {
        session_items: 2,
        ..ArchiveBounds::default()
    };
    for case in stores(bounds).await {
        let (store, name) = (case.store.as_ref(), case.name);
        let (session, lease) = leased(store, "s").await;
        for seq in 0..3 {
            let item = result(seq, "c", &format!("text {seq}"));
            store.archive(&lease, &[item]).await.unwrap();
        }
        assert!(text(store, &session, "m0").await.is_err(), "{name}");
        // The first had expired, and the second is the oldest that is held.
        for again in [[0, 3], [2, 4], [3, 0], [0, 3]] {
            let items = again.map(|seq| result(seq, "c", &format!("text {seq}")));
            store.archive(&lease, &items).await.unwrap();
            for seq in again {
                let whole = text(store, &session, &format!("m{seq}")).await;
                assert_eq!(whole.unwrap(), format!("text {seq}"), "{name}");
            }
            let mut hits = found(store, &session, "text").await;
            hits.sort();
            let mut wanted = again.map(m);
            wanted.sort();
            assert_eq!(hits, wanted, "{name}");
            let rows = store.archived(&session).await.unwrap();
            let held = rows.iter().filter(|row| !row.expired).count();
            assert_eq!(held, 2, "{name}");
        }
    }
}

#[tokio::test]
async fn an_unknown_id_and_another_session_get_a_refusal_never_a_text() {
    for case in stores(ArchiveBounds::default()).await {
        let store = case.store.as_ref();
        let (ours, lease) = leased(store, "ours").await;
        let (theirs, _lease) = leased(store, "theirs").await;
        store
            .archive(&lease, &[result(4, "call_4", "secret")])
            .await
            .unwrap();
        let keys = [
            "m5",
            "5",
            "call_",
            "call_44",
            "CALL_4",
            "m4 ",
            "",
            "' OR 1=1 --",
            "m-4",
            "m04",
        ];
        for key in keys {
            let is = text(store, &ours, key).await;
            match key.trim() {
                "m4" => assert_eq!(is.unwrap(), "secret"),
                _ => assert!(
                    matches!(is, Err(RecallError::Unknown(_))),
                    "{}: {key}",
                    case.name
                ),
            }
        }
        for key in ["m4", "4", "call_4"] {
            let is = text(store, &theirs, key).await;
            assert!(
                matches!(is, Err(RecallError::Unknown(_))),
                "{}: {key}",
                case.name
            );
        }
        assert_eq!(found(store, &ours, "secret").await, [m(4)]);
        assert_eq!(found(store, &theirs, "secret").await, []);
        let said = text(store, &ours, "m5").await.unwrap_err().to_string();
        assert!(
            said.contains("`m5`") && said.contains("recall_search"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_call_id_means_an_item_only_where_it_means_no_other() {
    for case in stores(ArchiveBounds::default()).await {
        let store = case.store.as_ref();
        let (session, lease) = leased(store, "s").await;
        let items = [
            result(2, "call_1", "first"),
            result(4, "call_2", "second"),
            result(6, "call_1", "third"),
            result(8, "4", "a bare number"),
        ];
        store.archive(&lease, &items).await.unwrap();
        assert_eq!(text(store, &session, "call_2").await.unwrap(), "second");
        let error = text(store, &session, "call_1").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "`call_1` is ambiguous: it may mean item #2 or #6; write it like that"
        );
        let error = text(store, &session, "4").await.unwrap_err();
        assert!(
            matches!(&error, RecallError::Ambiguous { candidates, .. } if *candidates == [m(4), m(8)]),
            "{}: {error}",
            case.name
        );
        assert_eq!(text(store, &session, "m4").await.unwrap(), "second");
        assert_eq!(text(store, &session, "8").await.unwrap(), "a bare number");
    }
}

/// Some servers count their calls `m1`, `m2`, as items are counted.
#[tokio::test]
async fn a_call_id_that_looks_like_an_item_means_the_call_unless_there_is_such_an_item() {
    for case in stores(ArchiveBounds::default()).await {
        let (store, name) = (case.store.as_ref(), case.name);
        let (session, lease) = leased(store, "s").await;
        let items = [
            result(3, "m2", "the third item"),
            result(5, "m3", "the call m3"),
            result(7, "m7", "item and call"),
        ];
        store.archive(&lease, &items).await.unwrap();
        let recalled = async |key| text(store, &session, key).await;
        assert_eq!(recalled("m2").await.unwrap(), "the third item", "{name}");
        assert_eq!(recalled("m7").await.unwrap(), "item and call", "{name}");
        let error = recalled("m3").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "`m3` is ambiguous: it may mean item #3 or #5; write it like that",
            "{name}"
        );
        assert_eq!(recalled("#3").await.unwrap(), "the third item", "{name}");
        assert_eq!(recalled("#5").await.unwrap(), "the call m3", "{name}");
        let unknown = recalled("#2").await;
        assert!(matches!(unknown, Err(RecallError::Unknown(_))), "{name}");
    }
}

/// Servers that count calls anew in each answer use an id again and again.
#[tokio::test]
async fn a_call_id_means_the_item_that_is_still_held_whatever_has_expired() {
    let bounds = ArchiveBounds {
        session_items: 2,
        ..ArchiveBounds::default()
    };
    for forgets in [false, true] {
        let bounds = ArchiveBounds {
            expired_items: if forgets { 1 } else { bounds.expired_items },
            ..bounds
        };
        for case in stores(bounds).await {
            let (store, name) = (case.store.as_ref(), case.name);
            let (session, lease) = leased(store, "s").await;
            for seq in 0..20 {
                // The ids of the even ones are the same.
                let call = if seq % 2 == 0 { "call_0" } else { "call_1" };
                let item = result(seq, call, &format!("text {seq}"));
                store.archive(&lease, &[item]).await.unwrap();
            }
            let recalled = async |key| text(store, &session, key).await;
            assert_eq!(recalled("call_0").await.unwrap(), "text 18", "{name}");
            assert_eq!(recalled("call_1").await.unwrap(), "text 19", "{name}");
            let item = result(20, "call_1", "text 20");
            store.archive(&lease, &[item]).await.unwrap();
            let error = recalled("call_1").await.unwrap_err().to_string();
            assert!(error.contains("item #19 or #20;"), "{name}: {error}");
            let expired = recalled("call_0").await;
            assert!(matches!(expired, Err(RecallError::Expired(_))), "{name}");
            let expired = recalled("m0").await;
            assert!(matches!(expired, Err(RecallError::Expired(_))), "{name}");
            let known = store.archived(&session).await.unwrap().len();
            assert_eq!(known, if forgets { 3 } else { 21 }, "{name}");
        }
    }
    assert!(bounds.expired_items >= 10_000);
}

/// Archives items of 1,000 bytes one by one, and says which can still be recalled.
async fn held_of(
    store: &dyn SessionStore,
    lease: &Lease,
    session: &SessionId,
    count: u64,
) -> Vec<u64> {
    let mut held = Vec::new();
    for seq in 0..count {
        let text = format!("{seq:04}{}", "x".repeat(900));
        store
            .archive(lease, &[result(seq, &format!("c{seq}"), &text)])
            .await
            .unwrap();
        // What was just taken in is always there.
        store.recall(session, &m(seq).into()).await.unwrap();
    }
    for seq in 0..count {
        match text(store, session, &format!("m{seq}")).await {
            Ok(text) => {
                assert!(text.starts_with(&format!("{seq:04}")));
                held.push(seq);
            }
            Err(RecallError::Expired(which)) => assert_eq!(which, m(seq)),
            Err(other) => panic!("{other}"),
        }
    }
    held
}

#[tokio::test]
async fn beyond_any_bound_the_oldest_expire_and_say_so() {
    let default = ArchiveBounds::default();
    let table = [
        ArchiveBounds {
            session_items: 3,
            ..default
        },
        ArchiveBounds {
            session_bytes: Bytes(3_100),
            ..default
        },
        ArchiveBounds {
            bytes: Bytes(3_100),
            ..default
        },
    ];
    for bounds in table {
        for case in stores(bounds).await {
            let store = case.store.as_ref();
            let (session, lease) = leased(store, "s").await;
            let place = format!("{}: {bounds:?}", case.name);
            assert_eq!(
                held_of(store, &lease, &session, 6).await,
                [3, 4, 5],
                "{place}"
            );
            // Found by words no more; by the call's id it is known as what has expired.
            assert_eq!(found(store, &session, "0001").await, [], "{place}");
            assert_eq!(found(store, &session, "0004").await, [m(4)], "{place}");
            let error = text(store, &session, "c1").await.unwrap_err();
            assert_eq!(error, RecallError::Expired(m(1)), "{place}");
            assert!(error.to_string().starts_with("expired: "), "{error}");
            let rows = store.archived(&session).await.unwrap();
            let expired: Vec<bool> = rows.iter().map(|row| row.expired).collect();
            assert!(expired.is_sorted_by(|a, b| a >= b), "{expired:?}");
            assert_eq!(rows[0].bytes, Bytes(904));
        }
    }
}

#[tokio::test]
async fn one_session_takes_the_room_of_all_from_the_oldest() {
    let bounds = ArchiveBounds {
        bytes: Bytes(5_100),
        ..ArchiveBounds::default()
    };
    for case in stores(bounds).await {
        if case.name == "postgres" {
            // There each session is bounded, not all together.
            continue;
        }
        let store = case.store.as_ref();
        let (old, old_lease) = leased(store, "old").await;
        let (new, new_lease) = leased(store, "new").await;
        assert_eq!(held_of(store, &old_lease, &old, 2).await, [0, 1]);
        assert_eq!(held_of(store, &new_lease, &new, 4).await, [0, 1, 2, 3]);
        let error = text(store, &old, "m0").await.unwrap_err();
        assert_eq!(error, RecallError::Expired(m(0)), "{}", case.name);
        assert!(text(store, &old, "m1").await.is_ok());
    }
}

#[tokio::test]
async fn what_has_expired_is_remembered_within_a_bound_too() {
    let bounds = ArchiveBounds {
        session_items: 2,
        expired_items: 2,
        ..ArchiveBounds::default()
    };
    for case in stores(bounds).await {
        let store = case.store.as_ref();
        let (session, lease) = leased(store, "s").await;
        assert_eq!(held_of(store, &lease, &session, 10).await, [8, 9]);
        assert_eq!(
            store.archived(&session).await.unwrap().len(),
            4,
            "{}",
            case.name
        );
        // Of what is forgotten it is still said that it has expired.
        assert!(matches!(
            text(store, &session, "m0").await,
            Err(RecallError::Expired(_))
        ));
        assert!(matches!(
            text(store, &session, "m10").await,
            Err(RecallError::Unknown(_))
        ));
        assert!(text(store, &session, "c9").await.is_ok());
        assert!(text(store, &session, "m9").await.is_ok());
    }
}

#[tokio::test]
async fn what_is_over_a_bound_by_itself_is_refused_whole() {
    let bounds = ArchiveBounds {
        session_bytes: Bytes(2_000),
        ..ArchiveBounds::default()
    };
    for case in stores(bounds).await {
        let store = case.store.as_ref();
        let (session, lease) = leased(store, "s").await;
        store
            .archive(&lease, &[result(0, "a", "kept")])
            .await
            .unwrap();
        let items = [result(1, "b", "small"), result(2, "c", &"x".repeat(3_000))];
        let error = store.archive(&lease, &items).await.unwrap_err();
        assert!(matches!(error, StoreError::Archive { .. }), "{}", case.name);
        assert!(error.to_string().contains("raise its bounds"), "{error}");
        assert_eq!(text(store, &session, "m0").await.unwrap(), "kept");
        assert!(matches!(
            text(store, &session, "m1").await,
            Err(RecallError::Unknown(_))
        ));
    }
}

#[tokio::test]
async fn a_search_finds_words_names_numbers_and_cjk() {
    let texts = [
        "fn parseConfig(path: &str) -> Result<Config, Error>",
        "error[E0277]: the trait bound `Ppm: Default` is not satisfied",
        "配置文件不存在：/etc/app.toml",
        "設定ファイルが見つかりません",
        "the port is 8431, see src/net/listen_socket.rs",
        "ÉCOLE Straße naïve",
    ];
    let table: &[(&str, &[u64])] = &[
        ("parseConfig", &[0]),
        ("parse_config", &[0]),
        ("parseconfig", &[0]),
        ("e0277", &[1]),
        ("trait bound", &[1]),
        ("配置文件", &[2]),
        ("不存在", &[2]),
        ("ファイル", &[3]),
        ("文置", &[]),
        ("8431", &[4]),
        ("listen_socket.rs", &[4]),
        ("listenSocket", &[4]),
        ("src/net", &[4]),
        ("port 8431 nowhere", &[4]),
        ("school", &[]),
        ("école", &[5]),
        ("straße", &[5]),
        ("satisf", &[1]),
    ];
    for case in stores(ArchiveBounds::default()).await {
        let store = case.store.as_ref();
        let (session, lease) = leased(store, "s").await;
        let items: Vec<ArchivedItem> = (0..)
            .zip(texts)
            .map(|(seq, text)| result(seq, &format!("c{seq}"), text))
            .collect();
        store.archive(&lease, &items).await.unwrap();
        for (query, wanted) in table {
            let wanted: Vec<RecallId> = wanted.iter().copied().map(m).collect();
            assert_eq!(
                found(store, &session, query).await,
                wanted,
                "{}: {query}",
                case.name
            );
        }
    }
}

#[tokio::test]
async fn a_search_ranks_by_terms_then_nearness_then_rarity_then_age() {
    let far = "filler ".repeat(100);
    let texts = [
        "alpha beta gamma".to_owned(),
        "alpha beta gamma".to_owned(),
        format!("alpha {far} beta {far} gamma"),
        "alpha common".to_owned(),
        "rare thing".to_owned(),
        "common one".to_owned(),
        "common two".to_owned(),
        "common three alphabet".to_owned(),
    ];
    let table: &[(&str, &[u64])] = &[
        ("alpha beta gamma", &[1, 0, 2]),
        // Nothing has all: first what has the most, then what has the rarest.
        ("alpha beta nowhere", &[1, 0, 2, 7, 3]),
        ("rare common nothing", &[4, 7, 6, 5, 3]),
        ("alph comm", &[7, 3]),
        ("common", &[7, 6, 5, 3]),
    ];
    for case in stores(ArchiveBounds::default()).await {
        let store = case.store.as_ref();
        let (session, lease) = leased(store, "s").await;
        for (seq, text) in (0..).zip(&texts) {
            let items = [result(seq, &format!("c{seq}"), text)];
            store.archive(&lease, &items).await.unwrap();
        }
        for (query, wanted) in table {
            let wanted: Vec<RecallId> = wanted.iter().copied().map(m).collect();
            let found = found(store, &session, query).await;
            assert_eq!(found, wanted, "{}: {query}", case.name);
        }
    }
}

#[tokio::test]
async fn no_query_is_read_as_a_language() {
    let queries = [
        "\"",
        "\"\"",
        "a\"b",
        "NEAR(a b, 3)",
        "a OR",
        "AND",
        "NOT a",
        "a NOT b",
        "text : a",
        "owner : s1",
        "s1",
        "*",
        "a*",
        "^a",
        "-a",
        "+a",
        "(a",
        "a)",
        "{a b} : c",
        "a; DROP TABLE items",
        "\u{0}",
        "%",
        "_",
        "' OR ''='",
        "a\\",
        "\u{feff}a",
        "::",
        "....",
    ];
    for case in stores(ArchiveBounds::default()).await {
        let store = case.store.as_ref();
        let (session, lease) = leased(store, "s").await;
        store
            .archive(&lease, &[result(0, "c", "alpha beta")])
            .await
            .unwrap();
        for query in queries {
            match store.search(&session, query, 5).await {
                Ok(hits) => assert!(hits.len() <= 1),
                Err(error) => assert_eq!(error, RecallError::NoWords, "{}: {query}", case.name),
            }
        }
        let giant = "alpha ".repeat(100_000);
        assert_eq!(found(store, &session, &giant).await, [m(0)]);
    }
}

#[tokio::test]
async fn a_hit_says_where_it_is() {
    let before = "filler ".repeat(10_000);
    let whole = format!("{before}the needle in\nthe haystack {before}");
    for case in stores(ArchiveBounds::default()).await {
        let store = case.store.as_ref();
        let (session, lease) = leased(store, "s").await;
        let items = [
            result(3, "c", &whole),
            said(4, Message::assistant("a needle, too")),
        ];
        store.archive(&lease, &items).await.unwrap();
        let hits = store.search(&session, "needle haystack", 5).await.unwrap();
        let [hit] = hits.as_slice() else {
            panic!("{}: {hits:?}", case.name);
        };
        let Hit {
            id,
            kind,
            tool,
            bytes,
            offset,
            snippet,
            terms,
        } = hit.clone();
        assert_eq!(
            (id, kind, tool.as_deref(), terms),
            (m(3), ArchivedKind::ToolResult, Some("read"), 2)
        );
        assert_eq!(bytes, Bytes(whole.len() as u64));
        assert!(snippet.len() <= SNIPPET && snippet.contains("needle in\nthe haystack"));
        let from = usize::try_from(offset).unwrap();
        assert_eq!(&whole[from..from + snippet.len()], snippet);
        assert_eq!(store.search(&session, "needle", 1).await.unwrap().len(), 1);
    }
}

async fn call(tool: &dyn Tool, arguments: Value) -> Result<String, String> {
    let cx = ToolContext::new(CallId("x".to_owned()), Default::default());
    let output = tool
        .call(arguments, cx)
        .await
        .map_err(|error| error.to_string())?;
    let texts: Vec<&str> = output.parts.iter().filter_map(Part::as_text).collect();
    Ok(texts.join("\n"))
}

/// The note in brackets, and what stands below it.
fn parted(text: &str) -> (&str, &str) {
    text.split_once("]\n").unwrap()
}

#[tokio::test]
async fn a_model_gets_two_megabytes_back_in_pages() {
    let line = "0123456789 é文🦀 \"quoted\" \u{0}\r\n";
    let whole = line.repeat((2 << 20) / line.len() + 1);
    for case in stores(ArchiveBounds::default()).await {
        let (session, lease) = leased(case.store.as_ref(), "s").await;
        case.store
            .archive(&lease, &[result(7, "call_7", &whole)])
            .await
            .unwrap();
        let recall = RecallTools::new(Arc::clone(&case.store), session);
        let tool = recall.get_tool_response();
        let (mut back, mut offset, mut pages) = (String::new(), 0_u64, 0);
        loop {
            let ask = json!({"execution_id": "call_7", "offset": offset, "limit": 1_000_000});
            let page = call(tool.as_ref(), ask).await.unwrap();
            assert!(page.len() <= 32_100, "{}", page.len());
            let (note, text) = parted(&page);
            back.push_str(text);
            pages += 1;
            match note.split_once("next offset ") {
                Some((_, next)) => offset = next.parse().unwrap(),
                None => break,
            }
        }
        assert!(back == whole, "{}", case.name);
        assert_eq!(pages, whole.len().div_ceil(32_000));
        let first = call(tool.as_ref(), json!({"execution_id": "m7"}))
            .await
            .unwrap();
        assert!(first.len() < 8_100 && first.starts_with("[m7, result of read: bytes 0-"));
    }
}

#[tokio::test]
async fn the_tools_say_what_there_is_and_what_to_do() {
    for case in stores(ArchiveBounds::default()).await {
        let (session, lease) = leased(case.store.as_ref(), "s").await;
        let items = [
            result(1, "a", ""),
            result(2, "b", "0"),
            result(3, "c", "one\ntwo\nthree"),
            said(4, Message::user("the port is 8431")),
        ];
        case.store.archive(&lease, &items).await.unwrap();
        let tools = recall_tools(Arc::clone(&case.store), session);
        let [recall, search] = tools.as_slice() else {
            panic!("{} tools", tools.len());
        };
        assert_eq!(recall.spec().name, "recall");
        assert_eq!(search.spec().name, "recall_search");
        for tool in &tools {
            assert!(tool.idempotent() && !tool.asks());
        }
        let table = [
            (
                json!({"id": "m1"}),
                "[m1, result of read: 0 bytes: it is empty]\n",
            ),
            (json!({"id": "m2"}), "[m2, result of read: all 1 bytes]\n0"),
            (json!({"id": 2}), "[m2, result of read: all 1 bytes]\n0"),
            (
                json!({"execution_id": "b"}),
                "[m2, result of read: all 1 bytes]\n0",
            ),
            (
                json!({"id": "m3", "offset": 4, "limit": 3}),
                "[m3, result of read: bytes 4-7 of 13; next offset 7]\ntwo",
            ),
            (
                json!({"id": "m3", "offset": "4", "limit": " 3 "}),
                "[m3, result of read: bytes 4-7 of 13; next offset 7]\ntwo",
            ),
            (
                json!({"id": "m3", "pattern": "t.*e"}),
                "[m3, result of read: 1 match, as line:offset: text]\n3:8: three\n",
            ),
            (
                json!({"id": "m3", "pattern": "four"}),
                "[m3, result of read: no line matches]\n",
            ),
            (
                json!({"id": "m4", "offset": null, "limit": 0, "pattern": ""}),
                "[m4, user message: all 16 bytes]\nthe port is 8431",
            ),
        ];
        for (arguments, text) in table {
            let is = call(recall.as_ref(), arguments.clone()).await;
            assert_eq!(is.as_deref(), Ok(text), "{}: {arguments}", case.name);
        }
        let refused = [
            (
                json!({"id": "m9"}),
                "nothing of this session is archived as `m9`",
            ),
            (
                json!({"id": "m3", "offset": 99}),
                "offset 99 is past its end: it has 13 bytes",
            ),
            (json!({"id": ["m3"]}), "an id such as \"m12\" is needed"),
            (json!({}), "missing field `id`"),
            (
                json!({"id": "m3", "offset": -1}),
                "a whole number of 0 or more",
            ),
        ];
        for (arguments, text) in refused {
            let is = call(recall.as_ref(), arguments.clone()).await.unwrap_err();
            assert!(is.contains(text), "{}: {is}", case.name);
        }
        let is = call(search.as_ref(), json!({"query": "port"}))
            .await
            .unwrap();
        assert!(
            is.starts_with("m4, user message, 16 bytes, at offset 0: the port is 8431\n["),
            "{}: {is}",
            case.name
        );
        let is = call(search.as_ref(), json!({"query": "nowhere"}))
            .await
            .unwrap();
        assert!(
            is.starts_with("[nothing that left has any of these words"),
            "{is}"
        );
        assert!(call(search.as_ref(), json!({"query": "?!"})).await.is_err());
    }
}

#[tokio::test]
async fn no_page_is_larger_than_a_result_may_be_whatever_is_asked_for() {
    for case in stores(ArchiveBounds::default()).await {
        let (session, lease) = leased(case.store.as_ref(), "s").await;
        let whole = "word ".repeat(20_000);
        let items = [result(1, "a", &whole)];
        case.store.archive(&lease, &items).await.unwrap();
        let recall = RecallTools::new(Arc::clone(&case.store), session);
        let table = [(1, 512), (1_000, 2_000), (100_000, 32_000)];
        for (tokens, most) in table {
            let tool = recall
                .clone()
                .for_results(Tokens(tokens))
                .get_tool_response();
            let ask = json!({"execution_id": "m1", "limit": 1_000_000});
            let page = call(tool.as_ref(), ask).await.unwrap();
            assert_eq!(parted(&page).1.len(), most, "{}", case.name);
            let page = call(tool.as_ref(), json!({"execution_id": "m1"}))
                .await
                .unwrap();
            assert_eq!(parted(&page).1.len(), most.min(8_000));
        }
    }
}

#[tokio::test]
async fn a_store_without_an_archive_says_so() {
    struct LogOnly(MemoryStore);
    #[async_trait::async_trait]
    impl SessionStore for LogOnly {
        async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
            self.0.acquire(session).await
        }
        async fn load(
            &self,
            session: &SessionId,
        ) -> Result<Vec<plimsoll_agent::Entry>, StoreError> {
            self.0.load(session).await
        }
        async fn append(
            &self,
            lease: &Lease,
            entries: &[plimsoll_agent::Entry],
        ) -> Result<(), StoreError> {
            self.0.append(lease, entries).await
        }
        async fn list(&self) -> Result<Vec<plimsoll_core::SessionInfo>, StoreError> {
            self.0.list().await
        }
    }
    let store = LogOnly(MemoryStore::default());
    let (session, lease) = leased(&store, "s").await;
    assert_eq!(store.archives().await, Err(StoreError::NoArchive));
    let archived = store.archive(&lease, &[result(0, "a", "x")]).await;
    assert_eq!(archived, Err(StoreError::NoArchive));
    assert!(text(&store, &session, "m0").await.is_err());
    assert!(store.search(&session, "x", 1).await.is_err());
}

// What only the file on disk can do.

async fn sqlite(folder: &Path, bounds: ArchiveBounds) -> SqliteStore {
    SqliteStore::open_with(folder, options(bounds))
        .await
        .unwrap()
}

#[tokio::test]
async fn an_archive_is_still_there_after_it_was_closed() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(folder.path(), ArchiveBounds::default()).await;
    let (session, lease) = leased(&store, "s").await;
    store
        .archive(&lease, &[result(1, "a", "alpha")])
        .await
        .unwrap();
    drop((lease, store));
    let store = sqlite(folder.path(), ArchiveBounds::default()).await;
    assert_eq!(text(&store, &session, "m1").await.unwrap(), "alpha");
    assert_eq!(found(&store, &session, "alpha").await, [m(1)]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(folder.path().join(ARCHIVE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn many_stores_write_to_one_archive_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let folder = folder.path().to_path_buf();
        writers.spawn(async move {
            let store = sqlite(&folder, ArchiveBounds::default()).await;
            let (_, lease) = leased(&store, &format!("s{writer}")).await;
            for seq in 0..25 {
                let text = format!("writer {writer} item {seq}");
                store
                    .archive(&lease, &[result(seq, "c", &text)])
                    .await
                    .unwrap();
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    let store = sqlite(folder.path(), ArchiveBounds::default()).await;
    for writer in 0..4 {
        let session = id(&format!("s{writer}"));
        for seq in 0..25 {
            let wanted = format!("writer {writer} item {seq}");
            assert_eq!(
                text(&store, &session, &format!("m{seq}")).await.unwrap(),
                wanted
            );
        }
        assert_eq!(
            store.search(&session, "writer", 99).await.unwrap().len(),
            25
        );
    }
}

/// A folder whose archive has something in it, and whose store is closed.
async fn filled() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(folder.path(), ArchiveBounds::default()).await;
    let (_, lease) = leased(&store, "s").await;
    for seq in 0..50 {
        let text = format!("item {seq} {}", "word ".repeat(500));
        store
            .archive(&lease, &[result(seq, &format!("c{seq}"), &text)])
            .await
            .unwrap();
    }
    folder
}

#[tokio::test]
async fn a_damaged_archive_is_told_at_once_and_hurts_no_log() {
    type Damage = fn(&mut Vec<u8>);
    let table: [(&str, Damage); 5] = [
        ("no database", |bytes| bytes.fill(b'x')),
        ("cut short", |bytes| bytes.truncate(bytes.len() / 2)),
        ("zeros inside", |bytes| {
            let len = bytes.len();
            bytes[4_096..len / 2].fill(0);
        }),
        ("noise inside", |bytes| {
            for (at, byte) in bytes.iter_mut().enumerate().skip(4_096) {
                *byte ^= u8::try_from(at % 251).unwrap();
            }
        }),
        ("another program's", |bytes| {
            bytes[68..72].copy_from_slice(b"Else")
        }),
    ];
    for (name, damage) in table {
        let folder = filled().await;
        let path = folder.path().join(ARCHIVE);
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let store = sqlite(folder.path(), ArchiveBounds::default()).await;
        let error = store.archives().await.expect_err(name);
        let said = error.to_string();
        assert!(
            matches!(error, StoreError::Archive { .. }),
            "{name}: {said}"
        );
        assert!(
            said.contains("archive.db") && said.contains("move it away"),
            "{name}: {said}"
        );
        assert!(said.contains("the log keeps"), "{said}");
        let (session, lease) = leased(&store, "s").await;
        assert!(
            store
                .archive(&lease, &[result(99, "x", "y")])
                .await
                .is_err(),
            "{name}"
        );
        assert!(matches!(
            text(&store, &session, "m1").await,
            Err(RecallError::Store(StoreError::Archive { .. }))
        ));
        let entry = plimsoll_agent::Entry::Opened { format: 1 };
        store.append(&lease, &[entry]).await.unwrap();
        assert_eq!(store.load(&session).await.unwrap().len(), 1);
        // Moved away, as the sentence says, it is begun anew, by the same store.
        for file in fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            if file.file_name().to_string_lossy().starts_with(ARCHIVE) {
                fs::remove_file(file.path()).unwrap();
            }
        }
        store.archives().await.unwrap();
        store
            .archive(&lease, &[result(99, "x", "y")])
            .await
            .unwrap();
        assert_eq!(text(&store, &session, "m99").await.unwrap(), "y");
    }
}

#[tokio::test]
async fn an_altered_item_is_not_recalled_and_the_others_are() {
    let folder = filled().await;
    let path = folder.path().join(ARCHIVE);
    let mut bytes = fs::read(&path).unwrap();
    let said = b"item 7 word ";
    // The index of words has no text, so this is the body.
    let at = bytes
        .windows(said.len())
        .position(|window| window == said)
        .unwrap();
    bytes[at + 3] ^= 0x1c;
    fs::write(&path, bytes).unwrap();
    let store = sqlite(folder.path(), ArchiveBounds::default()).await;
    let (session, _lease) = leased(&store, "s").await;
    let said = text(&store, &session, "m7").await.unwrap_err().to_string();
    assert!(said.contains("item m7 in it: it was altered"), "{said}");
    let other = text(&store, &session, "m8").await.unwrap();
    assert!(other.starts_with("item 8 word "), "{other}");
}

#[tokio::test]
async fn an_archive_that_cannot_be_made_says_why() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(ARCHIVE)).unwrap();
    let store = sqlite(folder.path(), ArchiveBounds::default()).await;
    let said = store.archives().await.unwrap_err().to_string();
    assert!(said.contains("archive.db cannot be used"), "{said}");
    assert!(said.contains("choose another data folder"), "{said}");
    let (_, lease) = leased(&store, "s").await;
    assert!(store.archive(&lease, &[result(0, "a", "b")]).await.is_err());
}

#[tokio::test]
async fn a_lease_of_another_store_archives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(folder.path(), ArchiveBounds::default()).await;
    let (session, lease) = leased(&MemoryStore::default(), "s").await;
    let error = store
        .archive(&lease, &[result(0, "a", "b")])
        .await
        .unwrap_err();
    assert!(error.to_string().contains("another store's"), "{error}");
    assert!(text(&store, &session, "m0").await.is_err());
}
