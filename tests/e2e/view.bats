#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2088 # dollars, backquotes and tildes in the programs are not for this shell
# What a Python program sees and says is the same as if the interpreter itself had started it, whether its value is shown or not
# (jail/guest/python.py). Each program runs three times: by `python3 /code/main.py` out of a shell, by the starter, and by the starter that
# shows values. Not the same by design: the command line in /proc, the frames below the program's first, the depth that the recursion limit
# allows, and where values are shown a finder in sys.meta_path and the name `display`.

bats_require_minimum_version 1.5.0
load lib.bash
load display.bash

BARE='exec env -u SHLVL -u _ -u PWD -u OLDPWD PYTHONPATH=/data:/data/.packages/python PYTHONDONTWRITEBYTECODE=1 MPLBACKEND=Agg \
	MPLCONFIGDIR=/tmp/matplotlib OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 /usr/bin/python3 /code/main.py "$@"'

result() {
	sp_get '[details.verdict, details.exit_code, details.signal, details.stdout, details.stderr] | tojson | gsub("0x[0-9a-f]+|refcount : [0-9]+"; "0x") | gsub("/files/[0-9a-f]+"; "/files")' # of another conversation
}

# same CODE [MEMBERS]: fails unless all three end in the same way and say the same.
same() {
	local code=$1$'\n' bare display n=$BATS_TEST_NUMBER-$((++CASES)) more=${2:-{\}}
	printf '%s' "$code" >"$SP_DIR/program"
	sp_call run_code "$(jq -cn --rawfile code "$SP_DIR/program" --arg bare "$BARE" --arg id "bare-$n" --argjson more "$more" \
		'{conversationId: $id, language: "bash", code: ("base64 -d >/code/main.py <<<\($code | @base64)\n" + $bare)} + $more')"
	bare=$(result)
	[ "$bare" != '[null,null,null,null,null]' ] || { cat "$SP_DIR/body"; return 1; }
	for display in false true; do
		sp_call run_code "$(jq -cn --rawfile code "$SP_DIR/program" --arg id "$display-$n" --argjson display $display --argjson more "$more" \
			'{conversationId: $id, language: "python", $code, $display} + $more')"
		[ "$(result)" = "$bare" ] || {
			printf 'display %s: %s\nbare:  %s\nstart: %s\n' $display "$code" "$bare" "$(result)"
			return 1
		}
	done
	printf '%s\n' "$bare"
}

FACTS='import sys
MODULES, NAMES = list(sys.modules), [(name, type(value).__name__, repr(value)[:20]) for name, value in list(globals().items())]
import gc, json, locale, os, resource, signal, threading, warnings
streams = [sys.stdin, sys.stdout, sys.stderr]
print(json.dumps({
    "modules": sorted(MODULES), "names": NAMES[:9], "argv": [sys.argv, sys.orig_argv], "path": sys.path, "flags": repr(sys.flags),
    "executable": [sys.executable, sys.prefix], "main": [__file__, __cached__, __spec__, type(__loader__).__name__, __loader__.path, __name__],
    "builtins": [type(__builtins__).__name__, sorted(set(vars(__builtins__)) - {"display"})], "is_main": sys.modules["__main__"].__dict__ is globals(),
    "environ": sorted(os.environ.items()), "descriptors": sorted(os.listdir("/proc/self/fd")), "cwd": os.getcwd(), "umask": os.umask(0o22),
    "ids": [os.getpid(), os.getppid(), os.getpgid(0), os.getsid(0), os.getresuid(), os.getresgid(), os.getgroups()],
    "comm": open("/proc/self/comm").read(), "nice": os.nice(0), "exe": os.readlink("/proc/self/exe"),
    "signals": [str(signal.getsignal(n)) for n in range(1, 65) if n not in (32, 33)], "mask": sorted(signal.pthread_sigmask(0, [])),
    "status": [line for line in open("/proc/self/status") if line[:3] in ("Sig", "Shd", "Cap", "NoN", "Thr")],
    "limits": [resource.getrlimit(n) for n in range(16)],
    "streams": [[s.encoding, s.errors, s.line_buffering, s.write_through, s.mode, s.name, s.newlines, type(s.buffer).__name__] for s in streams],
    "standard": [s is t for s, t in zip(streams, [sys.__stdin__, sys.__stdout__, sys.__stderr__])],
    "threads": [t.name for t in threading.enumerate()], "is_main_thread": threading.current_thread() is threading.main_thread(),
    "gc": [gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.get_freeze_count()], "recursion": sys.getrecursionlimit(),
    "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__, sys.unraisablehook is sys.__unraisablehook__,
        sys.breakpointhook is sys.__breakpointhook__, sys.gettrace(), sys.getprofile(), sys.getswitchinterval(), hasattr(sys, "last_value")],
    "warnings": [sys.warnoptions, repr(warnings.filters)], "locale": [locale.getlocale(), sys.getfilesystemencoding(), locale.localeconv()],
}, default=repr))'

@test "a program sees what it sees without a starter" {
	same "$FACTS" '{"args":["a","","b c"],"stdin":"in","environment":{"X":"1=2","HOME":"/data"}}'
	same "$FACTS"
}

@test "errors that nobody catches are printed as they are" {
	local code
	for code in '1 / 0' 'def f():
    return 1 / 0
f()' 'try:
    1 / 0
except ZeroDivisionError as e:
    raise ValueError("x") from e' 'x = (' 'if x
    pass' 'print("a"
print(b)' 'return 5' "x = 'a" '  x = 1' 'def f():
  x = 1
	y = 2' 'f(**{}, *a)' 'x = "\8" is 5' 'raise ExceptionGroup("g", [ValueError(1), TypeError(2)])' 'import os
open("/data/m.py", "w").write("def f():\n    return 1 / 0\nf()\n")
import m' 'import threading
t = threading.Thread(target=lambda: 1 / 0, name="t")
t.start(); t.join()' 'raise KeyboardInterrupt' 'import sys
sys.excepthook = lambda *a: print("hook", a[0].__name__, a[2].tb_lineno)

1 / 0' 'class E(Exception):
    def __str__(self): raise ValueError
raise E' 'raise SystemExit("gone")' 'import sys
sys.exit((1, 2))' 'import sys
sys.exit(True)' 'import sys
sys.exit(257)' 'exit(3)' 'import warnings
warnings.warn("w")
def f(): warnings.warn("v", DeprecationWarning, stacklevel=2)
f()' 'import asyncio
async def f(): raise OSError(2, "x")
asyncio.run(f())' 'assert 1 == 2, "why"' 'int("x")  # ä' 'raise Exception("ä\udce4")' 'import traceback
try: 1 / 0
except Exception: traceback.print_exc()' 'class A:
    def __del__(self): 1 / 0
a = A()
del a' 'missing' 'import sys
sys.stderr.close()
1 / 0' 'exec("1 / 0")' 'from m import nothing' 'import nowhere.module' 'raise' 'print(' "f'{'" 'def f(): yield
f().throw(ValueError("v"))'; do
		same "$code"
	done
}

@test "sources of every kind are read as the interpreter reads them" {
	local code
	# What a first line says of an encoding means nothing here (notebook.bats).
	for code in $'x = 1\n\n# coding: nothing' $'\xef\xbb\xbfprint(1)' $'print(1)\r\nprint("""a\r\nb""".encode())\r' \
		$'\f\nprint(1)' $'größe = 3\nprint(größe)' $'x = 5\x01' '# nothing' '' $'x = 1\\'; do
		same "$code"
	done
	# Not UTF-8, or with a NUL: such a program comes as a file.
	for code in 'print("\xe4")' '\xe4 = 1' '# \xe4\nprint(1)' '# coding: latin-1\nprint("\xe4".encode())' 'print(1)\n\x00' 'x = """\x00"""'; do
		# shellcheck disable=SC2059 # its escapes are the bytes
		printf "$code\n" >"$SP_DIR/main.py"
		printf 'base64 -d >/code/main.py <<<%s\n%s\n' "$(base64 -w0 "$SP_DIR/main.py")" "$BARE" >"$SP_DIR/bare.sh"
		run "$SP_BIN/sallyport" run --config "$SP_CONFIG" -l bash "$SP_DIR/bare.sh"
		bare="$status $output"
		run "$SP_BIN/sallyport" run --config "$SP_CONFIG" -l python "$SP_DIR/main.py"
		[ "$status $output" = "$bare" ] || { printf '%s: %s, not %s\n' "$code" "$status $output" "$bare"; return 1; }
	done
}

@test "its end is the end of a script" {
	local code
	for code in 'import atexit
atexit.register(print, "one")
atexit.register(print, "two")
class A:
    def __del__(self): print("del", __name__)
a = A()
print("end")' 'f = open("/data/x", "w")
x = f.write("unclosed")
import atexit
x = atexit.register(lambda: (f.flush(), print(open("/data/x").read())))' 'import threading, time
def late():
    time.sleep(0.1)
    print("late")
threading.Thread(target=late).start()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("now")' 'import os
print("lost")
os._exit(4)' 'import os, sys
print("kept", flush=True)
os.close(1)
print("x")' 'import sys
sys.stdout.close()' 'import os, signal
os.kill(os.getpid(), signal.SIGTERM)
x = 1' 'import os, signal
signal.signal(signal.SIGTERM, lambda *a: print("handled"))
os.kill(os.getpid(), signal.SIGTERM)
x = 1' 'import os, signal
os.kill(os.getpid(), signal.SIGINT)
x = 1' 'import ctypes
ctypes.string_at(0)' 'import os
os.abort()' 'import resource, signal
resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
while True: pass' 'import os
if os.fork() == 0:
    print("child")
else:
    os.wait()
    print("parent")' 'import sys
sys.stdout.write("no line end")
sys.stdout = None' 'import sys, gc
class A: pass
a = A(); a.a = a
import weakref
weakref.finalize(a, print, "finalized")
x = 1' 'import os, sys
x = os.execv(sys.executable, ["python3", "-c", "print(5)"])'; do
		same "$code"
	done
}

@test "modules of the language that look at the program find it" {
	local code
	for code in 'import pickle
class A:
    x = 1
print(type(pickle.loads(pickle.dumps(A()))).__module__, pickle.dumps(A))' 'import inspect
def f(a, b=1):
    """d"""
    return a  # here
print(inspect.getsource(f), inspect.signature(f), inspect.getsourcefile(f), inspect.getmodule(f).__name__)' 'def f():
    """
    >>> f()
    4
    """
    return 5
import doctest
print(doctest.testmod())' 'import unittest
class T(unittest.TestCase):
    def test_a(self): self.assertEqual(1, 2)
    def test_b(self): pass
import io
unittest.main(exit=False, argv=["x"], testRunner=unittest.TextTestRunner(stream=io.StringIO()))
x = 1' 'import runpy
open("/data/m.py", "w").write("import sys\nprint(__name__, __file__, sys.argv)")
m = runpy.run_module("m", run_name="__main__", alter_sys=True)
m = runpy.run_path("/data/m.py")' 'import multiprocessing as m
def f(x): return x + 1, __name__
if __name__ == "__main__":
    for way in "fork", "spawn", "forkserver":
        with m.get_context(way).Pool(1) as pool: print(pool.map(f, [1, 2]))' 'import subprocess, sys
print(subprocess.run([sys.executable, "-c", "import sys; print(sys.argv, sys.path[0])"], capture_output=True, text=True))' 'from concurrent.futures import ProcessPoolExecutor
def f(x): return x * 2
if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool: print(list(pool.map(f, [1])))' 'import asyncio
async def f():
    p = await asyncio.create_subprocess_exec("echo", "a", stdout=-1)
    return await p.communicate()
print(asyncio.run(f()))' 'import dataclasses, typing
@dataclasses.dataclass
class A:
    x: "int"
print(typing.get_type_hints(A), A(1))' 'from __future__ import annotations
def f(x: nothing): pass
print(f.__annotations__, annotations)' 'import __main__, sys
print(__main__ is sys.modules["__main__"], __main__.__file__)' 'import linecache
print(linecache.getline(__file__, 2))' 'import logging
logging.warning("w")
logging.basicConfig(format="%(filename)s %(lineno)d %(funcName)s %(module)s")' 'import ast, _ast
print(ast.Expression is _ast.Expression, ast.dump(ast.parse("1")))' 'import zipimport, importlib, sys
print(importlib.import_module("json").__name__, importlib.util.find_spec("__main__") if __spec__ else None)' 'print(__builtins__.__name__, eval("__name__"), list(locals())[:3] == list(globals())[:3])' 'import code, sys
x = 1
print(sys._getframe().f_code.co_name, sys._getframe().f_lineno)' 'import timeit
print(timeit.timeit("f()", "from __main__ import f", number=1) < 9) if (f := len and (lambda: 1)) else 0' 'import trace, sys
t = trace.Trace(count=0, trace=0)
print(t.runfunc(lambda: 5))' 'import cProfile, io, pstats
p = cProfile.Profile()
print(p.runcall(len, "abc"))'; do
		same "$code"
	done
}

@test "standard input is the program's from its first byte" {
	same 'print([input(), input("? ")])' '{"stdin":"a\nb\nc"}'
	same 'import sys
print(sys.stdin.buffer.read(), sys.stdin.fileno())' '{"stdin":"a\nb"}'
	same 'input()' '{"stdin":""}'
	same 'import sys
print([line for line in sys.stdin], sys.stdin.read())' '{"stdin":"one\ntwo\n"}'
	same 'import os
print(os.read(0, 3), input())' '{"stdin":"onetwo"}'
}
