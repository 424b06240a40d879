// sealed.go - the nonce of a Go program of code and tests (alone.go): a package of its own, so that all here is done before any variable of
// the code's begins, and so that the code cannot name it: imports of such packages are taken out of samples (grade_compose.c).
package sealed

import (
	"crypto/rand"
	"encoding/binary"
	"os"
	"syscall"
)

var (
	nonce, seed, out = begin()
	self             = os.Getpid()
)

// What a byte of the nonce is hidden by.
func mask(seed [2]uint64, i int) byte {
	x := (seed[0]+uint64(i))*6364136223846793005 + seed[1]
	x ^= x >> 31
	return byte(x * 1442695040888963407 >> 56)
}

func begin() (nonce [32]byte, seed [2]uint64, out int) {
	n, err := syscall.Read(0, nonce[:])
	if bad := binary.Read(rand.Reader, binary.LittleEndian, &seed); n != len(nonce) || err != nil || bad != nil {
		os.Exit(2)
	}
	for i := range nonce {
		nonce[i] ^= mask(seed, i)
	}
	out = 100 + int(seed[0]%900)
	null, _ := syscall.Open("/dev/null", syscall.O_RDONLY, 0)
	if syscall.Dup3(1, out, syscall.O_CLOEXEC) != nil || syscall.Dup3(null, 0, 0) != nil || syscall.Dup3(2, 1, 0) != nil {
		os.Exit(2)
	}
	return
}

// End says how the tests ended, in a word and a newline.
func End(word string) {
	text := nonce
	for i := range text {
		text[i] ^= mask(seed, i)
	}
	if os.Getpid() == self { // else it is a copy, which tries another answer
		syscall.Write(out, append(text[:], word...))
	}
}

// Names has the types that the language names.
func Names(bool, byte, error, float32, float64, int, int8, int16, int32, int64, rune, string, uint, uint8, uint16, uint32, uint64) {}
