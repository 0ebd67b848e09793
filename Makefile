# A machine with Python 3.11 or newer, git and make needs nothing else: every target makes .venv of
# pyproject.toml and requirements.lock first, and is quick when neither has changed.
# PYTHON=/path/to/python3.13 make ... chooses one for a .venv that is not there yet.
.DEFAULT_GOAL := help
.PHONY: help dev serve chat run acp doctor modes prove trust usage audit clean-data diagram test record snapshots renew check add remove start upgrade lock format clean venv venv-test venv-check
MAKEFLAGS += --no-print-directory
# Without .pyc files every process that the tests start would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
MODESHIFT := $(BIN)/python -m modeshift
PYTEST := $(BIN)/pytest --numprocesses 3 --dist worksteal
# By another name: make -n would run lines that have $(MAKE).
AGAIN = $(MAKE)
AEGRA = sh "$$($(BIN)/python -c 'import modeshift; print(modeshift.__path__[0])')/aegra/set_up.sh"

# An option that a variable turns on, unless it is 0; one that takes the variable's value.
flag = $(if $(filter-out 0,$($(2))),--$(1))
option = $(if $($(2)),--$(1) "$$$(2)")

help: ## list what is needed most; the rest: .venv/bin/python -m modeshift --help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /@/; s/; ([A-Z]+=)/@\1/' | \
	  awk -F@ '{ printf $$3 ? "%-12s%-64s%s\n" : "%-12s%s\n", $$1, $$2, $$3 }'

dev: venv ## serve the agent on the LangGraph dev server; PORT=2024 BROWSER=1 VERBOSE=1
	@exec $(MODESHIFT) dev $(call option,port,PORT) $(if $(filter 1,$(BROWSER)),--browser) \
	  $(call flag,verbose,VERBOSE)

serve: venv # serve it in several processes, on the Postgres of DATABASE_URL; PORT=2024 WORKERS=2
	@$(AEGRA) is-ready || { ONLY_CHECK=1 $(MODESHIFT) serve && $(AEGRA); }
	@exec .venv-serve/bin/python -m modeshift serve $(call option,port,PORT) $(call option,workers,WORKERS)

chat: venv ## talk to the agent in this terminal, on the server if one runs; THREAD=id|last MODE=slug WORKSPACE=path
	@exec $(MODESHIFT) chat $(call option,thread,THREAD) $(call option,mode,MODE)

run: # say one message without a terminal, for CI and scripts; MSG=text THREAD=id|last MODE=slug LIMIT=slug RULES=file MAX_COST=2.50 JSON=1
	@$(AGAIN) venv >&2
	@exec env -u MAX_COST $(MODESHIFT) run $(call option,message,MSG) $(call option,thread,THREAD) \
	  $(call option,mode,MODE) $(call option,limit,LIMIT) $(call option,rules,RULES) \
	  $(call option,max-cost,MAX_COST) $(call flag,json,JSON)

acp: venv # print the command line that makes it an agent in an editor (Zed, JetBrains, ...)
	@$(MODESHIFT) acp

doctor: venv ## print what is enforced on this machine, what is not, and how to get the rest
	@$(MODESHIFT) doctor

modes: venv ## print what each mode may do with each tool; of one mode, why; MODE=slug PROMPT=1 START=1
	@$(MODESHIFT) modes $(call option,mode,MODE) $(call flag,prompt,PROMPT) $(call flag,start,START)

prove: venv # prove what must hold of the modes, and modes/properties.yaml, or show how it breaks; JSON=1
	@$(MODESHIFT) prove $(call flag,json,JSON)

trust: venv ## show and trust a workspace's own modes, rules and MCP servers; WORKSPACE=path SHOW=1 REVOKE=1
	@$(MODESHIFT) trust $(call flag,show,SHOW) $(call flag,revoke,REVOKE)

usage: venv # print the tokens that threads have taken, and their cost; THREAD=id JSON=1
	@$(MODESHIFT) usage $(call option,thread,THREAD) $(call flag,json,JSON)

audit: venv # print who decided what and what has run, and check it; THREAD=id JSON=1
	@$(MODESHIFT) audit $(call option,thread,THREAD) $(call flag,json,JSON)

clean-data: venv # remove the threads of the dev server and the sessions of editors
	@$(MODESHIFT) clean-data

diagram: venv # print the state diagram of the modes as they are
	@$(MODESHIFT) diagram

test: venv-test ## run your tests, with no network and no key; T=pattern for some of all
	@$(PYTEST) $(if $(T),-k "$$T",-m "not slow")

record: venv-test ## record the cassettes again (asks before it uses a real key); T=pattern SCRIPTED=1
	@$(BIN)/python -m modeshift.testing.record

snapshots: venv-test # write the texts that the model reads anew: tests/snapshots
	@WRITE=1 $(PYTEST) -q -k snapshots

renew: venv-test ## write all that is derived anew: tables, diagram, snapshots, scripted recordings
	@$(BIN)/python -m modeshift.testing.renew

check: venv-check ## lint, types, what must hold of the modes, all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(MODESHIFT) prove
	$(PYTEST)

add: venv ## have another part of the engine: a provider, editor, mcp, ...; EXTRA=name
	@$(MODESHIFT) add $(call option,extra,EXTRA)
	@sh .ci/venv

start: venv # begin another clone, on the engine's wheel; TO=../shop FROM=support NAME=shop
	@$(MODESHIFT) start $(call option,to,TO) $(call option,source,FROM) $(call option,name,NAME)

remove: venv-test # remove a mode and what is derived of it, and name what else speaks of it; MODE=slug
	@$(MODESHIFT) remove $(call option,mode,MODE)
	@$(AGAIN) renew

upgrade: venv # merge a later version, and keep gone what you removed; FROM=url-or-path, upstream unless given
	@sh .ci/upgrade $(FROM)
	@sh .ci/venv

format: venv-check # mend layout and imports
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

lock: venv # renew requirements.lock from pyproject.toml, for all parts of the engine
	@sh .ci/lock

clean: ## remove what can be made again
	rm -rf .venv .venv-serve .langgraph_api .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv-serve/.ready: venv
	@$(AEGRA)

venv:
	@sh .ci/venv

venv-test:
	@sh .ci/venv test

venv-check:
	@sh .ci/venv test check
