//! Replies, streams and refusals of each protocol, as the servers send them.

mod overflow;
mod reads;
mod stream;
mod streams;
