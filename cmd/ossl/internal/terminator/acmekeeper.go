package terminator

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	weakrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mholt/acmez/v3"
	"github.com/mholt/acmez/v3/acme"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/cmd/ossl/internal/wholefile"
	"github.com/ossl-go/ossl/httptls"
)

// An acmeKeeper orders the certificates of sites with ACME, and renews them in time. It writes them into the storage.
// This server, and servers that share the storage, load them as they load all files that change. Clients can't cause
// an order.
type acmeKeeper struct {
	log  *slog.Logger
	turn chan struct{} // has an element for each job that talks to an authority

	mu      sync.Mutex
	running map[string]*acmeRun // guarded by mu; by the jobs' settings
	ended   sync.WaitGroup

	obtained, failed atomic.Uint64
}

// acmeAtOnce bounds the jobs that talk to an authority at a time.
const acmeAtOnce = 4

func newACMEKeeper(log *slog.Logger) *acmeKeeper {
	return &acmeKeeper{log: log, turn: make(chan struct{}, acmeAtOnce), running: map[string]*acmeRun{}}
}

// An acmeRun is a job that runs.
type acmeRun struct {
	stop context.CancelFunc
	wake chan *acmeJob // a job sent here, with new files of settings, makes it look at once
}

// An acmeJob keeps the certificate of one site.
type acmeJob struct {
	ACME
	names  []string
	kinds  []string // of challenges that can be answered
	file   string
	client *http.Client
}

// jobs returns the jobs of a configuration.
func (p *acmePlan) jobs() (jobs []*acmeJob, err error) {
	if p == nil {
		return nil, nil
	}
	transport, err := p.transport()
	if err != nil {
		return nil, err
	}
	if p.EABKey != "" { // so that a wrong file is found at once
		if _, err := readPassword(p.EABKey); err != nil {
			return nil, fmt.Errorf("acme-eab-key: %w", err)
		}
	}
	for _, s := range p.sites {
		jobs = append(jobs, &acmeJob{ACME: p.ACME, names: s.Names, kinds: p.kinds, file: p.file(s),
			client: &http.Client{Transport: transport, Timeout: time.Minute}})
	}
	return jobs, nil
}

// transport returns the transport to the authority, whose TLS is the engine's.
func (p *acmePlan) transport() (http.RoundTripper, error) {
	config := &tls.Config{}
	if p.Roots != "" {
		var err error
		if config.RootCAs, err = readPool([]string{p.Roots}); err != nil {
			return nil, fmt.Errorf("acme-roots: %w", err)
		}
	}
	base := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, TLSHandshakeTimeout: 30 * time.Second,
		IdleConnTimeout: time.Minute}
	if p.engine == "go" {
		return base, nil
	}
	ctx, err := ossl.NewContext(nil)
	if err != nil {
		return nil, err
	}
	if ctx.FIPS() != nil { // the host's
		return nil, errACMEAndFIPS
	}
	return httptls.NewTransport(base)
}

// set runs the jobs of a configuration, and stops all other jobs. Jobs that run already continue, and check at once
// whether their certificates are due.
func (k *acmeKeeper) set(jobs []*acmeJob) {
	k.mu.Lock()
	defer k.mu.Unlock()
	former := k.running
	k.running = map[string]*acmeRun{}
	for _, j := range jobs {
		settings := fmt.Sprintf("%q", []any{j.ACME, j.names, j.kinds})
		run := former[settings]
		delete(former, settings)
		if run == nil {
			ctx, stop := context.WithCancel(context.Background())
			run = &acmeRun{stop: stop, wake: make(chan *acmeJob, 1)}
			k.ended.Go(func() { k.run(ctx, j, run.wake) })
		} else {
			select {
			case <-run.wake:
			default:
			}
			run.wake <- j
		}
		k.running[settings] = run
	}
	for _, run := range former {
		run.stop()
	}
}

// wait waits until all jobs have finished, or until ctx is done.
func (k *acmeKeeper) wait(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		k.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// run does a job until ctx is done.
func (k *acmeKeeper) run(ctx context.Context, j *acmeJob, wake <-chan *acmeJob) {
	for failures := 0; ; {
		var pause time.Duration
		select {
		case k.turn <- struct{}{}:
			var err error
			pause, err = k.keep(ctx, j, failures)
			<-k.turn
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				failures = 0
				break
			}
			failures++
			k.failed.Add(1)
			pause = acmeBackOff(failures)
			k.log.Error("acme: no certificate", "site", j.names[0], "error", err, "again in", pause.Round(time.Second).String())
		case <-ctx.Done():
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case j = <-wake:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// acmeBackOff returns the time after a number of failures in a row: from a minute to 6 hours. Let's Encrypt allows five
// failures an hour for a name.
func acmeBackOff(failures int) time.Duration {
	pause := time.Minute
	for range failures - 1 {
		pause = min(3*pause, 6*time.Hour)
	}
	return pause + weakrand.N(pause/10)
}

// keep orders the certificate if it is due, and returns the time until it is to be asked again.
func (k *acmeKeeper) keep(ctx context.Context, j *acmeJob, failures int) (time.Duration, error) {
	leaf, err := j.stored()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.log.Error("acme: the stored certificate can't be used", "site", j.names[0], "error", err)
	}
	if leaf != nil {
		if pause := j.untilDue(ctx, leaf, k.log); pause > 0 {
			return pause, nil
		}
	}
	unlock, locked, err := wholefile.TryLock(filepath.Join(filepath.Dir(j.file), j.id()+".lock"))
	if err != nil {
		return 0, err
	}
	if !locked {
		return 30 * time.Second, nil // another server orders it, and this one will find it in the storage
	}
	defer unlock()
	if now, _ := j.stored(); now != nil && (leaf == nil || !now.Equal(leaf)) {
		return time.Second, nil // another server has just ordered it
	}
	if failures > 0 {
		leaf = nil // the authority may not know it
	}
	obtained, err := j.order(ctx, leaf)
	if err != nil {
		return 0, err
	}
	k.obtained.Add(1)
	k.log.Info("acme: certificate obtained", "site", j.names[0], "until", obtained.NotAfter.UTC().Format(time.RFC3339))
	// Not at once, even if the authority asks for a renewal now.
	return min(time.Hour, obtained.NotAfter.Sub(obtained.NotBefore)/3), nil
}

// id returns the part of the names of the job's files that is the same for all.
func (j *acmeJob) id() string { return strings.TrimSuffix(filepath.Base(j.file), ".pem") }

// stored returns the certificate in the storage, if it has the names of the site.
func (j *acmeJob) stored() (*x509.Certificate, error) {
	text, err := os.ReadFile(j.file)
	if err != nil {
		return nil, err
	}
	return j.check(text, text)
}

// check returns the certificate of a chain, if it has the key and the names of the site, and nil if it has other names.
func (j *acmeJob) check(chain, key []byte) (*x509.Certificate, error) {
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(leaf.DNSNames)), slices.Sorted(slices.Values(j.names))) {
		return nil, err
	}
	return leaf, nil
}

// untilDue returns the time after which a certificate may be due, and 0 if it is due: at the time
// that the authority suggests (RFC 9773), or after two thirds of its lifetime.
func (j *acmeJob) untilDue(ctx context.Context, leaf *x509.Certificate, log *slog.Logger) time.Duration {
	const often, seldom = time.Minute, 6 * time.Hour
	due, ask := leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore)/3*2), seldom
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	info, err := j.authority().GetRenewalInfo(ctx, leaf)
	switch {
	case err != nil:
		if !errors.Is(err, acme.ErrUnsupported) {
			log.Debug("acme: the authority doesn't say when to renew", "site", j.names[0], "error", err)
		}
	case info.SelectedTime.Before(leaf.NotAfter):
		due = info.SelectedTime
		if info.RetryAfter != nil {
			ask = min(max(time.Until(*info.RetryAfter), often), seldom)
		}
	}
	if until := time.Until(due); until > 0 {
		return min(until, ask)
	}
	return 0
}

func (j *acmeJob) solver() challengeSolver { return challengeSolver{j.folder(), j.id()} }

func (j *acmeJob) authority() *acmez.Client {
	solvers := map[string]acmez.Solver{}
	for _, kind := range j.kinds {
		solvers[kind] = j.solver()
	}
	client := &acme.Client{Directory: j.Directory, HTTPClient: j.client, UserAgent: "ossl"}
	return &acmez.Client{Client: client, ChallengeSolvers: solvers}
}

// order orders a certificate, which replaces another one unless that is nil, and stores it.
func (j *acmeJob) order(ctx context.Context, replaced *x509.Certificate) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := j.solver().clear(); err != nil {
		return nil, err
	}
	authority := j.authority()
	account, err := j.account(ctx, authority)
	if err != nil {
		return nil, err
	}
	key, keyPEM, err := newACMEKey()
	if err != nil {
		return nil, err
	}
	request, err := acmez.NewCSR(key, j.names)
	if err != nil {
		return nil, err
	}
	order, err := acmez.OrderParametersFromCSR(account, request)
	if err != nil {
		return nil, err
	}
	order.Replaces = replaced
	chains, err := authority.ObtainCertificate(ctx, order)
	if err != nil {
		return nil, err
	}
	if len(chains) == 0 {
		return nil, errors.New("the authority has sent no certificate")
	}
	chain := chains[0].ChainPEM
	leaf, err := j.check(chain, keyPEM)
	if err == nil && leaf == nil {
		err = errors.New("its names are not those that were ordered")
	}
	if err != nil {
		return nil, fmt.Errorf("the authority's certificate: %w", err)
	}
	return leaf, wholefile.Put(wholefile.File{Name: j.file, Mode: 0o600, Text: slices.Concat(keyPEM, chain)})
}

// account returns the account at the authority, which it makes if there is none: if the key already has an account,
// the authority returns that account (RFC 8555, section 7.3.1).
func (j *acmeJob) account(ctx context.Context, authority *acmez.Client) (account acme.Account, err error) {
	directory, err := authority.GetDirectory(ctx)
	if err != nil {
		return account, err
	}
	if m := directory.Meta; m != nil && m.TermsOfService != "" && !j.Agree {
		return account, fmt.Errorf("acme-agree is missing: the authority demands agreement to its terms, %s", m.TermsOfService)
	}
	account.TermsOfServiceAgreed = j.Agree
	if j.Email != "" {
		account.Contact = []string{"mailto:" + j.Email}
	}
	if account.PrivateKey, err = j.accountKey(ctx); err != nil {
		return account, err
	}
	if j.EABID != "" {
		key, err := readPassword(j.EABKey)
		if err != nil {
			return account, fmt.Errorf("acme-eab-key: %w", err)
		}
		mac := strings.TrimRight(string(key), "=")
		if err := account.SetExternalAccountBinding(ctx, authority.Client, acme.EAB{KeyID: j.EABID, MACKey: mac}); err != nil {
			return account, fmt.Errorf("acme-eab-key: %w", err)
		}
	}
	return authority.NewAccount(ctx, account)
}

// accountKey returns the key of the account in the storage, which it makes if there is none.
func (j *acmeJob) accountKey(ctx context.Context) (crypto.Signer, error) {
	unlock, err := lockFile(ctx, filepath.Join(j.folder(), "account.lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	name := filepath.Join(j.folder(), acmeAccountKey)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		var key *ecdsa.PrivateKey
		if key, text, err = newACMEKey(); err != nil {
			return nil, err
		}
		return key, wholefile.Put(wholefile.File{Name: name, Mode: 0o600, Text: text})
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not a key in PEM", name)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the key in %s can't sign", name)
	}
	return signer, nil
}

// lockFile locks a file as wholefile.TryLock does. It tries until ctx is done.
func lockFile(ctx context.Context, name string) (unlock func(), err error) {
	for {
		unlock, locked, err := wholefile.TryLock(name)
		if err != nil || locked {
			return unlock, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("%s is locked: %w", name, ctx.Err())
		}
	}
}

// newACMEKey makes a key, and returns it in PEM too.
func newACMEKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
