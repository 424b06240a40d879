// X09e | random numbers are the same twice, in JavaScript | runner=javascript twice=differs
console.log(Math.random());
console.log("held");
