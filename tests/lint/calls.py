"""The judge behind calls.sh: calls.py check|list CIRCLES

Standard input: "may FOLDER EXPRESSION" (what the folder may include), "header PATH", and nm's lines as "symbol FILE.o: …".
CIRCLES has one circle a line: "FOLDER SIZE: FILE FILE… # why", with the files relative to the folder and without ".c".
"""
import collections
import os
import re
import sys

may, headers, defined, needed = {}, [], {}, []
for line in sys.stdin:
    kind, rest = line.rstrip('\n').split(' ', 1)
    if kind == 'may':
        folder, expression = rest.split(' ', 1)
        may[folder] = re.compile(expression)
    elif kind == 'header':
        headers.append(rest)
    else:
        file, symbol = rest.split('.o:', 1)
        letter, name = symbol.split()[-2:]
        # cgi/wipe.c puts its own free and realloc before those of the C library, in the gateway only.
        if name in ('main', 'free', 'realloc'):
            continue
        if letter == 'U':
            needed.append((file, name))
        else:
            defined[name] = file

words, includes = {}, {}
for header in headers:
    with open(header, encoding='utf-8') as file:
        text = re.sub(r'/\*.*?\*/', '', file.read(), flags=re.S)
    words[header] = set(re.findall(r'\w+', text))
    own = (os.path.join(os.path.dirname(header), name) for name in re.findall(r'^#include "([\w.]+)"', text, re.M))
    includes[header] = [path for path in own if os.path.exists(path)]


def declares(header, symbol, seen=()):
    """Does the header, or one of its own folder that it includes, declare the symbol?"""
    return symbol in words[header] or any(declares(path, symbol, (*seen, header)) for path in includes[header] if path not in seen and path in words)


def folder_of(path):
    return os.path.dirname(path)


def allowed(caller, callee, symbol):
    here, there = folder_of(caller), folder_of(callee)
    if here == there or here not in may:
        return True # layers.sh names a folder that is not in the table
    doors = [header for header in headers if may[here].fullmatch(header)]
    return any(folder_of(door) == there for door in doors) and any(declares(door, symbol) for door in doors)


calls = collections.defaultdict(dict) # caller -> callee -> a symbol
for caller, symbol in needed:
    if symbol in defined:
        calls[caller].setdefault(defined[symbol], symbol)


def circles():
    """Strongly connected components of two files and more (Tarjan), each sorted."""
    index, low, stack, found = {}, {}, [], []

    def visit(file):
        index[file] = low[file] = len(index)
        stack.append(file)
        for callee in calls.get(file, ()):
            if callee not in index:
                visit(callee)
            if callee in stack:
                low[file] = min(low[file], low[callee])
        if low[file] == index[file]:
            members = stack[stack.index(file):]
            del stack[-len(members):]
            if len(members) > 1:
                found.append(sorted(members))

    for file in list(calls):
        if file not in index:
            visit(file)
    return sorted(found)


def way_back(file, circle):
    """The shortest chain of calls from the file to itself, in words."""
    before = {}
    queue = collections.deque([file])
    while file not in before:
        caller = queue.popleft()
        for callee in calls[caller]:
            if callee in circle and callee not in before:
                before[callee] = caller
                queue.append(callee)
    chain = [file]
    while len(chain) == 1 or chain[-1] != file:
        chain.append(before[chain[-1]])
    chain.reverse()
    return ', '.join(f'{caller}.c calls {calls[caller][callee]} of {callee}.c' for caller, callee in zip(chain, chain[1:]))


def as_line(circle, why):
    folder = os.path.commonpath([folder_of(file) for file in circle])
    return f'{folder} {len(circle)}: {" ".join(os.path.relpath(file, folder) for file in circle)} # {why}'


def listed(path):
    """Line number, set of files and reason of each circle in the list; prints what is wrong with a line."""
    if os.path.exists(path):
        with open(path, encoding='utf-8') as file:
            for number, line in enumerate(file, 1):
                if line.startswith('#') or not line.strip():
                    continue
                form = re.fullmatch(r'([\w/]+) (\d+): ([\w/ ]+?) # (.+)', line.strip())
                members = {os.path.join(form[1], name) for name in form[3].split()} if form else set()
                if not form or len(members) != int(form[2]):
                    print(f'{path}:{number}: is not "FOLDER SIZE: FILE FILE… # why" with as many files as it says')
                yield number, members, form[4] if form else ''


sys.setrecursionlimit(10000)
mode, path = sys.argv[1:]
today = circles()
entries = list(listed(path))
for circle in today:
    same = max(entries, key=lambda entry: len(entry[1].intersection(circle)), default=(0, set(), ''))
    known = same[1] if same[1].intersection(circle) else set()
    if mode == 'list':
        print(as_line(circle, same[2] if known else 'WHY'))
        continue
    joined = [file for file in circle if file not in known]
    if known:
        for file in joined:
            print(f'{file}.c:1: joins the circle of {path}:{same[0]}: {way_back(file, circle)}')
    else:
        print(f'{circle[0]}.c:1: is in a new circle of {len(circle)} files: {way_back(circle[0], circle)}')
if mode == 'list':
    sys.exit()
for number, members, _ in entries:
    left = sorted(members.difference(*(circle for circle in today)))
    parts = [circle for circle in today if members.intersection(circle)]
    if left:
        print(f'{path}:{number}: shrink the list: not in a circle any more: {" ".join(left)}')
    elif len(parts) > 1:
        print(f'{path}:{number}: shrink the list: the circle fell into {len(parts)}')
for caller, symbol in needed:
    callee = defined.get(symbol)
    if callee and not allowed(caller, callee, symbol):
        print(f'{caller}.c:1: calls {symbol} of {callee}.c, a layer that it must not know')
