package session

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadTicketKeyFiles reads keys for a [Ring] from the files of nginx or Envoy, one key per file, of
// which the first one seals (see [ParseTicketKey]), or from one file of HAProxy's tls-ticket-keys.
//
// HAProxy's file has a line in base64 for each key: at least three, and all of 48 or all of 80 bytes.
// The last but one seals, the last three open, and the others are not used, so a new key is appended
// first, and seals when the next one follows. Cipher is in front of MAC in keys of both sizes:
// HAProxy's 80 bytes, decoded, are another key to nginx.
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
		more, err := readTicketKeyFile(path)
		if err != nil {
			return nil, err
		}
		if len(more) > 1 && len(paths) > 1 {
			return nil, fmt.Errorf("session: %s has %d keys: it can't be one of %d files", path, len(more), len(paths))
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

// maxTicketKeyFile bounds the size of HAProxy's file, to which keys are appended.
const maxTicketKeyFile = 1 << 20

func readTicketKeyFile(path string) ([]TicketKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	defer f.Close()
	info, err := f.Stat() // of the open file, not of another that may have its name now
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	if ours(info) && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("session: %s: mode %04o gives others access; use chmod 600", path, info.Mode().Perm())
	}
	b := make([]byte, min(max(info.Size(), 80), maxTicketKeyFile)+1) // never grown, which would leave a copy
	defer clear(b)
	n, err := io.ReadFull(f, b)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("session: %s: %w", path, err)
	}
	if n == len(b) {
		return nil, fmt.Errorf("session: %s: not a file of ticket keys: more than %d bytes", path, n-1)
	}
	var keys []TicketKey
	if n > 80 {
		keys, err = parseTicketKeyLines(b[:n])
	} else {
		keys = make([]TicketKey, 1)
		keys[0], err = ParseTicketKey(b[:n])
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, path)
	}
	return keys, nil
}

// parseTicketKeyLines parses a file for HAProxy's tls-ticket-keys, and returns the keys that HAProxy
// would use. The function is bind_parse_tls_ticket_keys in HAProxy's src/cfgparse-ssl.c, and the order
// of a key's parts is that of tls_sess_key in its include/haproxy/ssl_sock-t.h.
func parseTicketKeyLines(b []byte) ([]TicketKey, error) {
	const used = 3 // TLS_TICKETS_NO, unless HAProxy was built with another number
	lines := bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
	if len(lines) < used {
		return nil, fmt.Errorf("session: neither a ticket key of 48 or 80 bytes nor %d lines with one each in base64", used)
	}
	var keys [used]TicketKey // the file's last ones
	size := 0
	for i, line := range lines {
		var key [96]byte // enough for the longest line that isn't refused
		if len(line) > base64.StdEncoding.EncodedLen(len(key)) {
			return nil, fmt.Errorf("session: line %d is too long for a ticket key", i+1)
		}
		n, err := base64.StdEncoding.Decode(key[:], line)
		if i == 0 {
			size = n
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("session: line %d: %w", i+1, err)
		case n != 48 && n != 80:
			return nil, fmt.Errorf("session: line %d: a ticket key has 48 or 80 bytes, not %d", i+1, n)
		case n != size:
			return nil, fmt.Errorf("session: line %d has a ticket key of %d bytes, and line 1 of %d", i+1, n, size)
		}
		half := 16 + (n-16)/2
		k := TicketKey{Name: [16]byte(key[:]), Cipher: bytes.Clone(key[16:half]), MAC: bytes.Clone(key[half:n])}
		clear(key[:])
		if err := k.check(); err != nil {
			return nil, err
		}
		copy(keys[:], keys[1:])
		keys[used-1] = k
	}
	return []TicketKey{keys[used-2], keys[used-1], keys[used-3]}, nil
}
