#!/usr/bin/env bats
# Runners with a root file system of their own (`rootfs`) or directories of the host besides its /usr (`binds`): what their programs see,
# and every runner file that must be refused, with a sentence that names the member and the remedy.
#
# Two root file systems: one of a single static busybox, made here; and the next Debian, unpacked by
# mmdebstrap once and kept in build/rootfs.

bats_require_minimum_version 1.5.0

setup_file() {
	load lib.bash
	sp_setup
	TREE=$SP_DIR/tree
	mkdir -p "$TREE"/{proc,dev,tmp,usr/bin,data,root,var/lib,app} "$TREE/etc/ssh"
	busybox true 2>/dev/null || skip "there is no static busybox here (apt-get install busybox-static)"
	cp "$(command -v busybox)" "$SP_BIN/../tests/jail_probe" "$TREE/usr/bin/"
	for name in env true sh su; do cp "$TREE/usr/bin/busybox" "$TREE/usr/bin/$name"; done # the probes name them
	ln -s usr/bin "$TREE/bin"
	ln -s /etc "$TREE/sbin" # links are links, wherever they lead
	ln -s /etc/shadow "$TREE/etc/link"
	echo made-here >"$TREE/etc/marker"
	echo secret >"$TREE/etc/closed"
	chmod 600 "$TREE/etc/closed"
	echo "nameserver 192.0.2.1" >"$TREE/etc/resolv.conf"
	echo theirs | tee "$TREE/etc/passwd" "$TREE/etc/ssh/key" "$TREE/root/file" "$TREE/data/old" "$TREE/var/lib/file" "$TREE/app/file" >/dev/null
	chmod -R go-w "$TREE"
	export TREE
}

teardown_file() {
	load lib.bash
	sp_teardown
}

setup() {
	RUNNERS=$BATS_TEST_TMPDIR/runners
	CONFIG=$BATS_TEST_TMPDIR/config.json
	mkdir "$RUNNERS"
	echo '{"data_dir":"'"$SP_DIR"'/data","jailer":{"runners_dir":"'"$RUNNERS"'","weaker_limits":'"$([ "$(id -u)" = 0 ] && echo false || echo true)"'}}' >"$CONFIG"
}

# runner NAME INTERPRETER MEMBERS…: a runner file; each member as "name":value.
runner() {
	local name=$1 interpreter=$2 members
	shift 2
	members=$(printf ',%s' "$@")
	printf '{"name":"%s","source":"main","interpreters":["%s"],"run":["{interpreter}","/code/main"],"install":"make one"%s}' \
		"$name" "$interpreter" "$members" >"$RUNNERS/$name.json"
}

# $before, if a test has it, starts the jailer.
in_jail() {
	"${before[@]}" "$SP_BIN/sallyport" run --config "$CONFIG" -l "$1" - "${@:2}"
}

# refused WORDS…: the jailer does not start, and says all of them.
refused() {
	local word
	run in_jail box </dev/null
	echo "$output"
	[ "$status" -eq 125 ]
	for word in "$@"; do [[ $output == *"$word"* ]]; done
}

@test "busybox: the program sees that root and nothing of the host's" {
	printf '{"name":"box","source":"main","interpreters":["/usr/bin/busybox"],"run":["/bin/busybox","sh","/code/main"],"install":"-","rootfs":"%s"}' "$TREE" >"$RUNNERS/box.json"
	run in_jail box <<-'EOF'
		b=/bin/busybox
		$b ls -x /
		$b cat /etc/marker /etc/ssh/key /etc/closed /etc/resolv.conf /etc/link /root/file /data/old
		$b cat /app/file /var/lib/file
		$b head -n 1 /etc/passwd
		echo x >/usr/bin/new; echo x >/etc/new; echo x >/new; echo x >/app/file
		/var/bin/mcp servers; echo x >/var/bin/mcp
		echo fine >/data/f && $b cat /data/f && $b ls /dev /usr /proc/1/status
	EOF
	echo "$output"
	[ "$status" -eq 0 ]
	for word in made-here theirs "/etc/ssh/key': No such" "/etc/closed': No such" "/etc/resolv.conf': No such" "/etc/link': No such" \
		"/root/file': No such" "/data/old': No such" "/var/lib/file': No such" "root:x:0:0" "create /usr/bin/new: Read-only" "create /etc/new: Read-only" \
		"create /new: Read-only" "create /app/file: Read-only" \
		"may call no tools" "create /var/bin/mcp: Read-only" fine urandom; do
		[[ $output == *"$word"* ]]
	done
	[[ $output != *python* ]]
	[ "$(cat "$TREE/app/file")" = theirs ]
}

@test "busybox: every probe holds there, too" {
	printf '{"name":"probe","source":"main","interpreters":["/usr/bin/jail_probe"],"run":["{interpreter}"],"install":"-","seccomp":"native","rootfs":"%s"}' "$TREE" >"$RUNNERS/probe.json"
	local name n=0
	while read -r name _; do
		in_jail probe -- "$name" </dev/null >"$BATS_TEST_TMPDIR/said" # megabytes of some: too much for a variable
		echo "$name: $(tail -c 100 "$BATS_TEST_TMPDIR/said")"
		[ "$(tail -c 5 "$BATS_TEST_TMPDIR/said")" = held ]
		run ! grep -a BROKEN "$BATS_TEST_TMPDIR/said"
		n=$((n + 1))
	done < <("$SP_BIN/../tests/jail_probe" --list | awk -F ' [|] ' '$3 !~ /=/ { print $1 }') # the others need limits and a judge: test_jail_probe
	[ "$n" -ge 60 ]
}

@test "another Debian, unpacked by mmdebstrap: its own interpreter and libraries" {
	[ "$(id -u)" = 0 ] || skip "needs root to make a root file system"
	command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed"
	local suite=trixie folder=$SP_ROOT/build/rootfs
	mkdir -p "$folder"
	exec 9>"$folder/lock"
	flock 9
	if [ ! -e "$folder/$suite" ]; then
		rm -rf --one-file-system "$folder/$suite.new"
		# What it mounts there is in namespaces of its own, which go with it however it ends, and all its processes with them.
		unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
			mmdebstrap --variant=extract --include=base-files,bash,coreutils,dash,python3-minimal "$suite" "$folder/$suite.new" \
			>"$folder/log" 2>&1 3>&- || skip "mmdebstrap cannot make $suite here: $(tail -n 1 "$folder/log")"
		mv "$folder/$suite.new" "$folder/$suite"
	fi
	exec 9>&-
	printf '{"name":"next","source":"main.py","interpreters":["/usr/bin/python3"],"run":["{interpreter}","/code/main.py"],"version":["{interpreter}","--version"],"install":"-","rootfs":"%s"}' \
		"$folder/$suite" >"$RUNNERS/next.json"
	run in_jail next <<-'EOF'
		import os, sys
		print(sys.version_info[:2], open("/etc/debian_version").read().strip(), os.confstr("CS_GNU_LIBC_VERSION"))
		print(os.path.exists("/etc/shadow"), os.path.exists("/root"), os.listdir("/data"))
		open("/tmp/x", "w").write("x"); os.system("cat /tmp/x; bash -c 'echo $BASH_VERSION'")
	EOF
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"(3, 13) 13."*"glibc 2.41"* ]]
	[[ $output == *"False False []"* ]]
	[[ $output == *"x5.2."* ]]
}

@test "binds: a directory of the host at the same place, read-only" {
	[[ $SP_ROOT != /tmp/* ]] || skip "this folder is below /tmp, where nothing can be bound from: a jail has its own"
	mkdir -p "$SP_DIR/shared/deep"
	echo shown >"$SP_DIR/shared/deep/file"
	chmod -R go-w "$SP_DIR/shared"
	mkdir -p "$SP_ROOT/build/shared"
	echo shown >"$SP_ROOT/build/shared/file"
	runner box /usr/bin/bash "\"binds\":[\"$SP_ROOT/build/shared\"]"
	run --separate-stderr in_jail box <<-EOF # the jailer may say that it cleared what another test's left
		cat $SP_ROOT/build/shared/file
		echo x >$SP_ROOT/build/shared/file
		ls $SP_ROOT/build $SP_ROOT
		python3 -c 'print(6 * 7)'
	EOF
	echo "$output"
	[ "${lines[0]}" = shown ]
	# shellcheck disable=SC2154 # run sets it
	[[ $stderr == *"Read-only file system"* && $output == *42* ]]
	[[ $output != *Makefile* ]]
	[ "$(cat "$SP_ROOT/build/shared/file")" = shown ]
}

@test "binds: places that are not for guests are refused by name" {
	local path
	for path in / /etc /etc/shadow /etc/ssl /root /root/.ssh /proc/1 /sys/fs /dev/shm /run /var /var/lib /var/log/apt /boot /home /usr /usr/share /opt /srv /tmp \
		"$SP_DIR" "$SP_DIR/data" "$SP_DIR/data/blobs" "$SP_DIR/shared"; do
		mkdir -p "$SP_DIR/data/blobs" "$SP_DIR/shared"
		[ -e "$path" ] || continue
		runner box /usr/bin/bash "\"binds\":[\"$path\"]"
		refused "runner file box.json" "binds: " "$path"
	done
}

@test "binds cannot hide what a jail has itself" {
	local path=/var/tmp/sallyport-binds-$$
	mkdir -p "$path"
	runner box /usr/bin/bash "\"binds\":[\"$path\"]"
	refused "binds: $path cannot be shown: a jail has its own /var/tmp. Name a directory elsewhere"
	rm -rf "$path"
}

@test "binds and rootfs that are not safe are refused" {
	[[ $SP_ROOT != /tmp/* ]] || skip "this folder is below /tmp, where nothing can be bound from: a jail has its own"
	local at=$SP_ROOT/build/refused path
	rm -rf "$at"
	mkdir -p "$at/folder/.hidden" "$at/open" "$at/keys/.ssh" "$at/homes/alice"
	chmod 777 "$at/open"
	ln -s folder "$at/link"
	echo x >"$at/file"
	runner box /usr/bin/bash '"binds":["relative"]'
	refused "binds: must be an absolute path"
	runner box /usr/bin/bash "\"binds\":[\"$at/none\"]"
	refused "$at/none cannot be used: No such file"
	runner box /usr/bin/bash "\"binds\":[\"$at/link\"]"
	refused "$at/link leads to $at/folder: name that itself"
	runner box /usr/bin/bash "\"binds\":[\"$at/folder/../folder\"]"
	refused "name that itself"
	runner box /usr/bin/bash "\"binds\":[\"$at/file\"]"
	refused "$at/file is not a directory"
	runner box /usr/bin/bash "\"binds\":[\"$at/folder/.hidden\"]"
	refused "begins with a dot"
	runner box /usr/bin/bash "\"binds\":[\"$at/keys\"]"
	refused "binds: $at/keys is not for guests: it has a .ssh"
	if [ "$(id -u)" = 0 ]; then # an account that exists in a mount namespace only
		sed "\$a alice:x:61235:61235::$at/homes/alice:/bin/sh" /etc/passwd >"$BATS_TEST_TMPDIR/passwd"
		# shellcheck disable=SC2016 # the inner shell's
		local before=(unshare -m bash -c 'mount --bind "$0" /etc/passwd && exec "$@"' "$BATS_TEST_TMPDIR/passwd")
		for path in homes homes/alice; do
			runner box /usr/bin/bash "\"binds\":[\"$at/$path\"]"
			refused "$at/$path is not for guests: it is, or holds, the home of an account"
		done
		before=()
	fi
	runner box /usr/bin/bash "\"binds\":[\"$at/open\"]"
	refused "$at/open can be changed by others" "chown and chmod go-w it"
	chmod go-w "$at/open"
	run in_jail box <<<"echo taken"
	echo "$output"
	[ "$output" = taken ]
	runner box /usr/bin/bash "\"binds\":[\"$at/folder\",\"$at/folder\"]"
	refused "making a place for $at/folder"
	runner box /usr/bin/busybox "\"rootfs\":\"$TREE\"" "\"binds\":[\"$at/folder\"]"
	refused "binds: cannot be shown in a rootfs: put the directories into it"
	rm -rf "$at"
}

@test "an incomplete rootfs is refused with what is missing" {
	local part copy=$BATS_TEST_TMPDIR/copy
	for part in proc dev tmp etc usr; do
		rm -rf "$copy"
		mkdir -p "$copy"/{proc,dev,tmp,etc,usr}
		chmod go-w "$copy"
		rmdir "$copy/$part"
		runner box /usr/bin/busybox "\"rootfs\":\"$copy\""
		refused "rootfs: $copy has no directory /$part" debootstrap
		ln -s / "$copy/$part" # a link is not a directory
		refused "rootfs: $copy has no directory /$part"
	done
	runner box /usr/bin/busybox '"rootfs":"/"'
	refused "rootfs: / is not for guests"
	runner box /usr/bin/busybox "\"rootfs\":\"$SP_DIR\""
	refused "rootfs: $SP_DIR is, holds or lies below data_dir"
}

@test "an interpreter that is not in the rootfs: not available, although the host has it" {
	runner box /usr/bin/python3 "\"rootfs\":\"$TREE\""
	run in_jail box <<<"print(1)"
	echo "$output"
	[ "$status" -eq 125 ]
	[[ $output == *"interpreter of box is missing: make one"* ]]
}

@test "an interpreter without its loader is a sandbox failure" {
	local copy=$SP_DIR/half
	mkdir -p "$copy"/{proc,dev,tmp,etc,usr/bin}
	cp "$(realpath /usr/bin/bash)" "$copy/usr/bin/bash"
	chmod -R go-w "$copy"
	runner box /usr/bin/bash "\"rootfs\":\"$copy\""
	run in_jail box <<<"echo ran"
	echo "$output"
	[ "$status" -eq 125 ]
	[[ $output == *'"start the program": No such file'*"install it and restart the jailer"* ]]
	[[ $output != *ran* ]]
}
