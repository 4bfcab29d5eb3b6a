//! Whatever the offsets and columns are, they make rows or an error; of rows, every entry can be read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nuptse::data::{CsrRows, Inputs};

fuzz_target!(|parts: (Vec<u16>, Vec<u8>, Vec<f64>, u8)| {
    let (offsets, indices, values, columns) = parts;
    let offsets = offsets.into_iter().map(usize::from).collect();
    let indices = indices.into_iter().map(u32::from).collect();
    let Ok(rows) = CsrRows::new(offsets, indices, values, usize::from(columns)) else { return };
    let entries: usize = (0..rows.rows()).map(|row| rows.row(row).0.len()).sum();
    assert_eq!(entries, rows.entries());
    let back = rows.transpose().transpose();
    assert_eq!(back.parts().1, rows.parts().1);
    if let Ok(inputs) = Inputs::sparse(rows) {
        (0..inputs.rows()).for_each(|row| inputs.for_row(row, |column, value| {
            assert!(column < inputs.columns() && value.is_finite());
        }));
    }
});
