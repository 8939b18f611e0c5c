package tlstest

import (
	"crypto/tls"
	"io"
	"sync"
)

// A Scripted is the outcome of a handshake with a peer that only plays back bytes.
type Scripted struct {
	Err       error  // of Handshake
	Handshake string // its class
	Again     string // class of a second Handshake's error: failures last
	Read      string // class of a Read's error afterwards
	Alerts    string // the alerts that the victim sent in the clear
	Hung      bool
}

// Script runs a handshake of impl, as role, with a peer that sends the elements of script: the
// first at once, each later one when the victim waits. Afterwards the peer closes its direction if
// end is set, or else continues to wait.
func Script(impl Impl, role Role, config *tls.Config, script [][]byte, end bool) *Scripted {
	victimEnd, peerEnd := NewPipe()
	defer peerEnd.Close()
	defer victimEnd.Close()
	rec := new(Recording)
	var conn Conn
	if raw := rec.Tap(role, victimEnd); role == ClientRole {
		conn = impl.Client(raw, config)
	} else {
		conn = impl.Server(raw, config)
	}
	var s Scripted
	var wg sync.WaitGroup
	wg.Go(func() {
		s.Err = conn.Handshake()
		s.Handshake = Class(s.Err)
		if s.Err != nil {
			s.Again = Class(conn.Handshake())
			_, err := conn.Read(make([]byte, 1))
			s.Read = Class(err)
		}
		conn.Close()
	})
	for _, b := range script {
		if !victimEnd.WaitStarved() {
			break
		}
		peerEnd.Write(b)
	}
	if end {
		peerEnd.CloseWrite()
	}
	// The peer reads everything that the victim sends. So if both wait, the victim waits for ever.
	go io.Copy(io.Discard, peerEnd)
	s.Hung = !patiently(&wg, victimEnd, peerEnd, nil)
	records, _ := SplitRecords(rec.Bytes(role))
	s.Alerts = alertText(markOpaque(records))
	return &s
}
