# Everything happens in .venv, inside the project; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: build demo test test-rust test-python lint format doc clean

demo: build
	$(BIN)/python examples/digits.py

test: test-rust test-python

test-rust:
	cargo test

test-python: build
	$(BIN)/python -m pytest

lint: build
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo clippy --all-targets --features python -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest nuptse._core

# The extension module, built into the virtual environment together with what it and its tests need.
build: $(VENV)/ready
	$(BIN)/maturin develop --quiet --release --extras dev

$(VENV)/ready:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "maturin>=1.9.4,<2"
	touch $@

format:
	cargo fmt
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

doc:
	cargo doc --no-deps --open

clean:
	rm -rf target $(VENV)
