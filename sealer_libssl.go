package ossl

import "github.com/ossl-go/ossl/internal/libssl"

// A libsslSealer seals records with libssl.
type libsslSealer struct {
	ssl   *libssl.Conn
	moved chan struct{} // nil unless a Write waits for input: see turns
}

func (s *libsslSealer) overhead12() int { return 8 + 40 } // explicit nonce; or IV, MAC and padding

func (s *libsslSealer) seal(b, out []byte, limits sealLimits) (sealed, error) {
	step := s.ssl.Write(b[:min(len(b), limits.data)], out, limits.payload, limits.sizes.records)
	switch {
	case step.Status == libssl.Fatal:
		_, err := fatalError("write", s.ssl, nil, nil)
		return sealed{}, err
	case step.Status == libssl.WantRead && step.N == 0 && step.Produced == 0:
		return sealed{moved: s.awaitMove()}, nil
	}
	return sealed{n: step.N, produced: step.Produced, records: step.Records}, nil
}

func (s *libsslSealer) close(_ *reader, out []byte) sealed {
	return sealed{produced: s.ssl.Free(true, out).Produced}
}

func (s *libsslSealer) closeNotify(out []byte) sealed {
	step := s.ssl.CloseNotify(out)
	switch step.Status {
	case libssl.WantRead:
		return sealed{moved: s.awaitMove()}
	case libssl.Fatal:
		_, err := fatalError("close", s.ssl, nil, nil)
		return sealed{err: err}
	}
	return sealed{produced: step.Produced}
}

func (s *libsslSealer) free() { s.ssl.Free(false, nil) }

// awaitMove returns a channel that the next call of wake closes. The engine is locked, and has been
// since the crossing that asked for input.
func (s *libsslSealer) awaitMove() <-chan struct{} {
	if s.moved == nil {
		s.moved = make(chan struct{})
	}
	return s.moved
}

// wake wakes a waiting Write: libssl has been fed, or the Write must feed it itself. The engine is
// locked.
func (s *libsslSealer) wake() {
	if s.moved != nil {
		close(s.moved)
		s.moved = nil
	}
}
