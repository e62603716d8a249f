//! The stream reader of `openai_responses`: pieces cut anywhere give the same reply, and what was said can be
//! sent back.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use plimsoll_fuzz::{Input, mutate, stream};
use plimsoll_wire::openai_responses::ResponsesStreamState;

fuzz_target!(|data: &[u8]| {
    if let Some(input) = Input::of(data) {
        stream::<ResponsesStreamState>(&input);
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});
