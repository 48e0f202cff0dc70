# Two commands on a machine with python3 (venv, pip) and make: `make book` and `make test`. `make help` lists all.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
JOBS ?= 2
NBVAL := $(BIN)/pytest --nbval --nbval-current-env -n $(JOBS) --dist loadfile notebooks
# Matplotlib, IPython and Jupyter want to write into the home folder; where it cannot be written they get one here.
ifneq ($(shell test -w "$(HOME)" && echo yes),yes)
export HOME := $(CURDIR)/.cache/home
$(shell mkdir -p "$(HOME)")
endif

help:  ## this list
	@awk -F ':.*## ' '/^[A-Za-z0-9_.-]+:.*## /{printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

setup: $(READY)  ## make .venv with the pinned packages; the others do this by themselves

# A build after a failed one, or over old pages, could pass unseen: start from an empty folder.
book: $(READY)  ## build the site from the committed outputs
	rm -rf _build
	$(BIN)/jupyter-book build . -n -W --keep-going --all
	@echo "The book is built: open _build/html/index.html"

test: book  ## every test: library, guards, book, browser, and every notebook by nbval
	$(BIN)/ruff check .
	$(BIN)/pytest -n $(JOBS) tests
	$(NBVAL)
	$(BIN)/python -m xorlib.claims > /dev/null
	@echo "All passed: library, guards, book, browser, notebooks, ledger"

test-notebooks: $(READY)  ## of these, every notebook against its stored outputs by nbval
	$(NBVAL)

test-other-cpu: $(READY)  ## the same with the instructions of other processors, as far as this one has them
	$(BIN)/python tests/other_cpu.py $(NBVAL)

notebooks: $(READY)  ## make and execute the .ipynb from the .md; ONLY="01_decision_boundary ..." for some
	$(BIN)/python notebooks/make.py $(ONLY)

paper: $(READY)  ## the published-scale runs; writes notebooks/results/*.csv, resumes after a kill
	$(BIN)/python notebooks/make.py --paper $(if $(DASK),--dask $(DASK)) $(ONLY)

SEEDS ?= 1000 2000 3000

seeds: $(READY)  ## every chapter at SEEDS="1000 2000": which verdicts are not the book's; ONLY as above
	$(BIN)/python notebooks/make.py $(ONLY) --seeds $(SEEDS)

BENCHMARKS := gradient_descent figure_2 minibatch_sgd sample_complexity population

benchmark: $(READY)  ## speed against plain autograd loops, as ratios; minutes
	for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name || exit 1; done

.venv-benchmark/.ready: benchmarks/requirements.txt requirements.txt
	$(PYTHON) -m venv .venv-benchmark
	.venv-benchmark/bin/pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	@touch $@

benchmark-jax: .venv-benchmark/.ready  ## the same with a jitted loop of JAX beside it, in an environment of its own
	for name in $(BENCHMARKS); do .venv-benchmark/bin/python -m benchmarks.$$name || exit 1; done

.PHONY: help setup book test test-notebooks test-other-cpu notebooks paper seeds benchmark benchmark-jax
