# Two commands: `make quickstart` (data, training, export, answers) and `make test` (lint, tests).
# `make test` runs the first case of each kind; `make test-all` runs whatever is marked `long` too: all
# options of models, layers and exports, what must learn, the journeys of a user's file, benchmarks, wheels,
# JavaScript, pages in a browser, C++, Beam, Ray and Spark, each where its tools are there (npm, chromium,
# onnxruntime's headers, Java).
# Each first makes .venv with what it needs; PYTHON chooses the interpreter (3.11 to 3.13).
# Both prove properties of every layer on JAX too; `make test-all BACKEND=torch` (or jax) tests the
# whole library on that backend, `make test` its first cases; `make parity` compares it with other libraries, live;
# `make vectors` writes anew what those say to tests/vectors/*.npz.
# `make scores` writes docs/scores.md from training/recipes; `make scores RUNS="runs/a runs/b"` prints the looks of runs.
# `make release` builds two wheels and the npm package into dist/, installs each alone, and asks it.
# `make docs` builds the site of docs/ into site/; `make test-all` does too.
# `make recipe-NAME` runs the command in training/recipes/NAME.toml on the data in the folder SEQKERAS_DATA,
# and exports what it made; stopped, the same command goes on.

PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,\
	$(shell $(name) -c 'import sys; (3, 11) <= sys.version_info[:2] <= (3, 13) and print("$(name)")' 2>/dev/null)))
BIN := .venv/bin
RUN := runs/dates
BUNDLE := bundles/dates
PYTEST := $(BIN)/python -m pytest -n 2
SHORT := -m "not long"
UV := $(shell command -v uv)
ifdef UV
install = uv pip install --quiet --python $(1)/bin/python
else
install = $(1)/bin/python -m pip install -qq --disable-pip-version-check
endif
# Of serving/javascript, for its tests and for answers in the browser; nothing where there is no npm.
NPM_PACKAGES := $(if $(shell command -v npm),serving/javascript/node_modules/.package-lock.json)

.PHONY: quickstart gallery docs reference scores test test-all test-bulk test-site lint parity vectors release

quickstart: .venv/requirements.done $(NPM_PACKAGES)
	$(BIN)/seqkeras train dates --out $(RUN)
	$(BIN)/seqkeras export $(RUN) $(BUNDLE) --overwrite
	$(BIN)/seqkeras predict $(BUNDLE) "de|Samstag, 3. Mai 2014" "en_US|teusday sept 9 97" "ar|31 مايو 2036"
	@echo "made: $(RUN)/attention.png, a picture of what it attends to, and $(BUNDLE)/README.md, about the model"
	@echo "next: $(BIN)/seqkeras serve $(BUNDLE)  # a page at http://127.0.0.1:8000"

# The command is the comment of that name, which --out ends.
recipe-%: training/recipes/%.toml .venv/requirements.done
	@test -d "$$SEQKERAS_DATA" || { echo "make: SEQKERAS_DATA must name the folder of the data: docs/training/recipes.md"; exit 1; }
	@if grep -q '\$$MINILM' $<; then test -d "$$MINILM" || { echo "make: MINILM must name the folder of MiniLM's weights, the model in the package of requirements-minilm.txt: docs/finetuning.md, The encoder"; exit 1; }; fi
	@command=$$(sed -n '/^#   command/,/--out/s/^# *\(command *\)\{0,1\}//p' $<); echo "$$command"; \
		PATH="$(CURDIR)/$(BIN):$$PATH" sh -ec "$$command"
	$(BIN)/seqkeras export runs/$* bundles/$* --overwrite

scores: .venv/requirements.done
	$(BIN)/python -m seqkeras.training.recipe_scores $(RUNS)

# The commands of the page, each of which draws a picture of it.
gallery: .venv/requirements.done
	grep '^seqkeras figure' docs/gallery.md | PATH="$(CURDIR)/$(BIN):$$PATH" sh -ex

# The site of docs/; what it lacks without npm, the last lines say.
SITE_FROM_NPM := docs/theme/node_modules/.package-lock.json
docs: .venv/requirements-docs.done $(if $(shell command -v npm),$(SITE_FROM_NPM))
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@test -f $(SITE_FROM_NPM) || echo "make: without npm formulas and diagrams are text, and the search works only where a server hands out site/"
	@echo "next: $(BIN)/python -m http.server --directory site  # or open site/index.html"

# All tests of the site, those in Chromium too.
test-site: .venv/requirements-docs.done .venv/requirements-test.done $(NPM_PACKAGES) $(if $(shell command -v npm),$(SITE_FROM_NPM))
	$(BIN)/python -m pytest tests/test_site.py

# The pages of the commands, made of their options.
reference: .venv/requirements.done
	$(BIN)/python docs/theme/commands.py

# The commands of examples/NAME/run.sh, in runs/NAME.
example-%: .venv/requirements.done
	PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/$*/run.sh runs/$*

ifdef BACKEND
test-all: test
test: lint $(if $(filter torch,$(BACKEND)),.venv/requirements-parity.done)
	KERAS_BACKEND=$(BACKEND) $(PYTEST) $(SHORT)
else
test-all: $(NPM_PACKAGES) .venv/requirements-minilm.done docs test test-bulk
test: lint
	KERAS_BACKEND=tensorflow $(PYTEST) $(SHORT)
	KERAS_BACKEND=jax $(PYTEST) $(SHORT) tests/properties
endif

test-all: SHORT :=

test-bulk: .venv-beam/requirements.done .venv-bulk/requirements.done
	.venv-beam/bin/python -m pytest tests/serving/test_beam.py tests/beam
	.venv-bulk/bin/python -m pytest tests/serving/test_bulk.py

parity: .venv/requirements-parity.done .venv/requirements-minilm.done
	$(BIN)/python -m pytest tests/parity

vectors: .venv/requirements-parity.done
	$(BIN)/python -m tests.vectors

release:
	@test -n "$(PYTHON)" || { echo "make: needs Python 3.11 to 3.13; name one: make PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m tests.release

lint: .venv/requirements-test.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy --no-error-summary

# requirements-test.txt holds requirements.txt too.
INSTALLED := requirements.txt $(addprefix serving/requirements,.txt -tokenizers.txt -http.txt)
.venv/requirements.done: $(INSTALLED)
TESTED := $(INSTALLED) requirements-test.txt
.venv/requirements-test.done: $(TESTED)
.venv/requirements-parity.done: $(TESTED) requirements-parity.txt
.venv/requirements-minilm.done: requirements-minilm.txt | .venv/made
	@$(call install,.venv) --no-deps --require-hashes -r $<
	@touch $@
.venv/%.done: %.txt | .venv/made
	@echo "installing $< into .venv$(if $(findstring docs,$<),,: some minutes, 3 GB)"
	@$(call install,.venv) -r $<
	@touch $@
# Beam, Ray and Spark hold packages that the others need in other versions.
.venv-%/requirements.done: requirements-%.txt $(INSTALLED) | .venv-%/made
	@echo "installing $< into .venv-$*"
	@$(call install,.venv-$*) -r $<
	@touch $@

serving/javascript/node_modules/.package-lock.json: serving/javascript/package-lock.json
	@echo "installing the packages of serving/javascript"
	@cd $(<D) && npm ci >/dev/null 2>&1 || echo "make: npm ci failed in $(<D): nothing runs in JavaScript"

$(SITE_FROM_NPM): docs/theme/package-lock.json
	@cd $(<D) && npm ci >/dev/null 2>&1 || echo "make: npm ci failed in $(<D)"

# Touched last: a making that failed or was killed is begun anew, and costs no installed package.
.venv/made .venv-beam/made .venv-bulk/made:
	@test -n "$(PYTHON)" || { echo "make: needs Python 3.11 to 3.13; name one: make PYTHON=/path/to/python3.12"; exit 1; }
	@echo "making $(@D) with $(PYTHON)"
	@$(if $(UV),uv venv --quiet --allow-existing --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(@D),$(PYTHON) -m venv $(if $(wildcard $(@D)/*.done),,--clear) $(@D))
	@touch $@
