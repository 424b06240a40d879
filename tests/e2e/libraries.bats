#!/usr/bin/env bats
# The Python libraries that models import without asking (`make deps`): each is imported in a jail within the default limits, and
# does one small thing. Those that are not there are skipped.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_private_jailers
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# uses MODULE STDOUT: the program on standard input prints that, and nothing is refused.
uses() {
	/usr/bin/python3 -I -c 'import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)' "$1" ||
		skip "Python has no module $1 here: make deps"
	cat >program.py
	run --separate-stderr "$SP_BIN/sallyport" run --json -t 240 program.py # the time is for a busy machine
	# shellcheck disable=SC2154 # bats sets stderr
	echo "$output" "$stderr"
	[ "$(jq -r .verdict <<<"$output")" = OK ]
	[ "$(jq -r .stdout <<<"$output")" = "$2" ]
	[ "$(jq -c .denied <<<"$output")" = '[]' ]
}

@test "openpyxl: a workbook that pandas reads again" {
	uses openpyxl '{"n":{"0":1,"1":2},"twice":{"0":2,"1":4}}' <<-'EOP'
		import openpyxl, pandas
		book = openpyxl.Workbook()
		for row in ["n", "twice"], [1, 2], [2, 4]:
		    book.active.append(row)
		book.save("book.xlsx")
		print(pandas.read_excel("book.xlsx").to_json())
	EOP
}

@test "seaborn: a plot" {
	uses seaborn True <<-'EOP'
		import seaborn
		seaborn.barplot(x=["a", "b"], y=[1, 2]).figure.savefig("bars.png")
		print(open("bars.png", "rb").read(4) == b"\x89PNG")
	EOP
}

@test "scikit-learn: a fit, with BLAS and OpenMP in one thread each" {
	uses sklearn '2.0 1.0 1' <<-'EOP'
		import numpy as np
		from sklearn.cluster import KMeans
		from sklearn.linear_model import LinearRegression
		x = np.arange(4000.0).reshape(1000, 4) % 7
		kinds = KMeans(2, n_init=1, random_state=1).fit(np.array([[0.0], [1], [10], [11]])).labels_
		threads = open("/proc/self/status").read().split("Threads:")[1].split()[0]
		print(LinearRegression().fit(x[:, :1], 2 * x[:, 0]).coef_[0].round(6), float(kinds[0] == kinds[1] != kinds[2]), threads)
	EOP
}

@test "statsmodels: ordinary least squares" {
	uses statsmodels '[1. 2.]' <<-'EOP'
		import numpy as np, statsmodels.api as sm
		x = np.arange(10.0)
		print(sm.OLS(1 + 2 * x, sm.add_constant(x)).fit().params.round(6))
	EOP
}

@test "bs4 and lxml: a page, an XPath" {
	uses bs4 "b ['c']" <<-'EOP'
		import bs4, lxml.html
		page = "<p class=x>a<b>b</b><i>c</i>"
		print(bs4.BeautifulSoup(page, "lxml").b.text, lxml.html.fromstring(page).xpath("//i/text()"))
	EOP
}

@test "reportlab and pypdf read and write a document" {
	uses reportlab '1 Grüße' <<-'EOP'
		import pypdf
		from reportlab.pdfgen import canvas
		page = canvas.Canvas("a.pdf")
		page.drawString(72, 720, "Grüße")
		page.save()
		reader = pypdf.PdfReader("a.pdf")
		print(len(reader.pages), reader.pages[0].extract_text().strip())
	EOP
}

@test "python-docx reads what it wrote" {
	uses docx "['Title', 'text']" <<-'EOP'
		import docx
		document = docx.Document()
		document.add_heading("Title")
		document.add_paragraph("text")
		document.save("a.docx")
		print([one.text for one in docx.Document("a.docx").paragraphs])
	EOP
}

@test "python-pptx reads what it wrote" {
	uses pptx "['Title']" <<-'EOP'
		import pptx
		deck = pptx.Presentation()
		deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = "Title"
		deck.save("a.pptx")
		print([one.shapes.title.text for one in pptx.Presentation("a.pptx").slides])
	EOP
}

@test "PIL: a picture" {
	uses PIL '(4, 3) (255, 0, 0)' <<-'EOP'
		from PIL import Image
		Image.new("RGB", (4, 3), "red").save("a.png")
		picture = Image.open("a.png")
		print(picture.size, picture.getpixel((1, 1)))
	EOP
}

@test "sympy: an equation" {
	uses sympy '[-2, 2]' <<-'EOP'
		import sympy
		print(sympy.solve("x**2 - 4"))
	EOP
}

@test "networkx: a way" {
	uses networkx '[1, 2, 3]' <<-'EOP'
		import networkx
		print(networkx.shortest_path(networkx.Graph([(1, 2), (2, 3), (3, 4)]), 1, 3))
	EOP
}

@test "plotly: a figure as a page" {
	uses plotly True <<-'EOP'
		import plotly.graph_objects as go
		go.Figure(go.Bar(y=[1, 2])).write_html("a.html", include_plotlyjs="cdn")
		print("plotly" in open("a.html").read())
	EOP
}
