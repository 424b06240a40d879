// R03b | memory: heap, in JavaScript | runner=javascript memory_mb=128 ends=ML:memory else=weaker
const kept = [];
for (;;) kept.push(Buffer.alloc(1 << 20, kept.length));
