//! Learned windows, across processes that open the same file.

use plimsoll_context::Tokens;
use plimsoll_core::SessionStore;
use plimsoll_store::SqliteStore;

#[tokio::test]
async fn what_one_process_learned_the_next_one_knows() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).await.unwrap();
    let endpoint = "https://example.org/v1 a/model";
    assert_eq!(store.learned_window(endpoint).await.unwrap(), None);
    store.learn_window(endpoint, Tokens(16_384)).await.unwrap();
    store.learn_window(endpoint, Tokens(8_192)).await.unwrap();
    drop(store);

    let store = SqliteStore::open(folder.path()).await.unwrap();
    assert_eq!(
        store.learned_window(endpoint).await.unwrap(),
        Some(Tokens(8_192))
    );
    assert_eq!(store.learned_window("another").await.unwrap(), None);
    let all = store.windows().await.unwrap();
    assert_eq!(all.len(), 1);
    let only = all.first().unwrap();
    assert_eq!(
        (only.endpoint.as_str(), only.tokens),
        (endpoint, Tokens(8_192))
    );
    assert!(store.list().await.unwrap().is_empty(), "it is no session");
}
