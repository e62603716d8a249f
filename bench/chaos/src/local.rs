//! Kills of `plimsoll run` on this machine, with its sessions in SQLite. Each killed run is
//! resumed, as a user would do it, until it has ended.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plimsoll::machine::Entry;
use plimsoll::store::SqliteStore;
use plimsoll::{SessionId, SessionStore};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::check::{self, Finding, Writers};
use crate::ledger::Ledger;
use crate::model::Model;
use crate::plan::{Limit, NOTES, Plan};
use crate::random::Random;
use crate::report::Report;
use crate::{Failure, Options};

/// Maximum number of kills of one session.
const KILLS_EACH: u64 = 12;
/// Maximum time of a run that is not killed.
const LONG: Duration = Duration::from_secs(60);
/// Maximum time of effects of killed runs that are still under way.
const SETTLE: Duration = Duration::from_secs(1);
/// Time between two checks of a run's requests.
const LOOK: Duration = Duration::from_millis(1);

/// The moment at which a run is killed.
#[derive(Debug, Clone, Copy)]
enum HookEvent {
    /// This long after its start.
    Start(Duration),
    /// This long after its next request to the model.
    Request(Duration),
}

/// Sessions that run one after the other, in a store of their own.
struct Lane<'a> {
    options: &'a Options,
    model: &'a Model,
    folder: &'a Path,
    home: PathBuf,
    /// The number of kills of all lanes so far.
    kills: &'a AtomicU64,
}

/// The result of a session.
struct Ran {
    plan: Plan,
    log: Vec<Entry>,
    /// Violations that were found during the runs.
    violations: Vec<String>,
}

/// Kills runs until the number of kills in `options` is reached, or the time is over.
pub(crate) async fn run(options: &Options) -> Result<Report, Failure> {
    let mut report = Report::new("runs on SQLite", options.seed);
    let since = Instant::now();
    let folder = TempDir::with_prefix(crate::PREFIX)?;
    let work = folder.path().join("work");
    std::fs::create_dir(&work)?;
    std::fs::write(work.join(NOTES), "calm\n")?;
    let ledger = Ledger::create(folder.path())?;
    // Every kill may need a session of its own, and each lane ends with a session that is not
    // killed.
    let most = options.kills + 2;
    let plans: Vec<Plan> = (0..most)
        .map(|number| Plan::new(options.seed, "run", number))
        .collect();
    let model = Model::start(&plans, ledger.path().to_owned()).await?;
    let kills = AtomicU64::new(0);
    let lane = |number: u64| Lane {
        options,
        model: &model,
        folder: folder.path(),
        home: folder.path().join(format!("home-{number}")),
        kills: &kills,
    };
    let (even, odd) = plans
        .into_iter()
        .enumerate()
        .partition::<Vec<_>, _>(|(at, _)| at % 2 == 0);
    let (lanes, deadline) = ([lane(0), lane(1)], since + options.time);
    let [first, second] = &lanes;
    let (first, second) = tokio::join!(first.work(even, deadline), second.work(odd, deadline));
    tokio::time::sleep(SETTLE).await;

    let (effects, sheets) = (ledger.lines()?, model.sheets());
    for Ran {
        plan,
        log,
        mut violations,
    } in first?.into_iter().chain(second?)
    {
        let sheet = sheets.get(&plan.session).cloned().unwrap_or_default();
        let finding = check::check(&plan, &log, &sheet, &effects, Writers::OneByOne);
        let Finding {
            unknown,
            effects,
            violations: found,
        } = finding;
        violations.extend(found);
        report.sessions += 1;
        report.ended += u64::from(check::has_ended(&log));
        report.entries += log.len() as u64;
        report.repeated += sheet.requests - sheet.turns.len() as u64;
        report.unknown += unknown;
        report.effects += effects;
        report.blame(&options.logs, &plan.session, &log, violations);
    }
    report.requests = model.requests();
    for fault in model.faults() {
        report.blame_all(fault);
    }
    let killed = kills.into_inner();
    report.kills = vec![("runs", killed)];
    if killed < options.kills {
        report.notes.push(format!(
            "{killed} of {} kills in the time; give more with --minutes",
            options.kills
        ));
    }
    for left in crate::left_behind(folder.path()).await {
        report.blame_all(format!("a process was left behind: {left}"));
    }
    report.took = since.elapsed();
    Ok(report)
}

impl Lane<'_> {
    async fn work(
        &self,
        plans: Vec<(usize, Plan)>,
        deadline: Instant,
    ) -> Result<Vec<Ran>, Failure> {
        let mut ran = Vec::new();
        for (number, plan) in plans {
            if self.kills.load(Ordering::Relaxed) >= self.options.kills || Instant::now() > deadline
            {
                break;
            }
            ran.push(self.session(number as u64, plan).await?);
        }
        Ok(ran)
    }

    /// Runs a session to its end, with kills.
    async fn session(&self, number: u64, plan: Plan) -> Result<Ran, Failure> {
        let mut random = Random::new(self.options.seed, &[2, number]);
        let mut violations = Vec::new();
        let mut known: Vec<Entry> = Vec::new();
        let mut left = KILLS_EACH;
        loop {
            let is_begun = known.iter().any(check::is_task);
            let child = self.start(&plan, is_begun)?;
            let moment = self.moment(&mut random, &mut left);
            let ended = self.end(child, &plan, moment).await?;
            let log = self.log(&plan.session).await?;
            if !log.starts_with(&known) {
                violations.push(format!(
                    "the log had {} entries, and does not begin with them any more",
                    known.len()
                ));
            }
            known = log;
            match ended {
                _ if check::has_ended(&known) => {}
                Some(words) => {
                    violations.push(format!("the run could not go on: {}", words.trim()));
                }
                None => continue,
            }
            return Ok(Ran {
                plan,
                log: known,
                violations,
            });
        }
    }

    fn moment(&self, random: &mut Random, left: &mut u64) -> Option<HookEvent> {
        let moment = match random.between(1, 3) {
            1 => HookEvent::Start(Duration::from_micros(random.between(0, 400_000))),
            // While the answer is read and recorded.
            2 => HookEvent::Request(Duration::from_micros(random.between(0, 20_000))),
            _ => HookEvent::Request(Duration::from_micros(random.between(0, 150_000))),
        };
        let is_free = self
            .kills
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |kills| {
                (kills < self.options.kills && *left > 0).then_some(kills + 1)
            });
        *left = left.saturating_sub(1);
        is_free.is_ok().then_some(moment)
    }

    /// Waits for the end of a run, or kills it. Returns its output unless it was killed.
    async fn end(
        &self,
        mut child: Child,
        plan: &Plan,
        moment: Option<HookEvent>,
    ) -> Result<Option<String>, Failure> {
        let before = self.model.requests_of(&plan.session);
        let until = async {
            match moment {
                None => tokio::time::sleep(LONG).await,
                Some(HookEvent::Start(delay)) => tokio::time::sleep(delay).await,
                Some(HookEvent::Request(delay)) => {
                    while self.model.requests_of(&plan.session) == before {
                        tokio::time::sleep(LOOK).await;
                    }
                    tokio::time::sleep(delay).await;
                }
            }
        };
        let is_over = tokio::select! {
            status = child.wait() => { status?; true }
            () = until => false,
        };
        if !is_over {
            child.kill().await?;
        }
        if let Some(_killed) = moment.filter(|_| is_over) {
            // The run ended before it was killed.
            self.kills.fetch_sub(1, Ordering::Relaxed);
        }
        match (is_over, moment) {
            (false, Some(_)) => Ok(None),
            (false, None) => Ok(Some(format!("it took more than {} s", LONG.as_secs()))),
            (true, _) => {
                let output = child.wait_with_output().await?;
                Ok(Some(String::from_utf8_lossy(&output.stderr).into_owned()))
            }
        }
    }

    fn start(&self, plan: &Plan, is_begun: bool) -> Result<Child, Failure> {
        let mut command = Command::new(&self.options.program);
        command
            .env_clear()
            .env("PLIMSOLL_HOME", &self.home)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(self.folder.join("work"))
            .args(["run", "--no-config", "--quiet", "--yes"])
            .args(["--tools", "bash,read", "--max-parallel-tools", "2"])
            .args(["--model", "openai-compatible/m", "--base-url"])
            .arg(self.model.url())
            .args(["--max-context", "200000", "--session", &plan.session]);
        match plan.limit {
            Limit::None => {}
            Limit::Turns(limit) => {
                command.args(["--max-turns", &limit.to_string()]);
            }
            Limit::Tokens(limit) => {
                command.args(["--max-total-tokens", &limit.to_string()]);
            }
        }
        if !is_begun {
            command.arg(plan.task());
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
            .spawn()
            .map_err(|error| Failure::start(&self.options.program, error))
    }

    /// Reads a log from a copy of the store. The store itself is left as the killed run left it,
    /// for the next run.
    async fn log(&self, session: &str) -> Result<Vec<Entry>, Failure> {
        if !self.home.is_dir() {
            return Ok(Vec::new());
        }
        let copy = TempDir::with_prefix(crate::PREFIX)?;
        for entry in std::fs::read_dir(&self.home)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                std::fs::copy(entry.path(), copy.path().join(entry.file_name()))?;
            }
        }
        let store = SqliteStore::open(copy.path()).await?;
        Ok(store.load(&SessionId::new(session)?).await?)
    }
}
