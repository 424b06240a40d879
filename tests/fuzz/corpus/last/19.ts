const d = new Date(0) // comment; here
d.getTime() /* and
here */
