//! Whatever the bytes are, loading them gives a model or an error, and a model can be written again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nuptse::model::SavedModel;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(found) = SavedModel::from_bytes(bytes) {
        let again = found.model.to_bytes(&found.scaling, &found.notes).unwrap();
        let SavedModel { scaling, notes, .. } = SavedModel::from_bytes(&again).unwrap();
        assert!(scaling == found.scaling && notes == found.notes);
    }
});
