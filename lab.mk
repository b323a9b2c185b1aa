# The targets that are not of every day. The Makefile includes this file; it has the variables that both use.
# test-all before a release; `make help-lab` lists all.

# the first that really runs: pyenv's stand-ins may not
OLDEST_PYTHON ?= $(shell for p in python3.9 ~/.pyenv/versions/3.9.*/bin/python python3.10 python3.11 python3; do \
  $$p -c "" 2>/dev/null && echo $$p && break; done)
OLDEST := .venv-oldest
PEER := .peer
ZOO := .zoo
#: torch on MindSpore: mindnlp 0.5.1 does not import with a newer MindSpore
TORCH := .torch
#: PyTorch itself, with msprobe's half for it
PYTORCH := .pytorch
#: each test where there is room, but those of one xdist_group in one process
PYTEST_SINGLY = -m pytest -q $(LIMIT) -n $(WORKERS) --dist loadgroup
#: the tests that are neither slow nor thorough, by an interpreter, with options of pytest;
#: then the lines that they ran, and the floor
define UNDER_COVERAGE
$(1) -m coverage erase
$(1) -m coverage run $(PYTEST) $(2) -m "not slow and not thorough"
$(1) -m coverage combine --quiet
$(1) -m coverage report
endef
#: thorough tests of what seldom changes, or has a longer proof beside it: GRAPH_MODE, L2, four ranks, whole searches,
#: each private name of MindSpore taken away
RARE := tests/capture/graph tests/capture/kernel tests/search/test_programs.py tests/test_ranks.py \
  tests/monitor/test_troubles.py tests/launch/test_ways.py tests/reading/one_run/test_planted.py \
  tests/reading/compare/layouts/test_real_ranks.py tests/sharded/test_untested_version.py tests/support/test_msrun.py
#: these look at the texts of the repository: no MindSpore tells them anything else
TEXTS_ALONE := --ignore tests/architecture --ignore tests/test_links.py --ignore tests/test_contributing.py
#: checks a page for people who cannot see or use a mouse; of the npm registry
AXE := .axe/package/axe.min.js
AXE_SUM := e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745
#: what builds the simulated CANN
COMPILERS := { command -v gcc && command -v g++ && command -v nm; } >/dev/null || { apt-get update -q && apt-get install -qy gcc g++ binutils; }

.PHONY: help-lab environments lint imports numbers unit coverage test-all thorough rare conformance test-oldest unit-oldest \
  test-versions ascend ascend-all test-processors planted-faults torch torch-nets torch-pair test-rounds \
  test-force equality equality-50 ways transforms seen-nets guard-nets replay-nets browser fuzz fuzz-checks report-test \
  drawings pictures origins forms orders reports edits experiments interventions perturbed automation find rolling one-run mechanisms mutants \
  wheel-test wheel-faults bench bench-reading bench-cluster bench-peer bench-device peer

help-lab:  ## list the targets of this file
	@$(call TEXTS,lab.mk)

lint: $(VENV)/ready  ## style and types
	$(VENV)/bin/ruff check --quiet $(CODE)
	$(VENV)/bin/ruff format --quiet --check $(CODE)
	$(VENV)/bin/mypy

imports: $(VENV)/ready  ## the import rules
	$(VENV)/bin/lint-imports --no-logo

numbers: $(VENV)/ready  ## the numbers of the code and of the texts beside their limits
	$(RUN) -m tests.architecture.numbers
	$(RUN) -m tests.architecture.prose

unit: $(VENV)/ready  ## the tests without a mark of their length
	$(RUN) $(PYTEST) -m "not slow and not medium and not thorough"

coverage: $(VENV)/ready  ## the lines that unit tests run, with a floor
	$(call UNDER_COVERAGE,$(RUN),)

test-all:  ## all tests; it makes the environment of msprobe (about 3 GB)
	$(MAKE) test
	$(MAKE) thorough rare
	$(MAKE) conformance

thorough: $(VENV)/ready  ## the tests that `make test` leaves out: the same on more nets, layouts and modes
	$(RUN) $(PYTEST) -m "(thorough or whole) and not proof" $(NO_PEER) $(RARE:%=--ignore %)

rare: $(VENV)/ready  ## thorough tests that .ci/run leaves out: GRAPH_MODE, L2, four ranks, whole searches (20 minutes)
	$(RUN) $(PYTEST) -m "thorough and not proof" $(RARE)

conformance: $(VENV)/ready $(PEER)/ready $(TORCH)/ready  ## compare our dumps with msprobe's of the same trainings
	$(RUN) $(PYTEST_SINGLY) tests/conformance

test-oldest: $(OLDEST)/ready  ## all tests on the oldest MindSpore that is supported
	$(OLDEST)/bin/python $(PYTEST) -p no:cacheprovider

unit-oldest: $(OLDEST)/ready  ## the tests of coverage on the oldest MindSpore, with the same floor
	$(call UNDER_COVERAGE,$(OLDEST)/bin/python,-p no:cacheprovider $(TEXTS_ALONE))

environments: $(OLDEST)/ready $(PEER)/ready $(TORCH)/ready  ## the other environments that .ci/run needs

test-versions:  ## all tests on every supported MindSpore and Python, each environment removed after use
	tests/programs/versions.sh

ascend: $(VENV)/ready  ## build the simulated CANN, and run the tests of the device on it: tests/ascend/README.md
	$(COMPILERS)
	$(RUN) -m tests.ascend.simulator build
	$(RUN) $(PYTEST_SINGLY) --device Ascend tests/ascend

ascend-all: $(VENV)/ready  ## all on the simulated CANN: every level and task, 60 planned failures, the tests of recording
	$(COMPILERS)
	PROBE_ASCEND_ALL=1 $(RUN) -m pytest -q --device Ascend tests/ascend tests/doctor
	$(RUN) -m pytest -q --device Ascend -m "not slow" tests/measure tests/recording tests/tasks tests/capture

test-processors: $(VENV)/ready  ## the tests of measuring, with BLAS and numpy as on other processors
	$(RUN) $(PYTEST_SINGLY) tests/measure/on_processors.py

planted-faults: $(VENV)/ready  ## plant 100 faults, one at a time: the tests of `make test` must find 95
	$(RUN) -m tests.programs.planted_faults

torch: $(TORCH)/ready  ## programs of torch on MindSpore (mindtorch): what is recorded, and that no bit changes
	$(TORCH)/bin/python -m pytest -q tests/layers/test_torch.py

torch-nets: $(TORCH)/ready  ## models of transformers, peft and diffusers on MindSpore, at each level and in each task
	$(TORCH)/bin/python -m tests.programs.torch_nets

torch-pair: $(VENV)/ready $(TORCH)/ready $(PYTORCH)/ready  ## the same models under PyTorch and on MindSpore: compare names 20 planted faults
	$(RUN) -m tests.programs.torch_pair --pytorch $(PYTORCH)/bin/python --torch $(TORCH)/bin/python

test-rounds: $(VENV)/ready  ## check, test and .ci/run in a fresh clone, three times alone, three at once beside four busy processes
	$(RUN) -m tests.programs.rounds check test ci
	$(RUN) -m tests.programs.rounds check test ci --busy

test-force: $(VENV)/ready  ## more of the random tests, many kills, and ten minutes of training with an eye on memory
	PROBE_KILLS=200 PROBE_EXAMPLES=10000 $(RUN) -m pytest -q tests/config/test_random_settings.py \
	  tests/measure/test_random_arguments.py tests/process/test_endings.py tests/reading/dumps/test_recovery.py \
	  tests/monitor/test_monitor.py \
	  tests/capture/test_cells.py::test_a_thousand_steps_take_no_more_memory_than_without_probe \
	  tests/capture/kernel/test_trainings.py::test_statistics_of_50_steps_keep_the_disk_below_two_steps_and_pandas_reads_them
	$(RUN) -m tests.programs.soak --minutes 10

equality: $(VENV)/ready  ## all trainings of the law, synchronous and asynchronous: no bit differs
	$(RUN) -m pytest -q tests/test_equality.py

equality-50: $(VENV)/ready  ## 50 steps of two trainings, five times bare and at each level: one result
	$(RUN) -m tests.programs.equality --nets digits,gpt --steps 50 --repeats 5 --tasks statistics

ways: $(VENV)/ready  ## each task in a loop, Model.train, `probe run` and a notebook; run twice, killed, its settings edited
	$(RUN) -m tests.programs.ways $$(mktemp -d)

transforms: $(VENV)/ready  ## trainings with each transform of MindSpore, at each level and in each task: one result
	$(RUN) -m tests.programs.transforms "$$(mktemp -d)"

seen-nets: $(ZOO)/ready  ## count the graph nodes of 12 public nets that no entry covers
	$(ZOO)/bin/python -m tests.programs.seen

guard-nets: $(ZOO)/ready  ## train 10 public nets under the guard of saved tensors: equal bits, no finding
	$(ZOO)/bin/python -m tests.programs.saved

replay-nets: $(ZOO)/ready  ## make all calls of one step of 4 public nets again, and judge them
	$(ZOO)/bin/python -m tests.programs.replayed

browser: $(AXE)  ## install Chromium and a Chinese font: some tests look at the page of `probe report` in it
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || { apt-get update -q && apt-get install -qy chromium; }
	fc-list :lang=zh 2>/dev/null | grep -q . || { apt-get update -q && apt-get install -qy fontconfig fonts-wqy-microhei; }

fuzz: $(VENV)/ready  ## 20,000 changed files of every kind, and every command over them: an hour on two cores
	$(RUN) -m tests.programs.fuzz --cases 20000

fuzz-checks: $(VENV)/ready  ## take checks out of the door, one at a time: the fuzzer finds each, in twenty minutes
	$(RUN) -m tests.programs.fuzz.without_checks

report-test: $(VENV)/ready browser  ## the page of `probe report` in Chromium, up to a million calls
	$(RUN) -m pytest -q -rP tests/reading/report

drawings: $(VENV)/ready  ## the drawings in docs/pictures/
	$(RUN) docs/diagrams.py

pictures: $(VENV)/ready  ## the pictures of the report in docs/, of a training on four ranks
	$(RUN) docs/pictures.py

forms: $(VENV)/ready  ## write one net in 20 other forms, and plant 20 faults into them: compare blames the faults alone
	$(RUN) -m tests.programs.origins.forms
	$(RUN) -m tests.programs.origins.forms --mode md5
	$(RUN) -m tests.programs.origins.forms --mode tensor

orders: $(VENV)/ready  ## compare 600 pairs of dumps in both orders: one status, the same places
	$(RUN) -m tests.programs.origins.both_orders

origins: $(VENV)/ready  ## plant 24 faults and 10 harmless changes in trainings: `probe compare` must name the faults
	$(RUN) -m tests.programs.origins.planted --live
	$(RUN) -m tests.programs.origins.planted --live --mode md5
	$(RUN) -m tests.programs.origins.planted --mode tensor
	$(RUN) -m tests.programs.origins.planted --noise 1e-6

reports: $(VENV)/ready  ## 14 trainings after public reports: 145 faults and 23 that hide in other forms are named, 63 forms are not blamed
	$(RUN) -m tests.programs.origins.reports.trial
	$(RUN) -m tests.programs.origins.reports.trial --mode md5
	$(RUN) -m tests.programs.origins.reports.trial --mode tensor
	$(RUN) -m tests.programs.origins.reports.trial --nets later_nets
	$(RUN) -m tests.programs.origins.reports.trial --nets later_nets --mode md5
	$(RUN) -m tests.programs.origins.reports.trial --nets later_nets --mode tensor

edits: $(VENV)/ready  ## 6 programs with 227 edits: each fault is one finding with its line, another form is none
	$(RUN) -m tests.programs.origins.edited.trial
	$(RUN) -m tests.programs.origins.edited.trial --mode md5
	$(RUN) -m tests.programs.origins.edited.trial --mode tensor

experiments: $(VENV)/ready  ## 40 pairs of experiments that differ in one thing from outside: check names it
	$(RUN) -m tests.programs.experiments

interventions: $(VENV)/ready  ## bisect among 64 Cells, graft golden outputs into planted faults, drill eleven trainings (an hour)
	$(RUN) -m tests.programs.intervention.bisect
	$(RUN) -m tests.programs.intervention.graft
	$(VENV)/bin/python -m pip install --quiet --no-deps --target .nets mindcv==0.3.0
	PYTHONPATH=.nets $(RUN) -m tests.programs.intervention.drilled

perturbed: $(VENV)/ready  ## is one run that was moved by one rounding a tolerance? orders of sums, faults, wrong kernels (20 minutes)
	$(COMPILERS)
	$(RUN) -m tests.programs.origins.perturbed

automation: $(VENV)/ready  ## five planted faults, found by answers in JSON as docs/automation.md tells
	$(RUN) -m tests.programs.automation

find: $(VENV)/ready  ## 40 sick trainings and 15 healthy ones, and programs of many kinds: does `probe find` name the cause, and claim nothing? (30 minutes)
	$(RUN) $(PYTEST) -m proof tests/search
	OMP_NUM_THREADS=1 $(RUN) -m tests.programs.find

rolling: $(VENV)/ready  ## rolling records: 30 faults, 20 pairs of runs, 20 healthy trainings of 2,000 steps: is the call named? (40 minutes)
	OMP_NUM_THREADS=1 $(RUN) -m tests.programs.rolling.trial

one-run: $(VENV)/ready  ## plant faults in trainings without a golden run, and look at healthy ones: `probe check RUN`
	$(VENV)/bin/python -m pip install --quiet --no-deps --target .nets mindcv==0.3.0
	PYTHONPATH=.nets OMP_NUM_THREADS=1 $(RUN) -m tests.programs.one_run.planted

mechanisms: $(VENV)/ready  ## faults with a known mechanism in a GPT, and three healthy trainings of 2,000 steps: who alarms first?
	OMP_NUM_THREADS=1 $(RUN) -m tests.programs.monitor.mechanisms

mutants: $(VENV)/ready  ## change one place of public nets 300 times: `probe compare` must name it (about 40 minutes)
	$(VENV)/bin/python -m pip install --quiet --no-deps --target .nets mindcv==0.3.0
	PYTHONPATH=.nets PYTHONHASHSEED=0 OMP_NUM_THREADS=1 $(RUN) -m tests.programs.mutants.bench --count 320 --harmless 70

wheel-test: $(VENV)/ready  ## build the wheel, install it in an empty environment, record with it there
	$(RUN) -m tests.programs.wheel

wheel-faults: $(VENV)/ready  ## the same, and a fault planted in each part that `probe doctor` checks, on CPU and the simulated Ascend
	$(COMPILERS)
	$(RUN) -m tests.programs.wheel faults

bench: $(VENV)/ready  ## what a dump costs a training step, in a table
	$(RUN) benchmarks/bench.py
	$(RUN) benchmarks/growth.py
	$(RUN) benchmarks/ranks.py
	$(RUN) benchmarks/links.py
	$(RUN) benchmarks/small_tensors.py
	$(RUN) benchmarks/golden.py
	$(RUN) benchmarks/graph.py
	$(RUN) benchmarks/floor.py gpt L0,L1,mix

bench-reading: $(VENV)/ready  ## what reading and comparing 20,000 entries costs, beside json.load; 64 ranks; 60 steps
	$(RUN) benchmarks/reading.py

bench-cluster: $(VENV)/ready  ## comparing 4 to 256 ranks of 20,000 entries, in processes and on a local Dask cluster
	$(RUN) benchmarks/cluster.py

bench-peer: $(VENV)/ready $(PEER)/ready  ## the same with msprobe beside it
	$(RUN) benchmarks/bench.py --peer $(PEER)/bin/python

bench-device: $(VENV)/ready $(PEER)/ready  ## launches, copies and waits per entry on the simulated Ascend, with msprobe beside it
	$(COMPILERS)
	$(RUN) benchmarks/device_counts.py --peer $(PEER)/bin/python

$(AXE):
	command -v npm >/dev/null || { apt-get update -q && apt-get install -qy npm; }
	mkdir -p .axe
	cd .axe && npm pack --silent axe-core@4.14.1
	cd .axe && echo "$(AXE_SUM)  axe-core-4.14.1.tgz" | sha256sum --check --quiet && tar xzf axe-core-4.14.1.tgz

peer: $(PEER)/ready  ## make the environment of msprobe (about 3 GB)

$(OLDEST)/ready: pyproject.toml
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python $(NEW_PIP)
	$(OLDEST)/bin/python $(PIP) 'mindspore==2.7.2' -e . --group dev
	touch $@

$(PEER)/ready: lab.mk
	$(PYTHON) -m venv $(PEER)
	$(PEER)/bin/python $(PIP) 'mindspore==2.10.0' 'mindstudio-probe==26.2.0' 'numpy<2' 'pandas<3' 'ml_dtypes<0.6' \
	  'scipy<1.17' 'scikit-learn<1.8' 'onnx<1.20' 'contourpy<1.3.3'
	touch $@

$(ZOO)/ready: lab.mk
	$(PYTHON) -m venv $(ZOO)
	$(ZOO)/bin/python $(PIP) 'mindspore==2.10.0' 'mindcv==0.3.0' 'numpy<2' 'ml_dtypes<0.6' pyyaml pytest
	touch $@

$(TORCH)/ready: lab.mk
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python $(NEW_PIP)
	$(TORCH)/bin/python $(PIP) 'mindspore==2.7.2' -e . pytest 'transformers==4.57.1' 'pyarrow==19.0.1' datasets evaluate addict \
	  pyctcdecode sentencepiece ftfy importlib_metadata
	$(TORCH)/bin/python $(PIP) --no-deps 'mindnlp==0.5.1' 'accelerate==1.11.0' 'peft==0.17.1' 'diffusers==0.35.2'
	touch $@

$(PYTORCH)/ready: lab.mk
	$(PYTHON) -m venv $(PYTORCH)
	$(PYTORCH)/bin/python $(PIP) 'torch==2.7.1' 'mindstudio-probe==26.2.0' 'transformers==4.57.1' 'numpy<2' 'pandas<3' 'scipy<1.17' \
	  'scikit-learn<1.8' 'onnx<1.20' 'contourpy<1.3.3' psutil importlib_metadata
	$(PYTORCH)/bin/python $(PIP) --no-deps 'accelerate==1.11.0' 'peft==0.17.1' 'diffusers==0.35.2'
	touch $@
