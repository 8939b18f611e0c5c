// Package pemtext decodes texts in PEM, and leaves nothing out.
package pemtext

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
)

// Decode returns the blocks of a text in PEM. [pem.Decode] skips a block that is cut or damaged,
// so that a chain would be served without one of its certificates; Decode returns an error with
// the line in which such a block begins. Text between blocks is ignored (RFC 7468, section 5.2), and
// so is a byte order mark at the beginning of a line, as in files that were put together.
func Decode(text []byte) ([]*pem.Block, error) {
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		return nil, errors.New("the text is in UTF-16, and PEM is in ASCII")
	}
	const begin, end, mark = "-----BEGIN ", "-----END ", "\ufeff"
	var blocks []*pem.Block
	var open []byte // the lines of the block that has begun
	start, number := 0, 0
	for line := range bytes.Lines(text) {
		number++
		if after, ok := bytes.CutPrefix(line, []byte(mark)); ok {
			line = after
		}
		trimmed := bytes.TrimLeft(line, " \t\r\n\v\f")
		switch {
		case start == 0 && bytes.HasPrefix(trimmed, []byte(begin)):
			if !bytes.HasPrefix(line, []byte(begin)) {
				return nil, fmt.Errorf("line %d: the PEM block that begins here is indented", number)
			}
			start, open = number, append([]byte(nil), line...)
		case start == 0 && bytes.HasPrefix(trimmed, []byte(end)):
			return nil, fmt.Errorf("line %d: the PEM block that ends here has no beginning", number)
		case start == 0 && len(line) > 0 && bytes.HasPrefix([]byte(begin), line): // the last line, which has no newline
			start = number
		case start == 0:
		case bytes.HasPrefix(trimmed, []byte(begin)):
			return nil, fmt.Errorf("line %d: the PEM block that begins here has no end", start)
		case bytes.HasPrefix(trimmed, []byte(end)):
			block, rest := pem.Decode(append(open, line...))
			if block == nil || len(bytes.TrimSpace(rest)) > 0 {
				return nil, fmt.Errorf("line %d: the PEM block that begins here is damaged", start)
			}
			blocks, start = append(blocks, block), 0
		default:
			open = append(open, line...)
		}
	}
	if start > 0 {
		return nil, fmt.Errorf("line %d: the file ends inside the PEM block that begins here", start)
	}
	return blocks, nil
}
