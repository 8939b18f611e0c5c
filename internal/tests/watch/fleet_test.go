//go:build unix && (cgo || ossl_nocgo)

package watch

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// A wallet has a client's session for each of many clients that use a Context one after the other.
type wallet struct {
	sessions []*tls.ClientSessionState
	owner    int
}

func (w *wallet) Get(string) (*tls.ClientSessionState, bool) {
	return w.sessions[w.owner], w.sessions[w.owner] != nil
}

func (w *wallet) Put(_ string, s *tls.ClientSessionState) { w.sessions[w.owner] = s }

// A member is a server of a fleet that follows key files of its own.
type member struct {
	server tlstest.End
	link   string // to the folder with its files
	events <-chan error
}

// keysOf returns the keys of a rotation, in the order of their files: the one that seals, the next one,
// and the one before.
func keysOf(rotation int) (keys [3][80]byte) {
	for i, n := range []int{rotation, rotation + 1, rotation - 1} {
		for j := range keys[i] {
			keys[i][j] = byte(1 + n + j)
		}
	}
	return keys
}

// publish gives the member the files of a rotation.
func (m *member) publish(t *testing.T, rotation int) {
	t.Helper()
	folder := fmt.Sprint(m.link, rotation)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, key := range keysOf(rotation) {
		write(t, filepath.Join(folder, fmt.Sprint(i)), string(key[:]))
	}
	symlink(t, folder, m.link)
}

// TestSoakFleet rotates the ticket keys of a fleet. Each member reads its files at another time, and
// clients visit members at random meanwhile. No client makes a full handshake after its first one, since
// the next key opens everywhere before it seals anywhere, and the one before for one rotation more, in
// which each client comes again. OSSL_SOAK is the number of handshakes.
func TestSoakFleet(t *testing.T) {
	const members, rotations, workers = 5, 20, 2
	clients := 20 // of a worker
	if testing.Short() {
		clients = members
	}
	if n, err := strconv.Atoi(os.Getenv("OSSL_SOAK")); err == nil {
		clients = max(members, n/(3*rotations*workers))
	}
	for _, version := range tlstest.Versions {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			clientConfig, serverConfig := tlstest.Resuming(version)
			var fleet []*member
			for i := range members {
				m, ring := &member{link: filepath.Join(t.TempDir(), fmt.Sprint("keys", i))}, new(session.Ring)
				m.publish(t, 0)
				files := []string{filepath.Join(m.link, "0"), filepath.Join(m.link, "1"), filepath.Join(m.link, "2")}
				_, m.events = started(t, func() error {
					keys, err := session.ReadTicketKeyFiles(files...)
					if err != nil {
						return err
					}
					return ring.Set(keys...)
				}, files...)
				m.server = ossltest.Server(t, serverConfig, ossl.WithTicketKeys(ring))
				fleet = append(fleet, m)
			}
			var all sync.WaitGroup
			var passes [workers]chan int // how often each client visits a member now
			visited := make(chan struct{})
			for w := range workers {
				passes[w] = make(chan int)
				purse := &wallet{sessions: make([]*tls.ClientSessionState, clients)}
				config := clientConfig.Clone()
				config.ClientSessionCache = purse
				client := ossltest.Client(t, config)
				all.Go(func() {
					for n := range passes[w] {
						for i := range n * clients {
							purse.owner = i % clients
							known := purse.sessions[purse.owner] != nil
							c, s, err := tlstest.TryVisit(client, fleet[rand.IntN(members)].server)
							if err != nil || c.DidResume != known || s.DidResume != known {
								t.Errorf("resumed: %v, %v; want %v; %v", c.DidResume, s.DidResume, known, err)
							}
							visited <- struct{}{}
						}
					}
				})
			}
			visit := func(n int, after func(visits int)) {
				for _, p := range passes {
					p <- n
				}
				for i := range n * clients * workers {
					<-visited
					after(i + 1)
				}
			}
			visit(1, func(int) {})
			for rotation := 1; rotation <= rotations; rotation++ {
				late := rand.Perm(members)
				visit(2, func(visits int) {
					if step := 2 * clients * workers / (members + 1); len(late) > 0 && visits%max(1, step) == 0 {
						fleet[late[0]].publish(t, rotation)
						await(t, fleet[late[0]].events)
						late = late[1:]
					}
				})
				visit(1, func(int) {}) // all have tickets that the new key has sealed
			}
			for _, p := range passes {
				close(p)
			}
			all.Wait()
		})
	}
}
