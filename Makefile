# Every target sets up what it needs: a `.venv` with the pinned versions of constraints.txt.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

.PHONY: bench-lint bench-run fuzz-lint bench-step demo test test-integrations trials lint docs docs-rules clean compiled

demo: $(STAMP)
	$(BIN)/gradclinic demo

trials: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 tests/trials

test: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --ignore tests/trials --ignore tests/integrations

test-integrations: $(STAMP)
	scripts/install_browser
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[browser,integrations]'
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 tests/integrations

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-rules: $(STAMP)
	$(BIN)/python scripts/document_rules.py

bench-run: $(STAMP)
	PYTHONPATH=. $(BIN)/python -m benchmarks.run

bench-step: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks.step

bench-lint: $(STAMP) compiled
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks.lint $(FILES)

fuzz-lint: $(STAMP)
	PYTHONPATH=. nice $(BIN)/python -m benchmarks.fuzz_lint

# As pip does for what it installs, but not for an editable install: without it, every start compiles the sources
# again where Python is told to write no bytecode.
compiled: $(STAMP)
	$(BIN)/python -m compileall -q src

clean:
	rm -rf $(VENV) build dist

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[torch,dev]'
	$(BIN)/python -m compileall -q src
	touch $@
