double sum(double a, double b);
