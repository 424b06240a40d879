// split.go - Go code and its tests in two processes: calls cross as lines of text, values as words in them. See split.hpp. Slices, maps and
// what pointers lead to may be changed by the function: they come back after a call.
package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

type sallyportApart struct{ why string } // this cannot cross
type sallyportEnded struct{}

type sallyportLinkType struct {
	in  *bufio.Reader
	out int
}

var sallyportLink = sallyportOpen()

func sallyportOpen() sallyportLinkType {
	in, _ := syscall.Dup(0)
	out, _ := syscall.Dup(1)
	syscall.CloseOnExec(in)
	syscall.CloseOnExec(out)
	null, _ := syscall.Open("/dev/null", syscall.O_RDONLY, 0)
	syscall.Dup3(null, 0, 0)
	syscall.Dup3(2, 1, 0)
	return sallyportLinkType{bufio.NewReader(os.NewFile(uintptr(in), "questions")), out}
}

func (l sallyportLinkType) say(line string) {
	for data := []byte(line); len(data) > 0; {
		n, err := syscall.Write(l.out, data)
		if err != nil && err != syscall.EINTR && err != syscall.EAGAIN {
			os.Exit(2)
		}
		if n > 0 {
			data = data[n:]
		}
	}
}

// What an interface holds, by name.
var sallyportTypes = map[string]reflect.Type{}

func init() {
	for _, v := range []interface{}{0, int8(0), int16(0), int32(0), int64(0), uint(0), uint8(0), uint16(0), uint32(0), uint64(0), float32(0),
		0.0, "", false, complex128(0), []int{}, []string{}, []float64{}, []bool{}, []byte{}, []rune{}, []interface{}{}, [][]int{},
		map[string]interface{}{}, map[interface{}]interface{}{}, map[string]string{}, map[string]int{}, map[int]int{}} {
		sallyportTypes[reflect.TypeOf(v).String()] = reflect.TypeOf(v)
	}
}

var sallyportError = reflect.TypeOf((*error)(nil)).Elem()

// A field also where its name is not exported.
func sallyportField(v reflect.Value, i int) reflect.Value {
	return reflect.NewAt(v.Field(i).Type(), unsafe.Pointer(v.Field(i).UnsafeAddr())).Elem()
}

func sallyportText(text string) string { return strconv.Itoa(len(text)) + " " + hex.EncodeToString([]byte(text)) + " " }

func sallyportPut(to *strings.Builder, v reflect.Value) {
	word := func(w string) { to.WriteString(w + " ") }
	switch v.Kind() {
	case reflect.Bool:
		word(strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		word(strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		word(strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		word(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	case reflect.Complex64, reflect.Complex128:
		word(strconv.FormatFloat(real(v.Complex()), 'g', -1, 64))
		word(strconv.FormatFloat(imag(v.Complex()), 'g', -1, 64))
	case reflect.String:
		to.WriteString(sallyportText(v.String()))
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			word("-1")
			return
		}
		word(strconv.Itoa(v.Len()))
		for i := 0; i < v.Len(); i++ {
			sallyportPut(to, v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() {
			word("-1")
			return
		}
		word(strconv.Itoa(v.Len()))
		for _, key := range v.MapKeys() {
			sallyportPut(to, key)
			sallyportPut(to, v.MapIndex(key))
		}
	case reflect.Ptr:
		if v.IsNil() {
			word("0")
			return
		}
		word("1")
		sallyportPut(to, v.Elem())
	case reflect.Struct:
		whole := reflect.New(v.Type()).Elem()
		whole.Set(v)
		for i := 0; i < v.NumField(); i++ {
			sallyportPut(to, sallyportField(whole, i))
		}
	case reflect.Interface:
		if v.IsNil() {
			word("nil")
			return
		}
		name := v.Elem().Type().String()
		if _, known := sallyportTypes[name]; known {
			to.WriteString(sallyportText(name))
			sallyportPut(to, v.Elem())
			return
		}
		if v.Type().Implements(sallyportError) {
			word("error")
			to.WriteString(sallyportText(v.Interface().(error).Error()))
			return
		}
		panic(sallyportApart{"a value of type " + name})
	default:
		panic(sallyportApart{"a value of type " + v.Type().String()})
	}
}

type sallyportWords struct{ words []string }

func (w *sallyportWords) word() string {
	if len(w.words) == 0 {
		panic(errors.New("the answer is not a value"))
	}
	word := w.words[0]
	w.words = w.words[1:]
	return word
}
func (w *sallyportWords) count() int {
	n, _ := strconv.Atoi(w.word())
	if n > len(w.words) {
		panic(errors.New("the answer is not a value"))
	}
	return n
}
func (w *sallyportWords) text() string {
	w.word()
	data, _ := hex.DecodeString(w.word())
	return string(data)
}
func (w *sallyportWords) float() float64 {
	f, _ := strconv.ParseFloat(w.word(), 64)
	return f
}

func sallyportGet(from *sallyportWords, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(from.word() == "true")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, _ := strconv.ParseInt(from.word(), 10, 64)
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n, _ := strconv.ParseUint(from.word(), 10, 64)
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(from.float())
	case reflect.Complex64, reflect.Complex128:
		re := from.float()
		v.SetComplex(complex(re, from.float()))
	case reflect.String:
		v.SetString(from.text())
	case reflect.Slice:
		n := from.count()
		if n < 0 {
			v.Set(reflect.Zero(v.Type()))
			return
		}
		made := reflect.MakeSlice(v.Type(), n, n)
		for i := 0; i < n; i++ {
			sallyportGet(from, made.Index(i))
		}
		v.Set(made)
	case reflect.Array:
		from.word()
		for i := 0; i < v.Len(); i++ {
			sallyportGet(from, v.Index(i))
		}
	case reflect.Map:
		n := from.count()
		if n < 0 {
			v.Set(reflect.Zero(v.Type()))
			return
		}
		made := reflect.MakeMap(v.Type())
		for ; n > 0; n-- {
			key, item := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			sallyportGet(from, key)
			sallyportGet(from, item)
			made.SetMapIndex(key, item)
		}
		v.Set(made)
	case reflect.Ptr:
		if from.word() == "0" {
			v.Set(reflect.Zero(v.Type()))
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		sallyportGet(from, v.Elem())
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			sallyportGet(from, sallyportField(v, i))
		}
	case reflect.Interface:
		if len(from.words) > 0 && (from.words[0] == "nil" || from.words[0] == "error") {
			if from.word() == "nil" {
				v.Set(reflect.Zero(v.Type()))
			} else {
				v.Set(reflect.ValueOf(errors.New(from.text())))
			}
			return
		}
		held, known := sallyportTypes[from.text()]
		if !known {
			panic(errors.New("the answer is not a value"))
		}
		made := reflect.New(held).Elem()
		sallyportGet(from, made)
		v.Set(made)
	default:
		panic(sallyportApart{"a value of type " + v.Type().String()})
	}
}

// Changes `v` to what is in `now`, in place.
func sallyportUpdate(v, now reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		reflect.Copy(v, now)
	case reflect.Map:
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.Value{})
		}
		for _, key := range now.MapKeys() {
			v.SetMapIndex(key, now.MapIndex(key))
		}
	case reflect.Ptr:
		if !v.IsNil() && !now.IsNil() {
			v.Elem().Set(now.Elem())
		}
	}
}

// The function in the tests' program: of the type that it has in the other one.
func sallyportRemote(f interface{}) interface{} {
	kind := reflect.TypeOf(f)
	return reflect.MakeFunc(kind, func(args []reflect.Value) []reflect.Value {
		var to strings.Builder
		for _, arg := range args {
			sallyportPut(&to, arg)
		}
		sallyportLink.say("Q" + to.String() + "\n")
		line, err := sallyportLink.in.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		if err != nil || line == "E" || line == "" {
			panic(sallyportEnded{})
		}
		from := &sallyportWords{strings.Split(line[1:], " ")}
		if line[0] == '!' {
			panic(errors.New(from.text()))
		}
		results := []reflect.Value{}
		for i := 0; i < kind.NumOut(); i++ {
			result := reflect.New(kind.Out(i)).Elem()
			sallyportGet(from, result)
			results = append(results, result)
		}
		for _, arg := range args {
			now := reflect.New(arg.Type()).Elem()
			sallyportGet(from, now)
			sallyportUpdate(arg, now)
		}
		return results
	}).Interface()
}

func sallyportCall(f reflect.Value, line string) (answer string) {
	defer func() {
		if why := recover(); why != nil {
			answer = "!" + sallyportText(fmt.Sprint(why))
		}
	}()
	from := &sallyportWords{strings.Split(line, " ")}
	args := []reflect.Value{}
	for i := 0; i < f.Type().NumIn(); i++ {
		arg := reflect.New(f.Type().In(i)).Elem()
		sallyportGet(from, arg)
		args = append(args, arg)
	}
	var to strings.Builder
	to.WriteString("=")
	results := f.Call
	if f.Type().IsVariadic() {
		results = f.CallSlice
	}
	for i, result := range results(args) {
		typed := reflect.New(f.Type().Out(i)).Elem()
		typed.Set(result)
		sallyportPut(&to, typed)
	}
	for _, arg := range args {
		sallyportPut(&to, arg)
	}
	return to.String()
}

func sallyportServe(f interface{}) {
	for {
		line, err := sallyportLink.in.ReadString('\n')
		if err != nil {
			return
		}
		sallyportLink.say(sallyportCall(reflect.ValueOf(f), strings.TrimSuffix(line, "\n")) + "\n")
	}
}
