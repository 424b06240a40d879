# Sallyport: `make run` serves, `make test` proves, `make help` lists the rest. Everything is built below build/.
#
# Archives follow the folders. In link order; a call upward does not link:
#   gateway and CLI  ->  libaudit.a  ->  libbridge.a  ->  libupstream.a  ->  libjob.a, liboauth.a  ->  libgrade.a  ->  libstore.a  ->  libclient.a (of the jailer)  ->  libbase.a
# The jailer links libjailer.a, libclient.a and libbase.a and nothing else: no SQLite and no libcrypto near the kernel.

SAN ?=
B   := build$(if $(SAN),/san)
BIN := $(B)/bin

CC       ?= gcc
WARN     := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wvla -Wwrite-strings \
            -Wpointer-arith -Wformat=2 -Wundef -Wimplicit-fallthrough=5 -Wcast-qual -Wduplicated-cond -Wlogical-op
HARDEN   := $(if $(SAN),,-D_FORTIFY_SOURCE=3) -fstack-protector-strong -fstack-clash-protection -fcf-protection -fPIE
CFLAGS   ?= -O2 -g
ALL_CFLAGS := -std=gnu17 -D_GNU_SOURCE $(CFLAGS) $(WARN) $(HARDEN) -fno-common -pthread $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer) \
            -I. -I$(B)
ALL_LDFLAGS := -pie -pthread -Wl,-z,relro,-z,now,-z,noexecstack $(LDFLAGS) $(if $(SAN),-fsanitize=$(SAN))

BASE_SRC    := $(wildcard lib/base/*.c)
STORE_SRC   := $(wildcard lib/store/*.c lib/store/*/*.c)
AUDIT_SRC   := $(wildcard lib/audit/*.c)
JOB_SRC     := $(wildcard lib/job/*.c)
GRADE_SRC   := $(wildcard lib/grade/*.c)
CLIENT_SRC  := $(wildcard jail/client/*.c)
JAILER_SRC  := $(filter-out jail/jailer.c,$(wildcard jail/*.c $(addprefix jail/,$(addsuffix /*.c,base cgroup root init relay cell))))
OAUTH_SRC   := $(wildcard lib/oauth/*.c)
UPSTREAM_SRC := $(wildcard lib/upstream/*.c)
BRIDGE_SRC  := $(wildcard lib/bridge/*.c)
GATEWAY_MAIN := cgi/main.c
GATEWAY_SRC := $(filter-out $(GATEWAY_MAIN),$(wildcard cgi/*.c cgi/*/*.c))
FIXTURES_SRC := $(wildcard tests/gateway/*.c)
CLI_SRC     := $(filter-out cli/main.c,$(wildcard cli/*.c))
# One short line a step; V=1 shows the commands.
quiet = $(if $(V),,@printf '  %s %s\n' '$(1)' '$(2)';)
obj = $(patsubst %.c,$(B)/obj/%.o,$(1))

LIBS_BASE := -ljson-c -lm
LIBS_GRADE := -larchive -lyaml -lpcre2-8 -lm
LIBS_LIB  := -lsqlite3 -lcrypto -lz $(LIBS_BASE)
LIBS_LIB  += -lcurl
ARCHIVES  := $(addprefix $(B)/lib,audit.a bridge.a upstream.a job.a grade.a oauth.a store.a client.a base.a)

# The probes are what `sallyport selftest` runs inside of jails.
all: $(BIN)/sallyport $(BIN)/sallyport-gateway $(BIN)/sallyport-jailer $(B)/tests/jail_probe $(if $(SAN),,man)

$(BIN)/sallyport: $(call obj,cli/main.c) $(B)/libcli.a $(ARCHIVES)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS_GRADE) $(LIBS_LIB)
$(BIN)/sallyport-gateway: $(call obj,$(GATEWAY_MAIN)) $(B)/libgateway.a $(ARCHIVES)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lfcgi $(LIBS_GRADE) $(LIBS_LIB)
$(BIN)/sallyport-jailer: $(call obj,jail/jailer.c) $(addprefix $(B)/lib,jailer.a client.a base.a)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lseccomp $(LIBS_BASE)

# sallyport(1) and a page for each command: prose of docs/man/, and what `sallyport COMMAND --help` says.
MAN1 := $(patsubst docs/man/%.mdoc,$(B)/man/%.1,$(wildcard docs/man/*.mdoc))
$(B)/man/%.1: docs/man/%.mdoc docs/man/page $(BIN)/sallyport
	@mkdir -p $(@D)
	$(call quiet,MAN,$@)docs/man/page $(BIN)/sallyport $< > $@
man: $(MAN1)

$(B)/libbase.a: $(call obj,$(BASE_SRC))
$(B)/libstore.a: $(call obj,$(STORE_SRC))
$(B)/libaudit.a: $(call obj,$(AUDIT_SRC))
$(B)/libjob.a: $(call obj,$(JOB_SRC))
$(B)/libgrade.a: $(call obj,$(GRADE_SRC))
$(B)/libclient.a: $(call obj,$(CLIENT_SRC))
$(B)/libjailer.a: $(call obj,$(JAILER_SRC))
$(B)/libgateway.a: $(call obj,$(GATEWAY_SRC))
$(B)/libfixtures.a: $(call obj,$(FIXTURES_SRC))
$(B)/liboauth.a: $(call obj,$(OAUTH_SRC))
$(B)/libupstream.a: $(call obj,$(UPSTREAM_SRC))
$(B)/libbridge.a: $(call obj,$(BRIDGE_SRC))
$(B)/libcli.a: $(call obj,$(CLI_SRC))
$(B)/lib%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(call quiet,AR,$@)ar rcs $@ $^

$(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# A change of flags rebuilds everything.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' > $@

# schema.sql as a C string: lib/store/db/store_schema.c includes it.
$(B)/schema_sql.inc: schema.sql
	@mkdir -p $(@D)
	@sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$$/\\n"/' $< > $@
$(call obj,lib/store/db/store_schema.c): $(B)/schema_sql.inc
# So is the script of `sallyport upstream add`.
$(B)/upstream_add.inc: cli/upstream_add.py
	@mkdir -p $(@D)
	@sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$$/\\n"/' $< > $@
$(call obj,cli/cmd_upstream.c): $(B)/upstream_add.inc
$(call obj,cli/cmd_worker.c): nginx/worker-front.conf.in
$(call obj,cli/worker_serve.c): nginx/worker.conf.in
# So are the programs that run tests: lib/grade/grade_compose.c includes them.
EXAM := $(patsubst jail/guest/exam/%,$(B)/exam/%.inc,$(wildcard jail/guest/exam/*))
$(B)/exam/%.inc: jail/guest/exam/%
	@mkdir -p $(@D)
	@sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$$/\\n"/' $< > $@
$(call obj,lib/grade/grade_compose.c): $(EXAM)

# What programs that call tools find in their jails: modules (lib/bridge/bridge_files.c has them), and the program mcp (the jailer has
# it: jail/root/root_mount.c), which is static and without sanitizers, as the probes are.
$(call obj,lib/bridge/bridge_files.c): $(wildcard jail/guest/tools/*.*)
$(call obj,jail/root/root_mount.c): $(B)/bridge/mcp
$(call obj,jail/root/root_mount.c): ALL_CFLAGS += -DHELPER_PROGRAM='"$(B)/bridge/mcp"'
ifeq ($(SAN),)
$(B)/bridge/mcp: $(call obj,jail/guest/tools/mcp.c lib/bridge/bridge_frame.c lib/upstream/upstream_raw.c) $(B)/libbase.a
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -static -pthread -Wl,--gc-sections,-s -o $@ $^ -ljson-c -lm
else
$(B)/bridge/mcp: FORCE
	@$(MAKE) --no-print-directory SAN= build/bridge/mcp && mkdir -p $(@D) && cp -u build/bridge/mcp $@
endif

# What deterministic runs preload; jail/cell/shim.c holds it. Without sanitizers, as it is not our process that loads it.
$(call obj,jail/cell/shim.c): $(B)/shim.so
$(call obj,jail/cell/shim.c): ALL_CFLAGS += -DSHIM_LIBRARY='"$(B)/shim.so"'
$(B)/shim.so: $(wildcard jail/guest/shim/*.[ch])
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -std=gnu17 -D_GNU_SOURCE -O2 $(WARN) -fPIC -shared -fvisibility=hidden -Wl,-z,relro,-z,now -s -o $@ $(filter %.c,$^)
# The extension module of templates; jail/cell/cell_template.c holds it. As above; it becomes part of the guest's process.
WARM_SRC := $(wildcard jail/warm/*.c) $(addprefix jail/init/,init_become.c init_limits.c landlock.c) jail/client/wire_fd.c \
	$(addprefix lib/base/,util.c memory.c err.c utf8.c)
$(call obj,jail/cell/cell_template.c): $(B)/warm.so
$(call obj,jail/cell/cell_template.c): ALL_CFLAGS += -DWARM_LIBRARY='"$(B)/warm.so"'
$(B)/warm.so: $(WARM_SRC) $(wildcard jail/warm/*.h jail/init/*.h lib/base/*.h)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -std=gnu17 -D_GNU_SOURCE -O2 $(WARN) -I. -fPIC -shared -fvisibility=hidden -ffunction-sections \
		-Wl,-z,relro,-z,now,--gc-sections -s -o $@ $(WARM_SRC)
$(call obj,jail/cell/runner.c): $(wildcard jail/guest/*.*)
$(call obj,cgi/api/api.c): cgi/api/openapi.json
$(call obj,cgi/tool/resource_app.c): cgi/tool/app/run.html
$(call obj,cgi/tool/skill_table.c): $(shell find cgi/tool/skills -type f)
$(call obj,lib/job/workspace_guard.c): lib/job/workspace_guard.list
$(call obj,cgi/admin/admin.c): $(wildcard cgi/admin/assets/*)

# The programs as the tests start them: the gateway writes down what it says (tests/exchanges/recorder.c) and has the fixtures of the
# conformance suite (tests/gateway), the others are the same files.
RECORDED := $(B)/bin-recorded
$(RECORDED)/sallyport-gateway: $(call obj,$(GATEWAY_MAIN) tests/exchanges/recorder.c $(FIXTURES_SRC)) $(B)/libgateway.a $(ARCHIVES)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lfcgi $(LIBS_GRADE) $(LIBS_LIB)
$(RECORDED)/%: $(BIN)/%
	@mkdir -p $(@D)
	@ln -f $< $@
recorded: $(addprefix $(RECORDED)/,sallyport-gateway sallyport sallyport-jailer)

# Unit tests: one cmocka program a file. What they test is optimized; their own code would only be compiled twice as long.
UNIT_CFLAGS := -Og
UNIT := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
$(B)/tests/%: tests/unit/%.c $(B)/libcli.a $(B)/libfixtures.a $(B)/libgateway.a $(B)/libjailer.a $(ARCHIVES) $(B)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALL_CFLAGS) $(UNIT_CFLAGS) -MMD -MP $(ALL_LDFLAGS) -o $@ $< $(B)/libcli.a $(B)/libfixtures.a $(B)/libgateway.a $(B)/libjailer.a \
		$(ARCHIVES) \
		-lcmocka -lfcgi -lseccomp $(LIBS_GRADE) $(LIBS_LIB)
# The escape probes: static, because they run where nothing else is sure to be there; without sanitizers, which need /proc to be writable.
$(B)/tests/jail_probe: $(wildcard tests/probe/*.[ch] tests/probe/scripts/*) $(B)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,$@)$(CC) -std=gnu17 -D_GNU_SOURCE -O1 -g $(WARN) -static -pthread -o $@ $(filter-out tests/probe/scripts/%,$(filter %.c,$^))
	@rm -rf $(@D)/probes && cp -r tests/probe/scripts $(@D)/probes
# The runners for services that live for one test, without the caches: making matplotlib's takes each start half a second of processor,
# and without the languages that are installed only when asked for: each start would ask for their versions. languages.bats has them all.
LANGUAGES := csharp java lua perl php pytest r ruby rust sql
$(B)/tests/runners/python.json: $(wildcard jail/runners/*.*)
	@rm -rf $(@D) && mkdir -p $(@D) && cp $^ $(@D) && ln -s $(abspath jail/runners/npm) $(@D)/npm
	@rm -f $(LANGUAGES:%=$(@D)/%.json)
	@sed '/^  "cache": \[/,/\],$$/d' jail/runners/python.json > $@
unit: $(UNIT) $(B)/tests/upstream_client $(B)/tests/host_gauge $(B)/tests/jail_probe $(B)/tests/runners/python.json

# Fuzz targets, each with the driver that runs it over tests/fuzz/corpus/NAME as a plain test.
FUZZ := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
$(B)/fuzz/%: tests/fuzz/%.c tests/fuzz/driver.c tests/fuzz/fuzz.h $(B)/libgateway.a $(B)/libjailer.a $(ARCHIVES) $(B)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< tests/fuzz/driver.c $(B)/libgateway.a $(B)/libjailer.a $(ARCHIVES) -lfcgi -lseccomp $(LIBS_GRADE) $(LIBS_LIB)
fuzz: $(FUZZ)

# Static checks of the whole tree; each script says what it checks and prints findings as FILE:LINE.
LINT := $(patsubst tests/lint/%.sh,lint-%,$(wildcard tests/lint/*.sh))
lint:
	@$(SUBMAKE) --keep-going --output-sync=target $(LINT)
$(LINT): lint-%: FORCE
	@B=$(B) tests/lint/$*.sh
lint-calls: all # whose symbols it reads

# Tests, what they need, and what runs (nginx/dev.sh, tests/run, .ci/deps say how).
RUNNERS     ?=
GROUPS_RUN  := build run runner $(if $(filter small,$(RUNNERS)),,libraries) $(if $(filter all languages,$(RUNNERS)),languages)
GROUPS_TEST := $(GROUPS_RUN) test
PORT        ?= 8080
SUITES      ?= *
SUBMAKE     := $(MAKE) --no-print-directory -j$(shell nproc)

deps: deps-debian deps-npm
deps-debian:
	@.ci/deps $(GROUPS_TEST)
deps-npm: deps-debian
	@.ci/deps --npm jail/runners/npm tests/clients
deps-run:
	@.ci/deps $(GROUPS_RUN)
	@.ci/deps --npm jail/runners/npm

run: SINCE := $(shell date +%s)
run: port-free deps-run
	@$(SUBMAKE) all $(if $(PROFILE),recorded)
	@$(if $(OAUTH),SALLYPORT_OAUTH_MODE=$(OAUTH) )$(if $(PROFILE),SP_FIXTURES=1 )exec setpriv --pdeathsig TERM nginx/dev.sh --bin $(if $(PROFILE),$(RECORDED),$(BIN)) $(if $(STATE),--state $(STATE)) --since $(SINCE) $(PORT)

port-free:
	@nginx/dev.sh --free $(PORT)

# A first look with a real MCP client, in a second terminal next to `make run`.
chart: deps-run
	@.ci/deps --npm tests/clients
	@jail/runners/npm/node_modules/.bin/node tests/clients/chart.js \
		$(firstword $(STATE) $(wildcard build/run/$(PORT) /var/lib/sallyport-dev/$(PORT)) build/run/$(PORT)) build/chart.png

# The picture of README.md, from a real start and a real call.
picture: deps
	@$(SUBMAKE) all
	@UPDATE=1 SP_BIN=$(abspath $(BIN)) jail/runners/npm/node_modules/.bin/node --test --test-name-pattern='what comes back' tests/clients/readme.test.js

# The official suite against nginx and the gateway with its fixtures, and what needs none against a normal start.
conformance: deps
	@$(SUBMAKE) all recorded $(B)/tests/upstream_client
	@tests/run $(B) 'tests/clients/conformance*.test.js'

test: deps-debian
	@$(SUBMAKE) deps-npm all recorded unit fuzz # what npm waits for, the compiler does not
	@tests/run $(B) '$(SUITES)'

# The admin page, with 100,000 runs, and the app of a run, in Chromium: not part of `make test`, because the browser is large.
admin-test: deps-npm
	@.ci/deps browser
	@.ci/deps --npm tests/admin
	@$(SUBMAKE) all recorded $(B)/tests/runners/python.json
	@SP_BIN=$(abspath $(RECORDED)) jail/runners/npm/node_modules/.bin/node --test tests/admin/admin.test.js tests/admin/apps.test.js

# What reaches the model of real agents, which a script plays: not part of `make test`, because the agents are large.
agents-test: deps-npm
	@.ci/deps --npm tests/agents
	@$(SUBMAKE) all recorded
	@SP_BIN=$(abspath $(RECORDED)) jail/runners/npm/node_modules/.bin/node --test tests/agents/agents.test.js

# The tables of docs/probes.md, from a run of the probes in every mode and under the other tools.
probe-table: deps
	@$(SUBMAKE) all unit
	@UPDATE=1 SP_BIN=$(abspath $(BIN)) bats tests/e2e/probes.bats
	@UPDATE=1 tests/probe/peers.sh $(B)

# All of the labelled programs in the folder TESTDATA (docs/performance.md): `make test` takes some of them.
data-test: deps
	@[ -f "$${TESTDATA:-../shared/data}/HumanEval.jsonl.gz" ] || { \
		echo 'data-test: no HumanEval.jsonl.gz in '"$${TESTDATA:-../shared/data}"': make data-test TESTDATA=folder' >&2; exit 1; }
	@$(SUBMAKE) all recorded
	@SP_BIN=$(abspath $(RECORDED)) TEST_DATA=all bats -f 'real data' tests/e2e/grade_tasks.bats
	@SP_BIN=$(abspath $(RECORDED)) bats tests/e2e/grade_formats.bats
	@SP_BIN=$(abspath $(RECORDED)) CRUXEVAL=800 bats -f CRUXEval tests/e2e/bundle.bats

# docs/batch.md's Slurm scripts on two nodes of this machine (root).
slurm-test: deps-debian
	@.ci/deps slurm
	@$(SUBMAKE) all
	@tests/batch/slurm $(BIN)

# 1,000 random histories from a new seed, 10,000 restores, a minute of everything at once under each sanitizer (tests/stress/run), and what
# attacks do to other owners' calls, as ratios (tests/stress/neighbours.js). The jailer has one thread: ThreadSanitizer is for the others.
STRESS_SECONDS ?= 60
stress: deps
	@$(SUBMAKE) all recorded $(B)/tests/test_history $(B)/tests/test_store_faults
	@HISTORIES=$${HISTORIES:-1000} HISTORY_SEED=$${HISTORY_SEED:-$$(date +%s)} $(B)/tests/test_history
	@FAULTS=all $(B)/tests/test_store_faults
	@SP_BIN=$(abspath $(RECORDED)) RESTORES=10000 bats -f 'thousand restores' tests/e2e/files.bats
	@$(SUBMAKE) SAN=thread B=build/san-thread all
	@$(SUBMAKE) SAN=address,undefined B=build/san all
	@tests/stress/run thread build/san-thread/bin $(BIN) $(STRESS_SECONDS)
	@tests/stress/run address,undefined build/san/bin build/san/bin $(STRESS_SECONDS)
	@SP_BIN=$(abspath $(BIN)) jail/runners/npm/node_modules/.bin/node tests/stress/neighbours.js

bench: deps
	@$(SUBMAKE) all $(BENCH)
	@tests/bench/run $(B)
	@tests/bench/capacity $(B)
BENCH := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
$(B)/bench/%: tests/bench/%.c $(B)/libjailer.a $(ARCHIVES) $(B)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(ALL_CFLAGS) -MMD -MP $(ALL_LDFLAGS) -o $@ $< $(B)/libjailer.a $(ARCHIVES) -lfcgi -lseccomp $(LIBS_GRADE) $(LIBS_LIB)

# What docs/operator.md puts in its places. The npm packages of the runners are installed there by `npm ci`, not copied.
PREFIX ?= /usr/local
install: all
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin libexec/sallyport share/sallyport/runners/npm share/sallyport/nginx) \
		$(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1 man/man5 man/man8 bash-completion/completions)
	install -m 755 $(addprefix $(BIN)/,sallyport sallyport-gateway sallyport-jailer) $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(B)/tests/jail_probe $(DESTDIR)$(PREFIX)/libexec/sallyport
	install -m 644 -D -t $(DESTDIR)$(PREFIX)/libexec/sallyport/probes $(wildcard tests/probe/scripts/*)
	install -m 644 $(wildcard jail/runners/*.json) $(DESTDIR)$(PREFIX)/share/sallyport/runners
	install -m 644 $(addprefix jail/runners/npm/,package.json package-lock.json .npmrc) $(DESTDIR)$(PREFIX)/share/sallyport/runners/npm
	install -m 755 nginx/setup.sh $(DESTDIR)$(PREFIX)/share/sallyport/setup
	install -m 755 nginx/container.sh $(DESTDIR)$(PREFIX)/share/sallyport/container.sh
	install -m 644 $(addprefix nginx/,sallyport.conf front.conf locations.conf fastcgi.conf) $(DESTDIR)$(PREFIX)/share/sallyport/nginx
	install -m 644 docs/sallyport.bash-completion $(DESTDIR)$(PREFIX)/share/bash-completion/completions/sallyport
	install -m 644 $(MAN1) $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 $(wildcard docs/*.5) $(DESTDIR)$(PREFIX)/share/man/man5
	install -m 644 $(wildcard docs/*.8) $(DESTDIR)$(PREFIX)/share/man/man8

# Debian packages, from a copy of the tree as it is (docs/operator.md); lintian must find no error (the project has no mail
# domain: that one is not asked).
DEB := build/deb
deb: deps-npm
	@.ci/deps deb
	@rm -rf $(DEB) && mkdir -p $(DEB)/sallyport
	@git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t $(DEB)/sallyport
	@cp -r jail/runners/npm/node_modules $(DEB)/sallyport/jail/runners/npm/
	@cd $(DEB)/sallyport && dpkg-buildpackage -b -us -uc --no-check-builddeps >../build.log 2>&1 || { tail -40 ../build.log >&2; exit 1; }
	@rm -rf $(DEB)/sallyport
	@lintian --fail-on error --tag-display-limit 0 --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog $(DEB)/*.changes
	@ls $(DEB)/*.deb

# What desktop clients and registries take (debian/bundle/pack): build/bundle/sallyport.mcpb and server.json. BUNDLE_URL: where the bundle will be published.
BUNDLE_NAME ?= io.github.sallyport/sallyport
bundle: deps-debian
	@$(SUBMAKE) all
	@debian/bundle/pack $(BIN) build/bundle $(BUNDLE_NAME) $(BUNDLE_URL)

# An OCI image of the Debian package, with what programs may import (docs/operator.md, "In a container").
IMAGE_PACKAGES ?= python3-matplotlib python3-numpy python3-pandas python3-requests
image:
	@.ci/deps image
	@DH_OPTIONS=-psallyport $(SUBMAKE) deb
	@debian/bundle/image $(DEB)/sallyport_*.deb build/image/sallyport.oci.tar $(IMAGE_PACKAGES)

help:
	@echo 'make conformance          only the official MCP conformance suite; make run PROFILE=conformance serves its fixtures'
	@echo 'make run [PORT=8080]      build and serve on loopback, in the foreground; OAUTH=builtin: clients can sign in'
	@echo 'make chart [PORT=8080]    next to it: a real MCP client has a chart drawn'
	@echo 'make test [SUITES=GLOB]   everything: lint, unit, fuzz, end to end, real clients (SAN=address,undefined: with sanitizers)'
	@echo 'make all                  the three programs, in $(BIN), and the man pages of the commands, in $(B)/man'
	@echo 'make unit | fuzz | lint   the parts of the tests; make bench prints figures'
	@echo 'make admin-test           the admin page and the app of a run in Chromium, which is installed if it is missing'
	@echo 'make agents-test          what reaches the model of six agents, which are installed if they are missing'
	@echo 'make data-test            all of HumanEval, HumanEvalPack and CRUXEval (TESTDATA=folder)'
	@echo 'make slurm-test           docs/batch.md on a Slurm cluster of two nodes on this machine'
	@echo 'make stress               1,000 random histories, 10,000 restores, a minute under each sanitizer, attacks and their neighbours'
	@echo 'make probe-table          run the escape probes in every mode and write what they said into docs/probes.md'
	@echo 'make deps [RUNNERS=…]     install the Debian and npm packages that are missing; all: those of every language, small: no libraries'
	@echo 'make picture              draw docs/first-run.svg anew, from a real start and a real call'
	@echo 'make deb                  Debian packages, in build/deb'
	@echo 'make bundle               an MCP bundle for desktop clients, and server.json for registries, in build/bundle'
	@echo 'make image                an OCI image, in build/image'
	@echo 'make install [PREFIX=/usr/local DESTDIR=]   programs, runners, man pages (docs/operator.md)'

clean:
	rm -rf build

-include $(shell find $(addprefix $(B)/,obj tests fuzz bench) -name '*.d' 2>/dev/null)
.PHONY: all man recorded unit fuzz lint admin-test agents-test data-test probe-table slurm-test stress deps deps-debian deps-npm deps-run port-free run chart picture test conformance bench bundle image install help clean FORCE
.SUFFIXES:
.DELETE_ON_ERROR:
