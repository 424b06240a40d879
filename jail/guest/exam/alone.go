// alone.go - main of a Go program of code and tests. See alone.py; what it knows is in variables of main, which the code cannot name.
package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"reflect"
	"syscall"
	"testing"
)

// What HumanEvalPack's tests use of testify.
type assertPackage struct{}
type assertions struct{ t *testing.T }

var assert assertPackage

func (assertPackage) New(t *testing.T) *assertions { return &assertions{t} }

func (a *assertions) say(ok bool, why string, values ...interface{}) bool {
	if !ok {
		a.t.Helper()
		a.t.Errorf(why, values...)
	}
	return ok
}
func (a *assertions) Equal(expected, actual interface{}, _ ...interface{}) bool {
	return a.say(reflect.DeepEqual(expected, actual), "Not equal: expected %#v, actual %#v", expected, actual)
}
func (a *assertions) NotEqual(expected, actual interface{}, _ ...interface{}) bool {
	return a.say(!reflect.DeepEqual(expected, actual), "Should not be: %#v", actual)
}
func (a *assertions) True(value bool, _ ...interface{}) bool  { return a.say(value, "Should be true") }
func (a *assertions) False(value bool, _ ...interface{}) bool { return a.say(!value, "Should be false") }
func isNil(v interface{}) bool {
	if v == nil {
		return true
	}
	k := reflect.ValueOf(v)
	switch k.Kind() {
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Ptr, reflect.Slice:
		return k.IsNil()
	}
	return false
}
func (a *assertions) Nil(v interface{}, _ ...interface{}) bool    { return a.say(isNil(v), "Should be nil: %#v", v) }
func (a *assertions) NotNil(v interface{}, _ ...interface{}) bool { return a.say(!isNil(v), "Should not be nil") }
func (a *assertions) InDelta(expected, actual interface{}, delta float64, _ ...interface{}) bool {
	float := reflect.TypeOf(float64(0))
	x, y := reflect.ValueOf(expected), reflect.ValueOf(actual)
	if !x.IsValid() || !y.IsValid() || !x.CanConvert(float) || !y.CanConvert(float) {
		return a.say(false, "not numbers: %#v, %#v", expected, actual)
	}
	d := x.Convert(float).Float() - y.Convert(float).Float()
	return a.say(d >= -delta && d <= delta, "%v is not within %v of %v", actual, delta, expected)
}

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
