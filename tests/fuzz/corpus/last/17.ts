do { console.log(1) } while (false)
`${1 + 1} and ${`x${2}`}`
