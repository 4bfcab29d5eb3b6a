//! Sparse rows in compressed form.

use crate::error::{Error, Result};
use crate::memory;

/// Bytes that go with every column, whether it has entries or not.
const COLUMN_BYTES: u64 = 32;

/// Compressed sparse rows with strictly increasing column indices, checked when made.
#[derive(Debug, Clone, PartialEq)]
pub struct CsrRows {
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
    columns: usize,
}

impl CsrRows {
    /// Row i has the entries `offsets[i]..offsets[i + 1]` of `indices` and `values`.
    pub fn new(offsets: Vec<usize>, indices: Vec<u32>, values: Vec<f64>, columns: usize) -> Result<Self> {
        // Products by column need some numbers for each; a matrix without entries may claim any number of columns.
        memory::check(
            "an account of every column of the sparse inputs",
            (columns as u64).saturating_mul(COLUMN_BYTES),
        )?;
        let invalid = |row, reason| Error::InvalidSparse { row, reason };
        if offsets.first() != Some(&0) {
            return Err(invalid(0, "the row offsets do not start at 0"));
        }
        let rows = offsets.len() - 1;
        if offsets[rows] != values.len() || indices.len() != values.len() {
            return Err(invalid(rows, "the last row offset, the indices and the values differ in length"));
        }
        if u32::try_from(rows.max(columns)).is_err() {
            return Err(invalid(rows, "more than 2^32 rows or columns"));
        }
        for row in 0..rows {
            // The end is checked against the length too: offsets further on may be smaller.
            if offsets[row] > offsets[row + 1] || offsets[row + 1] > values.len() {
                return Err(invalid(row, "the row offsets decrease"));
            }
            let entries = &indices[offsets[row]..offsets[row + 1]];
            if entries.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(invalid(row, "the column indices are not strictly increasing"));
            }
            if entries.last().is_some_and(|&last| last as usize >= columns) {
                return Err(invalid(row, "a column index is not below the number of columns"));
            }
        }
        Ok(Self { offsets, indices, values, columns })
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of stored entries.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Column indices and values of one row.
    #[must_use]
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let range = self.offsets[row]..self.offsets[row + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// Column indices and values of one row, the values to be changed.
    pub fn row_mut(&mut self, row: usize) -> (&[u32], &mut [f64]) {
        let range = self.offsets[row]..self.offsets[row + 1];
        (&self.indices[range.clone()], &mut self.values[range])
    }

    /// The row offsets, the column indices and the values.
    #[must_use]
    pub fn parts(&self) -> (&[usize], &[u32], &[f64]) {
        (&self.offsets, &self.indices, &self.values)
    }

    /// The given rows, in the given order.
    #[must_use]
    pub fn select(&self, rows: impl IntoIterator<Item = usize>) -> Self {
        let mut selected = Self { offsets: vec![0], indices: Vec::new(), values: Vec::new(), columns: self.columns };
        for row in rows {
            let (columns, values) = self.row(row);
            selected.indices.extend_from_slice(columns);
            selected.values.extend_from_slice(values);
            selected.offsets.push(selected.values.len());
        }
        selected
    }

    /// The given columns, in the given order. Fails where one is not there.
    pub fn select_columns(&self, columns: &[usize]) -> Result<Self> {
        let transpose = self.transpose();
        let rows = transpose.rows();
        if let Some(&column) = columns.iter().find(|&&column| column >= rows) {
            return Err(Error::UnknownColumn { column, columns: rows });
        }
        Ok(transpose.select(columns.iter().copied()).transpose())
    }

    /// The transpose, again as compressed rows: row j lists the points that have input j, in increasing order.
    #[must_use]
    pub fn transpose(&self) -> Self {
        let mut offsets = vec![0; self.columns + 1];
        for &column in &self.indices {
            offsets[column as usize + 1] += 1;
        }
        for column in 0..self.columns {
            offsets[column + 1] += offsets[column];
        }
        let mut next = offsets.clone();
        let mut indices = vec![0; self.entries()];
        let mut values = vec![0.0; self.entries()];
        // `new` has seen to it that there are fewer than 2^32 rows.
        for (row_index, row) in (0..u32::MAX).zip(0..self.rows()) {
            let (columns, row_values) = self.row(row);
            for (&column, &value) in columns.iter().zip(row_values) {
                let place = &mut next[column as usize];
                indices[*place] = row_index;
                values[*place] = value;
                *place += 1;
            }
        }
        Self { offsets, indices, values, columns: self.rows() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_what_is_not_a_matrix() {
        let make = |offsets: &[usize], indices: &[u32], columns| {
            CsrRows::new(offsets.to_vec(), indices.to_vec(), vec![1.0; indices.len()], columns)
        };
        assert!(make(&[0, 2, 3], &[0, 2, 1], 3).is_ok());
        assert!(make(&[], &[], 3).is_err(), "no offsets");
        assert!(make(&[1, 2], &[0, 1], 3).is_err(), "does not start at 0");
        assert!(make(&[0, 9, 3], &[0, 1, 2], 3).is_err(), "an offset past the end");
        assert!(make(&[0, 2, 1, 3], &[0, 1, 2], 3).is_err(), "decreasing offsets");
        assert!(make(&[0, 2], &[1, 0], 3).is_err(), "unsorted");
        assert!(make(&[0, 2], &[1, 1], 3).is_err(), "repeated");
        assert!(make(&[0, 1], &[3], 3).is_err(), "column out of range");
    }

    #[test]
    fn transposing_twice_gives_the_matrix_back() {
        let rows = CsrRows::new(vec![0, 2, 2, 3], vec![0, 3, 1], vec![1.0, 2.0, 3.0], 5).unwrap();
        assert_eq!(rows.transpose().transpose(), rows);
        assert_eq!(rows.transpose().row(3), (&[0][..], &[2.0][..]));
    }
}
