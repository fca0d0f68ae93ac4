# Every target makes a local environment first (.venv) and reuses it afterwards.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-full test-optional browser database screens lint bench bench-grid audit faults census docs clean

demo: $(READY)
	$(BIN)/gridveil demo --output demo-release

# Bytecode is kept: tests start Python many times, and compiling takes a third of each start.
test: lint browser database
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n auto

test-full: lint browser database
	PYTHONDONTWRITEBYTECODE= GRIDVEIL_FULL=1 $(BIN)/pytest -n auto

test-optional:
	PYTHON=$(PYTHON) tests/optional/run

browser:
	@tests/plan/install-browser

database:
	@tests/support/install-postgres

screens: $(READY) browser
	PYTHONPATH=tests $(BIN)/python tests/report/screens.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/wind_restore.py
	$(BIN)/python benchmarks/wind_scale.py
	$(BIN)/python benchmarks/wind_accuracy.py
	$(BIN)/python benchmarks/wind_weak.py
	$(BIN)/python benchmarks/grid_engine.py
	$(BIN)/python benchmarks/studies.py

# Releases of networks: accuracy of every method and parameter, speed of restoration, growth.
bench-grid: $(READY)
	$(BIN)/python benchmarks/grid_accuracy.py
	$(BIN)/python benchmarks/grid_accuracy.py --which others
	$(BIN)/python benchmarks/grid_exact.py --seeds 1
	$(BIN)/python benchmarks/grid_release_scale.py

# Every claim, every control, and the tables of docs/privacy/audit.md.
audit: $(READY)
	mkdir -p build
	$(BIN)/gridveil audit --workers 2 --json build/audit.json
	PYTHONPATH=tests $(BIN)/python -m museum --audit build/audit.json --docs docs/privacy/audit.md

# Kills, full disks, damaged files and fuzzed inputs, and the tables of docs/privacy/faults.md.
faults: $(READY) database
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/faults/run.py
	GRIDVEIL_FULL=1 $(BIN)/pytest tests/privacy/test_team_ledger.py tests/privacy/test_ledger.py -k "kill or overspend"

# Every network of pandapower, PGLib and PyPSA, released once a parameter: docs/census.md.
census: $(READY)
	rm -f build/census-*.json
	-OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/grid/census.py run matpower build/census-matpower.json
	-PYTHON=$(PYTHON) tests/optional/run --census
	$(BIN)/python tests/grid/census.py page build docs/census.md

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "The documentation: site/index.html"

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'GridVeil needs Python 3.11 or newer')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,docs]"
	touch $(READY)

clean:
	rm -rf $(VENV) .venv-optional build dist site demo-release
