//! Files are backed up before tools change them, for the session that made the call.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use plimsoll_agent::Entry;
use plimsoll_context::ToolSpec;
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, FileEdit, MemoryStore, SessionId, SessionStore, StoreError, Tool, ToolContext,
    ToolError, ToolOutput,
};
use serde_json::{Value, json};

/// A store that keeps files, unless it is full.
#[derive(Default)]
struct FileKeepingStore {
    inner: MemoryStore,
    is_full: bool,
    kept: Mutex<Vec<(String, u64, FileEdit)>>,
}

#[async_trait]
impl SessionStore for FileKeepingStore {
    plimsoll_testkit::forward_store!(inner: acquire, read, append, list);
    async fn keep_file(&self, session: &SessionId, edit: FileEdit) -> Result<(), StoreError> {
        if self.is_full {
            let path = "the hold".into();
            return Err(StoreError::Full { path });
        }
        let entries = self.inner.load(session).await?.len() as u64;
        let kept = (session.to_string(), entries, edit);
        self.kept.lock().unwrap().push(kept);
        Ok(())
    }
}

/// A tool that changes a file.
struct Paint(ToolSpec);

impl Paint {
    fn new() -> Self {
        Self(ToolSpec {
            name: "paint".into(),
            description: "Paints.".into(),
            schema: json!({"type": "object", "properties": {}}),
        })
    }
}

#[async_trait]
impl Tool for Paint {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    async fn call(&self, _: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let edit = FileEdit {
            call: Some(cx.call.clone()),
            root: "/w".into(),
            path: "hull".into(),
            before: None,
            after: Some(b"red".to_vec()),
        };
        cx.keep_file(edit).await?;
        Ok("painted".into())
    }
}

fn painter() -> ScriptedProvider {
    ScriptedProvider::new([Turn::call("paint", json!({})), Turn::say("Done.")])
}

#[tokio::test]
async fn what_a_sub_agent_changes_is_kept_for_the_session_that_called_it() {
    let store = Arc::new(FileKeepingStore::default());
    let mate = Agent::builder(painter())
        .tool(Paint::new())
        .build()
        .unwrap();
    let model = ScriptedProvider::new([
        Turn::call("paint", json!({})),
        Turn::call("mate", json!({"task": "Paint it."})),
        Turn::say("Painted."),
    ]);
    let agent = Agent::builder(model)
        .tool(Paint::new())
        .tool(mate.as_tool("mate", "Does it."))
        .store(Arc::clone(&store) as Arc<dyn SessionStore>)
        .build()
        .unwrap();
    let mut session = agent.session(SessionId::new("s").unwrap()).await.unwrap();
    session.run("Paint.").await.unwrap();
    let log = store.load(session.id()).await.unwrap();
    let began = |at: u64| matches!(log[at as usize - 1], Entry::ToolStarted { .. });
    let kept = store.kept.lock().unwrap();
    assert_eq!(kept.len(), 2);
    for (session, entries, edit) in &*kept {
        assert_eq!(session, "s");
        assert!(began(*entries), "the call has begun");
        assert_eq!(edit.after.as_deref(), Some(&b"red"[..]));
    }
    assert!(kept[0].1 < kept[1].1);
}

#[tokio::test]
async fn a_file_that_cannot_be_kept_is_not_changed_and_the_model_is_told_why() {
    let store = Arc::new(FileKeepingStore {
        is_full: true,
        ..FileKeepingStore::default()
    });
    let model = painter();
    let agent = Agent::builder(model.clone())
        .tool(Paint::new())
        .store(store as Arc<dyn SessionStore>)
        .build()
        .unwrap();
    agent.run("Paint.").await.unwrap();
    let told = model.requests()[1]["messages"].to_string();
    assert!(
        told.contains("`hull` was not changed: no space is left at the hold"),
        "{told}"
    );
}
