"""rows.py DATABASE COUNT: puts COUNT ordinary runs of the last 24 hours into the record, and one in which every text is an attack; prints its id."""
import json
import random
import sqlite3
import sys
import time

ATTACK = '"><script>window.attacked=1</script><img src=x onerror="window.attacked=1">\u202e\x01'
HEAD = "instance, state, owner, conversation_name, created_us, language, fingerprint, network, args, limits, finished_us, verdict, message, " \
	"exit_code, run_wall_us, run_cpu_user_us, run_cpu_system_us, run_memory_peak, compile_wall_us, setup_us, warm, code, code_bytes, " \
	"stdin_bytes, stdout, stdout_bytes, stdout_truncated, stderr, stderr_bytes, stderr_truncated, recorded, result, id"
LIMITS = '{"wall_us":30000000,"cpu_us":30000000,"memory_bytes":268435456}'

database, count = sqlite3.connect(sys.argv[1], timeout=60), int(sys.argv[2])
random.seed(7)
instance = database.execute("SELECT id FROM instance LIMIT 1").fetchone()[0]
recorded = database.execute("SELECT coalesce(max(recorded), 0) FROM execution").fetchone()[0]
now = int(time.time() * 1e6)
code = "import pandas as pd\n" + "\n".join(f"x{i} = {i} * 3 + len('abcdefgh')" for i in range(40))


def new_id(us):
	ms = us // 1000
	return f"{ms >> 16:08x}-{ms & 0xffff:04x}-7{random.getrandbits(12):03x}-{0x8000 | random.getrandbits(14):04x}-{random.getrandbits(48):012x}"


def row(us, text, verdict, place, result):
	wall = int(random.lognormvariate(11.5, 1.4))
	return (instance, "finished", random.choice(["alice", "bob", "carol"]), text("chat"), us, text("python"), text("Python 3.11.2"), 0,
		json.dumps([text("one")]), LIMITS, us + wall, verdict, text("The program ended."), 0, wall, wall // 3, wall // 9,
		random.randrange(4 << 20, 200 << 20), 0, 9000, 1, text(f"print({place})\n" + code), len(code), 0, text(f"out {place}\n"), 6, 0, text("err"), 3, 0,
		recorded + place, result, new_id(us))


def ordinary():
	for i in range(count):
		verdict = random.choices(["OK", "RE", "TO", "ML", "SG", "CE", "CX"], [85, 9, 2, 1, 1, 1, 1])[0]
		yield row(now - int((count - i) * 86400e6 / count) - 60_000_000, lambda text: text, verdict, i + 1, None)


with database:
	insert = f"INSERT INTO execution ({HEAD}) VALUES ({', '.join('?' * 33)})"
	database.executemany(insert, ordinary())
	denied = json.dumps({"denied": [{"name": ATTACK, "number": 1}], "network": {"denied": [{"host": ATTACK, "port": 1, "reason": ATTACK}]}})
	bad = row(now, lambda text: ATTACK, "RE", count + 1, denied)
	database.execute(insert, bad)
	database.execute("INSERT OR IGNORE INTO tool_list (hash, definitions, first_us) VALUES (?, '[]', 0)", ("0" * 64,))
	database.execute("INSERT INTO execution_server VALUES (?, 0, ?, ?, ?, ?)", (bad[-1], ATTACK, ATTACK, ATTACK, "0" * 64))
	for i in range(3):
		began = now + i * 100_000
		database.execute("INSERT INTO tool_call (execution, seq, connection, server, tool, is_read, arguments, arguments_hash, occurrence, decision, rule, "
			"decided_by, state, kind, is_error, result, attempts, approval_us, queued_us, started_us, finished_us) "
			"VALUES (?, ?, 1, ?, ?, 0, ?, '', 0, 'allow', ?, ?, 'done', 'result', ?, ?, 1, 0, ?, ?, ?)",
			(bad[-1], i + 1, ATTACK, ATTACK, json.dumps({"a": ATTACK}), ATTACK, ATTACK, i % 2, json.dumps(ATTACK), began, began + 20_000, began + 150_000))
	database.execute("UPDATE searched SET through = (SELECT max(recorded) FROM execution)")  # the index's thread would be in the figures
print(bad[-1], bad[2])
