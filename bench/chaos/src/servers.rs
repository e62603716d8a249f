//! The processes that durable runs depend on: PostgreSQL, a Restate server and workers. Each can be
//! killed, paused and continued, and is restarted if it is not running.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use plimsoll_testkit::postgres::{PostgresServer, send};
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::Failure;

/// Time until the next attempt to start a process.
const AGAIN: Duration = Duration::from_millis(500);
/// Commits wait for the disk; every worker and every check connects.
const POSTGRES_SETTINGS: [&str; 2] = ["fsync=on", "max_connections=200"];

/// The target of a blow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A worker, by its number.
    Worker(usize),
    Postgres,
    Restate,
}

/// The kind of a blow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blow {
    /// Kills the target, and restarts it after this time.
    Kill(Duration),
    /// Pauses the target, and continues it after this time.
    Pause(Duration),
}

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    /// Not running. It is restarted at this time.
    Down(Instant),
    /// Paused. It is continued at this time.
    Stopped(Instant),
}

/// All processes, with their states.
pub(crate) struct Servers {
    folder: TempDir,
    postgres: PostgresServer,
    program: PathBuf,
    restate_program: PathBuf,
    worker_args: Vec<String>,
    restate: Option<Child>,
    workers: Vec<Option<Child>>,
    states: Vec<(Target, State)>,
    /// The ports of Restate, and the one that all workers share.
    node: u16,
    ingress: u16,
    admin: u16,
    worker: u16,
    /// The number of processes that ended without being killed.
    pub(crate) ended: u64,
}

impl Servers {
    /// Creates the servers without starting them.
    pub(crate) fn new(
        postgres: PostgresServer,
        program: &Path,
        restate: &Path,
        workers: usize,
        worker_args: Vec<String>,
    ) -> Result<Self, Failure> {
        let listeners = [(); 4].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let mut ports = Vec::new();
        for listener in listeners {
            ports.push(listener?.local_addr()?.port());
        }
        let [node, ingress, admin, worker] = ports[..] else {
            return Err(Failure("no free ports".to_owned()));
        };
        let folder = TempDir::with_prefix(crate::PREFIX)?;
        let now = Instant::now();
        let targets = (0..workers).map(Target::Worker);
        let targets = targets.chain([Target::Postgres, Target::Restate]);
        Ok(Self {
            folder,
            postgres,
            program: program.to_owned(),
            restate_program: restate.to_owned(),
            worker_args,
            restate: None,
            workers: (0..workers).map(|_| None).collect(),
            states: targets.map(|target| (target, State::Down(now))).collect(),
            node,
            ingress,
            admin,
            worker,
            ended: 0,
        })
    }

    /// Returns the address that runs are submitted to.
    pub(crate) fn on(&self) -> String {
        format!("restate://127.0.0.1:{}", self.ingress)
    }

    /// Returns the address of Restate's admin API.
    pub(crate) fn admin(&self) -> String {
        format!("http://127.0.0.1:{}", self.admin)
    }

    /// Returns the address of the workers.
    pub(crate) fn worker(&self) -> String {
        format!("http://127.0.0.1:{}", self.worker)
    }

    /// Returns the database.
    pub(crate) fn postgres(&self) -> &PostgresServer {
        &self.postgres
    }

    /// Returns the folders that appear in the command lines of the processes.
    pub(crate) fn folders(&self) -> [PathBuf; 2] {
        [
            self.folder.path().to_owned(),
            self.postgres.folder().to_owned(),
        ]
    }

    /// Strikes a target that runs. Returns whether it did.
    pub(crate) async fn hit(&mut self, target: Target, blow: Blow) -> Result<bool, Failure> {
        let state = self.states.iter().find(|(of, _)| *of == target);
        if state.is_none_or(|(_, state)| *state != State::Runs) {
            return Ok(false);
        }
        let now = Instant::now();
        let state = match blow {
            Blow::Kill(down) => {
                self.kill(target).await?;
                State::Down(now + down)
            }
            Blow::Pause(stopped) => {
                self.signal(target, Signal::STOP);
                State::Stopped(now + stopped)
            }
        };
        self.set(target, state);
        Ok(true)
    }

    /// Restarts and continues processes when it is time, and notices those that have ended by
    /// themselves.
    pub(crate) async fn tend(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        for (target, state) in self.states.clone() {
            match state {
                State::Down(until) if until <= now => {
                    self.start(target)?;
                    self.set(target, State::Runs);
                }
                State::Stopped(until) if until <= now => {
                    self.signal(target, Signal::CONT);
                    self.set(target, State::Runs);
                }
                State::Runs if self.has_ended(target) => {
                    self.ended += 1;
                    self.kill(target).await?;
                    self.set(target, State::Down(now + AGAIN));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Continues all paused processes and restarts all others at once.
    pub(crate) fn recover(&mut self) {
        let now = Instant::now();
        for (_, state) in &mut self.states {
            match state {
                State::Down(until) | State::Stopped(until) => *until = now,
                State::Runs => {}
            }
        }
    }

    /// Kills everything except the database, which is needed for the logs.
    pub(crate) async fn stop_runs(&mut self) -> Result<(), Failure> {
        for (target, _) in self.states.clone() {
            if target != Target::Postgres {
                self.kill(target).await?;
            }
        }
        Ok(())
    }

    /// Kills the database.
    pub(crate) async fn stop(&mut self) -> Result<(), Failure> {
        self.kill(Target::Postgres).await
    }

    fn set(&mut self, target: Target, state: State) {
        for (of, kept) in &mut self.states {
            if *of == target {
                *kept = state;
            }
        }
    }

    fn child(&mut self, target: Target) -> Option<&mut Option<Child>> {
        match target {
            Target::Worker(number) => self.workers.get_mut(number),
            Target::Restate => Some(&mut self.restate),
            Target::Postgres => None,
        }
    }

    fn has_ended(&mut self, target: Target) -> bool {
        match self.child(target) {
            None => self.postgres.has_ended(),
            Some(None) => true,
            Some(Some(child)) => !matches!(child.try_wait(), Ok(None)),
        }
    }

    fn signal(&mut self, target: Target, signal: Signal) {
        match self.child(target) {
            None => self.postgres.signal(signal),
            Some(child) => {
                if let Some(pid) = child.as_ref().and_then(Child::id) {
                    send(pid, signal);
                }
            }
        }
    }

    async fn kill(&mut self, target: Target) -> Result<(), Failure> {
        match self.child(target) {
            None => Ok(self.postgres.kill()?),
            Some(child) => {
                if let Some(mut child) = child.take() {
                    child.kill().await?;
                }
                Ok(())
            }
        }
    }

    fn start(&mut self, target: Target) -> Result<(), Failure> {
        let started = match target {
            Target::Postgres => return Ok(self.postgres.spawn(&POSTGRES_SETTINGS)?),
            Target::Restate => self.restate_command()?.spawn(),
            Target::Worker(number) => self.worker_command(number)?.spawn(),
        };
        let started = started.map_err(|error| {
            Failure::start(
                match target {
                    Target::Restate => &self.restate_program,
                    _ => &self.program,
                },
                error,
            )
        })?;
        if let Some(child) = self.child(target) {
            *child = Some(started);
        }
        Ok(())
    }

    fn restate_command(&self) -> Result<Command, Failure> {
        let at = |port: u16| format!("127.0.0.1:{port}");
        let base = self.folder.path().join("restate");
        std::fs::create_dir_all(&base)?;
        let mut command = Command::new(&self.restate_program);
        command
            .args(["--node-name", "chaos", "--base-dir"])
            .arg(&base)
            .env("DO_NOT_TRACK", "1")
            .env("RESTATE_BIND_ADDRESS", at(self.node))
            .env("RESTATE_INGRESS__BIND_ADDRESS", at(self.ingress))
            .env("RESTATE_ADMIN__BIND_ADDRESS", at(self.admin))
            .env("RESTATE_DEFAULT_NUM_PARTITIONS", "1")
            .env("RESTATE_LISTEN_MODE", "tcp")
            .current_dir(&base)
            .stdin(Stdio::null())
            .stdout(self.log("restate")?)
            .stderr(Stdio::null())
            .kill_on_drop(true);
        Ok(command)
    }

    fn worker_command(&self, number: usize) -> Result<Command, Failure> {
        let work = self.folder.path().join("work");
        std::fs::create_dir_all(&work)?;
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("PLIMSOLL_HOME", self.folder.path().join("home"))
            .env("PLIMSOLL_STORE", self.postgres.url())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(&work)
            .args(["worker", "--listen", &format!("127.0.0.1:{}", self.worker)])
            .arg("--root")
            .arg(&work)
            .args(&self.worker_args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(self.log(&format!("worker-{number}"))?)
            .kill_on_drop(true);
        Ok(command)
    }

    /// Opens the log file of the process with this name. A restarted process appends to it.
    fn log(&self, name: &str) -> Result<std::fs::File, Failure> {
        let path = self.folder.path().join(format!("{name}.log"));
        let mut options = std::fs::OpenOptions::new();
        Ok(options.create(true).append(true).open(path)?)
    }

    /// Returns the working directory of the runs.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Returns the last line of every worker's log.
    pub(crate) fn last_words(&self) -> Vec<String> {
        let words = (0..self.workers.len()).map(|number| {
            let path = self.folder.path().join(format!("worker-{number}.log"));
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let last = text.lines().rfind(|line| !line.trim().is_empty());
            format!("worker {number}: {}", last.unwrap_or("(nothing)"))
        });
        words.collect()
    }
}
