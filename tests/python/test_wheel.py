"""The wheel that is built, in an environment of its own."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    maturin = shutil.which("maturin", path=str(Path(sys.executable).parent)) or shutil.which("maturin")
    if maturin is None:
        pytest.skip("maturin is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    command = [maturin, "build", "--quiet", "--release", "--out", str(folder)]
    subprocess.run(command, cwd=PROJECT, check=True, timeout=900)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_is_typed_and_serves_every_python_from_3_10(wheel):
    assert "-cp310-abi3-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("py.typed", "_core.pyi", "classifier.py", "_report/page.css", "_report/icicle.js"):
        assert f"nuptse/{name}" in names
    assert any(name.startswith("nuptse/_core.") and name.endswith((".so", ".pyd")) for name in names)
    assert not any("test" in name for name in names)


def test_wheel_works_and_type_checks_in_a_fresh_environment(wheel, tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = [python, "-m", "pip", "install", "--quiet", str(wheel), "mypy"]
    subprocess.run(install, check=True, timeout=900)
    # -I keeps the sources, and whatever PYTHONPATH says, out of sight.
    smoke_test = [python, "-I", PROJECT / "tests" / "release" / "smoke.py"]
    done = subprocess.run(smoke_test, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    assert str(tmp_path) in done.stdout
    typed = tmp_path / "typed.py"
    typed.write_text("import nuptse\nreveal_type(nuptse.KernelClassifier(learn=False).predict_proba([[1.0]]))\n")
    checked = subprocess.run(
        [python, "-m", "mypy", "--strict", typed.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "float64" in checked.stdout, checked.stdout
    assert "py.typed" not in checked.stdout
