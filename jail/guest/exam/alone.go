// alone.go - main of a Go program of code and tests. See alone.py; what it knows is in variables of main, which the code cannot name.
package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"syscall"
	"testing"
)

func main() {
	nonce := make([]byte, 32)
	n, err := syscall.Read(0, nonce)
	word := make([]byte, 2)
	if _, bad := rand.Read(word); n != len(nonce) || err != nil || bad != nil {
		os.Exit(2)
	}
	out := 100 + (int(word[0])*256+int(word[1]))%900
	null, _ := syscall.Open("/dev/null", syscall.O_RDONLY, 0)
	if syscall.Dup3(1, out, syscall.O_CLOEXEC) != nil || syscall.Dup3(null, 0, 0) != nil || syscall.Dup3(2, 1, 0) != nil {
		os.Exit(2)
	}
	tests := []testing.InternalTest{ /*TESTS*/ }
	passed := 0
	for i, test := range tests {
		run := test.F
		tests[i].F = func(t *testing.T) {
			run(t)
			if !t.Failed() {
				passed++
			}
		}
	}
	all := len(tests)
	// The last test says what the others came to: testing.Main does not return.
	last := func(*testing.T) {
		end := "wrong\n"
		if passed == all {
			end = "passed\n"
		}
		if _, err := syscall.Write(out, []byte(string(nonce)+end)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	tests = append(tests, testing.InternalTest{Name: "Last", F: last})
	testing.Main(func(_, _ string) (bool, error) { return true, nil }, tests, nil, nil)
}
