// global.mjs - loaded before a program: `tools` is a global, and the module `tools` is found by programs in /data, too. What a program
// does not use is not loaded.
import module from 'node:module';

const require = module.createRequire(import.meta.url);
let loaded;
Object.defineProperty(globalThis, 'tools', {
	configurable: true,
	get: () => (loaded ??= require('./core.mjs').tools),
	set: (value) => Object.defineProperty(globalThis, 'tools', { value, writable: true, configurable: true }),
});
const PLACE = 'file:///code/node_modules/tools/';
module.registerHooks?.({
	resolve(specifier, context, next) {
		if (specifier === 'tools') return { url: `${PLACE}index.mjs`, shortCircuit: true };
		if (specifier.startsWith('tools/')) return { url: `${PLACE}${specifier.slice(6)}.mjs`, shortCircuit: true };
		return next(specifier, context);
	},
});
