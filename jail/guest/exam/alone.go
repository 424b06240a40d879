// alone.go - main of a Go program of code and tests. See alone.py and sealed.go.
//
// Code and tests are one package, in which the code may declare what it likes: names of the language, too, which would then mean the
// code's in the tests. Where it declares one of these, the program does not compile.
package main

import (
	"./sealed"
	"testing"
)

const (
	true  = 0 == 0
	false = 0 != 0
	_     = len("") + cap([0]byte{})
)

var (
	_ []byte = append([]byte(nil), ""...)
	_        = make([]byte, 0, *new(byte))
	_ func() = nil
	_ *byte  = nil

	_ func(bool, byte, error, float32, float64, int, int8, int16, int32, int64, rune, string, uint, uint8, uint16, uint32, uint64) = sealed.Names
)

func main() {
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
		sealed.End(end)
	}
	tests = append(tests, testing.InternalTest{Name: "Last", F: last})
	testing.Main(func(_, _ string) (bool, error) { return true, nil }, tests, nil, nil)
}
