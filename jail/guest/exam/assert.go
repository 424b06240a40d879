// assert.go - what HumanEvalPack's tests use of testify.
package main

import (
	"reflect"
	"testing"
)

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
