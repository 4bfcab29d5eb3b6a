//! Files of arrays with a header: safetensors, whose metadata have one entry, `nuptse`, a text in JSON with the `kind` and
//! `version` of the file, a `header` and a `checksum` of all of it. The same content always gives the same bytes.
//!
//! A file is written aside, synchronised and then renamed, so that there is always either the old one or the new one,
//! whole. Loading runs nothing from the file, and allocates no more than it holds.

use crate::error::{Error, FileProblem, Result};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// The only entry of the metadata; files of other programs do not have it.
const ENTRY: &str = "nuptse";

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Archive {
    /// Numbers and texts.
    pub header: Value,
    /// Arrays by name, row-major.
    pub arrays: BTreeMap<String, NamedArray>,
}

/// An array of any number of dimensions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedArray {
    pub shape: Vec<usize>,
    pub values: Values,
}

/// The entries of an array.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    Double(Vec<f64>),
    Whole(Vec<u32>),
}

impl From<Vec<f64>> for Values {
    fn from(values: Vec<f64>) -> Self {
        Self::Double(values)
    }
}

impl From<Vec<u32>> for Values {
    fn from(values: Vec<u32>) -> Self {
        Self::Whole(values)
    }
}

impl Values {
    fn dtype(&self) -> Dtype {
        match self {
            Self::Double(_) => Dtype::F64,
            Self::Whole(_) => Dtype::U32,
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Double(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::Whole(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        }
    }

    /// `None` for entries of another kind.
    fn from_view(view: &TensorView<'_>) -> Option<Self> {
        let bytes = view.data();
        match view.dtype() {
            Dtype::F64 => {
                Some(Self::Double(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()))
            }
            Dtype::U32 => {
                Some(Self::Whole(bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()))
            }
            _ => None,
        }
    }
}

impl Archive {
    pub(crate) fn new(header: Value) -> Self {
        Self { header, arrays: BTreeMap::new() }
    }

    /// Adds an array, which has as many values as its shape says.
    pub(crate) fn insert(&mut self, name: impl Into<String>, shape: &[usize], values: impl Into<Values>) {
        self.arrays.insert(name.into(), NamedArray { shape: shape.to_vec(), values: values.into() });
    }

    /// Replaces the file at `path`, or leaves it as it was.
    pub(crate) fn save(&self, path: &Path, kind: &str, version: u32) -> Result<()> {
        let bytes = self.to_bytes(kind, version).map_err(|reason| error(path, FileProblem::NotWritten { reason }))?;
        write_whole(path, &bytes).map_err(|reason| error(path, FileProblem::NotWritten { reason: reason.to_string() }))
    }

    /// Reads a file of the given kind, of this version or an earlier one, which is returned too.
    pub(crate) fn load(path: &Path, kind: &str, version: u32) -> Result<(Self, u32)> {
        let bytes =
            std::fs::read(path).map_err(|reason| error(path, FileProblem::NotRead { reason: reason.to_string() }))?;
        Self::from_bytes(&bytes, kind, version).map_err(|problem| error(path, problem))
    }

    /// The file as bytes.
    pub(crate) fn to_bytes(&self, kind: &str, version: u32) -> std::result::Result<Vec<u8>, String> {
        let data: Vec<(&String, &NamedArray, Vec<u8>)> =
            (self.arrays.iter()).map(|(name, array)| (name, array, array.values.to_bytes())).collect();
        let parts = data.iter().map(|(name, array, bytes)| (name.as_str(), array.shape.as_slice(), bytes.as_slice()));
        let entry = json!({
            "kind": kind,
            "version": version,
            "checksum": checksum(kind, version, &self.header.to_string(), parts),
            "header": self.header,
        });
        let metadata = HashMap::from([(ENTRY.to_string(), entry.to_string())]);
        let views = (data.iter())
            .map(|(name, array, bytes)| Ok((name, TensorView::new(array.values.dtype(), array.shape.clone(), bytes)?)))
            .collect::<std::result::Result<Vec<_>, SafeTensorError>>();
        views.and_then(|views| safetensors::serialize(views, Some(metadata))).map_err(|reason| reason.to_string())
    }

    /// What the bytes of a file say.
    pub(crate) fn from_bytes(bytes: &[u8], kind: &str, known: u32) -> std::result::Result<(Self, u32), FileProblem> {
        let corrupt = |reason: &str| FileProblem::Corrupt { reason: reason.to_string() };
        let tensors = SafeTensors::deserialize(bytes).map_err(|reason| match reason {
            SafeTensorError::MetadataIncompleteBuffer | SafeTensorError::InvalidHeaderLength => FileProblem::Truncated,
            SafeTensorError::HeaderTooSmall | SafeTensorError::HeaderTooLarge => FileProblem::Foreign,
            other => FileProblem::Corrupt { reason: other.to_string() },
        })?;
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|other| corrupt(&other.to_string()))?;
        let metadata = metadata.metadata().as_ref().ok_or(FileProblem::Foreign)?;
        let entry = metadata.get(ENTRY).ok_or(FileProblem::Foreign)?;
        let entry: Value = serde_json::from_str(entry).map_err(|_| corrupt("its header is no JSON"))?;
        let field = |name: &str| entry.get(name).ok_or_else(|| corrupt(&format!("it has no {name}")));
        match field("kind")?.as_str() {
            Some(found) if found == kind => {}
            found => {
                let found = found.unwrap_or_default().to_owned();
                return Err(FileProblem::OtherKind { found, wanted: kind.to_string() });
            }
        }
        let version = field("version")?.as_u64().and_then(|version| u32::try_from(version).ok());
        let version = version.ok_or_else(|| corrupt("its version is no number"))?;
        if version > known {
            return Err(FileProblem::TooNew { version, known });
        }
        let header = field("header")?.clone();
        let mut views = tensors.tensors();
        views.sort_by(|(one, _), (other, _)| one.cmp(other));
        let parts = views.iter().map(|(name, view)| (name.as_str(), view.shape(), view.data()));
        // A fuzzer, like somebody with bad intentions, gets past the checksum.
        if !cfg!(fuzzing) && *field("checksum")? != checksum(kind, version, &header.to_string(), parts) {
            return Err(corrupt("its checksum does not fit"));
        }
        let array = |(name, view): &(String, TensorView<'_>)| {
            let values = Values::from_view(view).ok_or_else(|| corrupt(&format!("{name} is of an unknown kind")))?;
            Ok((name.clone(), NamedArray { shape: view.shape().to_vec(), values }))
        };
        let arrays = views.iter().map(array).collect::<std::result::Result<_, FileProblem>>()?;
        Ok((Self { header, arrays }, version))
    }

    /// An array of the given shape.
    pub(crate) fn take(&mut self, name: &str, shape: &[usize]) -> std::result::Result<Vec<f64>, FileProblem> {
        match self.take_any(name, shape)? {
            Values::Double(values) => Ok(values),
            Values::Whole(_) => Err(FileProblem::Corrupt { reason: format!("{name} is not in double precision") }),
        }
    }

    /// Whole numbers of the given shape.
    pub(crate) fn take_whole(&mut self, name: &str, shape: &[usize]) -> std::result::Result<Vec<u32>, FileProblem> {
        match self.take_any(name, shape)? {
            Values::Whole(values) => Ok(values),
            Values::Double(_) => Err(FileProblem::Corrupt { reason: format!("{name} are no whole numbers") }),
        }
    }

    fn take_any(&mut self, name: &str, shape: &[usize]) -> std::result::Result<Values, FileProblem> {
        match self.arrays.remove(name) {
            Some(array) if array.shape == shape => Ok(array.values),
            Some(array) => {
                let reason = format!("{name} has shape {:?}, not {shape:?}", array.shape);
                Err(FileProblem::Corrupt { reason })
            }
            None => Err(FileProblem::Corrupt { reason: format!("it has no {name}") }),
        }
    }
}

/// The error of a file.
pub(crate) fn error(path: &Path, problem: FileProblem) -> Error {
    Error::File { path: path.display().to_string(), problem }
}

fn checksum<'a>(
    kind: &str,
    version: u32,
    header: &str,
    arrays: impl Iterator<Item = (&'a str, &'a [usize], &'a [u8])>,
) -> String {
    let mut hash = Xxh3::new();
    hash.update(kind.as_bytes());
    hash.update(&version.to_le_bytes());
    hash.update(header.as_bytes());
    for (name, shape, data) in arrays {
        hash.update(name.as_bytes());
        shape.iter().for_each(|&size| hash.update(&(size as u64).to_le_bytes()));
        hash.update(data);
    }
    format!("{:016x}", hash.digest())
}

/// Writes beside the file, waits for the disk, and puts it in its place.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut named = tempfile::Builder::new();
    named.prefix(".nuptse-");
    // Like any file that a program writes: for whom the user's mask says, not for the user alone.
    #[cfg(unix)]
    let as_usual = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666);
    #[cfg(unix)]
    named.permissions(as_usual);
    let mut aside = named.tempfile_in(folder)?;
    aside.write_all(bytes)?;
    aside.as_file().sync_all()?;
    aside.persist(path)?;
    // The name is in the folder, which has to reach the disk too; not every system can do that.
    if let Ok(folder) = std::fs::File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example() -> Archive {
        let mut archive = Archive::new(json!({"names": ["a", "b"]}));
        archive.insert("alpha", &[2, 3], vec![1.0, -0.0, f64::MIN_POSITIVE, 4.0, 1e300, 0.1]);
        archive.insert("empty", &[0, 3], Vec::<f64>::new());
        archive.insert("counts", &[3], vec![0, 7, u32::MAX]);
        archive
    }

    #[test]
    fn a_file_comes_back_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        example().save(&path, "test", 2).unwrap();
        let (mut back, version) = Archive::load(&path, "test", 3).unwrap();
        assert_eq!((&back, version), (&example(), 2));
        assert_eq!(back.take("alpha", &[2, 3]).unwrap()[1].to_bits(), (-0.0_f64).to_bits());
        assert!(matches!(back.take("alpha", &[2, 3]), Err(FileProblem::Corrupt { .. })));
        assert!(matches!(back.take("empty", &[3, 0]), Err(FileProblem::Corrupt { .. })));
        assert!(matches!(back.clone().take("counts", &[3]), Err(FileProblem::Corrupt { .. })));
        assert_eq!(back.take_whole("counts", &[3]).unwrap(), [0, 7, u32::MAX]);
    }

    #[test]
    fn every_kind_of_wrong_file_is_told_apart() {
        let bytes = example().to_bytes("test", 2).unwrap();
        let problem = |bytes: &[u8], kind, known| Archive::from_bytes(bytes, kind, known).unwrap_err();
        assert_eq!(problem(&bytes, "test", 1), FileProblem::TooNew { version: 2, known: 1 });
        assert!(matches!(problem(&bytes, "other", 2), FileProblem::OtherKind { .. }));
        assert_eq!(problem(&bytes[..bytes.len() - 1], "test", 2), FileProblem::Truncated);
        assert_eq!(problem(b"PK\x03\x04 some other file", "test", 2), FileProblem::Foreign);
        assert_eq!(problem(b"", "test", 2), FileProblem::Foreign);
        let plain = safetensors::serialize(Vec::<(String, TensorView<'_>)>::new(), None).unwrap();
        assert_eq!(problem(&plain, "test", 2), FileProblem::Foreign);
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_old_one() {
        let missing = Path::new("no such folder/file");
        assert!(matches!(
            example().save(missing, "test", 1),
            Err(Error::File { problem: FileProblem::NotWritten { .. }, .. })
        ));
        assert!(matches!(
            Archive::load(missing, "test", 1),
            Err(Error::File { problem: FileProblem::NotRead { .. }, .. })
        ));
    }

    proptest! {
        #[test]
        fn a_changed_byte_does_not_go_unnoticed(place in any::<prop::sample::Index>(), change in 1_u8..) {
            let bytes = example().to_bytes("test", 2).unwrap();
            let mut changed = bytes.clone();
            changed[place.index(bytes.len())] ^= change;
            // A changed byte may be a space for another in the header of safetensors; what is read must be the same then.
            if let Ok(read) = Archive::from_bytes(&changed, "test", 2) {
                prop_assert_eq!(read, (example(), 2));
            }
        }
    }
}
