package session

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadTicketKeyFiles reads keys for a [Ring] from files in nginx's format, one key per file; see
// [ParseTicketKey]. The first key is the one that seals.
//
// As ssh does with private keys, it refuses a file that belongs to the process's user and that the
// group or others may read, write or execute: the mode must be 0600 or 0400. A file of another
// user, such as root, is not checked: that user is responsible for its mode. On systems without
// such modes nothing is checked.
func ReadTicketKeyFiles(paths ...string) ([]TicketKey, error) {
	if len(paths) == 0 {
		return nil, errNoKeys
	}
	keys := make([]TicketKey, 0, len(paths))
	for _, path := range paths {
		key, err := readTicketKeyFile(path)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func readTicketKeyFile(path string) (TicketKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return TicketKey{}, fmt.Errorf("session: %w", err)
	}
	defer f.Close()
	info, err := f.Stat() // of the open file, not of another that may have its name now
	if err != nil {
		return TicketKey{}, fmt.Errorf("session: %w", err)
	}
	if ours(info) && info.Mode().Perm()&0o077 != 0 {
		return TicketKey{}, fmt.Errorf("session: %s: mode %04o gives others access; use chmod 600", path, info.Mode().Perm())
	}
	var b [81]byte // one more than the longest key
	defer clear(b[:])
	n, err := io.ReadFull(f, b[:])
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return TicketKey{}, fmt.Errorf("session: %s: %w", path, err)
	}
	if n == len(b) {
		return TicketKey{}, fmt.Errorf("session: %s: not a ticket key: more than 80 bytes", path)
	}
	key, err := ParseTicketKey(b[:n])
	if err != nil {
		return TicketKey{}, fmt.Errorf("%w (%s)", err, path)
	}
	return key, nil
}
