// tail.cjs - shows the value of a TypeScript program's last expression. It is put behind `instanceof` there (jail/cell/last.h), whose left side it gets.
// All of it is compiled with the program, so its length counts. What is no plain data is shown by show.cjs, which is read only then.
({
	left: 200,
	plain(value) { // no code of the program has a part in showing it, and it is small
		if (value === null || typeof value !== 'object') return typeof value !== 'function';
		const kind = Object.getPrototypeOf(value);
		if (kind === Array.prototype ? value.length > this.left : kind !== Object.prototype) return false;
		const names = Reflect.ownKeys(value);
		for (let i = 0; i < names.length; i++) {
			const own = Object.getOwnPropertyDescriptor(value, names[i]);
			if (this.left-- === 0 || typeof names[i] === 'symbol' || own.get || own.set || !this.plain(own.value)) return false;
		}
		return true;
	},
	[Symbol.hasInstance](value) {
		if (value === undefined || value === null || typeof value === 'function') return;
		try {
			if (this.plain(value)) return console.log(Bun.inspect(typeof value === 'string' ? value.slice(0, 16384) : value).slice(0, 16384));
			if (value instanceof globalThis.Promise) return;
			Object.defineProperty(globalThis, '\u1405', { value, configurable: true });
			globalThis.eval(globalThis.process.getBuiltinModule('node:fs').readFileSync('/code/.show', 'latin1'));
		} catch {
			// the program runs without
		}
	},
})
