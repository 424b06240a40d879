switch (3) { case 3: console.log('three'); break; default: console.log('x') }
typeof 5
