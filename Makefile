PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo check test coverage fuzz lint bench paper clean

demo: $(VENV)/.ready
	$(BIN)/quorate demo

# Before every commit: what can be known in a minute.
check: $(VENV)/.ready-dev lint
	$(BIN)/python -m pytest -m 'not slow' tests/unit tests/property

test: $(VENV)/.ready-dev lint
	$(BIN)/python -m pytest

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The share of lines that the fast tests run. Apart from the others, as it nearly doubles the time of Python code;
# what numba compiles is not seen.
coverage: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -m 'not slow' tests/unit tests/property --cov=quorate --cov-report=term:skip-covered

fuzz: $(VENV)/.ready-dev
	QUORATE_DAMAGED_INPUTS=10000 $(BIN)/python -m pytest tests/edges/test_damaged_files.py tests/edges/test_damaged_stores.py

bench: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/formats.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/updating.py

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

paper: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/paper.py --test -o docs/paper.md

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
