function f(x: number): number {
  if (x > 2) throw new RangeError(`too ${x}`);
  return f(x + 1);
}
f(0)
