//! The machine of a run, played on the stage of `stage/`: case by case in files named for the
//! behaviour, and random scripts in `properties.rs`.

mod calls;
mod compacting;
mod expects;
mod forecast;
mod golden;
mod imported;
mod ladder;
mod leaving;
mod limits;
mod loops;
mod moments;
mod others;
mod permissions;
mod pins;
mod properties;
mod run_records;
mod runs;
mod stage;
mod summaries;
mod tokenizers;
