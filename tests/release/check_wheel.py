"""Check what `make wheel` leaves in dist/: a wheel and a source archive, what is in them, and that the wheel works."""

import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

MEGABYTES = 15
NEEDED = {"numpy", "scipy", "scikit-learn"}
SMOKE_TEST = Path(__file__).with_name("smoke.py")


def check_wheel_contents(wheel: Path) -> None:
    size = wheel.stat().st_size / 1e6
    assert size < MEGABYTES, f"{wheel.name} has {size:.1f} MB, more than {MEGABYTES}"
    assert "-cp310-abi3-manylinux" in wheel.name, (
        f"{wheel.name} is not for every Python from 3.10 on, or not for manylinux"
    )
    files = zipfile.ZipFile(wheel)
    names = files.namelist()
    for name in ("nuptse/py.typed", "nuptse/_core.pyi", "nuptse/_core.abi3.so"):
        assert name in names, f"{wheel.name} lacks {name}"
    assert all(name.startswith(("nuptse/", "nuptse-")) for name in names), f"{wheel.name} has files outside of nuptse"
    (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    requirements = re.findall(
        r"^Requires-Dist: ([\w-]+)(?!.*extra ==)", files.read(metadata).decode(), flags=re.MULTILINE
    )
    assert set(requirements) == NEEDED, f"{wheel.name} needs {requirements}"
    print(f"{wheel.name}: {size:.1f} MB, {len(names)} files")


def check_source_archive(archive: Path) -> None:
    with tarfile.open(archive) as members:
        names = {name.partition("/")[2] for name in members.getnames()}
    for name in ("Cargo.toml", "pyproject.toml", "src/lib.rs", "python/nuptse/py.typed", "CHANGELOG.md", "LICENSE-MIT"):
        assert name in names, f"{archive.name} lacks {name}"
    stray = {name for name in names if name.endswith((".so", ".png", ".npz", ".xz", ".nuptse"))}
    assert not stray, f"{archive.name} has {stray}"
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB, {len(names)} files")


def check_fresh_environment(wheel: Path) -> None:
    """Install the wheel with what it needs and nothing else, and try it far from the sources."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder) / "env", with_pip=True)
        python = str(Path(folder) / "env" / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True)
        # -I keeps the sources, and whatever PYTHONPATH says, out of sight.
        subprocess.run([python, "-I", str(SMOKE_TEST)], check=True, cwd=folder)


def main(folder: Path) -> None:
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    check_wheel_contents(wheel)
    check_source_archive(archive)
    check_fresh_environment(wheel.resolve())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
