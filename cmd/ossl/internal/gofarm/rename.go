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
	cToken   = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|[A-Za-z_]\w*`)
	cWord    = regexp.MustCompile(`[A-Za-z_]\w*`)
	goWord   = regexp.MustCompile(`(?:\bC\.)?\b[A-Za-z_]\w*`)
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
// may be assembly, only names that are C's for sure are replaced.
func renameC(file string, data []byte, names map[string]bool) []byte {
	word := func(w []byte) []byte {
		if names[string(w)] {
			return append([]byte(cPrefix), w...)
		}
		return w
	}
	own := func(w []byte) []byte {
		if bytes.HasPrefix(w, []byte("ossl")) {
			return word(w)
		}
		return w
	}
	if !isC(file) {
		return goWord.ReplaceAllFunc(data, func(w []byte) []byte {
			if name, ok := bytes.CutPrefix(w, []byte("C.")); ok {
				return append([]byte("C."), word(name)...)
			}
			return own(w)
		})
	}
	return cToken.ReplaceAllFunc(data, func(token []byte) []byte {
		if token[0] == '"' {
			return cWord.ReplaceAllFunc(token, own)
		}
		return word(token)
	})
}
