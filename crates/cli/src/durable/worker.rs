//! `plimsoll worker`: runs an agent for Restate, with its sessions in PostgreSQL. Approvals are
//! given from elsewhere.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, value_parser};
use plimsoll::durable::{PostgresGate, Worker, WorkerOptions, register};
use plimsoll::permissions::AllowAll;
use plimsoll::store::{
    MAX_POSTGRES_CONNECTIONS, POSTGRES_CONNECTIONS, PostgresOptions, PostgresStore, StoreError,
};
use plimsoll::{Event, Gate, PermissionMode, SessionEvent};

use crate::agent::{self, UserSide};
use crate::asked_to_end;
use crate::error::{CliError, DONE};
use crate::settings::Sources;
use crate::terminal::text::lines_of;

/// The arguments of `plimsoll worker`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../../help/worker.txt").trim_ascii_end())]
pub(crate) struct WorkerArgs {
    /// The database of the sessions, as in postgres://user@host/database. Others can read arguments:
    /// a password belongs into PLIMSOLL_STORE or PGPASSWORD
    #[arg(
        long,
        env = "PLIMSOLL_STORE",
        hide_env_values = true,
        value_name = "URL"
    )]
    store: String,
    /// Where Restate reaches this worker
    #[arg(long, default_value = "127.0.0.1:9080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Tell Restate's admin API at this address of this worker
    #[arg(long, value_name = "URL")]
    register: Option<String>,
    /// The worker's address as Restate sees it [default: the address of --listen]
    #[arg(long, value_name = "URL", requires = "register")]
    advertise: Option<String>,
    /// Seconds after which the sessions of a silent worker are taken over; the same for all workers
    #[arg(long, default_value_t = 15, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=3600))]
    patience: u64,
    /// Connections to the database, at most; one more while clients follow runs
    #[arg(long, default_value_t = POSTGRES_CONNECTIONS, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(MAX_POSTGRES_CONNECTIONS)))]
    connections: u32,
    /// Take only requests that Restate has signed, checked with this public key (publickeyv1_…). Given
    /// several times, each of the keys will do
    #[arg(long = "identity-key", value_name = "KEY")]
    identity_keys: Vec<String>,
    /// Where its settings come from.
    #[command(flatten)]
    sources: Box<Sources>,
}

/// Runs the command until Ctrl-C or SIGTERM, which systemd and containers send.
pub(crate) async fn run(args: &WorkerArgs) -> Result<u8, CliError> {
    let options = PostgresOptions {
        max_connections: args.connections,
        patience: Duration::from_secs(args.patience),
        ..PostgresOptions::default()
    };
    if is_root() {
        crate::note(
            "note: this worker runs as root: commands of the agent can read its password and keys; start it \
             as a user of its own",
        );
    }
    let store = PostgresStore::connect_with(&args.store, options).await?;
    let kept = Arc::new(store.clone());
    let config = agent::resolve(&args.sources, false).await?;
    let gate: Arc<dyn Gate> = match config.settings().permission_mode() {
        PermissionMode::Yes => Arc::new(AllowAll),
        _ => Arc::new(PostgresGate::new(store.clone())),
    };
    let warnings = |seen: &SessionEvent| {
        if let Event::Warning { text } = &seen.event {
            note!("note: {text}");
        }
    };
    let user = UserSide {
        gate,
        observer: Arc::new(warnings),
        schema: None,
    };
    let ready = agent::build(config, &args.sources, user, false, kept, None).await?;
    let options = WorkerOptions {
        identity_keys: args.identity_keys.clone(),
        on_database: Some(Box::new(tell)),
    };
    let worker =
        Worker::bind(ready.agent, store.clone(), args.listen, options).map_err(CliError::usage)?;
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(worker.serve(async {
        let _ = ended.await;
    }));
    if let Some(admin) = &args.register {
        let own = format!("http://{}", args.listen);
        let address = args.advertise.as_ref().unwrap_or(&own);
        register(admin, address).await?;
    }
    out!("http://{}", args.listen);
    if !args.listen.ip().is_loopback() && args.identity_keys.is_empty() {
        crate::note(
            "note: whoever reaches this address can use the agent; let only Restate reach it, or give \
             --identity-key",
        );
    }
    crate::note(&lines_of(&[
        format!("worker with {}", ready.choice.model.provider.model()),
        format!("tools in {}", ready.config.settings().root.display()),
        "Ctrl-C ends it".to_owned(),
    ]));
    asked_to_end().await?;
    let _ = end.send(());
    // Its sessions are free at once for the next worker.
    let _ = serving.await;
    ready.mcp.close().await;
    store.close().await;
    Ok(DONE)
}

/// Reports a failure of the database in the log of the worker.
fn tell(error: &StoreError) {
    say!("the database fails, and runs wait until it works again: {error}");
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}
