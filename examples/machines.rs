//! Sessions in PostgreSQL, so that any machine can go on with them, one at a time. It needs the feature
//! `postgres` of `plimsoll`, and a database.
//!
//! `DATABASE_URL=postgres://user:password@host/database cargo run -p plimsoll-examples --bin machines`

use std::sync::Arc;

use plimsoll::store::PostgresStore;
use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::{Agent, SessionId};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Ok(url) = std::env::var("DATABASE_URL") else {
        println!("DATABASE_URL is not set: it says where the database is");
        return Ok(());
    };
    let id = SessionId::new(format!("voyage-{}", std::process::id()))?;
    // As on two machines: nothing is shared but the database.
    let (here, there) = (agent(&url, "East.").await?, agent(&url, "Home.").await?);
    let mut session = here.session(id.clone()).await?;
    println!("{}", session.run("Where to?").await?.text);
    if let Err(busy) = there.session(id.clone()).await {
        println!("{busy}");
    }
    drop(session);
    let mut session = there.session(id).await?;
    println!("{}", session.run("And then?").await?.text);
    Ok(())
}

async fn agent(url: &str, answer: &str) -> Result<Agent, Box<dyn std::error::Error>> {
    let store = Arc::new(PostgresStore::connect(url).await?);
    let model = ScriptedProvider::new([Turn::say(answer)]);
    Ok(Agent::builder(model).store(store).build()?)
}
