# Two commands for users: `make demo` and `make test`. Both create .venv and install the pinned versions first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint reprove clean

# What users need; the tests and checkers below come on top.
$(VENV)/usable: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[fast]'
	touch $@

$(VENV)/installed: $(VENV)/usable
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(VENV)/usable  ## optimal plans for 12 and 20 real jobs, by two independent methods, and every rule's distance
	$(BIN)/optalloc compare real-12 real-20 --solvers highs,cpsat,rules --time-limit 60

test: $(VENV)/installed  ## the whole test suite
	$(BIN)/python -m pytest -q --numprocesses 2 --dist loadfile

lint: $(VENV)/installed  ## what continuous integration checks besides the tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

reprove: $(VENV)/usable  ## derive instances/index.json again: every optimum, bound and stored plan
	$(BIN)/python benchmarks/reprove.py

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .hypothesis
