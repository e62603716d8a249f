//! Refusals as failures: a table of what servers answer. No network.
