//! Every check and chore of the workspace.
fn main() {}
