//! Reads the input, up to a fixed limit.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use plimsoll::foreign::{Chat, Protocol, Repair, Target, without_half_characters};
use plimsoll::logs::{self, LogError, SessionLog};

use crate::error::CliError;

/// Maximum size of a chat, or of a line of `--lines`, in bytes.
pub(crate) const INPUT_LIMIT: u64 = 256 * 1024 * 1024;

/// Opens a file, or standard input if there is no path or it is `-`. Unpacks gzip and zstd.
pub(crate) fn open(path: Option<&Path>) -> Result<Box<dyn BufRead>, CliError> {
    match path {
        Some(path) if path.is_dir() => Err(CliError::usage(format!(
            "{} is a directory; name a file, or pipe one in",
            path.display()
        ))),
        Some(path) if path != Path::new("-") => {
            let file = File::open(path).map_err(|error| {
                CliError::usage(format!("{} cannot be read: {error}", path.display()))
            })?;
            logs::unpack(BufReader::new(file)).map_err(unreadable)
        }
        _ => logs::unpack(io::stdin().lock()).map_err(unreadable),
    }
}

/// A chat that was read.
pub(crate) struct InputChat {
    /// A request or a history as JSON. Empty for a log.
    pub(crate) text: String,
    /// The messages of a session log of another agent, and the rules that apply.
    pub(crate) log: Option<(Chat<'static>, Target)>,
    /// Repairs of the text before it could be parsed.
    pub(crate) repairs: Vec<Repair>,
}

impl InputChat {
    /// Returns a chat with this text. Halves of characters are replaced, because no JSON with them
    /// can be parsed.
    pub(crate) fn of_body(text: String) -> Self {
        let (text, repair) = without_half_characters(text);
        Self {
            text,
            log: None,
            repairs: repair.into_iter().collect(),
        }
    }

    /// Returns the messages of the active branch of a log.
    pub(crate) fn of_log(mut log: SessionLog) -> Self {
        Self {
            text: String::new(),
            log: Some((log.take_chat(), target_of(&log))),
            repairs: log.repairs,
        }
    }
}

/// Reads a chat. If the file is the session log of another agent, returns the messages of its
/// active branch and reports its damage on standard error.
pub(crate) fn chat(path: Option<&Path>) -> Result<InputChat, CliError> {
    if let Some(log) = path.map(session_log).transpose()?.flatten() {
        return Ok(InputChat::of_log(log));
    }
    let text = whole(open(path)?)?;
    if let Some(agent) = logs::detect(text.as_bytes()) {
        return Err(CliError::usage(format!(
            "this is a session log of {}; give its file by name instead of a pipe",
            agent.title()
        )));
    }
    Ok(InputChat::of_body(text))
}

/// Returns the rules for the messages of a log. They have no model, so they are validated as a history.
pub(crate) fn target_of(log: &SessionLog) -> Target {
    let model = log
        .model
        .as_deref()
        .filter(|model| model.starts_with("claude"));
    let protocol = log.agent.protocol();
    let model = model.filter(|_| protocol == Protocol::Messages);
    Target::of_protocol(protocol.name(), model).unwrap_or_default()
}

/// Reads a file as the session log of another agent. Returns `None` if it is something else.
pub(crate) fn session_log(path: &Path) -> Result<Option<SessionLog>, CliError> {
    if !path.is_file() {
        return Ok(None);
    }
    let log = match SessionLog::read(path, None) {
        // Such a file is read, or rejected, as a chat.
        Err(LogError::Unknown { .. }) => return Ok(None),
        log => log?,
    };
    for damage in &log.damage {
        say!("skipped line {}: {}", damage.line, damage.what);
    }
    Ok(Some(log))
}

/// Reads the whole input.
pub(crate) fn whole(input: Box<dyn BufRead>) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    input
        .take(INPUT_LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    text(bytes)
}

/// Reads the next line without its line break. Returns `None` at the end of the input. The rest of
/// an overlong line is skipped.
pub(crate) fn line(input: &mut Box<dyn BufRead>) -> Option<Result<String, CliError>> {
    let mut bytes = Vec::new();
    match input.take(INPUT_LIMIT + 1).read_until(b'\n', &mut bytes) {
        Err(error) => return Some(Err(unreadable(error))),
        Ok(0) => return None,
        Ok(_) => {}
    }
    if bytes.len() as u64 > INPUT_LIMIT
        && bytes.last() != Some(&b'\n')
        && let Err(error) = input.skip_until(b'\n')
    {
        return Some(Err(unreadable(error)));
    }
    Some(text(bytes).map(|line| line.trim_end_matches(['\n', '\r']).to_owned()))
}

fn text(bytes: Vec<u8>) -> Result<String, CliError> {
    if bytes.len() as u64 > INPUT_LIMIT {
        let limit = INPUT_LIMIT / (1024 * 1024);
        return Err(CliError::failed(format!(
            "the input is larger than the limit of {limit} MiB; split it, or remove what does not \
             belong to the chat"
        )));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CliError::failed(format!(
            "the input is not UTF-8: byte {at} is the first that is not; save it as UTF-8"
        ))
    })?;
    // Some editors write a byte order mark, which is not part of the JSON.
    Ok(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    })
}

fn unreadable(error: io::Error) -> CliError {
    CliError::failed(format!("the input cannot be read: {error}"))
}
