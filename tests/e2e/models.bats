#!/usr/bin/env bats
# Tasks as a model writes them, in the default limits: each works at the first try.

bats_require_minimum_version 1.5.0
load lib.bash
load gateway.bash

setup_file() {
	sp_serve alice
}

# does MODULE OUTPUT: the Python program on standard input ends well, prints that, and says nothing on stderr.
does() {
	/usr/bin/python3 -I -c 'import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)' "$1" || skip "no $1: make deps"
	sp_call run_code "$(jq -nc --rawfile c /dev/stdin '{conversationId: "m", language: "python", code: $c, timeout_seconds: 300}')"
	[ "$(sp_get '[details.verdict, details.stderr] | tojson')" = '["OK",""]' ] || sp_die "$(<"$SP_DIR/body")"
	[ "$(sp_get details.stdout)" = "$2" ] || sp_die "$(sp_get details.stdout)"
}

@test "a spreadsheet is written and summed" {
	does openpyxl '300 [100, 200]' <<-'END'
		from openpyxl import Workbook, load_workbook
		from openpyxl.styles import Font
		wb = Workbook()
		ws = wb.active
		ws.title = "Sales"
		ws.append(["Month", "Amount"])
		for row in [("Jan", 100), ("Feb", 200)]:
		    ws.append(row)
		ws["B4"] = "=SUM(B2:B3)"
		ws["A1"].font = Font(bold=True)
		wb.save("/mnt/data/sales.xlsx")
		import pandas as pd
		df = pd.read_excel("/mnt/data/sales.xlsx").dropna(subset=["Month"])
		print(int(df["Amount"].sum()), df["Amount"].astype(int).tolist())
	END
}

@test "a letter is written" {
	does docx "['Report', 'First point', 'Second point'] 2" <<-'END'
		from docx import Document
		doc = Document()
		doc.add_heading("Report", level=1)
		for text in ("First point", "Second point"):
		    doc.add_paragraph(text, style="List Bullet")
		table = doc.add_table(rows=2, cols=2)
		table.cell(0, 0).text = "Name"
		doc.save("report.docx")
		doc = Document("report.docx")
		print([p.text for p in doc.paragraphs], len(doc.tables[0].rows))
	END
}

@test "the text of a PDF is read in each way" {
	does reportlab "['Invoice 42', 'Invoice 42', 'Invoice 42']" <<-'END'
		from reportlab.lib.pagesizes import A4
		from reportlab.pdfgen import canvas
		c = canvas.Canvas("invoice.pdf", pagesize=A4)
		c.drawString(100, 750, "Invoice 42")
		c.save()
		import fitz
		from pdfminer.high_level import extract_text
		from pypdf import PdfReader
		doc = fitz.open("invoice.pdf")
		print([PdfReader("invoice.pdf").pages[0].extract_text().strip(), doc[0].get_text().strip(), extract_text("invoice.pdf").strip()])
	END
}

@test "a heat map is drawn" {
	does seaborn 'saved' <<-'END'
		import matplotlib.pyplot as plt
		import numpy as np
		import pandas as pd
		import seaborn as sns
		sns.set_theme(style="whitegrid")
		df = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), columns=list("abc"))
		sns.heatmap(df.corr(), annot=True, cmap="coolwarm")
		plt.tight_layout()
		plt.savefig("heatmap.png", dpi=150)
		print("saved")
	END
	[ "$(sp_get '[.result.content[] | select(.type == "image")] | length')" = 1 ]
}

@test "a forest is fitted on all cores" {
	does sklearn True <<-'END'
		from sklearn.datasets import load_iris
		from sklearn.ensemble import RandomForestClassifier
		from sklearn.model_selection import cross_val_score, train_test_split
		X, y = load_iris(return_X_y=True)
		X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=42)
		model = RandomForestClassifier(n_estimators=100, n_jobs=-1, random_state=42).fit(X_train, y_train)
		print(model.score(X_test, y_test) > 0.9)
	END
}

@test "a database of SQLite is asked" {
	does sqlite3 "[('ann', 2), ('bob', 1)]" <<-'END'
		import sqlite3
		with sqlite3.connect("shop.db") as db:
		    db.execute("CREATE TABLE orders (who TEXT, amount REAL)")
		    db.executemany("INSERT INTO orders VALUES (?, ?)", [("ann", 1.5), ("bob", 2), ("ann", 3)])
		    print(db.execute("SELECT who, count(*) FROM orders GROUP BY who ORDER BY who").fetchall())
	END
}

@test "an archive is packed and unpacked" {
	does zipfile "['a.txt', 'sub/b.txt'] beta" <<-'END'
		import pathlib, shutil, zipfile
		root = pathlib.Path("pack")
		(root / "sub").mkdir(parents=True, exist_ok=True)
		(root / "a.txt").write_text("alpha")
		(root / "sub" / "b.txt").write_text("beta")
		shutil.make_archive("packed", "zip", root)
		with zipfile.ZipFile("packed.zip") as z:
		    z.extractall("unpacked")
		    print(sorted(n for n in z.namelist() if not n.endswith("/")), pathlib.Path("unpacked/sub/b.txt").read_text())
	END
}

@test "a picture is resized and written on" {
	does PIL '(200, 100) RGB' <<-'END'
		from PIL import Image, ImageDraw, ImageFont
		img = Image.new("RGB", (400, 200), "white")
		draw = ImageDraw.Draw(img)
		draw.text((10, 10), "Hello", fill="black", font=ImageFont.load_default())
		img = img.resize((200, 100), Image.Resampling.LANCZOS)
		img.save("hello.jpg", quality=90)
		print(img.size, img.mode)
	END
}

@test "a text is taken apart by patterns" {
	does regex "['2024-01-05', '2024-12-31'] ['Straße', 'Ω']" <<-'END'
		import re
		import regex
		text = "from 2024-01-05 to 2024-12-31"
		print(re.findall(r"\d{4}-\d{2}-\d{2}", text), regex.findall(r"\p{Lu}\p{Ll}*", "die Straße Ω"))
	END
}

@test "an equation is solved" {
	does sympy '[-2, 2] x**3/3 - 4*x' <<-'END'
		from sympy import Eq, integrate, solve, symbols
		x = symbols("x")
		print(solve(Eq(x**2, 4), x), integrate(x**2 - 4, x))
	END
}

@test "an HTTP service is mocked" {
	does responses "200 {'ok': True} 1" <<-'END'
		import requests
		import responses

		@responses.activate
		def fetch():
		    responses.add(responses.GET, "https://api.example.com/v1", json={"ok": True}, status=200)
		    r = requests.get("https://api.example.com/v1")
		    print(r.status_code, r.json(), len(responses.calls))

		fetch()
	END
}

@test "files of other encodings are read" {
	does chardet "True Grüße ['Zürich'] 日本" <<-'END'
		import csv
		import chardet
		data = "Grüße aus Köln, schöne Tage für Jürgen".encode("latin-1")
		print(chardet.detect(data)["encoding"].startswith("ISO-8859"), data.decode("latin-1")[:5], end=" ")
		with open("cp.csv", "w", encoding="cp1252", newline="") as f:
		    csv.writer(f).writerow(["Zürich"])
		print(next(csv.reader(open("cp.csv", encoding="cp1252"))), "日本".encode("shift_jis").decode("shift_jis"))
	END
}

@test "small helpers are there" {
	does tabulate $'name      n\n------  ---\nann       1\nHello Ann\n[1, 2]\nb' <<-'END'
		import bs4, jinja2, psutil, pytest, tqdm, yaml
		from tabulate import tabulate
		print(tabulate([["ann", 1]], headers=["name", "n"]))
		print(jinja2.Template("Hello {{ name }}").render(name="Ann"))
		print(yaml.safe_load("a: [1, 2]")["a"])
		print(bs4.BeautifulSoup("<a><b>b</b></a>", "html.parser").b.text)
		assert psutil.cpu_count() and list(tqdm.tqdm([1], disable=True))
	END
}
