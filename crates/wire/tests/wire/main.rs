//! Replies, streams and refusals of each protocol, as the servers send them.

mod anthropic_stream;
mod openai_responses_stream;
mod overflow;
mod reads;
mod stream;
mod streams;
