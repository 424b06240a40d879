const x = null as any
x.y.z
