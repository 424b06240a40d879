#!/usr/bin/python3
"""power_cut.py - what is left on a disk when the power goes, out of what strace saw of the programs' writes and syncs.

    power_cut.py TRACES DATA ACKS WORK [KIND BEFORE AFTER [COPY]]

TRACES: prefix of the files of `strace -ff -ttt -T -y -xx`; DATA: the folder that the programs wrote to; ACKS: lines of
"TIME WHAT ID", what was acknowledged to a client until TIME; WORK: a folder for images.

The disk keeps for certain what was synced: the bytes of a file as of the start of its last fsync or fdatasync that
returned, the names in a folder as of the last fsync of the folder. Of what was written since it may keep all, nothing,
or any part, in any order, torn at sectors. At every acknowledgement four such images are made of DATA, and everything
that was acknowledged until then must be in each of them.

With KIND (backup, record, bundle, upgrade: a record without contents) DATA is what one command wrote, COPY what was there before it. Images are made after
each call that changes names or syncs: each has BEFORE runs or AFTER ("none": there is nothing), and is whole; behind
the acknowledgement, AFTER.
"""
import glob
import hashlib
import json
import os
import random
import re
import shutil
import sqlite3
import sys

SECTOR = 512
LINE = re.compile(r'^(\d+)\.(\d+) (\w+)\((.*)\) += (-?\d+)(?:<((?:\\x..)*)>(?:\(deleted\))?)?.* <(\d+)\.(\d+)>$')
ARGUMENT = re.compile(r'\s*(?:(-?\d+|AT_FDCWD)<((?:\\x..)*)>(?:\(deleted\))?|"((?:\\x..)*)"|[^,"<>\s][^,"<>]*)')


def text(escaped):
    return bytes.fromhex(escaped.replace('\\x', ''))


class File:
    def __init__(self):
        self.bytes = bytearray()   # as the processes see it
        self.synced = b''          # as is certain
        self.pending = []          # (time, offset, bytes) or (time, length, None): what came since

    def write(self, when, offset, data):
        if offset > len(self.bytes):
            self.bytes.extend(bytes(offset - len(self.bytes)))
        self.bytes[offset:offset + len(data)] = data
        self.pending.append((when, offset, data))

    def truncate(self, when, length):
        del self.bytes[length:]
        self.bytes.extend(bytes(length - len(self.bytes)))
        self.pending.append((when, length, None))

    def sync(self, start):
        """What was written before the call began."""
        before = [p for p in self.pending if p[0] < start]
        self.synced = apply(self.synced, before)
        self.pending = self.pending[len(before):]


def apply(content, writes):
    content = bytearray(content)
    for _, offset, data in writes:
        if data is None:
            del content[offset:]
            content.extend(bytes(offset - len(content)))
        else:
            if offset > len(content):
                content.extend(bytes(offset - len(content)))
            content[offset:offset + len(data)] = data
    return bytes(content)


class Disk:
    def __init__(self, root):
        self.root = root
        self.names = {}            # path -> File, or None: a folder
        self.certain = {}          # the same, synced
        self.changes = []          # (time, path, File | None | 'gone')

    def inside(self, path):
        return path == self.root or path.startswith(self.root + b'/')

    def set(self, when, path, what):
        if what == 'gone':
            self.names.pop(path, None)
        else:
            self.names[path] = what
        self.changes.append((when, path, what))

    def sync(self, path, start):
        what = self.names.get(path, 'folder')
        if isinstance(what, File):
            what.sync(start)
            return
        keep = []
        for change in self.changes:
            if os.path.dirname(change[1]) == path and change[0] < start:
                put(self.certain, change)
            else:
                keep.append(change)
        self.changes = keep

    def sync_all(self, start):
        for what in self.names.values():
            if isinstance(what, File):
                what.sync(start)
        for change in self.changes:
            put(self.certain, change)
        self.changes = []

    def load(self, copy):
        """What was there before, and is certain."""
        for folder, _, files in os.walk(copy):
            path = self.root + folder[len(copy):]
            self.names[path] = self.certain[path] = None
            for name in files:
                file = File()
                file.synced = open(os.path.join(folder, name), 'rb').read()
                file.bytes = bytearray(file.synced)
                self.names[path + b'/' + name] = self.certain[path + b'/' + name] = file

    def image(self, how, chance):
        """{path: bytes or None}"""
        names = dict(self.certain)
        kept = {}  # by call: both names of a rename change, or none
        for change in self.changes:
            if how == 'all' or (how == 'some' and kept.setdefault(change[0], chance.random() < 0.5)):
                put(names, change)
        made = {}
        for path, what in names.items():
            if not isinstance(what, File):
                made[path] = None
            elif how == 'all':
                made[path] = bytes(what.bytes)
            elif how == 'synced':
                made[path] = what.synced
            else:
                made[path] = apply(what.synced, torn(what.pending, chance))
        return made


def put(names, change):
    if change[2] == 'gone':
        names.pop(change[1], None)
    else:
        names[change[1]] = change[2]


def torn(pending, chance):
    writes = []
    for when, offset, data in pending:
        if data is None:
            if chance.random() < 0.5:
                writes.append((when, offset, None))
            continue
        at = 0
        while at < len(data):
            end = min(len(data), (offset + at) // SECTOR * SECTOR + SECTOR - offset)
            if chance.random() < 0.5:
                writes.append((when, offset + at, data[at:end]))
            at = end
    chance.shuffle(writes)
    return writes


class Tracee:
    """The calls of one thread, in order; positions of write() belong to the process, close enough here."""

    def __init__(self, disk):
        self.disk = disk
        self.at = {}
        self.anonymous = {}

    def call(self, when, start, name, args, result, opened):
        disk = self.disk
        fds = [(a.group(1), text(a.group(2))) for a in args if a.group(1)]
        strings = [text(a.group(3)) for a in args if a.group(3) is not None]

        def path_of(fd, string):
            base = fd[1] if fd else b''
            return os.path.normpath(string if string.startswith(b'/') else base + b'/' + string)

        if name in ('pwrite64', 'write') and disk.inside(fds[0][1]):
            file = disk.names.get(fds[0][1]) or self.anonymous.setdefault(fds[0][1], File())
            if name == 'pwrite64':
                offset = int(args[-1].group(0))
            else:
                offset = self.at.get(fds[0], 0)
                self.at[fds[0]] = offset + result
            file.write(when, offset, strings[0][:result])
        elif name == 'ftruncate' and disk.inside(fds[0][1]):
            file = disk.names.get(fds[0][1])
            if file:
                file.truncate(when, int(args[-1].group(0)))
        elif name == 'syncfs' and disk.inside(fds[0][1]):
            disk.sync_all(start)
        elif name in ('fsync', 'fdatasync') and disk.inside(fds[0][1]):
            if fds[0][1] in self.anonymous:
                self.anonymous[fds[0][1]].sync(start)
            else:
                disk.sync(fds[0][1], start)
        elif name == 'openat' and opened and disk.inside(opened):
            flags = args[2].group(0)
            if 'O_TMPFILE' in flags:
                self.anonymous[opened] = File()
                self.anonymous[str(result)] = opened
            elif 'O_CREAT' in flags and opened not in disk.names:
                disk.set(when, opened, File())
            elif 'O_TRUNC' in flags and disk.names.get(opened):
                disk.names[opened].truncate(when, 0)
            self.at[(str(result), opened)] = 0
        elif name in ('mkdir', 'mkdirat'):
            path = path_of(fds[0] if fds else None, strings[0])
            if disk.inside(path):
                disk.set(when, path, None)
        elif name == 'renameat' and disk.inside(path_of(fds[1], strings[1])):
            old = path_of(fds[0], strings[0])
            file = disk.names[old]
            disk.set(when, path_of(fds[1], strings[1]), file)
            disk.set(when, old, 'gone')
        elif name == 'rename' and disk.inside(path_of(None, strings[1])):
            old = path_of(None, strings[0])
            disk.set(when, path_of(None, strings[1]), disk.names[old])
            disk.set(when, old, 'gone')
        elif name == 'linkat' and disk.inside(path_of(fds[1], strings[1])):
            number = strings[0].rsplit(b'/', 1)[1].decode()
            disk.set(when, path_of(fds[1], strings[1]), self.anonymous[self.anonymous[number]])
        elif name in ('unlink', 'unlinkat'):
            path = path_of(fds[0] if fds else None, strings[0])
            if disk.inside(path):
                disk.set(when, path, 'gone')
        elif name == 'fallocate' and fds[0][1].endswith(b'/reserve'):
            pass  # room that nobody reads
        elif name in ('writev', 'pwritev', 'fallocate', 'copy_file_range', 'sendfile', 'renameat2') and \
                any(disk.inside(path) for _, path in fds):
            sys.exit(f'{name} on a file of the record: power_cut.py must learn it')


def calls(prefix):
    found = []
    for number, path in enumerate(sorted(glob.glob(prefix + '.*'))):
        for line in open(path):
            match = LINE.match(line)
            if not match or int(match.group(5)) < 0:
                continue
            start = int(match.group(1)) * 10**6 + int(match.group(2))
            took = int(match.group(7)) * 10**6 + int(match.group(8))
            args = [a for a in ARGUMENT.finditer(match.group(4)) if a.group(0).strip()]
            opened = text(match.group(6)) if match.group(6) else None
            found.append((start + took, start, number, match.group(3), args, int(match.group(5)), opened))
    found.sort(key=lambda call: call[:3])
    return found


def lay_out(image, root, work):
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    target = os.fsencode(work)
    for path, content in sorted(image.items()):
        place = target + path[len(root):]
        if path.endswith(b'-shm') or path == root:
            continue
        if content is None:
            os.makedirs(place, exist_ok=True)
        elif os.path.isdir(os.path.dirname(place)):
            with open(place, 'wb') as file:
                file.write(content)


def wrong_blobs(db, work):
    for name, size in db.execute('SELECT sha256, size FROM blob'):
        path = os.path.join(work, 'blobs', name[:2], name[2:])
        if not os.path.exists(path):
            return f'blob {name} has a row and no file'
        content = open(path, 'rb').read()
        if len(content) != size or hashlib.sha256(content).hexdigest() != name:
            return f'blob {name} is not what it was'
    return ''


def runs_in(kind, work, bundle):
    """How many runs there are; 'none', or what is wrong."""
    path = os.path.join(work, bundle if kind == 'bundle' else 'sallyport.db')
    if not os.path.exists(path) or (kind == 'backup' and not os.path.exists(os.path.join(work, 'manifest.json'))):
        return 'none'
    if kind == 'backup':
        said = []
        for part in ('manifest.json', 'manifest.json.part'):
            try:
                said.append(json.load(open(os.path.join(work, part)))['database'])
            except (OSError, ValueError):
                pass
        if hashlib.sha256(open(path, 'rb').read()).hexdigest() not in said:
            return 'the database is not the one of its manifest'
    db = sqlite3.connect(path)
    if db.execute('PRAGMA user_version').fetchone()[0] == 0:
        return 'none'
    if db.execute('PRAGMA integrity_check').fetchone()[0] != 'ok':
        return 'the database is damaged'
    if db.execute('PRAGMA foreign_key_check').fetchall():
        return 'references dangle'
    said = wrong_blobs(db, work) if kind in ('backup', 'record', 'upgrade') else ''
    version = f"{db.execute('PRAGMA user_version').fetchone()[0]}:" if kind == 'upgrade' else ''
    return said or version + str(db.execute('SELECT count(*) FROM execution').fetchone()[0])


def check(image, root, acks, work):
    """What is wrong with the image; '' nothing."""
    lay_out(image, root, work)
    if len(image.get(root + b'/secret.key', b'')) != 32:
        return 'secret.key is not whole'
    db = sqlite3.connect(os.path.join(work, 'sallyport.db'))
    if db.execute('PRAGMA integrity_check').fetchone()[0] != 'ok':
        return 'the database is damaged'
    if db.execute('PRAGMA foreign_key_check').fetchall():
        return 'references dangle'
    for what, ident in acks:
        if not db.execute(QUESTIONS[what], (ident,)).fetchone():
            return f'{what} {ident} is lost'
    said = wrong_blobs(db, work)
    db.close()
    return said


QUESTIONS = {
    'token': 'SELECT 1 FROM token WHERE id = ?',
    'revoked': 'SELECT 1 FROM token WHERE id = ? AND revoked_us IS NOT NULL',
    'run': "SELECT 1 FROM execution WHERE id = ? AND state = 'finished'",
    'upload': 'SELECT 1 FROM file WHERE name = ?',
    'session': 'SELECT 1 FROM session WHERE id = ? AND ended_us IS NULL',
    'task': 'SELECT 1 FROM task WHERE id = ?',
    'completed': "SELECT 1 FROM task WHERE id = ? AND state = 'completed'",
}


def one_command(disk, waiting, acknowledged, work, kind, before, after):
    bundle = os.path.basename(disk.root).decode() if kind == 'bundle' else ''
    tracees, images, wrong, done = {}, 0, 0, False
    root = os.path.dirname(disk.root) if bundle else disk.root
    for number, (when, start, thread, name, args, result, opened) in enumerate(waiting):
        tracees.setdefault(thread, Tracee(disk)).call(when, start, name, args, result, opened)
        last = number + 1 == len(waiting)
        if not last and not name.startswith(('rename', 'link', 'unlink', 'fsync', 'fdatasync', 'syncfs', 'mkdir')):
            continue
        done = done or when > acknowledged or last
        for seed, how in enumerate(('synced', 'all', 'some', 'some')):
            lay_out(disk.image(how, random.Random(1000 * number + seed)), root, work)
            found = runs_in(kind, work, bundle)
            images += 1
            if found != after and (done or found != before):
                wrong += 1
                print(f'after call {number} ({name}){", acknowledged" if done else ""}, {how}: {found}')
    print(f'{kind}: {len(waiting)} calls, {images} images, {wrong} wrong')
    sys.exit(1 if wrong or images < 20 else 0)


def main():
    prefix, root, acks_path, work, *command = sys.argv[1:]
    root = os.fsencode(os.path.realpath(root))
    disk = Disk(root)
    disk.names[root] = disk.certain[root] = None
    if command and command[0] == 'bundle':
        disk.inside = lambda path: path.startswith(root) or path == os.path.dirname(root)
        disk.names, disk.certain = {}, {}
    if len(command) > 3:
        disk.load(os.fsencode(command[3]))
    acks = []
    for line in open(acks_path):
        when, what, ident = line.split()
        acks.append((int(when.replace('.', '').replace(',', '')), what, ident))
    waiting = calls(prefix)
    if command:
        one_command(disk, waiting, acks[-1][0], work, *command[:3])
    tracees, images, wrong, at = {}, 0, 0, 0
    for number, (when, what, ident) in enumerate(acks):
        while at < len(waiting) and waiting[at][0] <= when:
            done, start, thread, name, args, result, opened = waiting[at]
            tracees.setdefault(thread, Tracee(disk)).call(done, start, name, args, result, opened)
            at += 1
        for seed, how in enumerate(('synced', 'all', 'some', 'some')):
            said = check(disk.image(how, random.Random(1000 * number + seed)), root, [a[1:] for a in acks[:number + 1]], work)
            images += 1
            if said:
                wrong += 1
                print(f'after "{what}" (number {number + 1}), {how}: {said}')
    print(f'{len(waiting)} calls, {len(acks)} acknowledgements, {images} images, {wrong} wrong')
    sys.exit(1 if wrong or not acks or len(waiting) < 100 else 0)


main()
