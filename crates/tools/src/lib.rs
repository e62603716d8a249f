//! Layer 4 of Plimsoll: the tools that act on a user's machine on behalf of a model: `bash`, `read`,
//! `write`, `edit`, `list`, `glob` and `grep`.
//!
//! The file tools stay inside one workspace root. The permission rules of the run and its gate decide
//! whether a call may run.
//!
//! ```no_run
//! use plimsoll_tools::{Root, Toolbox};
//!
//! # fn main() -> Result<(), plimsoll_tools::ToolsError> {
//! let toolbox = Toolbox::new(Root::new(".")?);
//! let tools = toolbox.select("read,grep")?;
//! assert_eq!(tools.len(), 2);
//! # Ok(())
//! # }
//! ```

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod bash;
mod change;
mod edit;
mod error;
mod file;
mod file_tool;
mod front_matter;
mod glob;
mod grep;
mod image;
mod input;
mod list;
mod output_page;
pub mod project_files;
mod protected;
mod read;
mod root;
mod safe_open;
pub mod sandbox;
pub mod saved_files;
mod scope;
mod shell_parser;
mod similar;
mod skills;
mod toolbox;
mod walk;
mod write;

#[cfg(test)]
mod testing;

pub use bash::{BASH_OUTPUT_MAX, BASH_TIMEOUT, BASH_TIMEOUT_MAX};
pub use change::FileChange;
pub use edit::EDIT_MAX;
pub use error::ToolsError;
pub use file_tool::WALK_TIME;
pub use front_matter::{front_matter, yaml};
pub use grep::{GREP_FILE_MAX, GREP_LINE_MAX, GREP_MATCHES};
pub use image::{IMAGE_MAX, ImageError, image_part};
pub use list::LIST_SCAN_MAX;
pub use output_page::PAGE;
pub use read::READ_MAX;
pub use root::Root;
pub use sandbox::{Sandbox, SandboxError, SandboxMode};
pub use skills::{MAX_SKILL, MAX_SKILLS, Skills};
pub use toolbox::{NAMES, Toolbox};
pub use walk::WALK_MAX;
pub use write::WRITE_MAX;
