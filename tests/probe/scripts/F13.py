# F13 | names of files that are traps | runner=python kept=%0Anewline,%1B[31mred,%20leading,%22quotes%22,%25s%25n,*,-rf,..foo,CON,a/..b/%0A,back\slash,nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn,trailing%20,%E2%80%AEgnp.exe,%FFbytes heavy=1
import os

os.chdir(b"/data")
os.makedirs(b"a/..b")
for name in (
    b"\nnewline", b"\x1b[31mred", b" leading", b'"quotes"', b"%s%n", "\u202egnp.exe".encode(), b"\xffbytes", b"*", b"-rf", b"..foo", b"CON",
    b"a/..b/\n", b"back\\slash", b"n" * 40, b"trailing ",
):
    with open(name, "xb") as file:
        file.write(b"own")
for wrong in (b"n" * 256, b"", b"..", b"a\0b"):
    try:
        open(wrong, "xb").close()
        print("BROKEN: a file is called", wrong)
    except (OSError, ValueError):
        pass
print("held")
