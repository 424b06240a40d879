# R12 | output and files for their readers | runner=python kept=bomb.json,bomb.pickle,bomb.svg,bomb.zip heavy=1
# Nobody on the host's side unpacks, parses or loads what comes out: it is bytes. (Each begins with "own", as every file of a probe does.)
import io, zipfile

with open("/data/bomb.json", "w") as file:
    file.write("own" + "[" * 100000)
with open("/data/bomb.pickle", "wb") as file:
    file.write(b"owncos\nsystem\n(S'touch /tmp/sallyport-probe-pickle'\ntR.")
with open("/data/bomb.svg", "w") as file:
    file.write('own<!DOCTYPE x [<!ENTITY a "aaaa">' + "".join('<!ENTITY %s "&%s;&%s;">' % (chr(98 + i), chr(97 + i), chr(97 + i)) for i in range(20)) + "]>")
packed = io.BytesIO()
with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("../../etc/cron.d/sallyport-probe", bytes(1 << 24))
with open("/data/bomb.zip", "wb") as file:
    file.write(b"own" + packed.getvalue())
print("[" * 20000 + '{"a":' * 20000)
print("9" * 20000 + "e999999999")
print("\x1b]0;title\x07\x1b[8m\u2028\ufeff\x00")
print("a" * 30 + "!" * 10000)
print("held")
