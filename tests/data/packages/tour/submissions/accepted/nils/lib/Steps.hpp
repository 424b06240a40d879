template <typename F> void steps(int n, F f) { for (int i = 1; i <= n; i++) f(i); }
