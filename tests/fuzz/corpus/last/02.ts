interface P { x: number; y?: string }
const p: P = { x: 1 };
p.x + 1
