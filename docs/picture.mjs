/*
 * picture.mjs - what a terminal showed, as a picture: text in, SVG out. `make picture` draws docs/first-run.svg with it; the text is that of a
 * real start and a real call (tests/clients/readme.test.js, which also fails when the picture is not theirs any more).
 */
const COLUMNS = 100, LINE = 18, CHARACTER = 7.8, MARGIN = 16;

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/* A line as a terminal of so many columns breaks it. */
function wrapped(line) {
	const rows = [];
	for (let at = 0; at === 0 || at < line.length; at += COLUMNS) rows.push(line.slice(at, at + COLUMNS));
	return rows;
}

/* What was typed begins with "$ ", and is brighter. */
export function picture(text) {
	const rows = text.split('\n').flatMap((line) => wrapped(line).map((row) => ({ row, typed: line.startsWith('$ ') })));
	const width = Math.ceil(COLUMNS * CHARACTER + 2 * MARGIN), height = rows.length * LINE + 2 * MARGIN;
	const lines = rows.map(({ row, typed }, i) => `<text x="${MARGIN}" y="${MARGIN + (i + 1) * LINE - 5}"${typed ? ' fill="#ffffff"' : ''}>${escaped(row)}</text>`);
	return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
<rect width="100%" height="100%" rx="8" fill="#1e2127"/>
<g font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="13" fill="#abb2bf" style="white-space:pre">
${lines.join('\n')}
</g>
</svg>
`;
}
