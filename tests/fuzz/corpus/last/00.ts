const a: number[] = [1, 2, 3];
a.map((x) => x * 2)
