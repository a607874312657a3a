# make demo: a real engine out of a real model, without a GPU.  make test: lint, types, layers, tests.
# Needs Python >= 3.10 with pip; make PYTHON=/path/to/python3 chooses which.

PYTHON ?= python3
VENV ?= .venv
TEST_VENV ?= .venv-test
EXPORT_VENV ?= .venv-export
PYTEST_ARGS ?=

MODEL := pp-ocrv6-det
MODEL_FILE := models/downloads/PP-OCRv6_det_small.onnx
PROFILE := rtx4090-fp16
DEMO_DIR := build/demo
SOURCES := models/zoo.yaml $(shell find trtdeploy profiles -name '*.py' -o -name '*.yaml' -o -name '*.json' -o -name py.typed)
CACHES := .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Debian's python3 makes no environment with pip unless python3-venv is installed: then the pip that
# is there fills it.
define create_venv
	@echo "installing into $(1)/ (about 500 MB; the first time takes a few minutes)"
	@test -x $(1)/bin/pip || "$(PYTHON)" -m venv $(1) >/dev/null 2>&1 || { \
	    "$(PYTHON)" -m venv --without-pip $(1) && \
	    PYTHONPATH="$$("$(PYTHON)" -c 'import os, pip; print(os.path.dirname(pip.__path__[0]))')" \
	        $(1)/bin/python -m pip install --quiet --ignore-installed pip; }
endef

.DEFAULT_GOAL := help
.PHONY: help demo test test-export test-gpu lint clean python-version

help:
	@echo "make demo   fetch a real model and compile its $(PROFILE) engine into $(DEMO_DIR)/"
	@echo "make test   lint, types, layers and all tests but the two kinds below, in $(TEST_VENV)/"
	@echo "make test-export  the tests that need PyTorch, and its pages of docs/; installs several GB"
	@echo "make test-gpu     the tests that need a GPU and TensorRT; elsewhere they say why not"
	@echo "make lint   lint, types and layers alone"
	@echo "make clean  remove the environments, downloads, builds and caches"
	@echo "PYTHON=... chooses the interpreter, PYTEST_ARGS='-k fp16' goes to pytest"

python-version:
	@command -v "$(PYTHON)" >/dev/null || { \
	    echo "error: there is no '$(PYTHON)'; give one with: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	    echo "error: trtdeploy needs Python 3.10 or newer, and '$(PYTHON)' is" \
	        "$$("$(PYTHON)" --version 2>&1); give another with: make PYTHON=/path/to/python3" >&2; exit 1; }

# Installed as a user gets it, a wheel with the profiles inside; hence anew when a source changes.
$(VENV)/.installed: pyproject.toml $(SOURCES) | python-version
	$(call create_venv,$(VENV),500 MB)
	$(VENV)/bin/python -m pip install --quiet ".[rtx]"
	@touch $@

$(TEST_VENV)/.installed: pyproject.toml | python-version
	$(call create_venv,$(TEST_VENV),600 MB)
	$(TEST_VENV)/bin/python -m pip install --quiet --editable ".[rtx,dev]"
	@touch $@

demo: $(VENV)/.installed
	$(VENV)/bin/trtdeploy models fetch $(MODEL) --output-dir $(dir $(MODEL_FILE))
	$(VENV)/bin/trtdeploy build $(MODEL_FILE) --profile $(PROFILE) --output-dir $(DEMO_DIR)
	@echo
	@test -s $(DEMO_DIR)/model.engine || { echo "error: no engine was written" >&2; exit 1; }
	@echo "engine: $(CURDIR)/$(DEMO_DIR)/model.engine"
	@for file in report.html report.json manifest.json; do \
	    if test -s $(DEMO_DIR)/$$file; then echo "$${file%.*}: $(CURDIR)/$(DEMO_DIR)/$$file"; fi; done

lint: $(TEST_VENV)/.installed
	$(TEST_VENV)/bin/ruff check
	$(TEST_VENV)/bin/ruff format --check
	$(TEST_VENV)/bin/mypy
	$(TEST_VENV)/bin/lint-imports

# Pages of docs/ fetch models from the package index that these environments came from.
test: lint
	TRTDEPLOY_DOCS_NETWORK=1 $(TEST_VENV)/bin/python -m pytest -n auto --maxprocesses 8 $(PYTEST_ARGS)

$(EXPORT_VENV)/.installed: pyproject.toml | python-version
	$(call create_venv,$(EXPORT_VENV),7 GB)
	$(EXPORT_VENV)/bin/python -m pip install --quiet --editable ".[export,rtx,images,dev]" \
	    torchvision timm transformers ultralytics
	@touch $@

# One thread in each process, or PyTorch's threads of all of them wait for each other.
test-export: $(EXPORT_VENV)/.installed
	OMP_NUM_THREADS=1 TRTDEPLOY_DOCS_NETWORK=1 $(EXPORT_VENV)/bin/python -m pytest -m pytorch \
	    -n auto --maxprocesses 8 $(PYTEST_ARGS)

# The environment needs what the machine runs engines with: give PYTHON one that has JetPack's
# TensorRT, or EXTRAS=tensorrt; and EXTRAS=cuda or pycuda for the memory of the GPU.
test-gpu: $(TEST_VENV)/.installed
	$(if $(EXTRAS),$(TEST_VENV)/bin/python -m pip install --quiet --editable ".[$(EXTRAS)]")
	$(TEST_VENV)/bin/python -m pytest -m gpu $(PYTEST_ARGS)

clean:
	rm -rf $(VENV) $(TEST_VENV) $(EXPORT_VENV) build dist models/downloads $(CACHES)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
