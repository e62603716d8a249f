//! The stores, by their promises: what every store keeps, what the file of SQLite survives, and what
//! PostgreSQL adds. `script/` writes the logs.

#[cfg(unix)]
mod crash;
mod damaged;
mod forks;
mod golden;
mod import;
#[cfg(unix)]
mod leases;
mod parallel;
#[cfg(all(unix, feature = "postgres"))]
mod postgres;
mod recall;
mod removal;
mod script;
mod settings;
mod store;
