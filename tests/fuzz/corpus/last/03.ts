class A<T> {
  constructor(private v: T) {}
  get(): T { return this.v; }
}
const c = new A<number>(5);
c.get();
