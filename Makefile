# A machine with Python 3.11 or newer, git and make needs nothing else: every target
# makes .venv from requirements.lock first, and is quick when nothing has changed.
# PYTHON=/path/to/python3.13 make ... chooses one for a .venv that is not there yet.
.DEFAULT_GOAL := help
.PHONY: help dev serve chat acp doctor modes prove trust usage clean-data diagram test record snapshots screenshots renew check local-models mutants bench load chaos stats lock format clean
MAKEFLAGS += --no-print-directory
# Without .pyc files every process that the tests start would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
READY := .venv/.ready
SERVE_READY := .venv-serve/.ready
LOCAL_READY := .venv-local/.ready
# By another name: make -n would run lines that have $(MAKE).
AGAIN = $(MAKE)
# The engine's tests and benchmarks use the clone's tools.
IN_ENGINE := cd engine && PYTHONPATH=.. ../$(BIN)/python
# What make test runs of the engine's, whatever the clone's graph: recorded conversations, gates,
# verdicts, a server.
PROOFS := tests/graph/replay/test_conversations.py tests/graph/test_gates.py \
  tests/graph/test_switches.py tests/modes/test_verdict.py \
  tests/clients/server/test_server.py
PARALLEL := --numprocesses 3 --dist worksteal
# A clone that has the engine as a wheel has its own tests alone.
ifneq ($(wildcard engine/tests),)
# Named, as with the clone's tests among the arguments pytest takes the clone's own settings.
PYTEST := cd engine && ../$(BIN)/pytest -c pyproject.toml $(PARALLEL)
PROVE := $(PYTEST) -m "not slow" ../tests $(PROOFS)
CHOOSE := $(IN_ENGINE) -m tests.harness.selection
CHECK_ENGINE := (cd engine && ../$(BIN)/mypy && ../$(BIN)/lint-imports)
WITHOUT_LOCAL := -m "not local"
else
PYTEST := $(BIN)/pytest $(PARALLEL)
PROVE := $(PYTEST)
CHOOSE := $(BIN)/pytest -k
CHECK_ENGINE := true
IN_ENGINE := echo "This needs the folder engine/ of Modeshift's repository; this clone has a wheel" >&2; false
endif

# An option that a variable turns on, unless it is 0; one that takes the variable's value.
flag = $(if $(filter-out 0,$($(2))),--$(1))
option = $(if $($(2)),--$(1) "$$$(2)")

help: ## list what is needed most; the rest: .venv/bin/python -m modeshift --help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

dev: $(READY) ## serve the agent on the LangGraph dev server; PORT=2024 BROWSER=1 RELOAD=1 VERBOSE=1
	@exec $(BIN)/python -m modeshift dev $(call option,port,PORT) $(if $(filter 1,$(BROWSER)),--browser) \
	  $(call flag,reload,RELOAD) $(call flag,verbose,VERBOSE)

serve: $(READY) # serve it in several processes, on the Postgres of DATABASE_URL; PORT=2024 WORKERS=2
	@$(AGAIN) -q $(SERVE_READY) || { ONLY_CHECK=1 $(BIN)/python -m modeshift serve && $(AGAIN) $(SERVE_READY); }
	@exec .venv-serve/bin/python -m modeshift serve $(call option,port,PORT) $(call option,workers,WORKERS)

chat: $(READY) ## talk to the agent in this terminal, on the server if one runs; THREAD=id MODE=slug WORKSPACE=path
	@exec $(BIN)/python -m modeshift chat $(call option,thread,THREAD) $(call option,mode,MODE)

acp: $(READY) ## print the command line that makes it an agent in an editor (Zed, JetBrains, ...)
	@$(BIN)/python -m modeshift acp

doctor: $(READY) ## print what is enforced on this machine, what is not, and how to get the rest
	@$(BIN)/python -m modeshift doctor

modes: $(READY) ## print the modes as they are: mode x tool -> verdict, and why; MODE=slug PROMPT=1 START=1
	@$(BIN)/python -m modeshift modes $(call option,mode,MODE) $(call flag,prompt,PROMPT) $(call flag,start,START)

prove: $(READY) # prove what must hold of the modes, and modes/properties.yaml, or show how it breaks; JSON=1
	@$(BIN)/python -m modeshift prove $(call flag,json,JSON)

trust: $(READY) ## show and trust a workspace's own modes, rules and MCP servers; WORKSPACE=path SHOW=1 REVOKE=1
	@$(BIN)/python -m modeshift trust $(call flag,show,SHOW) $(call flag,revoke,REVOKE)

usage: $(READY) # print the tokens that threads have taken, and their cost; THREAD=id JSON=1
	@$(BIN)/python -m modeshift usage $(call option,thread,THREAD) $(call flag,json,JSON)

clean-data: $(READY) # remove the threads of the dev server and the sessions of editors
	@$(BIN)/python -m modeshift clean-data

diagram: $(READY) # print the state diagram of the modes as they are; OUT=file
	@$(BIN)/python -m modeshift diagram $(call option,out,OUT)

test: $(READY) ## run your tests and the engine's main proofs, with no network; T=pattern for some of all
	@$(if $(T),$(CHOOSE) "$$T",$(PROVE))

record: $(READY) ## record the cassettes anew, of the real provider if its key is set (asks first); T=pattern SCRIPTED=1
	@$(IN_ENGINE) -m tests.harness.record

snapshots: $(READY) # write the texts that models and people read anew: tests/snapshots, engine/tests/snapshots
	@WRITE=1 $(PYTEST) -q -k snapshots

screenshots: $(READY) # write the pictures of the page anew, docs/pictures; needs Chromium
	@$(IN_ENGINE) -m tests.clients.page.screenshots

renew: $(READY) ## write all that is derived anew: tables, diagram, snapshots, scripted recordings, pictures
	@$(IN_ENGINE) -m tests.harness.renew

check: $(READY) ## all that CI checks: lint, types, import rules, all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(CHECK_ENGINE)
	$(BIN)/python -m modeshift prove
	$(PYTEST) $(WITHOUT_LOCAL)

local-models: $(READY) # test with llama.cpp's own server and the chat templates of 71 models; T=pattern
	@$(AGAIN) -q $(LOCAL_READY) || $(AGAIN) $(LOCAL_READY) || echo "no llama.cpp here: its tests are skipped"
	$(PYTEST) tests/local $(if $(T),-k "$$T")

mutants: $(READY) # break each promise in turn, in a copy: its test must fail; ONLY=pattern JOBS=2
	@$(IN_ENGINE) -m tests.mutants $(call option,only,ONLY) $(call option,jobs,JOBS)

format: $(READY) # mend layout and imports
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) # time the journal, a step against LangGraph's own parts and create_agent, many modes against few, the tools against rg and sh, the input's price against create_agent's, the page
	@$(IN_ENGINE) -m benchmarks.steps
	@$(IN_ENGINE) -m benchmarks.many_modes
	@$(IN_ENGINE) -m benchmarks.tools
	@$(IN_ENGINE) -m benchmarks.journal
	@$(IN_ENGINE) -m benchmarks.cache
	@$(IN_ENGINE) -m benchmarks.page

load: $(READY) # time 50 and 200 threads at once, with approvals, against LangGraph's own server; THREADS="50 200" WAITING=10000 PROCESSES="1 2 4"
	@$(IN_ENGINE) -m benchmarks.load $(if $(THREADS),--threads $(THREADS)) $(call option,waiting,WAITING) \
	  $(if $(PROCESSES),--processes $(PROCESSES))

chaos: $(READY) # kill processes 200 times on SQLite and on Postgres, resume 200 questions twice; count what went wrong: all 0; ARGS="--kills 20"
	@export MODES_FOLDER="$$PWD/engine/tests/harness/template/modes"; \
	  ($(IN_ENGINE) -m tests.chaos --database sqlite $(ARGS)) && \
	  ($(IN_ENGINE) -m tests.chaos --database postgres --stops 20 $(ARGS))

stats: $(READY) # print how large the project is, and how its modules import and call each other; IN=folder
	@$(IN_ENGINE) -m benchmarks.stats
	@$(if $(IN),,$(IN_ENGINE) -m benchmarks.trace)

lock: $(READY) # renew requirements.lock from pyproject.toml
	$(BIN)/uv pip compile --no-python-downloads --universal --python-version 3.11 --generate-hashes --upgrade \
	  --no-emit-index-url --no-header --all-extras \
	  --group test --group check --group install \
	  pyproject.toml --no-emit-package modeshift --output-file requirements.lock

clean: ## remove what can be made again
	rm -rf .venv .venv-serve .venv-local .langgraph_api .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.lock $(wildcard engine/pyproject.toml)
	@sh .ci/venv
	@touch $@

$(SERVE_READY): $(READY) requirements.lock pyproject.toml $(wildcard engine/pyproject.toml)
	@sh .ci/serve
	@touch $@

$(LOCAL_READY): $(READY) .ci/local $(wildcard engine/tests/local/*.lock) engine/tests/local/one_block.py
	@sh .ci/local
	@touch $@
