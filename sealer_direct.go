package ossl

import (
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
)

// A directSealer seals records with the traffic keys, until the kernel does: see kernelSender. The
// engine's lock guards it.
type directSealer struct {
	ssl    *libssl.Conn // frees both sides in one crossing
	side   *libssl.WriteSide
	opener *directOpener
	err    error         // the reason why nothing more is sealed, or nil
	kernel *kernelSender // nil unless the kernel seals
}

// keyUpdateMessage is a KeyUpdate that asks for none in return: RFC 8446, section 4.6.3.
var keyUpdateMessage = []byte{24, 0, 0, 1, 0}

func (s *directSealer) overhead12() int { return 8 } // explicit nonce

func (s *directSealer) seal(b, out []byte, limits sealLimits) (sealed, error) {
	if s.err != nil {
		return sealed{}, s.err
	}
	var step libssl.Step
	grown := int(recordSizeBoostThreshold - limits.sizes.bytes)
	s.side.Seal(&step, record.ApplicationData, b, out, limits.payload, limits.sizes.records, grown)
	if step.Status == libssl.NeedUpdate && step.N == 0 {
		// The key has sealed as much as it may: a KeyUpdate first.
		if n, ok := s.sealKeyUpdate(keyUpdateMessage, out); ok {
			s.side.Seal(&step, record.ApplicationData, b, out[n:], limits.payload, limits.sizes.records, grown)
			step.Produced += n
		} else {
			step.Status = libssl.Fatal
		}
	}
	if step.Status == libssl.Fatal {
		s.err = localError(alertInternalError, nil)
		return sealed{}, s.err
	}
	return sealed{n: step.N, produced: step.Produced, records: step.Records}, nil
}

// end is called before the last record is sealed. It reports whether that is close_notify: no alert
// has aborted the connection, and the kernel doesn't seal.
func (s *directSealer) end() bool {
	notify := s.err == nil && s.kernel == nil
	s.err = errShutdown
	return notify
}

func (s *directSealer) closeNotify(out []byte) sealed {
	var step libssl.Step
	if s.end() {
		s.side.Seal(&step, record.Alert, []byte{alertLevelWarning, alertCloseNotify}, out, 0, 0, 0)
	}
	return sealed{produced: step.Produced}
}

func (s *directSealer) close(in *reader, out []byte) sealed {
	notify := s.end()
	if !in.tryLock() { // the Read that is under way frees its side
		return sealed{produced: s.side.Free(notify, out).Produced}
	}
	defer in.unlock()
	s.opener.side = nil
	return sealed{produced: s.ssl.Free(notify, out).Produced}
}

func (s *directSealer) free() { s.side.Free(false, nil) }

// answerKeyUpdate queues a KeyUpdate and updates the sending key. It reports whether there was room
// in the queue. One answer that waits there serves all KeyUpdates that asked for one in the
// meantime: RFC 8446, section 4.6.3.
func (s *directSealer) answerKeyUpdate(e *engine) bool {
	if _, err := e.lock(); err != nil {
		return true
	}
	defer e.unlock()
	if s.err != nil || e.queue.answered {
		return true
	}
	e.queue.answered = true
	return s.updateKey(e, keyUpdateMessage)
}

// updateKey queues a KeyUpdate message and updates the sending key. It reports whether there was
// room in the queue. The engine is locked.
func (s *directSealer) updateKey(e *engine, message []byte) bool {
	if s.kernel != nil {
		s.kernel.push(&e.queue, kernelMessage{record.Handshake, message, true})
		return true
	}
	var out [64]byte
	n, ok := s.sealKeyUpdate(message, out[:])
	if !ok {
		s.err = localError(alertInternalError, nil)
		return true
	}
	if !e.queue.push(out[:n]) {
		s.err = errQueueFull
		return false
	}
	return true
}

// sealKeyUpdate seals a KeyUpdate message into out and updates the sending key. The engine is
// locked.
func (s *directSealer) sealKeyUpdate(message, out []byte) (n int, ok bool) {
	var step libssl.Step
	s.side.Seal(&step, record.Handshake, message, out, 0, 0, 0)
	return step.Produced, step.Status == libssl.Done && s.side.Update()
}

// alert queues an alert that aborts the connection. Nothing is sealed after it.
func (s *directSealer) alert(e *engine, description uint8) {
	level := byte(alertLevelFatal)
	if description == alertNoRenegotiation { // a warning in crypto/tls too, although the connection fails
		level = alertLevelWarning
	}
	if _, err := e.lock(); err != nil {
		return
	}
	defer e.unlock()
	if s.err != nil {
		return
	}
	message := []byte{level, description}
	if s.kernel != nil {
		s.kernel.push(&e.queue, kernelMessage{record.Alert, message, false})
	} else {
		var out [64]byte
		var step libssl.Step
		s.side.Seal(&step, record.Alert, message, out[:], 0, 0, 0)
		e.queue.push(out[:step.Produced])
	}
	s.err = localError(description, nil)
}
