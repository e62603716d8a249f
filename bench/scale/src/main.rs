//! Finds the first bottleneck of a deployment of durable agents: multiplies measured costs from a
//! file by a load and divides them by the available resources.
//!
//! The output is deterministic: no clock and no randomness is involved. `docs/scale.md` shows it.

use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;

/// Numbers of sessions in the table.
const TABLE: [f64; 3] = [100.0, 1_000.0, 10_000.0];
/// Connections of one worker process: `POSTGRES_CONNECTIONS` of the store.
const CONNECTIONS: f64 = 8.0;
const SECONDS_OF_A_DAY: f64 = 86_400.0;
const GIGABYTE: f64 = 1e9;
const MEGABYTE: f64 = 1e6;
const USAGE: &str = "\
usage: plimsoll-scale COSTS [NAME=VALUE]…
  turns=0.1            turns per second of a running session
  followed=0.1         share of the sessions that a client follows
  poll=10000           milliseconds between a run's own looks for messages
  worker-cores=8       cores of all workers
  workers=8            worker processes, each with 8 connections
  postgres-cores=4     cores of PostgreSQL
  restate-cores=4      cores of Restate
  round-trip=0.3       milliseconds of a statement's way to PostgreSQL and back
  flush=1              milliseconds of a commit's flush
  disk=200             megabytes per second that each disk writes
  sessions=N           only this number of running sessions";

/// A name or a number that cannot be used.
#[derive(Debug)]
struct Fault(String);

/// Numbers by name.
struct Numbers(BTreeMap<String, f64>);

/// The load of one part, as a share of its capacity.
struct Part {
    name: &'static str,
    share: f64,
}

fn main() -> ExitCode {
    match run() {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("{fault}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, Fault> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or_else(|| Fault("name the file with the costs".to_owned()))?;
    let text = std::fs::read_to_string(&path).map_err(|error| Fault(format!("{path}: {error}")))?;
    let costs = Numbers::costs(&text)?;
    let load = Numbers::load(arguments)?;
    report(&costs, &load)
}

fn report(costs: &Numbers, load: &Numbers) -> Result<String, Fault> {
    let mut text = String::new();
    let sessions = match load.0.get("sessions") {
        Some(sessions) => vec![*sessions],
        None => TABLE.to_vec(),
    };
    let columns = sessions
        .iter()
        .map(|&sessions| parts(costs, load, sessions))
        .collect::<Result<Vec<_>, _>>()?;
    let head = sessions.iter().map(|sessions| format!("{sessions:>12.0}"));
    text += &format!("{:<24}{}\n", "running sessions", head.collect::<String>());
    let per_second = sessions
        .iter()
        .map(|sessions| Ok(format!("{:>12.1}", sessions * load.get("turns")?)));
    let per_second = per_second.collect::<Result<String, Fault>>()?;
    text += &format!("{:<24}{per_second}\n", "turns per second");
    for (row, part) in columns.first().into_iter().flatten().enumerate() {
        let cells = columns.iter().filter_map(|column| column.get(row));
        let cells = cells.map(|part| format!("{:>10.1} %", part.share * 100.0));
        text += &format!("{:<24}{}\n", part.name, cells.collect::<String>());
    }
    text += "\n";
    for (sessions, column) in sessions.iter().zip(&columns) {
        let first = column.iter().max_by(|a, b| a.share.total_cmp(&b.share));
        let Some(first) = first else { continue };
        let most = (sessions / first.share).floor();
        let verdict = if first.share > 1.0 {
            "too small"
        } else {
            "enough"
        };
        text += &format!(
            "{sessions:.0} sessions: {verdict}; first bottleneck {}, full at {most:.0} sessions\n",
            first.name
        );
    }
    text += "\n";
    for &sessions in &sessions {
        let turns = sessions * load.get("turns")?;
        let daily = turns * SECONDS_OF_A_DAY;
        text += &format!(
            "{sessions:.0} sessions: {:.1} million turns and {:.1} GB a day; {:.0} statements a second; a billion \
             turns after {:.0} days\n",
            daily / 1e6,
            daily * costs.get("turn.stored")? / GIGABYTE,
            statements(costs, load, sessions)?,
            1e9 / daily
        );
    }
    text += &format!(
        "a billion turns: {:.1} TB in PostgreSQL\n",
        costs.get("turn.stored")? / 1e3
    );
    Ok(text)
}

/// Returns the shares of all parts for a number of running sessions.
fn parts(costs: &Numbers, load: &Numbers, sessions: f64) -> Result<Vec<Part>, Fault> {
    let cpu = |part: &str| -> Result<f64, Fault> {
        let cores = load.get(&format!("{part}-cores"))?;
        Ok(each(costs, load, sessions, part)? / 1e3 / cores)
    };
    let turns = sessions * load.get("turns")?;
    let statements = statements(costs, load, sessions)?;
    // The time for which statements and commits occupy the workers' connections, in milliseconds
    // per second.
    let busy = statements * load.get("round-trip")?
        + turns
            * (costs.get("turn.execution")? + costs.get("turn.commits")? * load.get("flush")?);
    let disk = load.get("disk")? * MEGABYTE;
    let part = |name, share| Part { name, share };
    Ok(vec![
        part("CPU of workers", cpu("worker")?),
        part("CPU of PostgreSQL", cpu("postgres")?),
        part("CPU of Restate", cpu("restate")?),
        part(
            "connections",
            busy / 1e3 / (load.get("workers")? * CONNECTIONS),
        ),
        part("WAL of PostgreSQL", turns * costs.get("turn.wal")? / disk),
        part(
            "disk of Restate",
            turns * costs.get("turn.restate-written")? / disk,
        ),
    ])
}

/// Returns the total cost of turns, waiting sessions and clients, per second.
fn each(costs: &Numbers, load: &Numbers, sessions: f64, what: &str) -> Result<f64, Fault> {
    let cost = |of: &str| costs.get(&format!("{of}.{what}"));
    // A waiting session costs its checks for messages. Restate is not involved in them.
    let looks = match what {
        "restate" => 1.0,
        _ => costs.get("wait.poll")? / load.get("poll")?,
    };
    let session = load.get("turns")? * cost("turn")?
        + looks * cost("wait")?
        + load.get("followed")? * cost("follow")?;
    Ok(sessions * session)
}

fn statements(costs: &Numbers, load: &Numbers, sessions: f64) -> Result<f64, Fault> {
    each(costs, load, sessions, "statements")
}

impl Numbers {
    /// Parses lines of a name, a value and a unit.
    fn costs(text: &str) -> Result<Self, Fault> {
        let mut found = BTreeMap::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(name) = words.next() else { continue };
            let value = words.next().unwrap_or_default();
            found.insert(name.to_owned(), number(name, value)?);
        }
        Ok(Self(found))
    }

    /// Returns the defaults of [`USAGE`], overridden by the arguments.
    fn load(given: impl Iterator<Item = String>) -> Result<Self, Fault> {
        let mut found = BTreeMap::new();
        for line in USAGE.lines().skip(1) {
            let Some((name, value)) = line.trim().split_once('=') else {
                continue;
            };
            let value = value.split_whitespace().next().unwrap_or_default();
            if let Ok(value) = value.parse() {
                found.insert(name.to_owned(), value);
            }
        }
        for argument in given {
            let (name, value) = argument
                .split_once('=')
                .ok_or_else(|| Fault(format!("`{argument}` is not NAME=VALUE")))?;
            if name != "sessions" && !found.contains_key(name) {
                return Err(Fault(format!("`{name}` is unknown")));
            }
            found.insert(name.to_owned(), number(name, value)?);
        }
        Ok(Self(found))
    }

    fn get(&self, name: &str) -> Result<f64, Fault> {
        let found = self.0.get(name).copied();
        found.ok_or_else(|| Fault(format!("`{name}` is missing")))
    }
}

/// Parses a finite number above 0.
fn number(name: &str, value: &str) -> Result<f64, Fault> {
    match value.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(Fault(format!(
            "`{name}` wants a number above 0, not `{value}`"
        ))),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
