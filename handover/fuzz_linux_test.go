package handover

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// feed sends the input of a fuzz target to a side of a hand-over, and then closes its direction. A byte
// of counts, for each 12 bytes of the input, is the number of descriptors that come with these bytes.
func feed(t *testing.T, to *net.UnixConn, socket int, input, counts []byte) {
	defer to.CloseWrite()
	deadline := time.Now().Add(tlstest.Patience)
	if err := to.SetDeadline(deadline); err != nil {
		t.Fatal(err)
	}
	for len(input) > 0 {
		n := min(headerLen, len(input))
		var rights []byte
		if len(counts) > 0 {
			if k := counts[0] % 4; k > 0 {
				rights = syscall.UnixRights([]int{socket, socket, socket}[:k]...)
			}
			counts = counts[1:]
		}
		if _, _, err := to.WriteMsgUnix(input[:n], rights, nil); err != nil {
			return // the side has refused it
		}
		input = input[n:]
	}
}

// FuzzReceiver: Receive returns for any bytes of an old process, and leaves no descriptor.
func FuzzReceiver(f *testing.F) {
	h := func(kind, flags byte, id, length uint32) []byte { return header{kind, flags, id, length}.append(nil) }
	f.Add(h(msgDone, 0, 0, 0), []byte{0})
	f.Add(append(h(msgSocket, 2, 1, 0), h(msgKeep, 0, 1, 0)...), []byte{1})
	f.Add(append(h(msgSocket, 2, 1, 0), h(msgPlain, 0, 1, 0)...), []byte{1})
	f.Add(append(append(h(msgSocket, 2, 1, 0), h(msgState, 0, 1, 5)...), 0, 0, 0, 1, 'x'), []byte{1})
	f.Add(append(append(h(msgCertificate, 0, 0, 3), "der"...), h(99, 1, 0, 0)...), []byte{0})
	f.Add(append(h(msgListener, 2, 1, 2), "ab"...), []byte{2})
	f.Fuzz(func(t *testing.T, input, counts []byte) {
		_, b := sockets(t) // not of TCP, whose ports would run out
		socket := fd(t, b, nil)
		r, p := toReceiver(t)
		before := descriptors(t)
		go discard(p)
		fed := inBackground(func() error { feed(t, p.UnixConn, socket, input, counts); return nil })
		for {
			item, err := r.Receive(patient(t))
			if errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if err != nil {
				break
			}
			if (item.Conn == nil) == (item.Listener == nil) {
				t.Errorf("item %+v", item)
			}
			item.Close()
		}
		await(t, fed)
		if after := descriptors(t); after > before-1 { // the Receiver's own
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	})
}

// FuzzSender: a call returns for any bytes of a new process, and the connection is whole or closed.
func FuzzSender(f *testing.F) {
	f.Add(replies(msgHave, 1, msgTaken, 1))
	f.Add(replies(msgHave, 1, msgHave, 1))
	f.Add(append(header{kind: msgRefused, id: 1, length: 1}.append(nil), refusedFull))
	f.Add(append(header{kind: 99, flags: flagOptional, length: 1}.append(nil), 7))
	f.Fuzz(func(t *testing.T, input []byte) {
		peer, conn := sockets(t)
		s, p := toSender(t)
		sent := inBackground(func() error { return s.SendPlain(patient(t), conn, nil) })
		p.read(headerLen)
		go discard(p)
		feed(t, p.UnixConn, 0, input, nil)
		switch err := await(t, sent); {
		case errors.Is(err, context.DeadlineExceeded):
			t.Error(err)
		case err == nil || errors.Is(err, ErrLost):
			if err := peer.SetReadDeadline(time.Now().Add(tlstest.Patience)); err != nil {
				t.Fatal(err)
			}
			if n, err := peer.Read(make([]byte, 1)); n != 0 || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the peer reads %d bytes, %v", n, err)
			}
		default:
			wantEcho(t, peer, conn)
		}
	})
}

// discard reads all that a side sends.
func discard(p peerProcess) {
	buf := make([]byte, 1000)
	for {
		if _, err := p.Read(buf); err != nil {
			return
		}
	}
}
