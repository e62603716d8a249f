//! [`RunningServer`]: the server of a model for one run. Tries Plimsoll's server, then the same
//! with a portable library, then the user's own server, until one works on this processor.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;

use plimsoll_context::Bytes;
use plimsoll_core::process::{Command, ProcessEnd, ServerProcess};

use super::catalogue::LocalModel;
use super::error::LocalError;
use super::probe::{self, ServerStart};
use super::{LocalModels, Progress, Watch};

/// The time to load a model and generate one token. Usually seconds; on a slow disk a minute or
/// two.
pub const START_TIMEOUT: Duration = Duration::from_secs(180);
/// The maximum amount of a server's output that is kept, to find an error in it.
const LOG: Bytes = Bytes(32 * 1024);
/// The maximum length of an error message of a server, in characters.
const REASON: usize = 200;
/// The server requires a window that is a multiple of this.
const WINDOW_STEP: u64 = 256;
/// The smallest window. The probe needs a part of it.
const MIN_WINDOW: u64 = 1024;

/// The running server of a model. Dropping it stops the server.
#[derive(Debug)]
pub struct RunningServer {
    _server: ServerProcess,
    /// The address of the server.
    pub base_url: String,
    /// The model's name.
    pub model: String,
}

impl LocalModels {
    /// Downloads missing files and starts a model's server with a window of at least `window`
    /// tokens.
    ///
    /// # Errors
    /// A [`LocalError`] if a download fails or no server runs on this machine.
    pub async fn start(
        &self,
        name: Option<&str>,
        window: u64,
        watch: Watch<'_>,
    ) -> Result<RunningServer, LocalError> {
        let model = self.model(name)?;
        let file = self.pull(name, watch).await?;
        let mut reasons = String::new();
        for (what, command) in self.commands(watch).await? {
            match self.launch(command, model, &file, window).await? {
                Ok((server, port)) => {
                    return Ok(RunningServer {
                        _server: server,
                        base_url: format!("http://127.0.0.1:{port}/v1"),
                        model: model.name.clone(),
                    });
                }
                Err(reason) => {
                    let reason = format!("{what} {reason}");
                    watch(Progress::Said(&reason));
                    reasons = format!("{reasons}; {reason}");
                }
            }
        }
        Err(LocalError::NoServer {
            reasons,
            cure: cure(),
        })
    }

    /// Downloads the server, unless there is none for this machine, and its library for older
    /// processors, if it can be downloaded.
    ///
    /// # Errors
    /// A [`LocalError`] if the server cannot be downloaded.
    pub async fn pull_server(&self, watch: Watch<'_>) -> Result<(), LocalError> {
        if let Some(build) = self.catalogue.server() {
            self.install(&build.program, watch).await?;
            // Most processors do not need it.
            if let Err(error) = self.install(&build.portable, watch).await {
                watch(Progress::Said(&error.to_string()));
            }
        }
        Ok(())
    }

    /// Returns the servers to try, in order, each with its name in messages: Plimsoll's, the same with
    /// a library that runs on more processors, and the user's own.
    async fn commands(&self, watch: Watch<'_>) -> Result<Vec<(&'static str, Command)>, LocalError> {
        let own = self.on_path();
        let mut commands = Vec::new();
        match (self.pull_server(watch).await, self.catalogue.server()) {
            (Ok(()), Some(build)) => {
                let program = self.place(&build.program).join("llama-server");
                let portable = Command::new(&program);
                let portable = portable.env("LD_LIBRARY_PATH", self.place(&build.portable));
                commands.push(("the fetched server", Command::new(program)));
                commands.push(("the fetched server with its portable library", portable));
            }
            (Ok(()), None) => {}
            // The user's own server needs no download.
            (Err(error), _) if own.is_some() => watch(Progress::Said(&error.to_string())),
            (Err(error), _) => return Err(error),
        }
        commands.extend(own.map(|program| ("the llama-server on PATH", Command::new(program))));
        Ok(commands)
    }

    fn on_path(&self) -> Option<PathBuf> {
        let mut folders = env::split_paths(&self.path);
        folders.find_map(|folder| {
            let program = folder.join("llama-server");
            program.is_file().then_some(program)
        })
    }

    /// Starts a server. Returns its port, or the reason why another kind of server may start.
    async fn launch(
        &self,
        command: Command,
        model: &LocalModel,
        file: &Path,
        window: u64,
    ) -> Result<Result<(ServerProcess, u16), String>, LocalError> {
        let port = probe::free_port().map_err(|error| error.to_string());
        let started = port.and_then(|port| {
            let command = command.args(arguments(model, file, window, port));
            let server = command.serve(LOG).map_err(|error| error.to_string())?;
            Ok((server, port))
        });
        let (mut server, port) = match started {
            Ok(started) => started,
            Err(error) => return Ok(Err(format!("cannot start: {error}"))),
        };
        match probe::wait(&mut server, port, self.patience).await {
            ServerStart::Yes => Ok(Ok((server, port))),
            ServerStart::Late => {
                server.stop().await;
                Err(LocalError::Slow {
                    seconds: self.patience.as_secs(),
                })
            }
            ServerStart::Died => {
                let log = server.log();
                let said = format!("{}\n{}", log.head, log.tail);
                Ok(Err(end(server.stop().await, &said)))
            }
        }
    }
}

fn arguments(model: &LocalModel, file: &Path, window: u64, port: u16) -> Vec<OsString> {
    let window = window.max(MIN_WINDOW).next_multiple_of(WINDOW_STEP);
    let threads = available_parallelism().map_or(1, usize::from);
    let mut arguments: Vec<OsString> = vec!["-m".into(), file.into()];
    let rest = [
        ("--host", "127.0.0.1".to_owned()),
        ("--port", port.to_string()),
        ("-c", window.to_string()),
        ("-np", "1".to_owned()),
        ("-t", threads.to_string()),
        ("--alias", model.name.clone()),
        // The cache of earlier prompts would take gigabytes of memory.
        ("--cache-ram", "0".to_owned()),
    ];
    for (name, value) in rest {
        arguments.extend([name.into(), value.into()]);
    }
    arguments.extend(["--jinja".into(), "--no-webui".into()]);
    arguments
}

/// Describes how a server ended.
fn end(ended: Option<ProcessEnd>, said: &str) -> String {
    let last = |word: &str| {
        let line = said.lines().rev().find(|line| line.contains(word));
        line.map(|line| line.trim().chars().take(REASON).collect::<String>())
    };
    match ended {
        Some(ProcessEnd::Signalled(4)) => {
            "cannot run on this processor (illegal instruction)".to_owned()
        }
        Some(ProcessEnd::Signalled(9)) => {
            "was killed, probably because there is too little memory".to_owned()
        }
        Some(ProcessEnd::Signalled(signal)) => format!("ended with signal {signal}"),
        Some(ProcessEnd::Exited(code)) => {
            let said = last("error while loading shared libraries").or_else(|| last("error"));
            match said {
                Some(said) => format!("ended with code {code}: {said}"),
                None => format!("ended with code {code}"),
            }
        }
        _ => "ended".to_owned(),
    }
}

fn cure() -> &'static str {
    match env::consts::OS {
        "macos" => "run `brew install llama.cpp`, or install Ollama and start it",
        _ => "install llama.cpp (its llama-server on PATH), or install Ollama and start it",
    }
}
