try { JSON.parse('{') } catch (e) { console.log('caught') }
new Map([[1, 2]]).size
