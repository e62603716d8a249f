//! Durable runs on workers, while workers, PostgreSQL and the Restate server are killed and paused.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll::durable::{FORMAT, RequestState, Restate, RestateError, RunRequest, register};
use plimsoll::machine::Entry;
use plimsoll::store::PostgresStore;
use plimsoll::{ExecutionLimits, SessionId, SessionStore, Tokens};
use plimsoll_testkit::postgres::PostgresServer;
use tempfile::TempDir;

use crate::check::{self, Finding, Writers};
use crate::ledger::Ledger;
use crate::model::Model;
use crate::plan::{Limit, NOTES, Plan};
use crate::random::Random;
use crate::report::Report;
use crate::servers::{Blow, Servers, Target};
use crate::{Failure, Options};

/// Number of workers that share one address.
const WORKERS: usize = 3;
/// Seconds after which a silent worker's sessions are taken over. Some pauses are longer.
const PATIENCE: u64 = 3;
/// Milliseconds between two blows.
const EVERY: (u64, u64) = (300, 2_500);
/// Number of sessions that begin at once, and the time until the next ones. If all began at once,
/// they would end before many blows.
const WAVE: usize = 25;
const GAP: Duration = Duration::from_secs(10);
/// Milliseconds of a pause, and milliseconds until a killed process is restarted.
const STOPPED: (u64, u64) = (500, 7_000);
const DOWN: (u64, u64) = (0, 2_000);
/// Time between two checks of the processes.
const TICK: Duration = Duration::from_millis(50);
/// Time between two checks of the sessions.
const ROUND: Duration = Duration::from_secs(1);
/// Maximum time for everything to start, and for the sessions to end after the last blow.
const START: Duration = Duration::from_secs(60);
const QUIET: Duration = Duration::from_secs(240);
/// A run has failed if the server reports that this many times in a row.
const REFUSALS: u32 = 5;
/// Maximum time of effects that are still under way.
const SETTLE: Duration = Duration::from_secs(1);

/// Decides the time and the target of each blow.
struct Injector {
    random: Random,
    next: Instant,
    /// No blows happen after this time.
    until: Instant,
    kills: [u64; 3],
    pauses: [u64; 3],
}

/// Plays the scenario with the server `restate`.
pub(crate) async fn run(options: &Options, restate: Option<&Path>) -> Result<Report, Failure> {
    let mut report = Report::new("durable runs", options.seed);
    let since = Instant::now();
    let Some(restate) = restate else {
        report
            .notes
            .push("skipped: Restate is not installed; `cargo xtask chaos` installs it".to_owned());
        return Ok(report);
    };
    let Some(postgres) = PostgresServer::create(TempDir::with_prefix(crate::PREFIX)?)? else {
        report
            .notes
            .push("skipped: PostgreSQL is not installed (initdb was not found)".to_owned());
        return Ok(report);
    };
    let folder = TempDir::with_prefix(crate::PREFIX)?;
    let ledger = Ledger::create(folder.path())?;
    let plans: Vec<Plan> = (0..options.sessions)
        .map(|number| Plan::new(options.seed, "durable", number))
        .collect();
    let model = Model::start(&plans, ledger.path().to_owned()).await?;
    let args = [
        "--no-config",
        "--yes",
        "--tools",
        "bash,read",
        "--max-parallel-tools",
        "2",
        "--model",
        "openai-compatible/m",
        "--max-context",
        "200000",
        "--patience",
        &PATIENCE.to_string(),
        "--base-url",
        &model.url(),
    ];
    let args = args.map(str::to_owned).to_vec();
    let mut servers = Servers::new(postgres, &options.program, restate, WORKERS, args)?;
    start(&mut servers).await?;
    std::fs::write(servers.work().join(NOTES), "calm\n")?;

    let now = Instant::now();
    let mut injector = Injector {
        random: Random::new(options.seed, &[3]),
        next: now,
        until: now + options.time,
        kills: [0; 3],
        pauses: [0; 3],
    };
    let server = Restate::new(&servers.on(), None)?;
    let last = injector.until + QUIET;
    let ends = {
        let follow = follow(&server, &plans, last);
        tokio::pin!(follow);
        loop {
            tokio::select! {
                ends = &mut follow => break ends,
                () = tokio::time::sleep(TICK) => {}
            }
            injector.tick(&mut servers).await?;
            servers.tend().await?;
        }
    };
    settle(&mut servers).await?;
    let logs = logs(servers.postgres(), &plans).await?;
    servers.stop().await?;

    let (effects, sheets) = (ledger.lines()?, model.sheets());
    for plan in &plans {
        let log = logs.get(&plan.session).map_or(&[][..], Vec::as_slice);
        let sheet = sheets.get(&plan.session).cloned().unwrap_or_default();
        let finding = check::check(plan, log, &sheet, &effects, Writers::Stopped);
        let Finding {
            unknown,
            effects,
            mut violations,
        } = finding;
        match ends.get(&plan.session) {
            Some(Ok(entries)) if *entries == log.len() as u64 => report.ended += 1,
            Some(Ok(entries)) => violations.push(format!(
                "the run ended with {entries} entries, and the log has {}",
                log.len()
            )),
            Some(Err(why)) => violations.push(format!("the run failed: {why}")),
            None => violations.push("the run did not end in the time".to_owned()),
        }
        report.sessions += 1;
        report.entries += log.len() as u64;
        report.repeated += sheet.requests - sheet.turns.len() as u64;
        report.unknown += unknown;
        report.effects += effects;
        report.blame(&options.logs, &plan.session, log, violations);
    }
    report.requests = model.requests();
    for fault in model.faults() {
        report.blame_all(fault);
    }
    let names = ["workers", "PostgreSQL", "Restate"];
    report.kills = names.into_iter().zip(injector.kills).collect();
    report.pauses = names.into_iter().zip(injector.pauses).collect();
    if servers.ended > 0 {
        let words = servers.last_words().join("; ");
        report.notes.push(format!(
            "{} process(es) ended by themselves and were started again, as they do without a database; {words}",
            servers.ended
        ));
    }
    let folders = servers.folders();
    for folder in folders.iter().map(|folder| folder.as_path()) {
        for left in crate::left_behind(folder).await {
            report.blame_all(format!("a process was left behind: {left}"));
        }
    }
    report.took = since.elapsed();
    Ok(report)
}

/// Starts everything, and registers the workers with Restate.
async fn start(servers: &mut Servers) -> Result<(), Failure> {
    let since = Instant::now();
    let (admin, worker) = (servers.admin(), servers.worker());
    loop {
        servers.tend().await?;
        let registered = tokio::time::timeout(ROUND, register(&admin, &worker)).await;
        if let Ok(Ok(())) = registered {
            servers.ended = 0;
            return Ok(());
        }
        if since.elapsed() > START {
            let words = servers.last_words().join("; ");
            return Err(Failure(format!(
                "the servers did not start in {} s: {registered:?}; {words}",
                START.as_secs()
            )));
        }
        tokio::time::sleep(TICK).await;
    }
}

/// Brings the database back and ends everything else.
async fn settle(servers: &mut Servers) -> Result<(), Failure> {
    let since = Instant::now();
    servers.recover();
    loop {
        servers.tend().await?;
        if servers.postgres().is_ready() {
            break;
        }
        if since.elapsed() > START {
            return Err(Failure("PostgreSQL did not come back".to_owned()));
        }
        tokio::time::sleep(TICK).await;
    }
    servers.stop_runs().await?;
    tokio::time::sleep(SETTLE).await;
    Ok(())
}

/// Reads the logs from the database.
async fn logs(
    postgres: &PostgresServer,
    plans: &[Plan],
) -> Result<BTreeMap<String, Vec<Entry>>, Failure> {
    let store = PostgresStore::connect(&postgres.url()).await?;
    let mut logs = BTreeMap::new();
    for plan in plans {
        let log = store.load(&SessionId::new(plan.session.as_str())?).await?;
        logs.insert(plan.session.clone(), log);
    }
    store.close().await;
    Ok(logs)
}

/// Submits all tasks and waits for their ends. Returns the number of entries of each log at its
/// end, or the error.
async fn follow(
    server: &Restate,
    plans: &[Plan],
    last: Instant,
) -> BTreeMap<String, Result<u64, String>> {
    let mut ends = BTreeMap::new();
    let mut open = Vec::new();
    for (number, plan) in plans.iter().enumerate() {
        if number > 0 && number.is_multiple_of(WAVE) {
            tokio::time::sleep(GAP).await;
        }
        match submit(server, plan, last).await {
            Ok(invocation) => open.push((plan.session.clone(), invocation, 0)),
            Err(why) => {
                ends.insert(plan.session.clone(), Err(why));
            }
        }
    }
    while !open.is_empty() && Instant::now() < last {
        let mut still = Vec::new();
        for (session, invocation, refusals) in open {
            match server.output(&invocation).await {
                Ok(RequestState::Ended(reply)) => {
                    ends.insert(session, Ok(reply.entries));
                }
                Err(RestateError::Refused { why, .. }) if refusals >= REFUSALS => {
                    ends.insert(session, Err(why));
                }
                Err(RestateError::Refused { .. }) => {
                    still.push((session, invocation, refusals + 1));
                }
                Ok(RequestState::NotYet) | Err(_) => still.push((session, invocation, 0)),
            }
        }
        open = still;
        tokio::time::sleep(ROUND).await;
    }
    ends
}

/// Submits a task exactly once, with retries.
async fn submit(server: &Restate, plan: &Plan, last: Instant) -> Result<String, String> {
    let mut limits = ExecutionLimits::default();
    match plan.limit {
        Limit::None => {}
        Limit::Turns(limit) => limits.max_turns = Some(limit),
        Limit::Tokens(limit) => limits.max_total_tokens = Some(Tokens(limit)),
    }
    let request = RunRequest {
        format: FORMAT,
        key: Some(plan.session.clone()),
        prompt: plan.task(),
        limits,
    };
    loop {
        match server.submit(&plan.session, &request).await {
            Ok(invocation) => return Ok(invocation),
            Err(error) if Instant::now() > last => return Err(error.to_string()),
            Err(_) => tokio::time::sleep(TICK).await,
        }
    }
}

impl Injector {
    /// Strikes if it is time to.
    async fn tick(&mut self, servers: &mut Servers) -> Result<(), Failure> {
        let now = Instant::now();
        if now < self.next || now > self.until {
            return Ok(());
        }
        // All numbers are drawn in any case, so that later blows do not depend on the success of
        // this one.
        let worker = self.random.between(0, WORKERS as u64 - 1) as usize;
        let target = match self.random.between(1, 100) {
            1..=55 => Target::Worker(worker),
            56..=80 => Target::Postgres,
            _ => Target::Restate,
        };
        let is_kill = self.random.percent(60);
        let down = Duration::from_millis(self.random.between(DOWN.0, DOWN.1));
        let stopped = Duration::from_millis(self.random.between(STOPPED.0, STOPPED.1));
        self.next = now + Duration::from_millis(self.random.between(EVERY.0, EVERY.1));
        let blow = if is_kill {
            Blow::Kill(down)
        } else {
            Blow::Pause(stopped)
        };
        if servers.hit(target, blow).await? {
            let counts = if is_kill {
                &mut self.kills
            } else {
                &mut self.pauses
            };
            let [workers, postgres, restate] = counts;
            *match target {
                Target::Worker(_) => workers,
                Target::Postgres => postgres,
                Target::Restate => restate,
            } += 1;
        }
        Ok(())
    }
}
