package netio

import "io"

// WriteAll writes all of b. A connection that writes less without an error breaks the contract of
// io.Writer, and the rest of a record would be lost silently: WriteAll then returns
// io.ErrShortWrite.
func WriteAll(w io.Writer, b []byte) (int, error) {
	n, err := w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}
