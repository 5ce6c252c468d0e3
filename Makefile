PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2

# A file of tests runs in one process, so that what its tests share is made once; the longest begin (tests/conftest.py).
# Threads of BLAS and torch that wait for each other spin, which takes long where processes share the cores.
# Tests start hundreds of processes: each would compile the code again, where keeping what is compiled is switched off.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: demo check test fuzz lint bench docs figures paper clean

demo: $(VENV)/.ready
	$(BIN)/quorate demo

# Before every commit: what can be known in a minute.
check: $(VENV)/.ready-dev lint
	$(PYTEST) -m 'not slow' tests/unit tests/property

test: $(VENV)/.ready-dev lint
	$(PYTEST) --cov --cov-report=
	@$(BIN)/coverage report | awk '/TOTAL/ || $$NF + 0 < 90'

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fuzz: $(VENV)/.ready-dev
	QUORATE_DAMAGED_INPUTS=10000 $(PYTEST) tests/edges/test_damaged_files.py tests/edges/test_damaged_stores.py

bench: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/formats.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/updating.py

# The site, from docs/: open build/docs/index.html. Its tests are those of `make test`.
docs: $(VENV)/.ready-dev
	$(BIN)/python -m sphinx --fresh-env --write-all --fail-on-warning --keep-going --quiet docs build/docs

# All figures that the pages show, drawn anew from the real crowds beside the checkout.
figures: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/figures.py --test

$(VENV)/.ready: pyproject.toml hatch_build.py $(wildcard native/*)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

paper: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/paper.py --test -o docs/paper.md

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
