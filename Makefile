# Everything happens in .venv, inside the project; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: build demo test test-rust test-python lint format doc bench-products bench-fit bench-hierarchy bench-learning check-unsafe soak fuzz supply-chain wheel crate docs clean

# The package alone, without what its tests need.
demo: $(VENV)/ready
	@echo "Compiling Nuptse: two or three minutes the first time."
	$(BIN)/maturin develop --quiet --release
	$(BIN)/python examples/digits.py
	@echo "Now '. $(VENV)/bin/activate' puts Nuptse on the path of this shell: try 'nuptse demo', or python."

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

# Kernel products against the machine's limits and against numpy and scipy; writes benches/results/products.md.
bench-products: build
	mkdir -p target/bench
	cargo bench --bench kernel_products > target/bench/limits.md
	$(BIN)/python benches/peers/products.py --limits target/bench/limits.md

# Fits against scikit-learn and hiclass; writes benches/results/fit.md. Takes long; ARGS="--only digits" makes one table.
bench-fit: $(VENV)/ready
	$(BIN)/maturin develop --quiet --release --extras bench
	$(BIN)/python benches/peers/fit.py $(ARGS)

# Flat and tree priors against scikit-learn and hiclass, and 5000 classes; writes benches/results/hierarchy.md.
bench-hierarchy: $(VENV)/ready
	$(BIN)/maturin develop --quiet --release --extras bench
	$(BIN)/python benches/peers/hierarchy.py $(ARGS)

# Learning of hyperparameters, against grid searches and fixed values; writes benches/results/learning.md.
bench-learning: $(VENV)/ready
	$(BIN)/maturin develop --quiet --release --extras bench
	$(BIN)/python benches/peers/learning.py $(ARGS)

# The unsafe code (src/simd.rs) and what calls it, under valgrind. x86-64 Linux; needs valgrind.
check-unsafe:
	CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind --quiet --error-exitcode=1" \
	PROPTEST_CASES=2 cargo test --lib -- simd:: kernel::symmetric::tests::tiles kernel::symmetric::tests::a_few

# Strange inputs, damaged files, kills, forks and full disks for up to 20 minutes; writes docs/reliability.md.
soak: $(VENV)/ready
	$(BIN)/maturin develop --quiet --release
	$(BIN)/python tests/soak/soak.py $(ARGS)

# Every fuzz target for a minute. Works on stable Rust: coverage without a sanitizer. Needs a C++ compiler.
FUZZ_SECONDS ?= 60
fuzz: target/tools/bin/cargo-fuzz
	mkdir -p fuzz/corpus/model_file
	cp tests/python/fixtures/*.nuptse fuzz/corpus/model_file
	for target in model_file hierarchy csr_rows; do \
		PATH="$(CURDIR)/target/tools/bin:$$PATH" cargo fuzz run --sanitizer none $$target -- \
			-max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 || exit 1; \
	done

# Licences and sources of dependencies, and whether all of them are used. Known vulnerabilities are in a database that has to
# be fetched: `cargo deny check advisories`, where there is a network.
supply-chain: target/tools/bin/cargo-deny target/tools/bin/cargo-machete
	PATH="$(CURDIR)/target/tools/bin:$$PATH" cargo deny check bans licenses sources
	PATH="$(CURDIR)/target/tools/bin:$$PATH" cargo machete

target/tools/bin/%:
	cargo install --quiet --locked --root target/tools $*

ifeq ($(shell uname),Linux)
OLDEST_LINUX := --zig --compatibility manylinux2014
endif

# A wheel for every Python from 3.10 on, and the source archive that it is built from, in dist/; then all that can be checked
# before they are published. On Linux zig is the linker, so that the wheel runs with every glibc from 2.17 on (manylinux2014).
wheel: $(VENV)/ready
	$(BIN)/python -m pip install --quiet "maturin[zig]>=1.9.4,<2" "twine>=6" "abi3audit>=0.0.20"
	rm -rf dist
	PATH="$(CURDIR)/$(BIN):$$PATH" maturin build --release --strip --sdist $(OLDEST_LINUX) --out dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/abi3audit --strict --summary dist/*.whl
	$(BIN)/python tests/release/check_wheel.py dist

# The crate as it would be published: packaged, unpacked away from here, and tested there.
crate:
	cargo package
	tests/release/check_crate.sh

# The documentation, in site/: open site/index.html. What Sphinx only warns of ends the build.
docs: $(VENV)/ready
	$(BIN)/maturin develop --quiet --release --extras docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -d target/doctrees docs site
	@echo "site/index.html"

doc:
	cargo doc --no-deps --open

clean:
	rm -rf target site dist $(VENV)
