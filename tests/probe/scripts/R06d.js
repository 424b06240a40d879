// R06d | recursion without end, in JavaScript | runner=javascript memory_mb=256
const deeper = (n) => deeper(n + 1) + 1;
try {
  deeper(0);
  console.log("BROKEN: it came back");
} catch (error) {
  if (!(error instanceof RangeError)) console.log("BROKEN: " + error);
}
console.log("held");
