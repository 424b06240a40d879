// tests.go - main of a Go program of tests whose code is in another process (split.go): the verdict, for the judge.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

func sallyportVerdict(end, why string) {
	if len(why) > 300 {
		why = why[:300]
	}
	text, _ := json.Marshal(why)
	sallyportLink.say(`V{"end":"` + end + `","text":` + string(text) + "}\nD0\n")
	os.Exit(0)
}

func main() {
	tests := []testing.InternalTest{ /*TESTS*/ }
	passed := 0
	for i, test := range tests {
		run := test.F
		tests[i].F = func(t *testing.T) {
			defer func() {
				switch why := recover().(type) {
				case nil:
				case sallyportEnded:
					sallyportVerdict("ended", "")
				case sallyportApart:
					sallyportVerdict("apart", why.why)
				default:
					sallyportVerdict("error", fmt.Sprint(why))
				}
			}()
			run(t)
			if !t.Failed() {
				passed++
			}
		}
	}
	all := len(tests)
	// The last test says what the others came to: testing.Main does not return.
	last := func(*testing.T) {
		if passed == all {
			sallyportVerdict("passed", "")
		}
		sallyportVerdict("wrong", "")
	}
	tests = append(tests, testing.InternalTest{Name: "Last", F: last})
	testing.Main(func(_, _ string) (bool, error) { return true, nil }, tests, nil, nil)
}
