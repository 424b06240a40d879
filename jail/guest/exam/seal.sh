#!/bin/sh
# seal.sh NAME COMMAND… - what g++ runs its parts by (-wrapper) for a C++ program of code and tests: of the code, which is the last object
# to be linked, nothing but the function NAME is seen by the others. So no function of the code's (memcmp, rand, a specialised operator==)
# stands in for one that the tests use. What would run before alone.cpp has read the nonce is taken out or refused.
name=$1
shift
case $1 in
*collect2)
	for file; do
		case $file in /tmp/*.o) code=$file ;; esac
	done
	if nm "$code" | grep -E ' (i [^ ]+|[Uvw] (.*sallyport.*|main))$' >&2; then
		echo "the code reaches for the program that it is tested by" >&2
		exit 1
	fi
	objcopy --wildcard --keep-global-symbol="_Z${#name}$name*" --remove-section='.preinit_array*' --remove-section='.interp*' \
		--remove-section='.init' --remove-section='.note*' --remove-section='.rela.preinit_array*' "$code" || exit
	;;
esac
exec "$@"
