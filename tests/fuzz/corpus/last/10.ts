const words = "a b c".split(" ")
const counts = words
  .filter((w) => w !== 'a')
  .reduce((m, w) => { m[w] = (m[w] ?? 0) + 1; return m }, {} as Record<string, number>)
counts
