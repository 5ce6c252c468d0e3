PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2

# A file of tests runs in one process, so that what its tests share is made once; the longest begin (packages/conftest.py).
# Threads of BLAS and torch that wait for each other spin, which takes long where processes share the cores.
# Tests start hundreds of processes: each would compile the code again, where keeping what is compiled is switched off.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

LIBRARY := packages/quorate
SERVICE := packages/quorate-serve

# LOCKED=1 takes the versions of requirements-dev.lock, as CI does.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PINNED := $(if $(LOCKED),--constraint requirements-dev.lock)

.PHONY: demo check test test-long coverage test-wheel fuzz lint bench docs paper crowds audits dist lock sbom clean

demo: $(VENV)/.ready
	$(BIN)/quorate demo

# Before every commit: what can be known in a minute.
check: $(VENV)/.ready-dev lint
	$(PYTEST) -m 'not slow' $(LIBRARY)/tests/unit $(LIBRARY)/tests/property

test: $(VENV)/.ready-dev lint
	$(PYTEST) -m 'not long'

# Whole crowds, whole pages of the docs, browsers and servers: what CI runs besides.
test-long: $(VENV)/.ready-dev
	$(PYTEST) -m long

# All tests, the share of lines that they run, and the modules below 90 %.
coverage: $(VENV)/.ready-dev
	$(PYTEST) --cov --cov-report=
	@$(BIN)/coverage report | awk '/TOTAL/ || $$NF + 0 < 90'

# The wheels, in an environment of its own that sees the tools of the other one but not the sources: first the library
# alone, then with the service.
WHEEL := build/wheel
WHEEL_TESTS := unit edges/test_every_command.py edges/test_every_writer.py edges/test_files_of_before.py edges/test_without_serve.py
SERVICE_WHEEL_TESTS := service/test_backup.py service/test_client.py service/test_commands.py
WHEEL_PIP := venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps
WHEEL_PYTEST := OMP_NUM_THREADS=1 venv/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
	-c ../../pyproject.toml --rootdir ../..
PACKAGES := import sysconfig; print(sysconfig.get_path("purelib"))
test-wheel: $(VENV)/.ready-dev
	rm -rf $(WHEEL) && mkdir -p $(WHEEL)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(WHEEL) ./$(LIBRARY) ./$(SERVICE)
	$(BIN)/python -m venv $(WHEEL)/venv
	cd $(WHEEL) && $(WHEEL_PIP) quorate-*.whl
	$(BIN)/python -c '$(PACKAGES)' >$$($(WHEEL)/venv/bin/python -c '$(PACKAGES)')/tools.pth
	cd $(WHEEL) && venv/bin/python -c 'import quorate, sys; sys.exit(not quorate.__file__.startswith(sys.prefix))'
	cd $(WHEEL) && $(WHEEL_PYTEST) -m 'not slow' $(addprefix ../../$(LIBRARY)/tests/,$(WHEEL_TESTS))
	cd $(WHEEL) && $(WHEEL_PIP) quorate_serve-*.whl
	cd $(WHEEL) && venv/bin/python -c 'import quorate_serve, sys; sys.exit(not quorate_serve.__file__.startswith(sys.prefix))'
	cd $(WHEEL) && $(WHEEL_PYTEST) $(addprefix ../../$(SERVICE)/tests/,$(SERVICE_WHEEL_TESTS))

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fuzz: $(VENV)/.ready-dev
	QUORATE_DAMAGED_INPUTS=10000 $(PYTEST) $(LIBRARY)/tests/edges/test_damaged_files.py $(LIBRARY)/tests/edges/test_damaged_stores.py
	QUORATE_HISTORIES=200 $(PYTEST) $(SERVICE)/tests/service/test_overlaps.py -k after_every_save

bench: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/formats.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/updating.py

# The site, from docs/: open build/docs/index.html. Its tests are those of `make test`.
docs: $(VENV)/.ready-dev
	$(BIN)/python -m sphinx --fresh-env --write-all --fail-on-warning --keep-going --quiet docs build/docs

$(VENV)/.ready: $(LIBRARY)/pyproject.toml $(LIBRARY)/hatch_build.py $(wildcard $(LIBRARY)/native/*)
	$(PYTHON) -m venv $(VENV)
	$(PIP) $(PINNED) --editable ./$(LIBRARY)
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready $(SERVICE)/pyproject.toml
	$(PIP) $(PINNED) --editable './$(LIBRARY)[dev]' --editable ./$(SERVICE)
	touch $@

# The pages with figures of accuracy.
paper: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/paper.py --test -o docs/paper.md

crowds: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/crowds.py mv span-vote ds auto bsc-cm bsc-seq --without each --known 30 --test -o docs/crowds.md

audits: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/audit.py --test -o docs/coverage.md

# The sources and the wheels of both packages, that of the library for every platform, all built here.
dist:
	rm -rf build/dist dist && $(PYTHON) -m venv build/dist && build/dist/bin/python -m pip install --quiet uv
	build/dist/bin/uv build --quiet --out-dir dist --sdist $(LIBRARY)
	for platform in $$($(PYTHON) $(LIBRARY)/hatch_build.py --platforms); do \
		QUORATE_WHEEL=$$platform build/dist/bin/uv build --quiet --out-dir dist --wheel $(LIBRARY) || exit 1; done
	build/dist/bin/uv build --quiet --out-dir dist $(SERVICE)
	rm -f dist/.gitignore

# Every version of the development environment of both packages, for Python 3.11 and later on every system.
lock: $(VENV)/.ready-dev
	$(PIP) uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra dev --no-header --no-annotate \
		--no-emit-index-url --no-emit-find-links --no-emit-package quorate \
		--output-file requirements-dev.lock $(LIBRARY)/pyproject.toml $(SERVICE)/pyproject.toml

# What an installation consists of, of the library and of the service, with versions and licences, as CycloneDX.
define SBOM
$(PYTHON) -m venv build/sbom/$1
build/sbom/$1/bin/python -m pip install --quiet --disable-pip-version-check --constraint requirements-dev.lock $2
build/sbom/$1/bin/python -m pip uninstall --quiet --yes pip setuptools
build/sbom/tool/bin/cyclonedx-py environment --pyproject packages/$1/pyproject.toml --output-reproducible \
	--output-file dist/$1.cdx.json build/sbom/$1/bin/python
endef
sbom:
	rm -rf build/sbom && $(PYTHON) -m venv build/sbom/tool
	build/sbom/tool/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom
	mkdir -p dist
	$(call SBOM,quorate,./$(LIBRARY))
	$(call SBOM,quorate-serve,./$(LIBRARY) ./$(SERVICE))

clean:
	rm -rf $(LIBRARY)/src/quorate/model/kernels/kernels-* $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
