//! Views, plans and stages as a caller sees them: tables in the notation of the test kit, and
//! properties over random histories.

mod cache;
mod compaction;
mod costs;
mod data_files;
mod docs;
mod extract;
mod handover;
mod histories;
mod plan_price;
mod properties;
mod siblings;
mod stages;
mod summaries;
