type T = | 'a' | 'b'
enum E { X = 1, Y }
const t: T = 'a'
E.Y
