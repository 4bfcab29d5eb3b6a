//! Every Rust example runs.

#![allow(clippy::unwrap_used)]

use std::process::Command;

#[test]
fn flat() {
    let cargo = Command::new(env!("CARGO")).args(["run", "--quiet", "--example", "flat"]).output().unwrap();
    let output = String::from_utf8(cargo.stdout).unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    assert!(output.contains("circle 0") && output.contains("circle 2"), "{output}");
}
