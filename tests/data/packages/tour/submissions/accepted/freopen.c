#include <math.h>
#include <stdio.h>
int main(void)
{
	int n;
	if (!freopen("/dev/stdin", "r", stdin) || scanf("%d", &n) != 1)
		return 1;
	for (int i = 0; i < n; i++)
		printf("%.0f\r\n", floor(i + 1.5));
	return 0;
}
