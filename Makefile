# Two commands do everything on a fresh Debian or Ubuntu machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
INVOKE := $(VENV)/bin/invoke
# The lab makes network namespaces and boots hosts: root's work. Everything else runs as you.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -E)
# Tests start our commands hundreds of times: what images of containers forbid costs each a second of compiling.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup dist programs demo docs test unit unit-tests lint lab-test lab-test-shared lab-test-own long long-shared long-own apart faults facts distributions vm real past workspaces proof stand-ins first-hour pictures beside fuzz bench gpu-kit gpu clean

help:
	@echo "make demo      bring up two lab hosts, provision and verify them, show that a second run changes nothing"
	@echo "make test      lint, types, unit tests, lab tests"
	@echo "make long      lab tests that take minutes each: ten hosts rebuilt at once, 24 hosts with drift, Debian 12, several workers, …"
	@echo "make faults    hosts disturbed in 210 ways at random moments, an hour; writes the table of docs/reliability.md"
	@echo "make fuzz      hosts that lie: 2000 examples of each property (FUZZ=…), every lie told to every verb; prints its seed"
	@echo "make vm        two whole virtual machines: real modules, reboots, Secure Boot; an hour on two idle cores"
	@echo "make real      NVIDIA's and Debian's own driver, cuDNN and PyTorch on lab hosts, from stack to stack: 90 minutes, 8 GB to fetch"
	@echo "make past      hosts as people leave them (by hand, another driver, a dead proxy, fish and noexec), every verb on each"
	@echo "make workspaces   real TensorFlow and Jupyter in containers for people, behind the proxy in a real browser: an hour or more"
	@echo "make proof     proofs on lab hosts with real TensorFlow, what is planted found, false alarms of 24 hosts counted (ROUNDS=3)"
	@echo "make stand-ins    the lab itself: its hosts, faults and vendors, and what the benchmark measures with; a quarter of an hour"
	@echo "make first-hour   a new user's commands on a host with nothing but Python; nine minutes"
	@echo "make pictures  every verb in a real terminal of 80 and 120 columns, on hosts in every state; build/pictures/index.html"
	@echo "make distributions   Debian 11, 12 and 13 from bare to bare, half an hour; writes the table of docs/lab.md"
	@echo "make facts     what lab hosts answer to every probe of the standard stacks, into tests/fixtures/hosts; ten minutes"
	@echo "make bench     beside ssh, pyinfra, Ansible, nginx, rsync: 30 minutes, quiet cores, root (CASES=plan HOSTS=1,10 FORCE=1)"
	@echo "make beside    372 configurations of ssh_config and known_hosts beside the answer of ssh; a minute, no root"
	@echo "make gpu       a machine with a GPU, of any kind: what its driver and Hostwright say of it, into build/gpu; ten minutes"
	@echo "make gpu-kit   the wheels that make gpu needs on a machine without a network, into build/gpu-kit; 36 MB"
	@echo "make docs      the documentation site, in site/; seconds"
	@echo "make dist      the package as a wheel, in dist/; seconds"
	@echo "make unit      lint, types and unit tests only: six to ten minutes"
	@echo "make clean     remove the lab's hosts and the virtual environment; the built vendor files are kept"

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V). Say: make PYTHON=python3.11 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install -q --require-hashes -r requirements.lock
	$(VENV)/bin/python -m pip install -q --no-deps --no-build-isolation --no-index -e .  # the command `hostwright`
	@touch $@

setup: $(READY)

# The wheel that operators install; nothing but pip and setuptools is fetched for it.
dist:
	rm -rf build/lib build/bdist.* dist  # else files that are gone would be in it
	$(PYTHON) -m venv build/packaging
	build/packaging/bin/python -m pip wheel -q --no-deps --wheel-dir dist .

demo: setup
	$(VENV)/bin/python -m lab.demo

# Every link and anchor must lead somewhere, and every page be in the navigation. The notice is about another program.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs build --strict

lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache
	find hostwright roles lab benchmarks -name '*.sh' ! -path '*/installer/*' -exec $(VENV)/bin/shellcheck .githooks/commit-msg {} +
	$(VENV)/bin/python -m tests.prose
	cat lab/vendor/src/driver/installer/*.sh | $(VENV)/bin/shellcheck -S warning -e SC1007 -  # parts of one program

# Unit tests talk to an sshd of their own: with apt, as root, where this machine has none.
programs: setup
	@$(VENV)/bin/python -m tests.programs

unit: lint programs unit-tests

# Beside lab tests, which wait for hosts that are on the same cores, they stand back; a third process works while another
# waits, once those are through.
unit-tests:
	nice -n $(if $(BESIDE_LABS),10,0) $(VENV)/bin/python -m pytest tests/unit -n $(if $(BESIDE_LABS),3,auto)

# Tests with hosts of their own run beside those on the hosts that many tests share: two cores, half of it is waiting.
lab-test: setup
	@$(MAKE) --no-print-directory -j 2 lab-test-shared lab-test-own

lab-test-shared:
	$(SUDO) $(VENV)/bin/python -m pytest tests/lab -m "shared_hosts and not long"

lab-test-own:
	$(SUDO) $(VENV)/bin/python -m pytest tests/browser tests/lab -m "not shared_hosts and not long"

test: programs
	@$(MAKE) --no-print-directory -j 4 BESIDE_LABS=1 lab-test-shared lab-test-own lint unit-tests

# The hosts, faults and vendors of the lab, and what the benchmark measures with: after a change of lab/ or benchmarks/.
stand-ins: setup
	$(SUDO) $(VENV)/bin/python -m pytest tests/stand_ins

# What a landing does not wait for: the same in full of what a part of `make test` shows.
long: setup
	@$(MAKE) --no-print-directory -j 2 long-shared long-own
	@$(MAKE) --no-print-directory apart

long-shared:
	$(SUDO) $(VENV)/bin/python -m pytest tests/lab -m "shared_hosts and long"

long-own:
	$(SUDO) $(VENV)/bin/python -m pytest tests/lab -m "not shared_hosts and long"

# The unit tests of a checkout from which the roles for people are deleted.
apart: setup
	nice $(VENV)/bin/python -m tests.apart

FAULTS ?= --trials 210 --lanes 3 --seed 1
faults: setup
	$(SUDO) $(VENV)/bin/python -m tests.lab.faults $(FAULTS) --document

FUZZ ?= 2000
SEED := $(or $(SEED),$(shell date +%s))
fuzz: setup
	@echo "make fuzz FUZZ=$(FUZZ) SEED=$(SEED) repeats this"
	HOSTWRIGHT_FUZZ=$(FUZZ) $(VENV)/bin/python -m pytest tests/unit/fuzz -n auto --timeout 0 --hypothesis-seed $(SEED)
	HOSTWRIGHT_FUZZ=$(FUZZ) $(SUDO) $(VENV)/bin/python -m pytest tests/lab/test_liars.py

# The tests come one after the other on one machine, and show what it prints; its lab is gone afterwards.
vm: setup
	$(SUDO) $(VENV)/bin/python -m pytest -s tests/vm

# NVIDIA's own files, from Debian's archive and PyPI; the module is compiled twice, for minutes.
real: setup
	$(SUDO) $(VENV)/bin/python -m pytest -s tests/real

# The page's commands on a machine with nothing but Python, as a new user types them, and the time that each takes.
first-hour: setup
	$(SUDO) $(VENV)/bin/python -m pytest tests/lab/first_hour

# Each host is left as its user left it, brought to the stack, verified, and compared file by file after a removal.
past: setup
	$(SUDO) $(VENV)/bin/python -m pytest tests/past

# TensorFlow 2.9.0 and Jupyter from PyPI, built once into an image of 2 GB; Debian's Chromium before them.
workspaces: setup
	$(SUDO) $(VENV)/bin/python -m pytest tests/workspaces

# Proofs find what is planted on hosts, and nothing where nothing is; hosts are measured one after the other.
ROUNDS ?= 3
proof: setup
	HOSTWRIGHT_PROOF_ROUNDS=$(ROUNDS) $(SUDO) $(VENV)/bin/python -m pytest tests/proof

# tmux is the terminal; hosts replay what hosts answered, and nothing of this machine is changed.
pictures: setup
	rm -rf build/pictures
	$(VENV)/bin/python -m pytest tests/pictures

# A third of them is part of make unit.
beside: programs
	HOSTWRIGHT_BESIDE=all $(VENV)/bin/python -m pytest tests/unit/transport/beside

# Without CASES and HOSTS the figures go into docs/performance, and the page is made anew; with them they do with KEEP=1.
CASES ?=
HOSTS ?=
WITHOUT ?=
ROUNDS_OF_BENCH := $(if $(filter command line environment,$(origin ROUNDS)),--rounds $(ROUNDS))
bench: setup
	$(SUDO) $(VENV)/bin/python -m benchmarks run --cases "$(CASES)" --hosts "$(HOSTS)" $(ROUNDS_OF_BENCH) \
	  --without "$(WITHOUT)" $(if $(FORCE),--force) $(if $(KEEP),--keep)

# What lab hosts of Debian 11, 12 and 13 answer to every probe of the standard stacks, for tests/unit; root.
facts: setup
	$(SUDO) $(VENV)/bin/python -m tests.lab.facts

# Wheels for Linux, at the versions and hashes of the lock. pip cannot check hashes while it resolves, so sha256sum does.
KIT := build/gpu-kit
LOCKS := requirements.lock tests/gpu/nvml.txt
gpu-kit: setup
	rm -rf $(KIT) && mkdir -p $(KIT)
	sed 's/ *\\$$//; /--hash/d' $(LOCKS) >$(KIT)/pins.txt
	needs=$$($(VENV)/bin/python -c 'import tomllib; \
	  print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], "nvidia-ml-py")') && \
	for python in 3.11 3.12 3.13 3.14; do \
	  $(VENV)/bin/python -m pip download -q --dest $(KIT) --only-binary=:all: --python-version $$python \
	    --platform manylinux_2_28_$$(uname -m) --platform manylinux2014_$$(uname -m) \
	    --constraint $(KIT)/pins.txt $$needs || exit 1; done
	@cd $(KIT) && sha256sum *.whl | while read -r sum wheel; do \
	  (cd ../.. && grep -q "sha256:$$sum" $(LOCKS)) || { echo "$$wheel is none that $(LOCKS) pin"; exit 1; }; done
	@du -sh $(KIT)

# It needs no `make setup`, so that a borrowed machine can run it: also as python3 -m tests.gpu, where make is missing.
gpu:
	$(PYTHON) -m tests.gpu --kit $(KIT)

distributions: setup
	$(SUDO) $(VENV)/bin/python -m tests.lab.distributions

clean:
	@if [ -x $(INVOKE) ]; then $(INVOKE) lab.down; fi
	rm -rf $(VENV) hostwright.egg-info
