//! How much memory a kernel matrix may take when the user has not said.

use crate::error::{Error, Result};
use std::fs;

/// The share of the free memory that is used without asking; the rest is for everything else on the machine.
const SAFE_SHARE: f64 = 0.8;

/// Bytes that may be used, or `None` where the operating system does not tell.
#[must_use]
pub fn allowance() -> Option<u64> {
    let machine = read_meminfo(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let free = cgroup_left().map_or(machine, |left| left.min(machine));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Some((free as f64 * SAFE_SHARE) as u64)
}

/// Fails where something would need more than is allowed without asking.
pub fn check(what: &'static str, needed: u64) -> Result<()> {
    match allowance() {
        Some(allowed) if needed > allowed => Err(Error::MemoryLimit { what, needed, allowed }),
        _ => Ok(()),
    }
}

/// The line `MemAvailable:  12345 kB`, in bytes.
fn read_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// What the control group of a container has left, where there is a limit.
fn cgroup_left() -> Option<u64> {
    let read = |name: &str| fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse::<u64>().ok();
    Some(read("memory.max")?.saturating_sub(read("memory.current")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_available_memory() {
        assert_eq!(read_meminfo("MemTotal: 9 kB\nMemAvailable:   12 kB\n"), Some(12 * 1024));
        assert_eq!(read_meminfo("MemTotal: 9 kB\n"), None);
    }
}
