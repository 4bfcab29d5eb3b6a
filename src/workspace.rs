//! What outlives a product: buffers, so that nothing is allocated inside a loop, and a clock.

use std::time::{Duration, Instant};

/// A stock of buffers: taken, used, given back.
#[derive(Debug, Default)]
pub struct Workspace {
    free: Vec<Vec<f64>>,
    mixing_time: Duration,
}

impl Workspace {
    /// A buffer of `len` entries with unspecified contents. Give it back with [`Workspace::give`].
    pub fn take(&mut self, len: usize) -> Vec<f64> {
        // The smallest buffer that is large enough; large ones stay free for large requests.
        let fit =
            (0..self.free.len()).filter(|&i| self.free[i].capacity() >= len).min_by_key(|&i| self.free[i].capacity());
        let mut buffer = fit.map_or_else(|| Vec::with_capacity(len), |i| self.free.swap_remove(i));
        buffer.resize(len, 0.0);
        buffer
    }

    /// Adds the time since `begun` to what was spent on the way between functions and classes.
    pub(crate) fn spent_mixing(&mut self, begun: Instant) {
        self.mixing_time += begun.elapsed();
    }

    /// What was spent on the way between functions and classes, in all products so far.
    #[must_use]
    pub fn mixing_time(&self) -> Duration {
        self.mixing_time
    }

    /// Returns a buffer to the stock.
    pub fn give(&mut self, buffer: Vec<f64>) {
        self.free.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_given_back_is_used_again() {
        let mut work = Workspace::default();
        let buffer = work.take(100);
        let address = buffer.as_ptr();
        work.give(buffer);
        let again = work.take(60);
        assert_eq!(again.as_ptr(), address);
    }
}
