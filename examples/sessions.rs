//! A session that outlives its process: the log is stored, and another agent goes on with it.
//!
//! `cargo run -p plimsoll-examples --bin sessions`

use std::sync::Arc;

use plimsoll::store::SqliteStore;
use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::{Agent, SessionId, SessionStore};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let id = SessionId::new("voyage")?;
    for (task, answer) in [("Where to?", "East."), ("And then?", "Home.")] {
        // As in a new process: nothing is shared but the folder.
        let store = Arc::new(SqliteStore::open(folder.path()).await?);
        let model = ScriptedProvider::new([Turn::say(answer)]);
        let agent = Agent::builder(model.clone()).store(store).build()?;
        let mut session = agent.session(id.clone()).await?;
        let output = session.run(task).await?;
        let messages = model.requests()[0]["messages"]
            .as_array()
            .map_or(0, Vec::len);
        println!("{task} {} ({messages} messages were sent)", output.text);
    }
    let store = SqliteStore::open(folder.path()).await?;
    println!("{} entries in the log", store.load(&id).await?.len());
    Ok(())
}
