import { join } from "node:path";
const s = 'a/b'.split(/[/]/g);
join(...s, `x${s.length}`)
