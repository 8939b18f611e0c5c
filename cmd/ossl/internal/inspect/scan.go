package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Marker is the mark that "ossl go" leaves in a program.
type Marker struct {
	Format   int    `json:"format"`
	Version  string `json:"version"` // of ossl
	Build    string `json:"build"`   // the hash of the standard library's files that it was built from
	Mode     string `json:"mode"`    // "prefer", "require" or "off"
	Go       string `json:"go"`
	Settings string `json:"settings"`

	problem string // the reason why it can't be read
}

// The bounds of markers.
const (
	markerFormat = 1
	maxMarker    = 4 << 10
	maxMarkers   = 16
	maxMagics    = 1000 // also those that no marker follows
)

// magic returns the bytes in front of a marker. They are put together when the command runs, because the
// command itself has none.
func magic() []byte { return []byte(strings.Join([]string{"", "OSSL", "unchanged", ""}, "\xff")) }

// findMarkers returns the different markers in parts of a file.
func findMarkers(r io.ReaderAt, parts []extent) (markers []Marker, err error) {
	m, magics := magic(), 0
	err = scan(r, parts, len(m), func(chunk []byte, at int64) (bool, error) {
		for i := 0; ; {
			next := bytes.Index(chunk[i:], m)
			if next < 0 {
				return true, nil
			}
			i += next + len(m)
			if magics++; magics > maxMagics {
				return false, errors.New("it has too many marks of 'ossl go'")
			}
			text := make([]byte, maxMarker)
			n, err := r.ReadAt(text, at+int64(i))
			if err != nil && err != io.EOF {
				return false, err
			}
			if marker, ok := parseMarker(text[:n]); ok && !slices.Contains(markers, marker) {
				markers = append(markers, marker)
			}
			if len(markers) == maxMarkers {
				return false, nil
			}
		}
	})
	return markers, err
}

// parseMarker parses the bytes after the magic. They are no marker unless an object begins there.
func parseMarker(text []byte) (m Marker, ok bool) {
	if !bytes.HasPrefix(text, []byte("{")) {
		return Marker{}, false
	}
	text, _, whole := bytes.Cut(text, []byte{0})
	err := json.Unmarshal(text, &m)
	switch {
	case !whole || err != nil:
		m = Marker{problem: "its mark of 'ossl go' is damaged"}
	case m.Format != markerFormat:
		m = Marker{Format: m.Format, problem: fmt.Sprintf("its mark of 'ossl go' has format %d, and this command knows %d: "+
			"use the command that has built it", m.Format, markerFormat)}
	}
	return m, true
}

// findFunctions reports for each prefix whether parts of a file have the name of a function that begins
// so. Go's tables of functions separate names by zero bytes, and strings of programs don't.
func findFunctions(r io.ReaderAt, parts []extent, prefixes ...string) ([]bool, error) {
	found, names, longest := make([]bool, len(prefixes)), make([][]byte, len(prefixes)), 0
	for i, prefix := range prefixes {
		names[i] = []byte("\x00" + prefix)
		longest = max(longest, len(names[i]))
	}
	err := scan(r, parts, longest, func(chunk []byte, _ int64) (bool, error) {
		for i, name := range names {
			found[i] = found[i] || bytes.Contains(chunk, name)
		}
		return slices.Contains(found, false), nil
	})
	return found, err
}

// chunkBytes is the size of the parts in which files are read.
const chunkBytes = 1 << 20

// scan calls visit with the parts of a file in chunks, and with their positions, until it returns false.
// Chunks overlap such that each sequence of up to length bytes is in one of them, and none is in two.
func scan(r io.ReaderAt, parts []extent, length int, visit func(chunk []byte, at int64) (bool, error)) error {
	for _, part := range parts {
		buffer := make([]byte, min(chunkBytes, part.end-part.start))
		for at := part.start; at < part.end; at += chunkBytes - int64(length-1) {
			n, err := r.ReadAt(buffer[:min(chunkBytes, part.end-at)], at)
			if err != nil && err != io.EOF {
				return reason(err)
			}
			if on, err := visit(buffer[:n], at); err != nil || !on {
				return err
			}
		}
	}
	return nil
}
