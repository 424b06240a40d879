#!/usr/bin/env bash
# No descriptor is made that a guest could inherit: every call that makes one says CLOEXEC, and calls that cannot say it are not used. A line
# where inheriting is meant says so in a comment: "inherited".
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

folders=()
for folder in lib jail cgi cli; do
	[ ! -d "$folder" ] || folders+=("$folder")
done
mapfile -t files < <(c_files '*.[ch]' "${folders[@]}")
checked=${#files[@]}
check_cloexec() {
	perl -0ne '
		my @raw = split /\n/, $_, -1;
		# Comments go, strings too unless they may be the mode of fopen.
		s{(/\*.*?\*/|//[^\n]*)|("(?:\\.|[^"\\\n])*")}{defined $1 ? $1 =~ tr/\n//cdr : length $2 < 8 ? $2 : q("")}gse;
		while (/(?<![\w.>])(open|openat|socket|socketpair|pipe2?|accept4?|dup[23]?|fopen|fdopen|popen|freopen|creat|mkstemp|mkostemp|memfd_create|
			epoll_create1?|eventfd|timerfd_create|signalfd|inotify_init1?|open_tree|fsopen|fsmount|userfaultfd)\s*(\((?:[^()]++|(?2))*\))/gx) {
			my ($name, $call, $line) = ($1, $2, 1 + (substr($_, 0, $-[0]) =~ tr/\n//));
			next if $raw[$line - 1] =~ /inherited/;
			my $fine = $name =~ /^f?(re|d|p)?open$/ && $name ne "open" && $name ne "fdopen" ? $call =~ /"[rwax+bm]*e[rwax+bm]*"/
				: $name eq "fdopen" ? 1
				: $name =~ /^(pipe|accept|dup2?|creat|mkstemp|epoll_create|inotify_init)$/ ? 0
				: $call =~ /CLOEXEC/;
			print "$ARGV:$line: $name without CLOEXEC\n" unless $fine;
		}' "$@"
}
findings_from < <(check_cloexec "${files[@]}")
finish
