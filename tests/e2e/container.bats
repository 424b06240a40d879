#!/usr/bin/env bats
# nginx/container.sh in a container of podman, with the capabilities and nothing else that docs/operator.md names: the command there is
# the one here. The root file system is this machine's, as a throw-away layer, so that no image is needed; the container's network is its
# own loopback.

load lib.bash

setup_file() {
	export NAME=sallyport-test-$$ SHARE=$BATS_FILE_TMPDIR/share NOT=
	if [ "$(id -u)" != 0 ]; then NOT="root, for cgroups"; elif ! command -v podman >/dev/null; then NOT=podman; fi
	[ -z "$NOT" ] || return 0
	mkdir -p "$SHARE/bin" "$SHARE/state"
	chmod 755 "$BATS_FILE_TMPDIR" "$SHARE"
	cp -r nginx "$SHARE/nginx"
	cp "$SP_BIN"/sallyport* "$SHARE/bin/"
	cp -r jail/runners "$SHARE/runners"
	local capabilities
	# The page's options are the test's.
	read -r -a capabilities <<<"$(awk '/^podman run/ { open = 1 } open && /--cap-drop/ { sub(/.$/, ""); print; exit }' docs/operator.md)"
	[ "${#capabilities[@]}" -gt 3 ]
	podman_ run --detach --name "$NAME" --network none "${capabilities[@]}" \
		--ulimit "nofile=$(ulimit -Hn):$(ulimit -Hn)" --ulimit nproc=4096:4096 \
		--volume "$SHARE:/opt/sallyport:ro" --volume "$SHARE/state:/var/lib/sallyport" \
		--env "PATH=/opt/sallyport/bin:/usr/sbin:/usr/bin:/sbin:/bin" --env SALLYPORT_JAILER_RUNNERS_DIR=/opt/sallyport/runners \
		--env LISTEN=127.0.0.1:8080 --rootfs /:O /opt/sallyport/nginx/container.sh
	sp_until "$(podman_ inspect --format "{{.State.Pid}}" "$NAME")" answers || { podman_ logs "$NAME" >&2 && false; }
	# shellcheck disable=SC2155
	export TOKEN=$(inside setpriv --reuid sallyport --regid www-data --clear-groups -- sallyport token add --owner alice)
}

teardown_file() {
	[ -n "$NOT" ] || podman_ rm --force --time 20 "$NAME"
}

setup() { [ -z "$NOT" ] || skip "not here: $NOT"; }

# runc, because crun refuses machines that mount cgroups of both versions.
podman_() { podman --runtime runc --cgroup-manager cgroupfs --root "$BATS_FILE_TMPDIR/podman" --runroot "$BATS_FILE_TMPDIR/podman-run" "$@" 3>&-; }
inside() { podman_ exec --env SALLYPORT_DATA_DIR=/var/lib/sallyport "$NAME" "$@"; }
answers() { inside curl -sf -o /dev/null http://127.0.0.1:8080/healthz 2>/dev/null; }
call() {
	inside curl -s 'http://127.0.0.1:8080/mcp?results=structured' -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
		-H 'Accept: application/json, text/event-stream' \
		-d "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"run_code\",\"arguments\":$1}}"
}

@test "a container runs a program with all limits" {
	run call '{"conversationId":"c","language":"python","code":"open(\"/data/f.txt\", \"w\").write(\"made inside\"); print(6*7)"}'
	echo "$output"
	[ "$(jq -r '.result.content[-1].text' <<<"$output")" = 42 ]
	local url
	url=$(grep -oE '/files/[0-9a-f]{64}/f.txt' <<<"$output" | head -1)
	[ "$(inside curl -s "http://127.0.0.1:8080$url")" = "made inside" ]
	[ "$(sqlite3 -readonly "$SHARE/state/sallyport.db" "SELECT verdict FROM execution")" = OK ]
	run call '{"conversationId":"c","language":"python","code":"x = bytearray(10**9)","memory_mb":64}'
	jq -e '.result.structuredContent.verdict == "ML"' <<<"$output"
}

@test "doctor recognizes a container" {
	run inside sallyport doctor --json
	echo "$output"
	[ "$status" = 0 ]
	jq -e '.checks[] | select(.name == "container").found | startswith("podman")' <<<"$output"
	inside sallyport-jailer --check | jq -es 'map(select(.step == "jailer")) | last | .ok and (.weaker | not)'
}

@test "a container that is stopped lets its run end" {
	call '{"conversationId":"c","language":"bash","code":"echo began >/data/began; sleep 3; echo end"}' >"$BATS_TEST_TMPDIR/reply" 3>&- &
	local client=$!
	running() { [ "$(sqlite3 -readonly "$SHARE/state/sallyport.db" "SELECT count(*) FROM execution WHERE state = 'running'")" = 1 ]; }
	sp_until "$client" running
	podman_ stop --time 60 "$NAME"
	[ "$(podman_ inspect --format '{{.State.ExitCode}}' "$NAME")" = 0 ]
	[ "$(sqlite3 -readonly "$SHARE/state/sallyport.db" "SELECT count(*) FROM execution WHERE state = 'running'")" = 0 ]
	[ "$(sqlite3 -readonly "$SHARE/state/sallyport.db" "SELECT verdict FROM execution ORDER BY id DESC LIMIT 1")" = OK ]
}

# A call from inside, where there is no curl: calls_by_python CONTAINER TOKEN -> the reply
calls_by_python() {
	podman_ exec --env TOKEN="$2" "$1" /usr/bin/python3 -c 'import json, os, urllib.request as u
body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run_code", "arguments": {"conversationId": "c", "language": "python", "code": "print(6*7)"}}}
r = u.Request("http://127.0.0.1:8080/mcp", json.dumps(body).encode(), {"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream"})
print(u.urlopen(r).read().decode())'
}

# A root file system made as the page says, with the package in it. Two things are the test's: no network, and what this machine allows.
@test "the page's commands: a container from Debian's packages (TEST_VM=all)" {
	[ "${TEST_VM:-}" = all ] || skip "TEST_VM=all (it makes a root file system, which takes minutes)"
	local root=$BATS_FILE_TMPDIR/root PAGE=sallyport-page-$$ limits
	limits="--ulimit nofile=$(ulimit -Hn):$(ulimit -Hn) --ulimit nproc=4096:4096"
	DH_OPTIONS=-psallyport make deb DEB="$BATS_FILE_TMPDIR/deb" >"$BATS_TEST_TMPDIR/deb.log" 2>&1 || { tail "$BATS_TEST_TMPDIR/deb.log" && false; }
	cd "$BATS_FILE_TMPDIR/deb"
	# The page's podman is the one of podman_; a program, because the page is typed into a shell of its own, where -e counts.
	mkdir "$BATS_TEST_TMPDIR/bin"
	printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v podman) --runtime runc --cgroup-manager cgroupfs --root $BATS_FILE_TMPDIR/podman --runroot $BATS_FILE_TMPDIR/podman-run" >"$BATS_TEST_TMPDIR/bin/podman"
	chmod +x "$BATS_TEST_TMPDIR/bin/podman"
	typed() { PATH=$BATS_TEST_TMPDIR/bin:$PATH bash -eux "$1" >"$BATS_TEST_TMPDIR/said" 2>&1 3>&- || { tail -30 "$BATS_TEST_TMPDIR/said" && false; }; }
	sp_page container | sed -e "s|/srv/sallyport-root|$root|g; s|--name sallyport |--name $PAGE |; s|exec sallyport |exec $PAGE |; s|sallyport:/var/lib|$PAGE:/var/lib|" \
		-e "s|--publish [^ ]*|--network none $limits|" -e '/^podman exec/d' >"$BATS_TEST_TMPDIR/run"
	sp_page container | sed -n "s|^podman exec sallyport |podman exec $PAGE |p" >"$BATS_TEST_TMPDIR/exec"
	typed "$BATS_TEST_TMPDIR/run"
	# shellcheck disable=SC2317 # sp_until calls it
	serves() { podman_ exec "$PAGE" /usr/bin/python3 -c 'import urllib.request as u; u.urlopen("http://127.0.0.1:8080/healthz")' 2>/dev/null; }
	sp_until "$(podman_ inspect --format "{{.State.Pid}}" "$PAGE")" serves || { podman_ logs "$PAGE" && false; }
	typed "$BATS_TEST_TMPDIR/exec"
	cat "$BATS_TEST_TMPDIR/said"
	calls_by_python "$PAGE" "$(grep -oE 'sp_alice_[A-Za-z0-9_-]+' "$BATS_TEST_TMPDIR/said" | head -1)" | tee "$BATS_TEST_TMPDIR/reply"
	jq -e '.result.content[0].text == "42\n"' "$BATS_TEST_TMPDIR/reply"
	podman_ rm --force --time 20 "$PAGE"
}

# The archive is loaded into a store of its own: nothing of the store that made it is in it.
@test "the image that make image makes serves (TEST_VM=all)" {
	[ "${TEST_VM:-}" = all ] || skip "TEST_VM=all (it makes a root file system, which takes minutes)"
	local PAGE=sallyport-image-$$ limits deb=$BATS_FILE_TMPDIR/deb made=$BATS_FILE_TMPDIR/made podman
	limits="--ulimit nofile=$(ulimit -Hn):$(ulimit -Hn) --ulimit nproc=4096:4096"
	[ -d "$deb" ] || DH_OPTIONS=-psallyport make deb DEB="$deb" >"$BATS_TEST_TMPDIR/deb.log" 2>&1 || { tail "$BATS_TEST_TMPDIR/deb.log" && false; }
	mkdir "$BATS_TEST_TMPDIR/bin"
	podman="$(command -v podman) --runtime runc --cgroup-manager cgroupfs"
	printf '#!/bin/sh\nexec %s "$@"\n' "$podman --root $made --runroot $made-run" >"$BATS_TEST_TMPDIR/bin/podman"
	chmod +x "$BATS_TEST_TMPDIR/bin/podman"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH debian/bundle/image "$deb"/sallyport_*.deb "$BATS_FILE_TMPDIR/sallyport.oci.tar" 3>&-
	printf '#!/bin/sh\nexec %s "$@"\n' "$podman --root $BATS_FILE_TMPDIR/podman --runroot $BATS_FILE_TMPDIR/podman-run" >"$BATS_TEST_TMPDIR/bin/podman"
	sp_page image | sed -e "s|build/image|$BATS_FILE_TMPDIR|; s|--name sallyport |--name $PAGE |; s|sallyport:/var/lib|$PAGE:/var/lib|" \
		-e "s|--publish [^ ]*|--network none $limits|" >"$BATS_TEST_TMPDIR/run"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH bash -eux "$BATS_TEST_TMPDIR/run" 3>&-
	serves() { podman_ exec "$PAGE" /usr/bin/python3 -c 'import urllib.request as u; u.urlopen("http://127.0.0.1:8080/healthz")' 2>/dev/null; }
	sp_until "$(podman_ inspect --format "{{.State.Pid}}" "$PAGE")" serves || { podman_ logs "$PAGE" && false; }
	calls_by_python "$PAGE" "$(podman_ exec "$PAGE" runuser -u sallyport -- sallyport token add --owner alice)" | tee "$BATS_TEST_TMPDIR/reply"
	jq -e '.result.content[0].text == "42\n"' "$BATS_TEST_TMPDIR/reply"
	podman_ rm --force --time 20 "$PAGE"
}
