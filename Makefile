# make demo   set up .venv, render a hexagonally tiled video on the embedded model
# make test   set up .venv with the test tools; ruff, mypy, pytest
# make native compile csrc/ into h3video/h3/_native with the local C compiler
# make dist   the wheel with every platform's library, built with ziglang, checked and tried
# make fuzz   junk for every function of csrc under sanitizers, 10 minutes (FUZZ_ARGS=--seconds=60)
# make soak   200 kills of a small job at random moments; its files must come out byte-identical
# make lab    the figures, tables and pictures of docs/quality.md (under 40 minutes on 2 cores)
# make bench  the figures of the README (minutes)

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(PIP_ARGS)
COMFY_VENV ?= .venv-comfy
COMFY_PIP  := $(COMFY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(PIP_ARGS)
DIST_VENV ?= .venv-dist
PROMPT ?= a red circle moves left over blue waves

.PHONY: demo test native dist fuzz bench lab lint clean soak

demo: $(VENV)/.demo native
	$(BIN)/h3video render "$(PROMPT)" -o demo/demo.mp4 --width 480 --height 288 --frames 33 --guide-steps 12

# ComfyUI needs torchvision, whose wheel breaks transformers beside a CPU torch: a venv of its own.
test: $(VENV)/.test $(COMFY_VENV)/.ready native lint
	$(BIN)/python -m pytest -n 2 --dist worksteal --ignore=tests/comfy --ignore=tests/web --ignore=tests/sampler $(PYTEST_ARGS)
	$(COMFY_VENV)/bin/python -m pytest tests/comfy tests/web $(PYTEST_ARGS)
	OMP_NUM_THREADS=1 $(COMFY_VENV)/bin/python -m pytest -n 2 --dist worksteal tests/sampler $(PYTEST_ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/mypy

soak: $(VENV)/.test native
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/soak.py --kills $(or $(KILLS),200)

bench: $(VENV)/.demo native
	$(BIN)/python benchmarks/tiling.py

lab: $(VENV)/.test native
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.quality $(LAB_ARGS)

# Without a C compiler the pure-Python index serves, so a failure here is not fatal.
native: $(VENV)/.demo
	@$(BIN)/python -m h3video.h3.build --if-stale || echo "h3video: no native index; the pure-Python index serves"

# No torch here, but a C compiler for every platform (400 MB).
dist: $(DIST_VENV)/.ready
	$(DIST_VENV)/bin/python tools/dist.py $(DIST_ARGS)

fuzz:
	$(PYTHON) tools/fuzz.py $(FUZZ_ARGS)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e ".[diffusers]"
	@touch $@

$(VENV)/.test: $(VENV)/.demo
	$(PIP) -e ".[diffusers,dev,lab]"
	@touch $@

# torchvision before the rest and alone: as another package's requirement it brings a CUDA torch.
$(COMFY_VENV)/.ready: tests/comfy/requirements.txt constraints.txt
	$(PYTHON) -m venv $(COMFY_VENV)
	$(COMFY_PIP) torch
	$(COMFY_PIP) --no-deps torchvision torchaudio
	$(COMFY_PIP) -r tests/comfy/requirements.txt
	@touch $@

$(DIST_VENV)/.ready: constraints.txt
	$(PYTHON) -m venv $(DIST_VENV)
	$(DIST_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(PIP_ARGS) ziglang hatchling
	@touch $@

clean:
	rm -rf $(VENV) $(COMFY_VENV) $(DIST_VENV) demo h3video/h3/_native .mypy_cache .ruff_cache .pytest_cache
