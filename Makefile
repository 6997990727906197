# Everything runs in .venv, built from the lock file; `make` alone lists the targets.
.DEFAULT_GOAL := help
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PORT ?= 8000
WORKERS ?= 2
BIN := .venv/bin
READY := .venv/.ready
PEERS ?= .venv-peers
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SITE := book/_build/html
ZIP := $(SITE)/site.zip
# What the tests left out, as they note it themselves.
SKIPPED := .pytest_cache/d/skipped/summary
CHAPTERS := $(shell $(PYTHON) .ci/pages.py)
FIRST := book/intro.ipynb
PAGES := $(CHAPTERS) $(wildcard book/*.md book/*.yml book/_static/* book/_templates/* book/_extensions/*) \
  $(wildcard book/exercises/*.md)
# The exercises are printed with their solutions, unless this is 0.
export SOLUTIONS ?= 1
PRINTED := book/_build/.solutions-$(SOLUTIONS)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"Python 3.11 or newer is needed, {sys.executable} is {sys.version.split()[0]}: make PYTHON=/path/to/python3.11")'
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(PIP) --requirement requirements.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: setup
setup: $(READY) ## make .venv from the lock file

# --all, because a warning of an earlier build would not be given a second time. The zip
# comes last: it is there only if everything before it went well.
$(ZIP): $(READY) $(PAGES) $(PRINTED)
	$(BIN)/python .ci/address.py --check
	rm -rf $(SITE)
	$(BIN)/jupyter-book build book --all --quiet -W -n --keep-going
	cd $(SITE)/.. && $(abspath $(BIN)/python) -m zipfile -c site.zip html
	mv $(SITE)/../site.zip $@

$(PRINTED):
	@mkdir -p $(dir $@) && rm -f $(dir $@).solutions-* && touch $@

.PHONY: book
book: $(ZIP) ## build the book into book/_build/html, with a zip for reading offline
	@echo "The book is at file://$(CURDIR)/$(SITE)/index.html"

.PHONY: serve
serve: book ## build the book and serve it on localhost
	@echo "http://localhost:$(PORT)/ (Ctrl-C stops)"
	@$(BIN)/python -m http.server --bind localhost --directory $(SITE) $(PORT)

.PHONY: lab
lab: $(READY) ## open JupyterLab on the chapters
	$(BIN)/jupyter lab book

# With DATA=directory, a copy of everything goes there too.
.PHONY: data
data: $(READY) ## fetch and verify the corpora, and say where they are
	$(BIN)/python .ci/corpora.py $(DATA)

.PHONY: test
test: $(READY) ## run all tests and re-execute every chapter
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow"
ifneq ($(CHAPTERS),)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --nbval --nbval-current-env $(CHAPTERS)
endif
	@cat $(SKIPPED)

.PHONY: test-portable
test-portable: ## run all tests as on another kind of CPU, with one thread
	ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 \
	  OMP_NUM_THREADS=1 $(MAKE) test

.PHONY: test-slow
test-slow: $(READY) ## run the tests that take long
	$(BIN)/python -m pytest -m slow

.PHONY: check
check: $(READY) ## lint, types, consistency: under a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python .ci/address.py --check
	$(BIN)/python .ci/notebooks.py --check $(CHAPTERS)
	$(BIN)/python .ci/exercises.py --check
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

.PHONY: format
format: $(READY) ## format code and notebooks, copy the address where it is needed
	$(BIN)/python .ci/address.py
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: notebooks
notebooks: $(READY) ## execute the chapters and store their outputs
	$(BIN)/python .ci/address.py
	$(BIN)/python .ci/notebooks.py $(CHAPTERS)

.PHONY: times
times: $(READY) ## as notebooks, and note how long each ran for the first page
	$(BIN)/python .ci/address.py
	OMP_NUM_THREADS=1 $(BIN)/python .ci/notebooks.py --times $(filter-out $(FIRST),$(CHAPTERS)) $(FIRST)

.PHONY: exercises
exercises: $(READY) ## write notebooks, pages and tests of the exercises from their sources
	$(BIN)/python .ci/exercises.py

.PHONY: lock
lock: $(READY) ## pin again from pyproject.toml
	$(BIN)/pip-compile --quiet --extra dev --strip-extras --upgrade --upgrade-package torch==2.13.0 \
	  --unsafe-package pip --unsafe-package seq2seq-lib --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	  --output-file requirements.lock pyproject.toml
	@sed -i.bak -e 's/+cpu$$//' -e '/^#/d' -e '/^$$/d' requirements.lock && rm requirements.lock.bak

# Newer pip refuses the metadata of omegaconf 2.0; READTHEDOCS=1 spares fairseq a compiler.
.PHONY: bench-peers
bench-peers: ## make .venv-peers, where the toolkits to compare with are
	$(PYTHON) -m venv --clear $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet pip==24.0
	READTHEDOCS=1 PIP_CONSTRAINT=requirements.lock $(PEERS)/bin/python -m pip install \
	  --quiet --no-deps --requirement seq2seq_lib/bench/peers/requirements.txt
	$(PEERS)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .

# In .venv-peers if it is there; who is not installed is named and left out.
.PHONY: bench
bench: $(READY) ## time the library side by side with every peer installed
	$(firstword $(wildcard $(PEERS)/bin/python) $(BIN)/python) -m seq2seq_lib.bench $(BENCH)

.PHONY: clean
clean: ## remove what was built, but not .venv
	rm -rf book/_build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov
