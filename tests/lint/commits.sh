#!/usr/bin/env bash
# Each commit can be read in a list and reviewed at one sitting: its subject is "area: imperative" in at most 60 characters, and it changes at
# most 400 lines. A line that the commit removes at one place and adds at another is moved, and not counted; package-lock.json is npm's.
# Merges are exempt.
#
# Checked are the commits after BASE. A shallow clone without it has only newer ones: all of these are checked, except for the size of those
# whose parents are missing. A tree without .git (a release's archive) has nothing to check.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

BASE=47c3af0cf051984202e7e792637b8a911064ba1f # older commits keep none of this
# First words, and endings of first words, that are no imperative; then the verbs that end so. What else is no imperative is for the reader.
NO_VERB='an?|the|it|its|this|that|these|those|there|what|which|who|whose|where|when|how|why|one|two|three|four|five|six|seven|eight|nine|ten|no|not'
NO_VERB+='|none|nothing|nobody|every|each|all|both|some|several|many|more|most|fewer|less|long|longer|short|small|new|old|other|another|in|on|at'
NO_VERB+='|to|of|for|from|with|without|by|as|if|is|are|was|has|have|plain|better'
ENDINGS='[a-z]*([^s]s|ed|ing)'
VERBS='alias|bias|focus|feed|need|embed|seed|speed|shed|shred|proceed|exceed|succeed|bring|string|ring'

[ -e .git ] || { finish; exit; }
git=(git -c "safe.directory=$PWD") # the tree may be another account's
range=HEAD
if "${git[@]}" cat-file -e "$BASE^{commit}" 2>/dev/null; then range=$BASE..HEAD; fi
shallow=$("${git[@]}" rev-parse --git-path shallow)
subjects=$("${git[@]}" log --no-merges --format='%h %s' "$range")
[ -z "$subjects" ] || checked=$(wc -l <<<"$subjects")

findings_from < <(perl -CSD -e '
	my ($no_verb, $endings, $verbs) = @ARGV;
	while (<STDIN>) {
		my ($commit, $subject) = /^(\S+) (.*)/;
		print "$commit:1: the subject has ", length $subject, " characters, at most 60: $subject\n" if length $subject > 60;
		my ($word) = $subject =~ /^[^\s:,]+(?:,? [^\s:,]+){0,3}: (.*?)(?:[ ,;:]|$)/;
		print "$commit:1: the subject is not \"area: imperative\": $subject\n"
			if !defined $word || $word !~ /^[a-z][a-z-]*$/ || $word =~ /^(?:$no_verb|$endings)$/ && $word !~ /^(?:$verbs)$/;
	}' "$NO_VERB" "$ENDINGS" "$VERBS" < <([ -z "$subjects" ] || echo "$subjects"))
findings_from < <("${git[@]}" log --no-merges --no-color --no-ext-diff -M -p --format=$'\001%H %h' "$range" -- . ':!*package-lock.json' | perl -e '
	my (%lines, $commit, $head);
	my %cut = map { chomp; $_ => 1 } -e $ARGV[0] ? do { open my $file, "<", $ARGV[0] or die; <$file> } : ();
	sub commit_ends {
		my $sum = 0;
		$sum += abs for values %lines;
		print "$commit:1: changes $sum lines, at most 400 (moved ones do not count)\n" if $commit && $sum > 400;
		%lines = ();
	}
	while (<STDIN>) {
		if (/^\001(\w+) (\w+)/) { commit_ends(); $commit = $cut{$1} ? "" : $2; $head = 1 }
		elsif (/^diff /) { $head = 1 }
		elsif (/^@@ /) { $head = 0 }
		elsif (!$head && /^\+(.*)/) { $lines{$1}++ }
		elsif (!$head && /^-(.*)/) { $lines{$1}-- }
	}
	commit_ends()' "$shallow")
finish
