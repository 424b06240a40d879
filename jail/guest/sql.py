# sql.py - runs a program in SQL over the files of /data, with the library sqlite3 that Python has.
#
#     sql.py main.sql [ARGUMENT…]         arguments are the statements' parameters: ?1, ?2 …
#
# Databases (*.db, *.sqlite, *.sqlite3, *.db3): the only one is what the statements work on, and what they change in it stays; of several
# each is attached by its name, as is the only one. CSV and TSV files that the program names are tables of their names, and standard input
# is the table stdin: read when the program begins, lost when it ends. Their columns are INTEGER or REAL where every value is a number
# (007 is none), else TEXT; an empty field of a number's column is NULL. What a SELECT finds is a table in Markdown.
import csv
import io
import os
import re
import sqlite3
import sys

DATABASES = (".db", ".sqlite", ".sqlite3", ".db3")
TABLES = {".csv": ",", ".tsv": "\t"}
INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})$")
REAL = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?$|[+-]?\.[0-9]+([eE][+-]?[0-9]{1,3})?$")
SCHEMAS_MAX = 10  # SQLite's limit of attached databases


def quote(name):
    return '"' + name.replace('"', '""') + '"'


def kind_of(rows, column):
    kind = "INTEGER"
    for row in rows:
        text = row[column] if column < len(row) else ""
        if text and kind == "INTEGER" and not INTEGER.match(text):
            kind = "REAL"
        if text and kind == "REAL" and not REAL.match(text):
            return "TEXT"
    return kind if any(column < len(row) and row[column] for row in rows) else "TEXT"


def read_table(base, name, file, delimiter):
    rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    if not rows:
        return
    head = [text.strip() or f"column{number + 1}" for number, text in enumerate(rows.pop(0))]
    seen = set()
    for number, text in enumerate(head):
        while head[number].lower() in seen:
            head[number] += "_"
        seen.add(head[number].lower())
    kinds = [kind_of(rows, column) for column in range(len(head))]
    columns = ", ".join(f"{quote(text)} {kind}" for text, kind in zip(head, kinds))
    base.execute(f"CREATE TABLE temp.{quote(name)} ({columns})")
    places = ", ".join("?" * len(head))

    def values(row):
        row = (row + [""] * len(head))[: len(head)]
        return [None if not text and kind != "TEXT" else text for text, kind in zip(row, kinds)]

    base.executemany(f"INSERT INTO temp.{quote(name)} VALUES ({places})", map(values, rows))


def files(endings):
    for name in sorted(os.listdir(".")):
        stem, ending = os.path.splitext(name)
        if ending.lower() in endings and not name.startswith(".") and os.path.isfile(name):
            yield name, stem, ending.lower()


def mentioned(text, name):
    return re.search(r"(?<!\w)" + re.escape(name) + r"(?!\w)", text, re.IGNORECASE)


def open_base(text):
    databases = list(files(DATABASES))
    base = sqlite3.connect(databases[0][0] if len(databases) == 1 else ":memory:", isolation_level=None)
    wanted = [one for one in databases if mentioned(text, one[1])]
    if len(wanted) > SCHEMAS_MAX:
        raise sqlite3.OperationalError(f"the program names {len(wanted)} databases: {SCHEMAS_MAX} at most")
    for name, stem, _ in wanted:
        base.execute(f"ATTACH ? AS {quote(stem)}", (name,))
    csv.field_size_limit(sys.maxsize)
    for name, stem, ending in files(TABLES):
        if mentioned(text, stem):
            with open(name, newline="", encoding="utf-8-sig", errors="replace") as file:
                read_table(base, stem, file, TABLES[ending])
    if mentioned(text, "stdin"):
        read_table(base, "stdin", io.TextIOWrapper(sys.stdin.buffer, newline="", encoding="utf-8-sig", errors="replace"), ",")
    return base


def statements(text):
    """Each with the number of its first line."""
    line, begin, at = 1, 0, -1
    while begin < len(text):
        at = text.find(";", at + 1)
        end = at + 1 if at >= 0 else len(text)
        statement = text[begin:end]
        if at >= 0 and not sqlite3.complete_statement(statement):
            continue
        if statement.strip():
            yield statement, line + statement[: -len(statement.lstrip())].count("\n")
        line += statement.count("\n")
        begin = end


def value(text):
    return int(text) if INTEGER.match(text) else float(text) if REAL.match(text) else text


def cell(value):
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value[:32].hex()}'" + ("…" if len(value) > 32 else "")
    return str(value).replace("\\", "\\\\").replace("|", "\\|").replace("\r", "").replace("\n", " ")


def show(cursor, first):
    if not first:
        print()
    names = [cell(one[0]) for one in cursor.description]
    print("| " + " | ".join(names) + " |\n|" + " --- |" * len(names))
    for row in cursor:
        print("| " + " | ".join(map(cell, row)) + " |")


def main():
    with open(sys.argv[1], encoding="utf-8", errors="replace") as file:
        text = file.read()
    number, first = 1, True
    try:
        base = open_base(text)
        for statement, number in statements(text):
            wanted = [int(place) for place in re.findall(r"\?([1-9][0-9]?)", statement)] if sys.argv[2:] else []
            cursor = base.execute(statement, list(map(value, sys.argv[2 : 2 + max(wanted, default=0)])))
            if cursor.description:
                show(cursor, first)
                first = False
    except (sqlite3.Error, sqlite3.Warning, csv.Error) as error:
        sys.stdout.flush()
        print(f"line {number}: {error}", file=sys.stderr)
        sys.exit(1)
    except MemoryError:
        sys.exit("out of memory: a table, or what a statement finds, is larger than the run's limit")


main()
