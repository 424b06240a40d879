const f = async (x: number) => { await null; return x };
await f([1].length)
