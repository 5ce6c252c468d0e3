PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2

# A file of tests runs in one process, so that what its tests share is made once; the longest begin (tests/conftest.py).
# Threads of BLAS and torch that wait for each other spin, which takes long where processes share the cores.
# Tests start hundreds of processes: each would compile the code again, where keeping what is compiled is switched off.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# LOCKED=1 takes the versions of requirements-dev.lock, as CI does.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PINNED := $(if $(LOCKED),--constraint requirements-dev.lock)

.PHONY: demo check test test-long coverage test-wheel fuzz lint bench docs paper crowds audits dist lock sbom clean

demo: $(VENV)/.ready
	$(BIN)/quorate demo

# Before every commit: what can be known in a minute.
check: $(VENV)/.ready-dev lint
	$(PYTEST) -m 'not slow' tests/unit tests/property

test: $(VENV)/.ready-dev lint
	$(PYTEST) -m 'not long'

# Whole crowds, whole pages of the docs, browsers and servers: what CI runs besides.
test-long: $(VENV)/.ready-dev
	$(PYTEST) -m long

# All tests, the share of lines that they run, and the modules below 90 %.
coverage: $(VENV)/.ready-dev
	$(PYTEST) --cov --cov-report=
	@$(BIN)/coverage report | awk '/TOTAL/ || $$NF + 0 < 90'

# The wheel, in an environment of its own that sees the tools of the other one but not the sources.
WHEEL := build/wheel
WHEEL_TESTS := tests/unit tests/edges/test_every_command.py tests/edges/test_every_writer.py tests/edges/test_files_of_before.py
PACKAGES := import sysconfig; print(sysconfig.get_path("purelib"))
test-wheel: $(VENV)/.ready-dev
	rm -rf $(WHEEL) && mkdir -p $(WHEEL)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(WHEEL) .
	$(BIN)/python -m venv $(WHEEL)/venv
	$(WHEEL)/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(WHEEL)/*.whl
	$(BIN)/python -c '$(PACKAGES)' >$$($(WHEEL)/venv/bin/python -c '$(PACKAGES)')/tools.pth
	cd $(WHEEL) && venv/bin/python -c 'import quorate, sys; sys.exit(not quorate.__file__.startswith(sys.prefix))'
	cd $(WHEEL) && OMP_NUM_THREADS=1 venv/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
		-c ../../pyproject.toml --rootdir ../.. -m 'not slow' $(addprefix ../../,$(WHEEL_TESTS))

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fuzz: $(VENV)/.ready-dev
	QUORATE_DAMAGED_INPUTS=10000 $(PYTEST) tests/edges/test_damaged_files.py tests/edges/test_damaged_stores.py
	QUORATE_HISTORIES=200 $(PYTEST) tests/service/test_overlaps.py -k after_every_save

bench: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/formats.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/updating.py

# The site, from docs/: open build/docs/index.html. Its tests are those of `make test`.
docs: $(VENV)/.ready-dev
	$(BIN)/python -m sphinx --fresh-env --write-all --fail-on-warning --keep-going --quiet docs build/docs

$(VENV)/.ready: pyproject.toml hatch_build.py $(wildcard native/*)
	$(PYTHON) -m venv $(VENV)
	$(PIP) $(PINNED) --editable .
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	$(PIP) $(PINNED) --editable '.[dev]'
	touch $@

# The pages with figures of accuracy.
paper: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/paper.py --test -o docs/paper.md

crowds: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/crowds.py mv span-vote ds auto bsc-cm bsc-seq --without each --known 30 --test -o docs/crowds.md

audits: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/audit.py --test -o docs/coverage.md

# The sources, and a wheel for every platform, all built here.
dist:
	rm -rf build/dist dist && $(PYTHON) -m venv build/dist && build/dist/bin/python -m pip install --quiet uv
	build/dist/bin/uv build --quiet --sdist
	for platform in $$($(PYTHON) hatch_build.py --platforms); do QUORATE_WHEEL=$$platform build/dist/bin/uv build --quiet --wheel || exit 1; done
	rm -f dist/.gitignore

# Every version of the development environment, for Python 3.11 and later on every system.
lock: $(VENV)/.ready-dev
	$(PIP) uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra dev --no-header --no-annotate \
		--no-emit-index-url --no-emit-find-links --output-file requirements-dev.lock pyproject.toml

# What an installation consists of, with versions and licences, as CycloneDX.
sbom:
	rm -rf build/sbom && $(PYTHON) -m venv build/sbom/quorate && $(PYTHON) -m venv build/sbom/tool
	build/sbom/quorate/bin/python -m pip install --quiet --disable-pip-version-check --constraint requirements-dev.lock .
	build/sbom/quorate/bin/python -m pip uninstall --quiet --yes pip setuptools
	build/sbom/tool/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom
	mkdir -p dist
	build/sbom/tool/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-file dist/quorate.cdx.json build/sbom/quorate/bin/python

clean:
	rm -rf src/quorate/model/kernels/kernels-* $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
