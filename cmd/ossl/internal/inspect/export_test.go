package inspect

import "bytes"

// Read reads a program.
func Read(file []byte) (*Program, error) { return read(bytes.NewReader(file), int64(len(file))) }
