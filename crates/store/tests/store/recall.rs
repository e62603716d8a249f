//! Recall reads the log: the same tests check every store.

use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Message, Part, Seq, Tokens};
use plimsoll_core::RecallTools;
use plimsoll_core::recall::{LogMessages, SNIPPET, SearchQuery, scan};
use plimsoll_core::{
    Fork, Hit, Lease, MessageKind, RecallError, RecallId, SessionId, SessionStore, Tool,
    ToolContext,
};
use plimsoll_store::SqliteStore;
use serde_json::{Value, json};

use crate::script::{evict, id, memory, options, stores};

fn m(seq: u64) -> RecallId {
    RecallId(Seq(seq))
}

fn result(seq: u64, call: &str, text: &str) -> (u64, Message) {
    (seq, Message::result(CallId(call.to_owned()), text))
}

async fn text(
    store: &dyn SessionStore,
    session: &SessionId,
    key: &str,
) -> Result<String, RecallError> {
    let recalled = store.recall(session, key).await?;
    Ok(recalled.text())
}

async fn found(store: &dyn SessionStore, session: &SessionId, query: &str) -> Vec<RecallId> {
    let found = hits(store, session, query, 20).await.unwrap();
    found.iter().map(|hit| hit.id).collect()
}

async fn hits(
    store: &dyn SessionStore,
    session: &SessionId,
    query: &str,
    limit: usize,
) -> Result<Vec<Hit>, RecallError> {
    let mut messages = LogMessages::default();
    messages.search(store, session, query, limit).await
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
    for case in stores().await {
        let store = case.store.as_ref();
        let (session, lease) = leased(store, "s").await;
        let items: Vec<(u64, Message)> = (1..)
            .zip(texts)
            .map(|(seq, text)| result(seq, &format!("call_{seq}"), text))
            .collect();
        evict(store, &lease, &items).await;
        for ((seq, message), text_in) in items.iter().zip(texts) {
            let item = store.recall(&session, &format!("m{seq}")).await.unwrap();
            assert_eq!(item.text(), text_in, "{}", case.name);
            assert_eq!(*item.message, *message);
            assert_eq!((item.id, item.kind), (m(*seq), MessageKind::ToolResult));
            assert_eq!(item.tool.as_deref(), Some("read"));
            assert_eq!(item.call, Some(CallId(format!("call_{seq}"))));
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
async fn an_unknown_id_and_another_session_get_a_refusal_never_a_text() {
    for case in stores().await {
        let store = case.store.as_ref();
        let (ours, lease) = leased(store, "ours").await;
        let (theirs, _lease) = leased(store, "theirs").await;
        evict(store, &lease, &[result(4, "call_4", "secret")]).await;
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

/// Some servers use the id of a call again, and some count their calls `m1`, `m2`, as items are counted.
#[tokio::test]
async fn a_key_that_means_two_items_means_none_and_names_both() {
    let items = [
        result(2, "call_1", "first"),
        result(4, "call_2", "second"),
        result(6, "call_1", "third"),
        result(8, "4", "a bare number"),
        result(10, "m6", "the call m6"),
        result(12, "m12", "item and call"),
        result(14, "m99", "no such item"),
    ];
    let table = [
        ("call_2", Ok("second")),
        ("call_1", Err("#2 or #6")),
        ("4", Err("#4 or #8")),
        ("m4", Ok("second")),
        ("8", Ok("a bare number")),
        ("m6", Err("#6 or #10")),
        ("#6", Ok("third")),
        ("#10", Ok("the call m6")),
        ("m12", Ok("item and call")),
        ("m99", Ok("no such item")),
        (" `#4`", Ok("second")),
    ];
    for case in stores().await {
        let store = case.store.as_ref();
        let (session, lease) = leased(store, "s").await;
        evict(store, &lease, &items).await;
        for (key, wanted) in table {
            let is = text(store, &session, key).await;
            let is = is.map_err(|error| error.to_string());
            let wanted = wanted.map(str::to_owned).map_err(|items| {
                format!("`{key}` is ambiguous: it may mean item {items}; write it like that")
            });
            assert_eq!(is, wanted, "{}: {key}", case.name);
        }
        let unknown = text(store, &session, "#99").await;
        assert!(
            matches!(unknown, Err(RecallError::Unknown(_))),
            "{}",
            case.name
        );
    }
}

#[tokio::test]
async fn a_search_ranks_by_terms_then_nearness_then_age() {
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
        // Nothing has all: first what has the most, then the newest.
        ("alpha beta nowhere", &[1, 0, 2, 7, 3]),
        ("rare common nothing", &[7, 6, 5, 4, 3]),
        ("alph comm", &[7, 3]),
        ("common", &[7, 6, 5, 3]),
    ];
    for case in [memory()] {
        let store = case.store.as_ref();
        let (session, lease) = leased(store, "s").await;
        let items: Vec<(u64, Message)> = (0..)
            .zip(&texts)
            .map(|(seq, text)| result(seq, &format!("c{seq}"), text))
            .collect();
        evict(store, &lease, &items).await;
        for (query, wanted) in table {
            let wanted: Vec<RecallId> = wanted.iter().copied().map(m).collect();
            let found = found(store, &session, query).await;
            assert_eq!(found, wanted, "{}: {query}", case.name);
        }
    }
}

#[tokio::test]
async fn a_hit_says_where_it_is() {
    let before = "filler ".repeat(10_000);
    let whole = format!("{before}the needle in\nthe haystack {before}");
    for case in [memory()] {
        let store = case.store.as_ref();
        let (session, lease) = leased(store, "s").await;
        let items = [
            result(3, "c", &whole),
            (4, Message::assistant("a needle, too")),
        ];
        evict(store, &lease, &items).await;
        let found = hits(store, &session, "needle haystack", 5).await.unwrap();
        let [hit] = found.as_slice() else {
            panic!("{}: {found:?}", case.name);
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
            (m(3), MessageKind::ToolResult, Some("read"), 2)
        );
        assert_eq!(bytes, Bytes(whole.len() as u64));
        assert!(snippet.len() <= SNIPPET && snippet.contains("needle in\nthe haystack"));
        let from = usize::try_from(offset).unwrap();
        assert_eq!(&whole[from..from + snippet.len()], snippet);
        assert_eq!(hits(store, &session, "needle", 1).await.unwrap().len(), 1);
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
    for case in stores().await {
        let (session, lease) = leased(case.store.as_ref(), "s").await;
        evict(case.store.as_ref(), &lease, &[result(7, "call_7", &whole)]).await;
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
    for case in [memory()] {
        let (session, lease) = leased(case.store.as_ref(), "s").await;
        let items = [
            result(1, "a", ""),
            result(2, "b", "0"),
            result(3, "c", "one\ntwo\nthree"),
            (4, Message::user("the port is 8431")),
        ];
        evict(case.store.as_ref(), &lease, &items).await;
        let tools = RecallTools::new(Arc::clone(&case.store), session).tools();
        let [recall, search] = tools.as_slice() else {
            panic!("{} tools", tools.len());
        };
        assert_eq!(recall.spec().name, "recall");
        assert_eq!(search.spec().name, "recall_search");
        for tool in &tools {
            assert!(tool.idempotent() && !tool.asks());
        }
        let table = [
            (json!({"id": "m1"}), "[m1, result of read: all 0 bytes]\n"),
            (json!({"id": "m2"}), "[m2, result of read: all 1 bytes]\n0"),
            (
                json!({"execution_id": "b"}),
                "[m2, result of read: all 1 bytes]\n0",
            ),
            (
                json!({"id": "m3", "offset": 4, "limit": 3}),
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
                "nothing of this session is called `m9`",
            ),
            (
                json!({"id": "m3", "offset": 99}),
                "offset 99 is past its end: it has 13 bytes",
            ),
            (json!({}), "missing field `id`"),
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
    for case in [memory()] {
        let (session, lease) = leased(case.store.as_ref(), "s").await;
        let whole = "word ".repeat(20_000);
        let items = [result(1, "a", &whole)];
        evict(case.store.as_ref(), &lease, &items).await;
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
async fn a_search_finds_evicted_messages_only_and_recall_every_message() {
    for case in stores().await {
        let (store, name) = (case.store.as_ref(), case.name);
        let (session, lease) = leased(store, "s").await;
        evict(store, &lease, &[result(2, "c", "the harbour")]).await;
        assert_eq!(found(store, &session, "harbour").await, [m(2)], "{name}");
        // The messages before it are still in the view.
        assert_eq!(found(store, &session, "filler").await, [], "{name}");
        assert_eq!(
            text(store, &session, "m1").await.unwrap(),
            "filler 1",
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_fork_recalls_what_it_shares_and_nothing_of_any_other_branch() {
    for case in stores().await {
        let (store, name) = (case.store.as_ref(), case.name);
        let (parent, lease) = leased(store, "parent").await;
        evict(store, &lease, &[result(1, "a", "shared whale")]).await;
        let entries = store.load(&parent).await.unwrap().len() as u64;
        let of = Fork {
            from: parent.clone(),
            entries,
        };
        let (fork, own) = leased(store, "fork").await;
        store.fork(&own, &of, &[]).await.unwrap();
        evict(store, &lease, &[result(4, "b", "a whale of the parent")]).await;
        evict(store, &own, &[result(4, "b", "a whale of the fork")]).await;
        assert_eq!(
            text(store, &fork, "m1").await.unwrap(),
            "shared whale",
            "{name}"
        );
        for (session, whose) in [(&parent, "parent"), (&fork, "fork")] {
            let whale = text(store, session, "b").await.unwrap();
            assert_eq!(whale, format!("a whale of the {whose}"), "{name}");
            assert_eq!(found(store, session, "whale").await.len(), 2, "{name}");
        }
    }
}

#[tokio::test]
async fn recall_works_after_the_store_was_closed() {
    let folder = tempfile::tempdir().unwrap();
    let open = || SqliteStore::open_with(folder.path(), options());
    let store = open().await.unwrap();
    let (session, lease) = leased(&store, "s").await;
    evict(&store, &lease, &[result(1, "c", "the harbour")]).await;
    drop((lease, store));
    let store = open().await.unwrap();
    assert_eq!(text(&store, &session, "c").await.unwrap(), "the harbour");
    assert_eq!(found(&store, &session, "harbour").await, [m(1)]);
}

/// The index may be behind the log, or be dropped while the store is used: the answers stay the same.
#[tokio::test]
async fn the_index_of_the_file_answers_as_a_scan_does_and_may_be_dropped_at_any_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open_with(folder.path(), options()).await;
    let store = store.unwrap();
    let (session, lease) = leased(&store, "s").await;
    let same = async |wanted: usize| {
        for query in [
            "the port",
            "por",
            "parse_config",
            "parseconfig",
            "配置",
            "x9",
        ] {
            let all = SearchQuery::parse(query).unwrap();
            for query in [all.clone(), all.any()] {
                let found = store.search(&session, &query).await.unwrap();
                assert_eq!(found, scan(&store, &session, &query).await.unwrap());
            }
        }
        assert_eq!(found(&store, &session, "port").await.len(), wanted);
    };
    let texts = ["the port is 8431", "parseConfig 配置文件", "portable x9"];
    let item = |seq: u64| result(seq, &format!("c{seq}"), texts[seq as usize % 3]);
    evict(&store, &lease, &[item(1), item(2), item(3)]).await;
    same(2).await;
    evict(&store, &lease, &[item(5), item(6), item(7)]).await;
    same(4).await;
    let file = rusqlite::Connection::open(store.path()).unwrap();
    let words = || file.query_row("SELECT count(*) FROM indexed", [], |row| row.get(0));
    assert_eq!(words(), Ok(1));
    file.execute_batch("DROP TABLE search; DROP TABLE indexed")
        .unwrap();
    same(4).await;
    assert_eq!(words(), Ok(1));

    // A deleted session leaves no word of it.
    let (_, other) = leased(&store, "other").await;
    store.append(&other, &[]).await.unwrap();
    assert!(store.delete(&lease).await.unwrap());
    words().unwrap_err();
}
