if (1) {
  console.log("one");
} else {
  console.log('two')
}
[1, 2].length
