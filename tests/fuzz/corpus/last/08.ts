let i = 0;
for (let k = 0; k < 3; k++) {
  i += k
}
i
