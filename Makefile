# The targets of every day: demo and test are those of the README; check, format and clean are for those who change probe.
# lab.mk has all others: parts of check and test, the lab, other environments, benchmarks. `make help-lab` lists them.
# Every target makes the environment it needs; nothing has to be installed by hand but Python, git and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
RUN := $(VENV)/bin/python
DEMO := demo_dump
CODE := probe tests examples benchmarks docs
PIP := -m pip install --quiet --disable-pip-version-check
#: pip reads [dependency-groups] since 25.1; a fresh environment may have an older one
NEW_PIP := $(PIP) --upgrade 'pip>=25.1'
#: pytest runs in so many processes, each with whole files of tests, as a file's fixtures are made once;
#: tests/conftest.py has the order of the files
WORKERS ?= 2
PYTEST = -m pytest -q $(LIMIT) -n $(WORKERS) --dist loadfile --no-loadscope-reorder
#: seconds after which a test that hangs ends with an error and its stack: the others still run
LIMIT := --timeout 900
#: the tests beside msprobe have a target of their own
NO_PEER := --ignore tests/conformance
#: the texts of the targets in a file
TEXTS = sed -nE 's/^([a-z0-9-]+):.*\#\# /\1\t/p' $(1) | expand -t 16

# hundreds of programs of the tests import probe: compiling it takes each of them a quarter of a second
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo check format test clean

include lab.mk

help:  ## list these targets
	@$(call TEXTS,Makefile)
	@echo 'make help-lab lists all others: parts of check and test, the lab, other environments, benchmarks.'

demo: $(VENV)/ready  ## train on real digits with probe on, show what was recorded, and make a page of it
	$(RUN) -m probe run --config examples/config.json --dump-path $(DEMO) examples/train.py
	$(RUN) -m probe show $(DEMO)
	$(RUN) -m probe report $(DEMO) -o $(DEMO)/report.html

check: $(VENV)/ready  ## lint, types, import rules, numbers of the code, quick tests: a minute on two cores
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint imports numbers unit

format: $(VENV)/ready  ## correct the style where a tool can
	$(VENV)/bin/ruff check --quiet --fix $(CODE)
	$(VENV)/bin/ruff format --quiet $(CODE)

test: $(VENV)/ready  ## lint, imports, numbers, and the tests that a change needs: eight minutes on two cores
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint imports numbers
	$(RUN) $(PYTEST) -m "not thorough" $(NO_PEER)

clean:  ## remove the environments and what was built
	rm -rf .planted_faults.json $(VENV) $(OLDEST) $(PEER) $(ZOO) $(TORCH) $(PYTORCH) $(DEMO) tests/ascend/built build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .coverage* .axe

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) $(NEW_PIP)
	$(RUN) $(PIP) 'mindspore==2.10.0' -e . --group dev
	touch $@
