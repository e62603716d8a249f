//! [`check_store`]: tests whether a [`SessionStore`] keeps the promises of the trait.

use std::sync::Arc;

use plimsoll_agent::Entry;
use plimsoll_context::Message;

use crate::recall::{RecallError, SearchQuery, recall_text};
use crate::store::{
    Fork, ForkFault, Lease, LogEntry, PAGE_ENTRIES, SessionId, SessionStore, StoreError,
};

/// Entries of the log that is written: more than a page.
const ENTRIES: u64 = PAGE_ENTRIES as u64 + 500;
/// Entries that a fork shares.
const SHARED: u64 = 40;

/// Tests a store: leases, appends, pages, the list, search, recall, forks, and, unless the store reports
/// them as unsupported, titles and deletion. Uses the sessions `check`, `check-other` and `check-fork`,
/// which must not exist, and deletes them if the store can.
///
/// # Errors
/// The first broken promise, as a sentence.
pub async fn check_store(store: &dyn SessionStore) -> Result<(), String> {
    let check = Check {
        store,
        session: id("check")?,
        other: id("check-other")?,
        fork: id("check-fork")?,
    };
    let lease = check.leases().await?;
    check.log(&lease).await?;
    check.search().await?;
    check.recall().await?;
    let fork = check.forks(&lease).await?;
    check.title().await?;
    check.deletion(&lease, &fork).await
}

struct Check<'a> {
    store: &'a dyn SessionStore,
    session: SessionId,
    other: SessionId,
    fork: SessionId,
}

impl Check<'_> {
    async fn leases(&self) -> Result<Lease, String> {
        let lease = self.acquire(&self.session).await?;
        let busy = Err(StoreError::Busy {
            session: self.session.clone(),
        });
        let second = self.store.acquire(&self.session).await.map(drop);
        same("the second lease on a session", second, busy)?;
        drop(lease);
        self.acquire(&self.session).await
    }

    async fn log(&self, lease: &Lease) -> Result<(), String> {
        let head = fine("head", self.store.head(&self.session).await)?;
        same("the head of a session without a log", head, None)?;
        same("a log without entries", self.load(&self.session).await?, [])?;
        for (first, last) in [(1, 1), (2, 7), (8, ENTRIES)] {
            let entries: Vec<Entry> = (first..=last).map(entry).collect();
            fine("append", self.store.append(lease, &entries).await)?;
        }
        fine("append", self.store.append(lease, &[]).await)?;
        let other = self.acquire(&self.other).await?;
        fine("append", self.store.append(&other, &[entry(1)]).await)?;
        same(
            "the log",
            self.load(&self.session).await?,
            (1..=ENTRIES).map(entry).collect::<Vec<_>>(),
        )?;
        for (after, limit) in [(0, 1), (5, 3), (ENTRIES - 1, 10), (ENTRIES, 10)] {
            let read = self.store.read(&self.session, after, limit).await;
            let read: Vec<u64> = fine("read", read)?.iter().map(|line| line.n).collect();
            let last = ENTRIES.min(after + limit as u64);
            let what = format!("the numbers of at most {limit} entries after {after}");
            same(&what, read, (after + 1..=last).collect::<Vec<_>>())?;
        }
        let head = fine("head", self.store.head(&self.session).await)?;
        let head = head.ok_or("the head of a session with a log is missing")?;
        same("the number of entries", head.entries, ENTRIES)?;
        same("the title", head.title.as_str(), "word1 of the log")?;
        let list = fine("list", self.store.list().await)?;
        let ids: Vec<&SessionId> = list.iter().map(|info| &info.id).collect();
        let has_both = ids.contains(&&self.session) && ids.contains(&&self.other);
        same("the list has the sessions", has_both, true)
    }

    /// A search may find more than matches, and must find everything that does.
    async fn search(&self) -> Result<(), String> {
        let log = self.store.read(&self.session, 0, PAGE_ENTRIES).await;
        let log = fine("read", log)?;
        for text in [
            "word7",
            "word77 log",
            "WORD8",
            "parseConfig8",
            "config.9",
            "9 nowhere",
            "配置",
            "listenSocket7",
            "\"",
            "word7\"b",
            "NEAR(word7 log, 3)",
            "word7 OR",
            "NOT word7",
            "text : word7",
            "word7*",
            "^word7",
            "(word7",
            "{word7} : log",
            "'word7' & log:*",
            "word7; DROP TABLE entries",
            "%",
        ] {
            let Some(all) = SearchQuery::parse(text) else {
                continue;
            };
            for query in [all.clone(), all.any()] {
                let found = self.store.search(&self.session, &query).await;
                let found = fine("search", found)?;
                let in_order = found.is_sorted_by(|one, next| one.n > next.n);
                same("search returns the newest first", in_order, true)?;
                let matches = |line: &&LogEntry| {
                    let text = line.entry.message().map(|message| recall_text(message));
                    text.is_some_and(|text| query.find(&text).is_some())
                };
                let oldest = found.last().map_or(u64::MAX, |line| line.n);
                let is_cut = found.len() >= crate::store::SEARCH_ENTRIES;
                let due = log.iter().filter(matches);
                let due = due.filter(|line| !is_cut || line.n >= oldest);
                if let Some(missed) = due.clone().find(|line| !found.contains(line)) {
                    return Err(format!("a search for {text} misses entry {}", missed.n));
                }
            }
        }
        Ok(())
    }

    async fn recall(&self) -> Result<(), String> {
        let key = "m6";
        let recalled = self.store.recall(&self.session, key);
        let text = recalled.await.map(|item| item.text());
        same("the message m6", text, Ok(text_of(7)))?;
        let recalled = self.store.recall(&self.other, key);
        let unknown = Err(RecallError::Unknown("m6".to_owned()));
        same("m6 of another session", recalled.await, unknown)
    }

    async fn forks(&self, parent: &Lease) -> Result<Lease, String> {
        let lease = self.acquire(&self.fork).await?;
        let of = |from: &SessionId, entries| Fork {
            from: from.clone(),
            entries,
        };
        let shared = of(&self.session, SHARED);
        let forked = self.store.fork(&lease, &shared, &[entry(1)]).await;
        fine("fork", forked)?;
        fine("append", self.store.append(&lease, &[entry(2)]).await)?;
        fine("append", self.store.append(parent, &[entry(3)]).await)?;
        let wanted = (1..=SHARED).chain([1, 2]).map(entry);
        same(
            "the log of a fork",
            self.load(&self.fork).await?,
            wanted.collect::<Vec<_>>(),
        )?;
        let page = self.store.read(&self.fork, SHARED - 1, 2).await;
        let page: Vec<u64> = fine("read", page)?.iter().map(|line| line.n).collect();
        same(
            "the numbers of a fork's entries",
            page,
            [SHARED, SHARED + 1],
        )?;
        let head = fine("head", self.store.head(&self.fork).await)?;
        let head = head.ok_or("the head of a fork is missing")?;
        same("the number of a fork's entries", head.entries, SHARED + 2)?;
        if head.fork.is_some() {
            same("the parent of a fork", head.fork, Some(shared.clone()))?;
        }
        let again = self.store.fork(&lease, &shared, &[]).await;
        let session = self.fork.clone();
        let taken = shared.refused(ForkFault::Taken { session });
        same("a fork under a name in use", again, Err(taken))?;
        let free = self.acquire(&id("check-no-fork")?).await?;
        let beyond = of(&self.other, 9);
        let wanted = beyond.refused(ForkFault::Beyond {
            wanted: 9,
            entries: 1,
        });
        let forked = self.store.fork(&free, &beyond, &[]).await;
        same("a fork beyond the end", forked, Err(wanted))?;
        let unknown = of(free.session(), 1);
        let forked = self.store.fork(&free, &unknown, &[]).await;
        let wanted = unknown.refused(ForkFault::Unknown);
        same("a fork of no session", forked, Err(wanted))?;
        Ok(lease)
    }

    async fn title(&self) -> Result<(), String> {
        match self.store.rename(&self.other, "Another title").await {
            Err(StoreError::Unsupported { .. }) => return Ok(()),
            renamed => same("rename", renamed, Ok(true))?,
        }
        let head = fine("head", self.store.head(&self.other).await)?;
        let title = head.map(|info| info.title);
        same("the new title", title.as_deref(), Some("Another title"))?;
        let missing = self.store.rename(&id("check-nobody")?, "x").await;
        same("rename of no session", missing, Ok(false))
    }

    async fn deletion(&self, lease: &Lease, fork: &Lease) -> Result<(), String> {
        let head = fine("head", self.store.head(&self.fork).await)?;
        if head.is_some_and(|info| info.fork.is_some()) {
            let refused = StoreError::HasForks {
                session: self.session.clone(),
                forks: vec![self.fork.clone()],
            };
            match self.store.delete(lease).await {
                Err(StoreError::Unsupported { .. }) => return Ok(()),
                deleted => same("delete of a parent", deleted, Err(refused))?,
            }
        }
        for session in [fork, lease] {
            match self.store.delete(session).await {
                Err(StoreError::Unsupported { .. }) => return Ok(()),
                deleted => same("delete", deleted, Ok(true))?,
            }
        }
        same(
            "delete of no session",
            self.store.delete(lease).await,
            Ok(false),
        )?;
        same("a deleted log", self.load(&self.session).await?, [])?;
        fine("append", self.store.append(lease, &[entry(5)]).await)?;
        same("a new log", self.load(&self.session).await?, [entry(5)])?;
        same("delete", self.store.delete(lease).await, Ok(true))?;
        same("another log", self.load(&self.other).await?, [entry(1)])?;
        let other = self.acquire(&self.other).await?;
        same("delete", self.store.delete(&other).await, Ok(true))
    }

    async fn acquire(&self, session: &SessionId) -> Result<Lease, String> {
        fine("acquire", self.store.acquire(session).await)
    }

    async fn load(&self, session: &SessionId) -> Result<Vec<Entry>, String> {
        fine("read", self.store.load(session).await)
    }
}

fn id(name: &str) -> Result<SessionId, String> {
    SessionId::new(name).map_err(|error| error.to_string())
}

fn text_of(n: u64) -> String {
    format!("word{n} of the log\nparseConfig{n} 配置文件 é\u{0} 🦀")
}

fn entry(n: u64) -> Entry {
    Entry::Message {
        message: Arc::new(Message::user(text_of(n))),
        queued: None,
    }
}

fn fine<T>(what: &str, result: Result<T, StoreError>) -> Result<T, String> {
    result.map_err(|error| format!("{what} fails: {error}"))
}

fn same<T, U>(what: &str, is: T, wanted: U) -> Result<(), String>
where
    T: PartialEq<U> + std::fmt::Debug,
    U: std::fmt::Debug,
{
    if is == wanted {
        return Ok(());
    }
    let (is, wanted) = (format!("{is:?}"), format!("{wanted:?}"));
    Err(format!(
        "{what}: expected {}, got {}",
        short(&wanted),
        short(&is)
    ))
}

/// Returns the beginning of a text.
fn short(text: &str) -> &str {
    text.get(..text.floor_char_boundary(300))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;

    #[tokio::test]
    async fn the_store_in_memory_keeps_its_promises() {
        check_store(&MemoryStore::default()).await.unwrap();
    }
}
