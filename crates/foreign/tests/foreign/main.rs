//! Tests of the crate. The rules of the servers, which its code does not know, judge the repaired chats.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::string_slice, missing_docs)]

#[path = "../../../mock/tests/rules/damage.rs"]
mod damage;

mod client_requests;
#[path = "../../../mock/tests/rules/every_dialect.rs"]
mod every_dialect;
mod frozen;
mod frozen_files;
mod random_chats;
#[path = "../../../mock/tests/rules/sample_chats.rs"]
mod sample_chats;
mod targets;

mod body;
mod body_properties;
mod budget_use;
mod cannot_fit;
mod canonical;
mod cases;
mod clients;
mod cutting;
mod damaged;
mod judged;
mod late_results;
mod repair;
mod spelled;
