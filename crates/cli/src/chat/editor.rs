//! The line editor: history, completion, and the prompt, which shows how full the window is. It
//! only reads; [`Terminal`] writes the rows above it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, ExternalPrinter, Helper};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::ask;
use crate::chat::completion::ChatCompleter;
use crate::chat::input_event::{InputLine, WAITING};
use crate::chat::parse::{ChatLine, Command};
use crate::chat::prompt::{Gauge, Press};
use crate::lock;
use crate::terminal::Terminal;

/// Maximum number of lines in the history.
const HISTORY: usize = 1_000;
/// The history file, in the data directory.
const HISTORY_FILE: &str = "chat_history";

/// The line editor of a terminal.
pub(crate) struct LineEditor {
    editor: Editor<EditorState, DefaultHistory>,
    typing: Typing,
    history: PathBuf,
    gauge: Arc<Gauge>,
}

/// The text of the line that is being edited, and the cursor's byte offset in it.
type Typing = Arc<Mutex<(String, usize)>>;

/// The state that the editor uses while it reads.
struct EditorState {
    gauge: Arc<Gauge>,
    words: ChatCompleter,
    typing: Typing,
}

impl LineEditor {
    /// Creates the editor. Returns `None` if the terminal does not support it.
    pub(crate) fn open(
        data: &Path,
        gauge: Arc<Gauge>,
        words: ChatCompleter,
    ) -> Option<(Self, Box<dyn ExternalPrinter + Send>)> {
        let config = Config::builder()
            .max_history_size(HISTORY)
            .ok()?
            .auto_add_history(true)
            .completion_type(CompletionType::List)
            // The gauge is drawn as the prompt's highlighting, and decides whether to use colours.
            .color_mode(ColorMode::Forced)
            .build();
        let mut editor: Editor<EditorState, DefaultHistory> = Editor::with_config(config).ok()?;
        let printer = editor.create_external_printer().ok()?;
        let typing = Typing::default();
        editor.set_helper(Some(EditorState {
            gauge: Arc::clone(&gauge),
            words,
            typing: Arc::clone(&typing),
        }));
        let history = data.join(HISTORY_FILE);
        // The file does not exist before the first line.
        let _ = editor.load_history(&history);
        let opened = Self {
            editor,
            typing,
            history,
            gauge,
        };
        Some((opened, Box::new(printer)))
    }

    /// Starts a thread that reads lines. The editor is dropped before the end of the chat is
    /// reported, so the terminal is in its normal state by then.
    pub(crate) fn read(
        mut self,
        terminal: Arc<Terminal>,
        presses: Sender<Press>,
    ) -> Receiver<InputLine> {
        let (lines, receiver) = channel(WAITING);
        ask::leave_to_editor();
        std::thread::spawn(move || {
            let is_interrupted = self.until_left(&terminal, &lines, &presses);
            drop(self);
            if is_interrupted {
                // If the chat is over already, nobody receives this.
                let _ = presses.blocking_send(Press::Leave);
            }
            drop(lines);
        });
        receiver
    }

    /// Sends typed lines until the user leaves the chat. Returns `true` if that was by Ctrl-C.
    fn until_left(
        &mut self,
        terminal: &Terminal,
        lines: &Sender<InputLine>,
        presses: &Sender<Press>,
    ) -> bool {
        // The text that survives a Ctrl-C, and the cursor in it.
        let mut kept = (String::new(), 0);
        loop {
            let initial = kept.0.split_at_checked(kept.1);
            let initial = initial.unwrap_or((kept.0.as_str(), ""));
            let prompt = self.gauge.blank();
            let read = self.editor.readline_with_initial(&prompt, initial);
            kept = std::mem::take(&mut *lock(&self.typing));
            terminal.entered();
            match read {
                Ok(line) => {
                    kept = Default::default();
                    // A backslash at the end of a row continues the line and is not part of the
                    // text.
                    let line = line.replace("\\\n", "\n");
                    // If the file cannot be written, the line is remembered until the chat ends.
                    let _ = self.editor.append_history(&self.history);
                    match ChatLine::of(&line) {
                        ChatLine::Command(Command::Quit, _) => return false,
                        ChatLine::Nothing => continue,
                        _ => {}
                    }
                    match lines.try_send(Ok(line)) {
                        Ok(()) => {}
                        Err(TrySendError::Full(_)) => {
                            // Not written above a prompt: there is none at this moment.
                            say!("{WAITING} lines are waiting already; the last one was dropped");
                        }
                        Err(TrySendError::Closed(_)) => return false,
                    }
                }
                Err(ReadlineError::Interrupted) => {
                    let press = self.gauge.press(Instant::now());
                    match press {
                        Press::Leave => return true,
                        Press::Stop => {}
                        Press::Warn => kept = Default::default(),
                    }
                    // If too many wait already, one more means nothing new.
                    let _ = presses.try_send(press);
                }
                Err(ReadlineError::Eof) if !self.gauge.is_idle() => {
                    terminal.must("a run is in progress: Ctrl-C stops it, /quit exits");
                }
                // Ctrl-D, or the terminal was closed.
                Err(_) => return false,
            }
        }
    }
}

impl Helper for EditorState {}

impl Completer for EditorState {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        self.words.complete(line.get(..pos).unwrap_or(line))
    }
}

impl Hinter for EditorState {
    type Hint = String;

    /// Returns no hint. The editor passes the current line here, which must survive the end of a
    /// run by Ctrl-C.
    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<String> {
        *lock(&self.typing) = (line.to_owned(), pos);
        None
    }
}

impl Highlighter for EditorState {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        default: bool,
    ) -> Cow<'b, str> {
        if default {
            Cow::Owned(self.gauge.prompt())
        } else {
            Cow::Borrowed(prompt)
        }
    }
}

impl Validator for EditorState {
    /// Continues the line if it ends with a backslash.
    fn validate(&self, line: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if line.input().ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}
