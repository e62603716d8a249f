//! The built binary as a user runs it: arguments and pipes as input; standard output, messages on
//! stderr and an exit code as output. Every test has its own `PLIMSOLL_HOME` and no keys; only
//! loopback is used.
#![cfg(unix)]

#[cfg(feature = "acp")]
mod acp;
#[cfg(feature = "acp")]
mod acp_bad;
mod agent_files;
mod agents;
mod answers;
mod bad_calls;
mod chat;
mod chat_commands;
mod chat_docs;
mod chat_terminal;
mod chats;
mod chatting;
mod command;
mod compact;
mod compact_bad;
mod compact_wires;
mod config;
mod count;
mod docs;
mod doctor;
#[cfg(feature = "acp")]
mod editing;
mod events;
mod exported;
mod failures;
mod fake;
mod forks;
mod hosted;
mod images;
mod import;
mod instructions;
mod kept_files;
mod ledger;
mod long_runs;
#[cfg(feature = "mcp")]
mod mcp;
mod messages;
mod mock;
mod models;
mod no_model;
mod permissions;
mod pick_session;
mod picture;
mod prices;
mod recorded;
mod remove_sessions;
mod repair;
mod rescue;
mod responses;
mod restore;
mod resumed;
mod run_terminal;
mod runs;
mod sandbox;
mod sessions;
#[cfg(feature = "otlp")]
mod skills;
mod telemetry;
mod terminal;
mod tools;
mod trust;
mod usage;
mod users_file;
mod windows;
#[cfg(not(all(feature = "acp", feature = "mcp", feature = "otlp")))]
mod without;
