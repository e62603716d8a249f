//! [`mutate`]: changes an input where it is JSON, or has lines that are, as JSON, and any other as
//! bytes. Half of the changes are of bytes in any case.

use serde_json::Value;

use crate::damage::damage;

/// For `fuzz_mutator!`.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut state = u64::from(seed) | 1;
    let mut pick = move |below: usize| {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z % below.max(1) as u64) as usize
    };
    if size > 2 && pick(2) == 0 {
        let changed = std::str::from_utf8(&data[2..size])
            .ok()
            .and_then(|text| as_json(text, &mut pick));
        if let Some(text) = changed
            && text.len() + 2 <= max_size
        {
            if pick(4) == 0 {
                data[pick(2)] = b'0' + pick(64) as u8;
            }
            data[2..2 + text.len()].copy_from_slice(text.as_bytes());
            return text.len() + 2;
        }
    }
    libfuzzer_sys::fuzzer_mutate(data, size, max_size)
}

fn as_json(text: &str, pick: &mut dyn FnMut(usize) -> usize) -> Option<String> {
    if let Ok(mut value) = serde_json::from_str::<Value>(text) {
        for _ in 0..=pick(3) {
            damage(&mut value, pick);
        }
        return Some(value.to_string());
    }
    // Events of a stream.
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    if lines.len() < 2 {
        return None;
    }
    let at = pick(lines.len());
    match pick(6) {
        0 => drop(lines.remove(at)),
        1 => {
            let line = lines[at].clone();
            let to = pick(lines.len());
            lines.insert(to, line);
        }
        2 => {
            let to = pick(lines.len());
            lines.swap(at, to);
        }
        _ => {
            let near = (0..lines.len()).map(|step| (at + step) % lines.len());
            let found = near
                .filter_map(|at| {
                    let rest = lines[at].strip_prefix("data:")?;
                    Some((at, serde_json::from_str::<Value>(rest.trim()).ok()?))
                })
                .next();
            let (at, mut value) = found?;
            damage(&mut value, pick);
            lines[at] = format!("data: {value}");
        }
    }
    Some(lines.join("\n"))
}
