#!/bin/sh
# java.sh - compiles a program in Java, whatever its class is called, and finds the class that has main(). For java.json and build-java.json.
#
#   java.sh run Main.java     classes go to /code/classes, the class's name to /code/main.args
#   java.sh build FILE…       one file that runs by itself: /data/.program (a script, and behind it the jar that the script names);
#                             SALLYPORT_ENTRY is the class or the file whose main() it runs, if somebody chose one
#
# A public class must be in a file of its name, which nobody who sends a program knows of: the file is named after the class. Other sources
# and jars below /data are found.
set -eu
mode=$1
shift
say() {
	echo "$*" >&2
	exit 1
}

# What the public class in a file is called, or nothing.
public_class() {
	LC_ALL=C sed -n -E 's/^([^/*"]*[;}[:space:]])?public +((abstract|final|strictfp|sealed|non-sealed) +)*(class|interface|enum|record|@interface) +([A-Za-z_$][A-Za-z0-9_$]*).*/\5/p' "$1" | head -n 1
}

if [ "$mode" = run ]; then
	classes=/code/classes
	name=$(public_class "$1")
	name=${name:-Main}
	[ "$name" = Main ] || mv "$1" "${1%/*}/$name.java"
	set -- "${1%/*}/$name.java"
else
	classes=/tmp/classes
	name=Main
	renamed=0
	for file in "$@"; do
		shift
		class=$(public_class "$file")
		if [ -n "$class" ] && [ "${file##*/}" != "$class.java" ]; then
			renamed=$((renamed + 1))
			mkdir "/tmp/$renamed"
			cp "$file" "/tmp/$renamed/$class.java"
			file=/tmp/$renamed/$class.java
		fi
		set -- "$@" "$file"
	done
fi
# Names of people in comments, in an older code page, are no reason to refuse a program.
encoding=UTF-8
LC_ALL=C.UTF-8 grep -qaxv '.*' "$@" && encoding=ISO-8859-1
rm -rf "$classes"
mkdir "$classes"
javac -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 -J-XX:-UsePerfData -J-Xmx512m -encoding "$encoding" -d "$classes" \
	-cp '/data:/data/*' -sourcepath /data -implicit:class "$@"

# Who chose an entry point: a file, of which the public class is meant, or a class, which has to be there.
chosen=
if [ "$mode" = build ]; then
	case ${SALLYPORT_ENTRY:-} in
	*.java)
		name=$(public_class "/data/$SALLYPORT_ENTRY")
		name=${name:-$(basename "$SALLYPORT_ENTRY" .java)}
		;;
	*) chosen=${SALLYPORT_ENTRY:-} ;;
	esac
fi

# A method main(String[]) leaves its name and its type in the class file; the class of the file's name comes first, then classes on top.
cd "$classes"
with_main=$(find . -name '*.class' -exec grep -lZaF '([Ljava/lang/String;)V' {} + | xargs -0r grep -law main | sed 's|^\./||; s|\.class$||' | sort) || true
main=$(echo "$with_main" | grep -E "(^|/)$name\$" || echo "$with_main" | grep -v '\$' || echo "$with_main")
main=$(echo "$main" | head -n 1 | tr / .)
if [ -n "$chosen" ]; then
	main=$chosen
	echo "$with_main" | tr / . | grep -qxF "$main" || say "the class $main has no method \"public static void main(String[] args)\""
fi
[ "$mode" = run ] || main=${main:-$name} # a judge's compiler accepts it: java refuses it when the program runs
[ -n "$main" ] || say 'no class has a method "public static void main(String[] args)"'
if [ "$mode" = run ]; then
	echo "'$main'" >/code/main.args
	exit
fi
jar -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 -J-XX:-UsePerfData --create --file /tmp/program.jar --main-class "$main" -C "$classes" .
{
	echo '#!/bin/sh'
	# shellcheck disable=SC2016 # for the shell of the program's jail
	echo 'exec /usr/bin/java -XX:+UseSerialGC -XX:-UsePerfData "-XX:MaxRAM=${SALLYPORT_MEMORY_MB}m" -XX:MaxRAMPercentage=75 -Xss64m -jar "$0" "$@"'
	cat /tmp/program.jar
} >/data/.program
chmod 755 /data/.program
