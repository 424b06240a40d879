import java.util.Scanner;

public class Main {
	public static void main(String[] a) {
		int n = new Scanner(System.in).nextInt();
		StringBuilder tour = new StringBuilder();

		for (int i = 1; i <= n; i++)
			tour.append(i).append(' ');
		System.out.println(tour);
	}
}
