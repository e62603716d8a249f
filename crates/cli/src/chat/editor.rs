//! The line editor: history, completion, and the prompt, which shows how full the window is. It reads;
//! what is written above it is [`Terminal`]'s. One of the library's names is not ours:
//! tidy:allow-file(helper)

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustyline::completion::{Completer, Pair};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{DefaultHistory, History};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, ExternalPrinter, Helper};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::chat::interrupts::{Press, Prompt};
use crate::chat::order::Order;
use crate::chat::prompt::Gauge;
use crate::chat::typed::{Keys, Typed, WAITING, keys};
use crate::chat::words::Words;
use crate::terminal::Terminal;

/// Lines that are remembered, at most.
const HISTORY: usize = 1_000;
/// Bytes of a line that is remembered, at most: a page that was pasted is not typed again.
const HISTORY_LINE: usize = 10_000;
/// How often the editor may break down before the chat ends.
const BREAKDOWNS: u32 = 8;
/// The name of its thread.
const THREAD: &str = "line editor";
/// What is said if it has broken down.
const TOO_MUCH: &str =
    "plimsoll: that is too long to be typed or pasted here; put it into a file and name the file";
/// The history, in the directory of the sessions.
const HISTORY_FILE: &str = "chat_history";

/// An editor that has a terminal.
pub(crate) struct LineEditor {
    editor: Editor<Beside, DefaultHistory>,
    typing: Typing,
    history: Option<PathBuf>,
    gauge: Arc<Gauge>,
}

/// How the chat is left.
enum Left {
    By(Typed),
    Pressed,
}

/// What stands on the line that is being edited, and how much of it is left of the cursor.
type Typing = Arc<Mutex<(String, usize)>>;

/// What the editor asks while it reads.
struct Beside {
    gauge: Arc<Gauge>,
    words: Arc<Words>,
    typing: Typing,
}

impl LineEditor {
    /// `None` where the terminal cannot do it.
    pub(crate) fn open(
        data: Option<&Path>,
        gauge: Arc<Gauge>,
        words: Arc<Words>,
    ) -> Option<(Self, Box<dyn ExternalPrinter + Send>)> {
        let config = Config::builder()
            .max_history_size(HISTORY)
            .ok()?
            .completion_type(CompletionType::List)
            // The gauge is drawn as the prompt's highlighting; whether in colour, it decides.
            .color_mode(ColorMode::Forced)
            .build();
        let mut editor: Editor<Beside, DefaultHistory> = Editor::with_config(config).ok()?;
        let printer = editor.create_external_printer().ok()?;
        let typing = Typing::default();
        editor.set_helper(Some(Beside {
            gauge: Arc::clone(&gauge),
            words,
            typing: Arc::clone(&typing),
        }));
        editor.set_auto_add_history(false);
        let history = data.map(|data| data.join(HISTORY_FILE));
        if let Some(history) = &history {
            // There is none before the first line.
            let _ = editor.load_history(history);
        }
        let opened = Self {
            editor,
            typing,
            history,
            gauge,
        };
        Some((opened, Box::new(printer)))
    }

    /// Reads on a thread of its own. It stops before it says that the chat is left, so that the
    /// terminal is then as it was.
    pub(crate) fn read(
        self,
        of: Keys,
        terminal: Arc<Terminal>,
        presses: Sender<Press>,
    ) -> Receiver<Typed> {
        let (lines, receiver) = channel(WAITING);
        let reads = move || {
            let mut reader = self;
            let mut left = Left::By(Typed::End);
            for _ in 0..BREAKDOWNS {
                let reading = || reader.until_left(&of, &terminal, &lines, &presses);
                match catch_unwind(AssertUnwindSafe(reading)) {
                    Ok(by) => {
                        left = by;
                        break;
                    }
                    // It counts the rows of what is typed in 16 bits.
                    Err(_) => terminal.must(TOO_MUCH),
                }
            }
            drop(reader);
            // Nobody listens where the chat is over already.
            match left {
                Left::By(line) => drop(lines.blocking_send(line)),
                Left::Pressed => drop(presses.blocking_send(Press::Leave)),
            }
        };
        hush();
        // Without a thread nothing can be typed, and the chat ends as if nothing more came.
        let thread = std::thread::Builder::new().name(THREAD.to_owned());
        drop(thread.spawn(reads));
        receiver
    }

    /// Sends what is typed until the chat is left, and gives what it is left by.
    fn until_left(
        &mut self,
        of: &Keys,
        terminal: &Terminal,
        lines: &Sender<Typed>,
        presses: &Sender<Press>,
    ) -> Left {
        let mut left = (String::new(), String::new());
        loop {
            let prompt = self.gauge.blank();
            let initial = (left.0.as_str(), left.1.as_str());
            let read = self.editor.readline_with_initial(&prompt, initial);
            let was = std::mem::take(&mut *lock(&self.typing));
            terminal.entered();
            left = Default::default();
            let typed = match read {
                Ok(line) => {
                    // A backslash at its end has carried a line on; it is no part of what is said.
                    let line = line.replace("\\\n", "\n");
                    self.remember(&line);
                    match Order::of(&line) {
                        Order::Quit => return Left::By(Typed::Line(line)),
                        Order::Nothing => continue,
                        _ => Typed::Line(line),
                    }
                }
                Err(ReadlineError::Interrupted) => {
                    left = split(was);
                    let empty = left.0.is_empty() && left.1.is_empty();
                    let prompt = match empty {
                        true => Prompt::Empty,
                        false => Prompt::Typed,
                    };
                    match keys(of).press(Instant::now(), prompt) {
                        Press::Leave => return Left::Pressed,
                        press => drop(presses.try_send(press)),
                    }
                    continue;
                }
                Err(ReadlineError::Eof) if keys(of).is_working() => {
                    Typed::Hint("a run is under way: Ctrl-C ends it, /quit leaves".to_owned())
                }
                Err(ReadlineError::Eof) => return Left::By(Typed::End),
                // The terminal has gone away.
                Err(_) => return Left::By(Typed::End),
            };
            match lines.try_send(typed) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => {
                    // Not above a prompt: none stands there now.
                    crate::say(&format!(
                        "{WAITING} lines wait already; the last was not taken"
                    ));
                }
                Err(TrySendError::Closed(_)) => return Left::By(Typed::End),
            }
        }
    }

    fn remember(&mut self, line: &str) {
        if line.len() > HISTORY_LINE || line.trim().is_empty() {
            return;
        }
        let added = self.editor.add_history_entry(line).unwrap_or(false);
        // What cannot be written is remembered as long as the chat goes on.
        if let (true, Some(file)) = (added, &self.history) {
            let _ = self.editor.history_mut().append(file);
        }
    }
}

/// Keeps quiet about panics of the editor, of which the person is told in a sentence.
fn hush() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some(THREAD) {
            tell(panic);
        }
    }));
}

impl Helper for Beside {}

impl Completer for Beside {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..pos).unwrap_or(line);
        let (at, found) = self.words.complete(before);
        let pair = |word: String| Pair {
            display: word.clone(),
            replacement: word,
        };
        Ok((at, found.into_iter().map(pair).collect()))
    }
}

impl Hinter for Beside {
    type Hint = String;

    /// No hint; but this is where the editor tells what stands on the line, which a Ctrl-C keeps.
    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<String> {
        *lock(&self.typing) = (line.to_owned(), pos);
        None
    }
}

impl Highlighter for Beside {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        default: bool,
    ) -> Cow<'b, str> {
        match default {
            true => Cow::Owned(self.gauge.prompt()),
            false => Cow::Borrowed(prompt),
        }
    }
}

impl Validator for Beside {
    /// A backslash at its end carries a line on.
    fn validate(&self, line: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match line.input().ends_with('\\') {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

/// A line, left and right of the cursor.
fn split((line, at): (String, usize)) -> (String, String) {
    match line.split_at_checked(at) {
        Some((left, right)) => (left.to_owned(), right.to_owned()),
        None => (line, String::new()),
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
