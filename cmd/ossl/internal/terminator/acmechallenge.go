package terminator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mholt/acmez/v3"
	"github.com/mholt/acmez/v3/acme"

	"github.com/ossl-go/ossl/cmd/ossl/internal/wholefile"
)

// The challenges by which an authority finds out that a name leads here: RFC 8555, section 8.3, and RFC 8737.
// They are also the names of the folders in the storage that have the answers, so that the authority may reach
// any of the servers that share it, and a server's old and new process at a restart.
const (
	challengeHTTP = acme.ChallengeTypeHTTP01
	challengeALPN = acme.ChallengeTypeTLSALPN01
)

// challengePath is the path of requests for answers, before the token.
const challengePath = "/.well-known/acme-challenge/"

// A challengeSolver puts the answers to a job's challenges in the storage. Such a file has the name that is proved, the
// key authorization and the job, with spaces between them.
type challengeSolver struct {
	folder string
	job    string
}

// place returns the file of an answer.
func (s challengeSolver) place(c acme.Challenge) (string, error) {
	key := c.Token
	if c.Type == challengeALPN {
		key = c.Identifier.Value
	}
	if c.Identifier.Type != "dns" || !isKey(key) {
		return "", fmt.Errorf("the authority's challenge of %s can't be answered: its token %q, or the kind of its identifier %q",
			c.Identifier.Value, c.Token, c.Identifier.Type)
	}
	return filepath.Join(s.folder, c.Type, key), nil
}

func (s challengeSolver) Present(_ context.Context, c acme.Challenge) error {
	name, err := s.place(c)
	if err != nil {
		return err
	}
	text := c.Identifier.Value + " " + c.KeyAuthorization + " " + s.job
	return wholefile.Put(wholefile.File{Name: name, Mode: 0o600, Text: []byte(text)})
}

func (s challengeSolver) CleanUp(_ context.Context, c acme.Challenge) error {
	name, err := s.place(c)
	if err != nil {
		return err
	}
	return os.Remove(name)
}

// clear removes the answers that a killed process has left. Those of other jobs are still needed, also if they are for
// the same names: the caller has the lock of its job alone.
func (s challengeSolver) clear() error {
	for _, kind := range []string{challengeALPN, challengeHTTP} {
		folder := filepath.Join(s.folder, kind)
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, e := range entries {
			file := filepath.Join(folder, e.Name())
			text, err := os.ReadFile(file)
			if err == nil && strings.HasSuffix(string(text), " "+s.job) {
				err = os.Remove(file)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // which another server may have removed
				return err
			}
		}
	}
	return nil
}

// isKey reports whether a text is a token or a DNS name, and so the name of a file in a folder.
func isKey(text string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return text != "" && len(text) < 256 && !strings.HasPrefix(text, ".") && filepath.IsLocal(text) && // no device of Windows
		strings.Trim(text, letters+strings.ToUpper(letters)+"0123456789-_.") == ""
}

// answersRead bounds the answers that are read at a time: if the storage hangs, so many threads wait for it, and not one
// for each client. An authority asks from several places at once.
var answersRead = make(chan struct{}, 64)

// answer returns the key authorization that answers a challenge for a name, and "" if none is pending.
func (a *ACME) answer(kind, key, name string) (string, error) {
	if !isKey(key) {
		return "", nil
	}
	select {
	case answersRead <- struct{}{}:
		defer func() { <-answersRead }()
	default:
		return "", errors.New("too many others are being read: the storage may hang")
	}
	text, err := os.ReadFile(filepath.Join(a.folder(), kind, key))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if fields := strings.Fields(string(text)); len(fields) == 3 && fields[0] == name {
		return fields[1], nil
	}
	return "", nil
}

// answerChallenge answers a request of plain HTTP for the answer to a challenge, and reports whether it is one:
// for a name with ACME. It returns its status.
func (s *Server) answerChallenge(w http.ResponseWriter, r *http.Request, p *acmePlan, name string) (status int, is bool) {
	token, is := strings.CutPrefix(r.URL.Path, challengePath)
	if !is || r.Method != http.MethodGet && r.Method != http.MethodHead || !p.has(name) {
		return 0, false
	}
	answer, err := p.answer(challengeHTTP, token, strings.TrimSuffix(strings.ToLower(name), "."))
	if err != nil {
		if times := s.unanswered.due(challengePath); times > 0 {
			s.log.Error("acme: the answer to a challenge can't be read", "error", err, "times", times)
		}
	}
	if !strings.HasPrefix(answer, token+".") { // a file system may take other tokens for this one
		http.Error(w, "404 not found", http.StatusNotFound)
		return http.StatusNotFound, true
	}
	w.Header().Set("Content-Type", defaultType)
	_, _ = w.Write([]byte(answer))
	return http.StatusOK, true
}

// A tlsChallenges answers challenges in handshakes that offer acme-tls/1 and nothing else. They are for the answer
// alone: the server closes the connection after them.
type tlsChallenges struct {
	acme  *ACME
	names []string

	mu   sync.Mutex
	last map[string]tlsAnswer // guarded by mu; by the names
}

// A tlsAnswer is the configuration of handshakes with an answer.
type tlsAnswer struct {
	authorization string
	config        *tls.Config
}

// newTLSChallenges returns nil if no site has ACME.
func newTLSChallenges(p *acmePlan) *tlsChallenges {
	if p == nil {
		return nil
	}
	t := &tlsChallenges{acme: &p.ACME, last: map[string]tlsAnswer{}}
	for _, s := range p.sites {
		t.names = append(t.names, s.Names...)
	}
	return t
}

// are reports whether a handshake is for the answer to a challenge.
func (t *tlsChallenges) are(hello *tls.ClientHelloInfo) bool {
	return t != nil && len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == acmez.ACMETLS1Protocol
}

// config returns the configuration for a handshake. It asks for no certificate of the client, which gets nothing
// but the handshake.
func (t *tlsChallenges) config(hello *tls.ClientHelloInfo, base *tls.Config) (*tls.Config, error) {
	name, authorization := strings.ToLower(hello.ServerName), ""
	if slices.Contains(t.names, name) {
		var err error
		if authorization, err = t.acme.answer(challengeALPN, name, name); err != nil {
			return nil, fmt.Errorf("acme: the answer to a challenge can't be read: %w", err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if authorization == "" {
		delete(t.last, name)
		return nil, fmt.Errorf("acme: no challenge is pending for %q", hello.ServerName)
	}
	if last := t.last[name]; last.authorization == authorization {
		return last.config, nil
	}
	cert, err := acmez.TLSALPN01ChallengeCert(acme.Challenge{KeyAuthorization: authorization,
		Identifier: acme.Identifier{Type: "dns", Value: name}})
	if err != nil {
		return nil, err
	}
	config := base.Clone()
	config.Certificates, config.NextProtos = []tls.Certificate{*cert}, []string{acmez.ACMETLS1Protocol}
	config.SessionTicketsDisabled = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if !forChallenge(state) { // else the connection would be served, without the site's demands on clients
			return errors.New("acme: the handshake for a challenge has not negotiated acme-tls/1")
		}
		return nil
	}
	t.last[name] = tlsAnswer{authorization, config}
	return config, nil
}

// forChallenge reports whether a handshake was for the answer to a challenge, which it has got.
func forChallenge(state tls.ConnectionState) bool {
	return state.NegotiatedProtocol == acmez.ACMETLS1Protocol
}
