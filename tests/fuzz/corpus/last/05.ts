const o = { a: 1, b: { c: [1, 2] }, f() { return 1 } };
o.b.c[0] / 2
