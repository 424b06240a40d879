const g = function* () { yield 1; yield 2 };
[...g()].length
