package gofarm

import (
	"bytes"
	"regexp"
	"strings"
)

// A program may import the module ossl too, whose C code has the same global names as the farm's. The
// linker takes one definition of a name only, so the farm's names have a prefix.

const cPrefix = "osslstd_"

var (
	cComment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	// What has external linkage begins in the first column, and its own name is in lower case.
	cGlobal   = regexp.MustCompile(`(?m)^(\w+) [\w \t*]*?\b([a-z]\w*)(?:\(|\[[^\]\n]*\][;\s]| = |;)`)
	goExport  = regexp.MustCompile(`(?m)^//export (\w+)$`)
	asmGlobal = regexp.MustCompile(`\.globl (\w+)`)
)

func isC(name string) bool { return strings.HasSuffix(name, ".c") || strings.HasSuffix(name, ".h") }

// globalNames returns the names with external linkage in C files, and those that Go files export to C.
func globalNames(files map[string][]byte) map[string]bool {
	names := map[string]bool{}
	for name, data := range files {
		if !isC(name) {
			for _, m := range goExport.FindAllSubmatch(data, -1) {
				names[string(m[1])] = true
			}
			continue
		}
		for _, m := range asmGlobal.FindAllSubmatch(data, -1) {
			names[string(m[1])] = true
		}
		for _, m := range cGlobal.FindAllSubmatch(cComment.ReplaceAll(data, nil), -1) {
			switch string(m[1]) {
			case "static", "typedef", "return", "goto", "else", "struct":
			default:
				names[string(m[2])] = true
			}
		}
	}
	return names
}

// renameC gives the prefix to each of the names that occurs in a file. In Go files and in strings, which
// may be assembly, only names that are C's for sure are replaced. It reads a megabyte: a regular expression
// would take most of the time of a farm.
func renameC(file string, data []byte, names map[string]bool) []byte {
	out := make([]byte, 0, len(data)+len(data)/8)
	written, quoted := 0, 0 // what out has, and the bytes up to the last quotation mark
	for i := 0; i < len(data); {
		n := wordLength(data[i:])
		if n == 0 {
			if isC(file) && data[i] == '"' && i >= quoted {
				quoted = i + stringLength(data[i:])
			}
			i++
			continue
		}
		word := data[i : i+n]
		sure := i >= quoted
		if !isC(file) {
			qualifier, ok := bytes.CutSuffix(data[:i], []byte("C."))
			sure = ok && (len(qualifier) == 0 || wordLength(qualifier[len(qualifier)-1:]) == 0)
		}
		if names[string(word)] && (sure || bytes.HasPrefix(word, []byte("ossl"))) {
			out = append(append(out, data[written:i]...), cPrefix...)
			written = i
		}
		i += n
	}
	return append(out, data[written:]...)
}

// wordLength returns the number of letters, digits and underscores at the beginning of a text.
func wordLength(text []byte) int {
	for i, c := range text {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return i
		}
	}
	return len(text)
}

// stringLength returns the length of the string in C that a text begins with, or 0 if its line is over before.
func stringLength(text []byte) int {
	for i := 1; i < len(text) && text[i] != '\n'; i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			if i++; i < len(text) && text[i] == '\n' {
				return 0
			}
		}
	}
	return 0
}
