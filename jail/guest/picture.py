# picture.py - decodes pictures and makes them fit for a model: `picture.py SIDE BYTES FILE…`. Prints for each, in this order,
#
#   broken                              it does not decode
#   whole TYPE WIDTH HEIGHT             it fits as it is
#   scaled TYPE WIDTH HEIGHT LENGTH     it has these sides; LENGTH bytes of a copy that fits follow
#   large WIDTH HEIGHT                  no copy of it fits
#
# The files are hostile, and so may be what this prints: the caller believes none of it but within its bounds. Each file is the work of a
# child with limits of its own, so that one that takes them down leaves the others.
import io
import os
import resource
import sys

sys.path.append("/usr/lib/python3/dist-packages")  # no site module: it costs more than it gives here
from PIL import Image  # noqa: E402

SECONDS, MEMORY, PIXELS_MAX = 10, 900 << 20, 120_000_000
TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
LEAST, STEP, QUALITY = 64, 0.75, 85


def encoded(picture, kind):
    out = io.BytesIO()
    if kind == "JPEG":
        if picture.mode == "RGBA":
            ground = Image.new("RGB", picture.size, "white")
            ground.paste(picture, mask=picture.getchannel("A"))
            picture = ground
        picture.save(out, "JPEG", quality=QUALITY)
    else:
        picture.save(out, "PNG")
    return out.getvalue()


def copy_of(picture, side, most):
    """(type, bytes) of the largest copy that fits; None."""
    clear = picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info
    if picture.mode not in ("RGB", "RGBA"):
        picture = picture.convert("RGBA" if clear else "RGB")
    while side >= LEAST:
        picture.thumbnail((side, side))
        for kind in ("PNG", "JPEG"):
            data = encoded(picture, kind)
            if len(data) <= most:
                return TYPES[kind], data
        side = int(max(picture.size) * STEP)
    return None


def look(path, side, most):
    """What is printed of it."""
    with Image.open(path, formats=list(TYPES)) as picture:
        picture.verify()  # of a PNG, every part of it
    with Image.open(path, formats=list(TYPES)) as picture:
        kind, (width, height) = TYPES[picture.format], picture.size
        if width * height > PIXELS_MAX:
            return b"large %d %d\n" % (width, height)
        if max(width, height) > 2 * side:
            picture.draft("RGB", (side, side))  # of a JPEG, which is then decoded smaller
        picture.load()
        if max(width, height) <= side and os.path.getsize(path) <= most:
            return b"whole %s %d %d\n" % (kind.encode(), width, height)
        made = copy_of(picture, side, most)
    if made is None:
        return b"large %d %d\n" % (width, height)
    return b"scaled %s %d %d %d\n%s" % (made[0].encode(), width, height, len(made[1]), made[1])


def in_child(path, side, most):
    to_us, from_child = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            with open(from_child, "wb") as out:
                out.write(look(path, side, most))
        finally:
            os._exit(0)
    os.close(from_child)
    with open(to_us, "rb") as answer:
        told = answer.read(most + 200)
    os.waitpid(child, 0)
    return told or b"broken\n"


def main():
    side, most = int(sys.argv[1]), int(sys.argv[2])
    Image.MAX_IMAGE_PIXELS = None
    for path in sys.argv[3:]:
        sys.stdout.buffer.write(in_child(path, side, most))
    sys.stdout.buffer.flush()


main()
