# upstream_add.py - `sallyport upstream add`: from an entry of a client's mcpServers file to a server whose tools programs call. cmd_upstream.c
# has it, and starts it as python3 -I -c THIS PROGRAM CONFIG OPTIONS, the options as a JSON object.
#
# What clients start by npx or uvx is installed into a folder once, because a jail has no network to download by. Folders and files among a
# server's arguments are shown to its jail, read-only, after they were printed and agreed to. Then the entry goes into upstream.file, which
# belongs to the gateway's account, and the folders into upstream.binds; both files keep their comments, because text is put into them and
# nothing is printed anew. At the end jailer and gateway are started anew where they run here, and the servers are tried.
import json
import os
import pwd
import re
import shlex
import signal
import subprocess
import sys
import time
from json.decoder import scanstring

PROGRAM, CONFIG, OPTIONS = sys.argv[1], os.path.abspath(sys.argv[2]), json.loads(sys.argv[3])
HERE = os.path.dirname(CONFIG)
SEEN = ("/usr/", "/bin/", "/lib", "/etc/", "/dev/", "/proc/", "/data", "/opt/sallyport/")  # in every jail; never asked for
WAIT_SECONDS = 60


def die(text, code=1):
    print(f"sallyport: upstream add: {text}", file=sys.stderr)
    sys.exit(code)


# -------- JSON with comments, as text
def blank(text):
    """The text with blanks for its comments; places stay."""
    pattern = r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/'
    return re.sub(pattern, lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0]), text, flags=re.S)


def places(text):
    """{(path): begin of the value} of every object and array that objects lead to."""
    plain, found = blank(text), {}

    def skip(at):
        return at + len(plain[at:]) - len(plain[at:].lstrip())

    def value(at, path):
        at = skip(at)
        if plain[at] != "{":
            if plain[at] == "[":
                found[path] = at
            return json.JSONDecoder().raw_decode(plain, at)[1]
        found[path] = at
        at = skip(at + 1)
        while plain[at] != "}":
            name, at = scanstring(plain, skip(at) + 1)
            at = skip(value(skip(at) + 1, (*path, name)))
            at = skip(at + (plain[at] == ","))
        return at + 1

    value(0, ())
    return found


def insert(text, path, item):
    """Text behind the bracket of the object or array at this path."""
    at = places(text)[path] + 1
    rest = blank(text[at:]).lstrip()
    margin = "\n" + "\t" * (len(path) + 1)
    return text[:at] + margin + item.replace("\n", margin) + ("" if rest[0] in "}]" else ",") + text[at:]


def dump(value):
    return json.dumps(value, indent="\t", ensure_ascii=False)


def write(path, text, mode, owner):
    """Whole, or as it was."""
    try:
        with open(os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
            if os.geteuid() == 0:
                os.fchown(file.fileno(), *owner)
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(path + ".new", path)
    except OSError as error:
        die(f"{path} cannot be written: {error.strerror}")


# -------- an entry
def run(*command):
    print("$", shlex.join(command), file=sys.stderr)
    try:
        code = subprocess.run(command, stdout=sys.stderr, stdin=subprocess.DEVNULL).returncode
    except FileNotFoundError:
        die(f"{command[0]} is missing: apt-get install {'npm' if command[0] == 'npm' else 'python3-pip'}")
    if code:
        die(f"{command[0]} ended with status {code}: nothing was changed")


def split(args, takes_value, flags):
    """(package or None, what is started, its arguments) of the arguments of npx or uvx."""
    args, package = list(args), None
    while args and args[0].startswith("-"):
        option, _, value = args.pop(0).partition("=")
        if option in takes_value:
            package = value or (args.pop(0) if args else None)
        elif option not in flags:
            die(f"the option {option} is not known here: install the server yourself, and name its program")
    if not args:
        die("no package is named")
    return package, args[0], args[1:]


def npm(entry, into):
    package, name, rest = split(entry.get("args", []), ("-p", "--package"), ("-y", "--yes", "-q", "--quiet", "--"))
    os.makedirs(into, exist_ok=True)
    with open(f"{into}/package.json", "w") as file:
        file.write('{"private": true}\n')
    spec = package or name
    run("npm", "install", "--prefix", into, "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", "--install-links", spec)
    with open(f"{into}/package.json") as file:
        installed = next(iter(json.load(file)["dependencies"]))
    with open(f"{into}/node_modules/{installed}/package.json") as file:
        programs = json.load(file).get("bin") or die(f"{spec} has no program")
    if isinstance(programs, str):
        programs = {installed.split("/")[-1]: programs}
    wanted = name if package else installed.split("/")[-1]
    program = programs.get(wanted) or next(iter(programs.values()))
    return {"command": "node", "args": [os.path.normpath(f"{into}/node_modules/{installed}/{program}"), *rest]}


def pip(entry, into):
    package, name, rest = split(entry.get("args", []), ("--from", "--with", "--spec"), ("-q", "--quiet", "run"))
    if name == "run" and rest:  # pipx run
        name, *rest = rest
    run("/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-input", "--target", into, package or name)
    scripts = os.listdir(f"{into}/bin") if os.path.isdir(f"{into}/bin") else []
    wanted = re.split(r"[=<>@\[]", name)[0]
    if not scripts:
        die(f"{name} has no program")
    program = wanted if wanted in scripts else scripts[0]
    return {"command": "python3", "args": [f"{into}/bin/{program}", *rest], "env": {"PYTHONPATH": into}}


def converted(name, entry, into):
    """The entry as upstream.file has it, without folders."""
    starter = os.path.basename(entry.get("command", ""))
    made = {key: value for key, value in entry.items() if key not in ("command", "args", "type", "transport")}
    if "url" in entry or "serverUrl" in entry:
        made["url"] = made.pop("serverUrl", entry.get("url"))
        if re.match(r"https?://(localhost|127\.|\[::1\]|10\.|192\.168\.)", made["url"]):
            made["private"] = True
        return made
    if not starter:
        die(f"{name}: there is neither command nor url")
    if starter in ("docker", "podman"):
        die(f"{name}: {starter} cannot work in a jail: name the program in its image, or run it yourself and name its url")
    if starter in ("npx", "bunx"):
        found = npm(entry, into)
    elif starter in ("uvx", "pipx", "uv"):
        found = pip(entry, into)
    else:
        found = {"command": entry["command"], "args": entry.get("args", [])}
    env = {**entry.get("env", {}), **found.pop("env", {})}
    return {**made, **found, **({"env": env} if env else {})}


def folders(entry, into):
    """(those that its arguments name, and where it was installed)."""
    named = []
    for word in [entry.get("command", ""), *entry.get("args", [])]:
        path = os.path.realpath(word.partition("=")[2] if word.startswith("-") and "=" in word else word) if "/" in word else ""
        if not path.startswith("/") or not os.path.exists(path) or path.startswith(SEEN) or path.startswith(into + "/"):
            continue
        path = path if os.path.isdir(path) else os.path.dirname(path)
        if path != "/" and path not in named:
            named.append(path)
    return named


# -------- the steps
def entries():
    if not OPTIONS.get("paste"):
        name, *command = OPTIONS["words"]
        return {name: {"command": command[0], "args": command[1:]}}
    try:
        text = sys.stdin.read() if OPTIONS["paste"] == "-" else open(OPTIONS["paste"], encoding="utf-8-sig").read()
        document = json.loads(re.sub(r",(\s*[}\]])", r"\1", blank(text)))
    except (OSError, ValueError) as error:
        die(f"{OPTIONS['paste']}: {error}")
    for name in ("mcpServers", "servers", "context_servers"):
        document = document.get(name, document)
    if not document or not all(isinstance(entry, dict) for entry in document.values()):
        die(f"{OPTIONS['paste']}: it must be an object with the member mcpServers")
    return document


def agree(named):
    for server, path in named:
        print(f"{server} will read {path} and everything below it", file=sys.stderr)
    if not named or OPTIONS.get("yes"):
        return
    if OPTIONS.get("paste") == "-" or not sys.stdin.isatty():
        die("there is nobody to ask: --yes agrees to this")
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        die("nothing was changed")


def account(document):
    """Whose the record is: the gateway's."""
    folder = os.path.join(HERE, os.environ.get("SALLYPORT_DATA_DIR") or document.get("data_dir", ""))
    try:
        there = os.stat(folder)
        return there.st_uid, pwd.getpwuid(there.st_uid).pw_gid
    except (OSError, KeyError):
        return os.geteuid(), os.getegid()


def attempt(config, path):
    """Would a jailer with these files show the folders? Else nothing is changed: the one that runs would not start again."""
    more = {"SALLYPORT_JAILER_SOCKET": "", "SALLYPORT_JAILER_WEAKER_LIMITS": "true", "SALLYPORT_UPSTREAM_FILE": path}
    command = [PROGRAM, "upstream", "check", "--config", config]
    told = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **more})
    os.unlink(config)
    os.unlink(path)
    refused = re.search(r"sallyport-jailer: (.*)", told.stderr)
    if refused:
        die(refused[1])


def restart():
    """Of what runs by this configuration; False: nothing does."""
    try:  # nginx/dev.sh
        with open(f"{HERE}/pid") as file:
            pid = int(file.read())
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if b"dev.sh" in file.read():
                os.kill(pid, signal.SIGUSR1)
                return True
    except (OSError, ValueError):
        pass
    unit = "sallyport-jailer"
    if CONFIG == "/etc/sallyport/sallyport.conf" and subprocess.run(["systemctl", "is-active", "-q", unit]).returncode == 0:
        return subprocess.run(["systemctl", "restart", unit]).returncode == 0
    return False


def check(names, wait):
    """Prints how the servers are, when jailer and gateway know of their folders."""
    command = [PROGRAM, "upstream", "check", "--config", CONFIG]
    until = time.monotonic() + WAIT_SECONDS
    while True:
        told = subprocess.run([*command, "--json"], capture_output=True, text=True)
        rows = [json.loads(line) for line in told.stdout.splitlines()]
        own = [row for row in rows if row["server"] in names]
        late = not own or any(re.search(r"not a folder of upstream\.binds|jailer|connect", row["about"]) for row in own if row["state"] != "ok")
        if not late or not wait or time.monotonic() > until:
            break
        time.sleep(0.3)
    if not own:
        die(told.stderr.strip().removeprefix("sallyport: "))
    for row in own:
        print(f"{row['server']}: {row['state']}: {row['about']}")
    return all(row["state"] == "ok" for row in own)


def main():
    text = open(CONFIG, encoding="utf-8").read()
    document = json.loads(blank(text))
    upstream = document.get("upstream", {})
    path = os.path.join(HERE, os.environ.get("SALLYPORT_UPSTREAM_FILE") or upstream.get("file") or "upstream.json")
    into = OPTIONS.get("into") or ("/var/lib/sallyport-servers" if HERE.startswith("/etc/") else f"{HERE}/servers")
    servers = open(path, encoding="utf-8").read() if os.path.exists(path) else '{\n\t"mcpServers": {\n\t}\n}\n'
    there = places(servers)
    member = "mcpServers" if ("mcpServers",) in there else "servers"
    given, owner = entries(), account(document)
    for name in given:
        if name in json.loads(blank(servers)).get(member, {}):
            die(f"{path} has a server {name} already: remove its entry, or give this one another name")
    os.umask(0o022)
    made, named, binds = {}, [], []
    for name, entry in given.items():
        own = os.path.abspath(f"{into}/{name}")
        made[name] = converted(name, entry, own)
        shown = folders(made[name], own)
        named += [(name, folder) for folder in shown]
        if "url" not in made[name]:
            made[name]["binds"] = [*([own] if os.path.isdir(own) else []), *shown]
            binds += made[name]["binds"]
    every = [*upstream.get("binds", []), *binds]
    for below, above in ((a, b) for a in every for b in every if a.startswith(b + "/")):
        die(f"{below} is below {above}: jails are shown folders side by side; name one that is not in the other")
    agree(named)
    for name, entry in made.items():
        servers = insert(servers, (member,), f"{json.dumps(name)}: {dump(entry)}")
    new = [folder for folder in dict.fromkeys(binds) if folder not in upstream.get("binds", [])]
    if "upstream" not in document:
        text = insert(text, (), '"upstream": {\n}')
    if "binds" not in upstream:
        text = insert(text, ("upstream",), '"binds": []')
    for folder in reversed(new):
        text = insert(text, ("upstream", "binds"), json.dumps(folder))
    if not upstream.get("file") and not os.environ.get("SALLYPORT_UPSTREAM_FILE"):
        text = insert(text, ("upstream",), f'"file": {json.dumps(path)}')
    stat = os.stat(CONFIG)
    write(CONFIG + ".try", text, stat.st_mode & 0o777, (stat.st_uid, stat.st_gid))
    write(path + ".try", servers, 0o600, owner)
    attempt(CONFIG + ".try", path + ".try")
    write(path, servers, 0o600, owner)
    write(CONFIG, text, stat.st_mode & 0o777, (stat.st_uid, stat.st_gid))
    print(f"{path}: {', '.join(made)} added", file=sys.stderr)
    running = restart()
    if not running:
        print("Nothing runs by this configuration here: (re)start jailer and gateway", file=sys.stderr)
    good = check(made, running)
    words = ", ".join(json.dumps(name) for name in made)
    print(f'A token with --servers {",".join(made)} (or *) may call them: run_code with "servers": [{words}]', file=sys.stderr)
    sys.exit(0 if good else 1)


main()
