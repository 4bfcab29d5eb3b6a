//! How much memory work may take when the user has not said.

use crate::error::{Error, Result};
use std::fs;

/// The share of the free memory that is used without asking; the rest is for everything else on the machine.
const SAFE_SHARE: f64 = 0.8;

/// Bytes that may be used, or `None` where the operating system does not tell.
#[must_use]
pub fn allowance() -> Option<u64> {
    let machine = read_kilobytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    let free = [cgroup_left(), address_space_left()].into_iter().flatten().fold(machine, u64::min);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Some((free as f64 * SAFE_SHARE) as u64)
}

/// So little is there, or nothing would work at all; it is not worth asking the operating system.
const LITTLE: u64 = 4 << 20;

/// Fails where something would need more than is allowed without asking.
pub fn check(what: &'static str, needed: u64) -> Result<()> {
    if needed <= LITTLE {
        return Ok(());
    }
    match allowance() {
        Some(allowed) if needed > allowed => Err(Error::MemoryLimit { what, needed, allowed }),
        _ => Ok(()),
    }
}

/// A line like `MemAvailable:  12345 kB`, in bytes.
fn read_kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// What the process may still map, where its address space is limited (`ulimit -v`): past that, allocations fail.
fn address_space_left() -> Option<u64> {
    let limit = read_limit(&fs::read_to_string("/proc/self/limits").ok()?)?;
    let mapped = read_kilobytes(&fs::read_to_string("/proc/self/status").ok()?, "VmSize:")?;
    Some(limit.saturating_sub(mapped))
}

/// The soft limit in the line `Max address space  12345  unlimited  bytes`; none where that is unlimited.
fn read_limit(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("Max address space"))?.split_whitespace().next()?.parse().ok()
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
        let read = |text| read_kilobytes(text, "MemAvailable:");
        assert_eq!(read("MemTotal: 9 kB\nMemAvailable:   12 kB\n"), Some(12 * 1024));
        assert_eq!(read("MemTotal: 9 kB\n"), None);
        assert_eq!(read(&format!("MemAvailable: {} kB", u64::MAX)), None);
    }

    #[test]
    fn reads_the_limit_of_the_address_space() {
        let line = |limit: &str| format!("Max cpu time  1 2 s\nMax address space    {limit}     unlimited   bytes\n");
        assert_eq!(read_limit(&line("4096")), Some(4096));
        assert_eq!(read_limit(&line("unlimited")), None);
        assert_eq!(read_limit(""), None);
    }
}
