// Package connstate encodes the state of an established connection, with which another process goes on.
//
// A state has two parts. The core has the keys and all that is the connection's own; a MAC protects it. The
// blobs behind it are what many connections share, such as certificates: the core names each by its SHA-256
// sum. So a program that moves many connections sends each blob once, with [Split] and [Join].
package connstate

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/wire"
)

// version is the format's. A change of any field needs another one.
const version = 1

const magic = "ossl"

// The errors of states that can't be used.
var (
	ErrVersion = fmt.Errorf("ossl: the connection's state was made by a version of ossl with another format than %d", version)
	ErrDamaged = errors.New("ossl: the connection's state is damaged")
)

// A State is an established connection.
type State struct {
	// Process and Number name the state: a process, by a random number, and its count of states.
	Process [16]byte
	Number  uint64

	Client     bool
	ReadEnd    bool // the peer's close_notify was read
	WriteEnd   bool // close_notify was sent
	Answering  bool // Output has the answer to a KeyUpdate
	Held       bool // Output is no reason to send: tickets that wait for data
	Resumed    bool
	ByID       bool // the session was resumed by its ID
	HelloRetry bool
	PSK        bool // the connection has a pre-shared key, of PSKIdentity

	Version, Suite, Group uint16
	Opened                int64 // when the handshake was done, in nanoseconds of Unix time
	SentRecords           uint32
	SentBytes             uint64

	Secrets libssl.Secrets

	Protocol    []byte
	ServerName  []byte // that the client asked for, as ConnectionState has it
	Unique      []byte // TLSUnique
	PSKIdentity []byte
	SessionID   []byte // of a server's cache

	// Input was received and not read. Its first Text bytes are decrypted data, and the Tail bytes behind them
	// belong to the same record.
	Input      []byte
	Text, Tail uint32
	Message    []byte // a handshake message, as far as it was received
	Ignored    uint8  // records since the last data that advanced nothing
	Output     []byte // sealed and not sent
	// Kernel are the messages that the kernel seals next, if it seals: of each the content type, 1 if the next
	// key follows or 0, and the text after its length, a byte.
	Kernel []byte

	// Shared parts: DER certificates, and the rest of the ConnectionState.
	Peer     [][]byte
	Verified [][][]byte
	Local    [][]byte
	OCSP     []byte // nil for none
	SCTs     [][]byte
}

const (
	headerLen  = len(magic) + 2 + 3 // and the core's length
	secretsLen = 2 + 3 + 3*48 + 64 + 3*8
	macLen     = sha256.Size
)

// bools returns the fields of the flags, in their order.
func (s *State) bools() []*bool {
	return []*bool{&s.Client, &s.ReadEnd, &s.WriteEnd, &s.Answering, &s.Held, &s.Resumed, &s.ByID, &s.HelloRetry, &s.PSK}
}

// texts returns the fields of at most 65,535 bytes, and long those of at most 2^24-1.
func (s *State) texts() []*[]byte {
	return []*[]byte{&s.Protocol, &s.ServerName, &s.Unique, &s.PSKIdentity, &s.SessionID, &s.Kernel}
}

func (s *State) long() []*[]byte { return []*[]byte{&s.Input, &s.Message, &s.Output} }

// Encode returns s as bytes. They hold secrets, of which Encode leaves no other copy. It is an error if a field
// is too long.
func (s *State) Encode() ([]byte, error) {
	facts, blobs, err := s.facts()
	if err != nil {
		return nil, err
	}
	size := headerLen + secretsLen + len(facts) + macLen
	for _, b := range blobs {
		size += 3 + len(b)
	}
	for _, b := range s.long() {
		if len(*b) >= 1<<24 {
			return nil, fmt.Errorf("ossl: %d bytes wait on the connection, and a state holds less than %d", len(*b), 1<<24)
		}
		size += 3 + len(*b)
	}
	out := make([]byte, 0, size) // exactly: append must not leave a copy of the secrets
	out = append(out, magic...)
	out = binary.BigEndian.AppendUint16(out, version)
	out = append(out, 0, 0, 0)
	out = appendSecrets(out, &s.Secrets)
	out = append(out, facts...)
	for _, b := range s.long() {
		out = append(appendLen(out, len(*b)), *b...)
	}
	n := len(out)
	copy(out[headerLen-3:], appendLen(nil, n-headerLen))
	out = append(out, mac(out)...)
	for _, b := range blobs {
		out = append(appendLen(out, len(b)), b...)
	}
	return out, nil
}

func appendLen(b []byte, n int) []byte { return append(b, byte(n>>16), byte(n>>8), byte(n)) }

func appendSecrets(b []byte, s *libssl.Secrets) []byte {
	b = binary.BigEndian.AppendUint16(b, s.Suite)
	b = append(b, s.Server, s.Sides, s.Kernel)
	for _, secret := range [][]byte{s.Read[:], s.Write[:], s.Exporter[:], s.Randoms[:]} {
		b = append(b, secret...)
	}
	for _, n := range []uint64{s.ReadSeq, s.WriteSeq, s.Nonce} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

// mac returns the MAC of a core. Its key is the secrets: who doesn't know them can't change the state, and who
// does needs none.
func mac(core []byte) []byte {
	key := sha256.Sum256(core[headerLen : headerLen+secretsLen])
	h := hmac.New(sha256.New, key[:])
	h.Write(core)
	return h.Sum(nil)
}

// facts returns the part of the core that has no secrets, and the blobs that it names.
func (s *State) facts() (b []byte, blobs [][]byte, err error) {
	b = append(b, s.Process[:]...)
	b = binary.BigEndian.AppendUint64(b, s.Number)
	var flags uint16
	for i, f := range s.bools() {
		if *f {
			flags |= 1 << i
		}
	}
	for _, n := range []uint16{flags, s.Version, s.Suite, s.Group} {
		b = binary.BigEndian.AppendUint16(b, n)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(s.Opened))
	b = binary.BigEndian.AppendUint32(b, s.SentRecords)
	b = binary.BigEndian.AppendUint64(b, s.SentBytes)
	b = binary.BigEndian.AppendUint32(b, s.Text)
	b = binary.BigEndian.AppendUint32(b, s.Tail)
	b = append(b, s.Ignored)
	for _, text := range s.texts() {
		if len(*text) >= 1<<16 {
			return nil, nil, fmt.Errorf("ossl: a name of %d bytes is too long for a connection's state", len(*text))
		}
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(*text))), *text...)
	}
	c := collector{index: map[[sha256.Size]byte]int{}}
	ocsp := [][]byte{s.OCSP}
	if s.OCSP == nil {
		ocsp = nil
	}
	var lists []byte
	for _, list := range [][][]byte{s.Peer, s.Local, ocsp, s.SCTs} {
		lists = c.appendList(lists, list)
	}
	lists = binary.BigEndian.AppendUint16(lists, uint16(len(s.Verified)))
	for _, chain := range s.Verified {
		lists = c.appendList(lists, chain)
	}
	if len(s.Verified) >= 1<<16 || c.err != nil {
		return nil, nil, errors.New("ossl: the peer's certificates are too long for a connection's state")
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(c.blobs)))
	for _, sum := range c.sums {
		b = append(b, sum[:]...)
	}
	return append(b, lists...), c.blobs, nil
}

// A collector finds the blobs of a state, each once.
type collector struct {
	index map[[sha256.Size]byte]int
	sums  [][sha256.Size]byte
	blobs [][]byte
	err   error
}

func (c *collector) appendList(b []byte, list [][]byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(list)))
	for _, blob := range list {
		sum := sha256.Sum256(blob)
		i, ok := c.index[sum]
		if !ok {
			i = len(c.blobs)
			c.index[sum] = i
			c.sums, c.blobs = append(c.sums, sum), append(c.blobs, blob)
		}
		if i >= 1<<16-1 || len(list) >= 1<<16 || len(blob) >= 1<<24 {
			c.err = ErrDamaged
		}
		b = binary.BigEndian.AppendUint16(b, uint16(i))
	}
	return b
}

// core takes the core with its MAC from the front of a state, and returns the rest. It checks the version, and
// with the MAC that nothing was changed.
func core(state []byte) (core, rest []byte, err error) {
	r := wire.Reader{Rest: state}
	if !bytes.Equal(r.Bytes(len(magic)), []byte(magic)) {
		return nil, nil, ErrDamaged
	}
	if v := r.Number(2); r.Failed || v != version {
		if r.Failed {
			return nil, nil, ErrDamaged
		}
		return nil, nil, ErrVersion
	}
	n := r.Number(3)
	if r.Failed || n < secretsLen || len(r.Rest) < n+macLen {
		return nil, nil, ErrDamaged
	}
	n += headerLen
	if !hmac.Equal(mac(state[:n]), state[n:n+macLen]) {
		return nil, nil, ErrDamaged
	}
	return state[: n+macLen : n+macLen], state[n+macLen:], nil
}

// Decode returns the state in b. The parts are copies, so that b can be wiped. The errors are ErrVersion and
// ErrDamaged.
func Decode(b []byte) (*State, error) {
	whole, rest, err := core(b)
	if err != nil {
		return nil, err
	}
	s := new(State)
	r := wire.Reader{Rest: whole[headerLen : len(whole)-macLen]}
	readSecrets(&r, &s.Secrets)
	s.readFacts(&r)
	sums := readSums(&r)
	blobs := make([][]byte, len(sums))
	behind := wire.Reader{Rest: rest}
	for i, sum := range sums {
		blobs[i] = bytes.Clone(behind.Vector(3))
		if sha256.Sum256(blobs[i]) != sum {
			behind.Failed = true
		}
	}
	s.readLists(&r, blobs)
	for _, to := range s.long() {
		*to = copyOf(r.Vector(3))
	}
	if !r.Done() || !behind.Done() || int(s.Text)+int(s.Tail) > len(s.Input) || s.Text > 1<<24 || s.Tail > 1<<24 {
		s.Secrets = libssl.Secrets{}
		return nil, ErrDamaged
	}
	return s, nil
}

// copyOf returns a copy of b, or nil if it is empty.
func copyOf(b []byte) []byte { return append([]byte(nil), b...) }

func readSecrets(r *wire.Reader, s *libssl.Secrets) {
	s.Suite, s.Server, s.Sides, s.Kernel = uint16(r.Number(2)), uint8(r.Number(1)), uint8(r.Number(1)), uint8(r.Number(1))
	for _, secret := range [][]byte{s.Read[:], s.Write[:], s.Exporter[:], s.Randoms[:]} {
		copy(secret, r.Bytes(len(secret)))
	}
	for _, n := range []*uint64{&s.ReadSeq, &s.WriteSeq, &s.Nonce} {
		*n = uint64(r.Number(8)) // all 64 bits, as Number shifts them
	}
}

func (s *State) readFacts(r *wire.Reader) {
	copy(s.Process[:], r.Bytes(len(s.Process)))
	s.Number = uint64(r.Number(8))
	flags := r.Number(2)
	for i, f := range s.bools() {
		*f = flags>>i&1 == 1
	}
	if flags>>len(s.bools()) != 0 {
		r.Rest, r.Failed = nil, true
	}
	s.Version, s.Suite, s.Group = uint16(r.Number(2)), uint16(r.Number(2)), uint16(r.Number(2))
	s.Opened = int64(r.Number(8))
	s.SentRecords, s.SentBytes = uint32(r.Number(4)), uint64(r.Number(8))
	s.Text, s.Tail, s.Ignored = uint32(r.Number(4)), uint32(r.Number(4)), uint8(r.Number(1))
	for _, text := range s.texts() {
		*text = copyOf(r.Vector(2))
	}
}

// readSums reads the sums of the blobs.
func readSums(r *wire.Reader) [][sha256.Size]byte {
	n := r.Number(2)
	if n*sha256.Size > len(r.Rest) {
		r.Rest, r.Failed = nil, true
		return nil
	}
	sums := make([][sha256.Size]byte, n)
	for i := range sums {
		copy(sums[i][:], r.Bytes(sha256.Size))
	}
	return sums
}

func (s *State) readLists(r *wire.Reader, blobs [][]byte) {
	s.Peer, s.Local = readList(r, blobs), readList(r, blobs)
	if ocsp := readList(r, blobs); len(ocsp) == 1 {
		s.OCSP = ocsp[0]
	} else if len(ocsp) > 1 {
		r.Rest, r.Failed = nil, true
	}
	s.SCTs = readList(r, blobs)
	for n := r.Number(2); n > 0 && !r.Failed; n-- {
		s.Verified = append(s.Verified, readList(r, blobs))
	}
}

func readList(r *wire.Reader, blobs [][]byte) (list [][]byte) {
	for n := r.Number(2); n > 0 && !r.Failed; n-- {
		i := r.Number(2)
		if r.Failed || i >= len(blobs) {
			r.Rest, r.Failed = nil, true
			return nil
		}
		list = append(list, blobs[i])
	}
	return list
}

// Split returns the core of a state, and the blobs behind it. They share memory with state. The errors are
// Decode's.
func Split(state []byte) (first []byte, blobs [][]byte, err error) {
	first, rest, err := core(state)
	if err != nil {
		return nil, nil, err
	}
	for r := (wire.Reader{Rest: rest}); len(r.Rest) > 0; {
		blob := r.Vector(3)
		if r.Failed {
			return nil, nil, ErrDamaged
		}
		blobs = append(blobs, blob)
	}
	return first, blobs, nil
}

// Join is the reverse of Split. blob returns the blob with a sum, or nil.
func Join(first []byte, blob func(sum [sha256.Size]byte) []byte) ([]byte, error) {
	whole, rest, err := core(first)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, ErrDamaged
	}
	r := wire.Reader{Rest: whole[headerLen : len(whole)-macLen]}
	var s State
	r.Bytes(secretsLen)
	s.readFacts(&r)
	size, blobs := len(first), [][]byte(nil)
	for _, sum := range readSums(&r) {
		b := blob(sum)
		if b == nil {
			return nil, fmt.Errorf("%w: a certificate is missing", ErrDamaged)
		}
		size, blobs = size+3+len(b), append(blobs, b)
	}
	if r.Failed {
		return nil, ErrDamaged
	}
	state := append(make([]byte, 0, size), first...)
	for _, b := range blobs {
		state = append(appendLen(state, len(b)), b...)
	}
	return state, nil
}
