const f = (x: number): number => x;
f(1);
