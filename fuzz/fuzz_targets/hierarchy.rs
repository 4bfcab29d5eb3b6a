//! Whatever the parents and leaves are, they make a tree or an error; of a tree, paths end and lead to the root.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nuptse::prior::{Mixing, Tree};

fuzz_target!(|described: (Vec<Option<u8>>, Vec<u8>)| {
    let parents: Vec<Option<usize>> = described.0.iter().map(|parent| parent.map(usize::from)).collect();
    let leaves: Vec<usize> = described.1.iter().map(|&leaf| usize::from(leaf)).collect();
    if let Ok(tree) = Tree::new(&parents, &leaves) {
        assert_eq!(tree.classes(), leaves.len());
        assert_eq!(tree.functions() + 1, parents.len());
        let (parents_again, leaves_again) = tree.description();
        assert!(parents_again == parents && leaves_again == leaves);
    }
});
