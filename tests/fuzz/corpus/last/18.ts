let z = 5, y = 6;
(z, y)
