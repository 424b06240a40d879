#!/bin/sh
# csharp.sh - compiles the sources of a program in C# into one file that runs by itself, /data/.program: a script, and behind it the
# assembly, which Mono needs in a file of its own. For build-csharp.json. SALLYPORT_ENTRY is the class whose Main() it runs, if somebody
# chose one.
set -eu
class=${SALLYPORT_ENTRY:-}
case $class in *.cs) class= ;; esac # a file says nothing: all of them are compiled
mcs -nologo -optimize -r:System.Numerics ${class:+"-main:$class"} -out:/tmp/program.exe "$@"
{
	echo '#!/bin/sh'
	# shellcheck disable=SC2016 # for the shell of the program's jail
	echo 'tail -n +4 "$0" >/tmp/.program.exe && exec /usr/bin/mono /tmp/.program.exe "$@"'
	echo 'exit 1'
	cat /tmp/program.exe
} >/data/.program
chmod 755 /data/.program
