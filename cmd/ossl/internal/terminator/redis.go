package terminator

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/session"
	"github.com/ossl-go/ossl/session/redisstore"
)

// A Store is a Redis or Valkey that keeps sessions and ticket keys.
type Store struct {
	// Redis is HOST:PORT, redis://HOST:PORT/DATABASE, rediss://HOST:PORT/DATABASE for TLS, or a socket's
	// path. "" is for no store.
	Redis string `toml:"redis"`
	// RedisSecret is the file of the secret, 64 hexadecimal digits, under which both are sealed.
	RedisSecret   string `toml:"redis-secret"`
	RedisUser     string `toml:"redis-user"`          // of the store's access list, or "" for its default user
	RedisPassword string `toml:"redis-password-file"` // the file of the password, or ""
	RedisCA       string `toml:"redis-ca"`            // the file of the store's authorities, or "" for the system's
	RedisName     string `toml:"redis-name"`          // the name in the store's certificate, or "" for Redis's host
	RedisCert     string `toml:"redis-cert"`          // for the store, if it asks for a certificate
	RedisKey      string `toml:"redis-key"`
}

// A storePlan is the part of a plan that is about the store.
type storePlan struct {
	Store
	at   redisAddress
	fips bool
}

// compile checks the settings of the store. It returns nil if there is none.
func (c *Store) compile(fips bool) (*storePlan, error) {
	if (c.Redis == "") != (c.RedisSecret == "") {
		return nil, errors.New("redis and redis-secret go together")
	}
	var address redisAddress
	if c.Redis != "" {
		var err error
		if address, err = parseRedis(c.Redis); err != nil {
			return nil, err
		}
	}
	ofTLS := firstSet(setting{"redis-ca", c.RedisCA != ""}, setting{"redis-name", c.RedisName != ""},
		setting{"redis-cert", c.RedisCert != ""}, setting{"redis-key", c.RedisKey != ""})
	switch {
	case c.RedisPassword != "" && c.Redis == "":
		return nil, errors.New("redis-password-file needs redis")
	case c.RedisUser != "" && c.RedisPassword == "":
		return nil, errors.New("redis-user needs redis-password-file")
	case ofTLS != "" && !address.tls:
		return nil, fmt.Errorf("%s needs a store with TLS: redis = \"rediss://HOST:PORT\"", ofTLS)
	case (c.RedisCert == "") != (c.RedisKey == ""):
		return nil, errors.New("redis-cert and redis-key go together")
	case c.Redis == "":
		return nil, nil
	}
	return &storePlan{*c, address, fips}, nil
}

// A redisAddress is a parsed Store.Redis.
type redisAddress struct {
	network, address string // as of package net
	host             string // for the certificate
	tls              bool
	database         int
}

// parseRedis parses the address of a store. Its errors don't have the text, which may have a
// password.
func parseRedis(text string) (a redisAddress, err error) {
	if !strings.Contains(text, "://") {
		if strings.Contains(text, "/") {
			return redisAddress{network: "unix", address: text}, nil
		}
		if a.host, _, err = net.SplitHostPort(text); err != nil || strings.Contains(text, "@") {
			return a, errors.New("redis: neither HOST:PORT, redis://HOST:PORT, rediss://HOST:PORT nor a socket's path")
		}
		a.network, a.address = "tcp", text
		return a, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.RawQuery != "" || u.Fragment != "" || u.Hostname() == "" {
		return a, errors.New("redis: the URL is neither redis://HOST:PORT/DATABASE nor rediss://HOST:PORT/DATABASE")
	}
	if u.User != nil {
		return a, errors.New("redis: the URL has a user: give redis-user and redis-password-file instead")
	}
	if database := strings.TrimPrefix(u.Path, "/"); database != "" {
		if a.database, err = strconv.Atoi(database); err != nil || a.database < 0 {
			return a, errors.New("redis: the database in the URL is not a number")
		}
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	a.network, a.host, a.tls = "tcp", u.Hostname(), u.Scheme == "rediss"
	a.address = net.JoinHostPort(a.host, port)
	return a, nil
}

// A redisStore shares sessions and ticket keys with the servers that use the same store and secret.
type redisStore struct {
	sessions *redisstore.Store
	keys     *redisstore.Keys
	password atomic.Pointer[string]
	up       atomic.Bool
}

// useRedis makes the store keep sessions and ticket keys. The server works without the store too,
// with full handshakes.
func (s *sessions) useRedis(ctx context.Context, p *storePlan, log *slog.Logger) error {
	secret, err := readSecret(p.RedisSecret)
	if err != nil {
		return err
	}
	r := new(redisStore)
	if err := r.readPassword(p.RedisPassword); err != nil {
		return err
	}
	client, err := r.client(p)
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	if r.sessions, err = redisstore.New(client, redisstore.Config{Secrets: []session.Secret{secret}}); err != nil {
		return err
	}
	if r.keys, err = redisstore.NewKeys(client, redisstore.KeysConfig{Secrets: []session.Secret{secret}}); err != nil {
		return err
	}
	r.up.Store(true) // unless the first poll fails, which is logged
	r.poll(ctx, log)
	running, stop := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() {
		_ = r.keys.Run(running) // returns the context's error
		done <- struct{}{}
	}()
	go func() {
		r.watch(running, log)
		done <- struct{}{}
	}()
	s.redis, s.sealing = r, r.keys.Ring()
	s.keep(r.sessions)
	s.options = append(s.options, ossl.WithTicketKeys(r.keys.Ring()))
	s.end = func() {
		stop()
		<-done
		<-done
		bounded, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = r.sessions.Close(bounded) // writes that are lost cost full handshakes
		_ = client.Close()
	}
	return nil
}

// client makes the store's client. It doesn't connect yet.
func (r *redisStore) client(p *storePlan) (redis.UniversalClient, error) {
	logging.Disable() // go-redis has a line on standard error for each failed connection
	options := redis.UniversalOptions{Addrs: []string{p.at.address}, DB: p.at.database}
	if p.RedisPassword != "" {
		options.CredentialsProviderContext = func(context.Context) (user, password string, err error) {
			return p.RedisUser, *r.password.Load(), nil
		}
	}
	dialer := net.Dialer{Timeout: redisDialTimeout}
	options.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, p.at.network, p.at.address)
	}
	if !p.at.tls {
		return redisstore.NewClient(options), nil
	}
	config, err := clientConfig(cmp.Or(p.RedisName, p.at.host), p.RedisCA, Pair{Cert: p.RedisCert, Key: p.RedisKey})
	if err != nil {
		return nil, err
	}
	secure, err := ossl.NewContext(config, withFIPS(p.fips)...)
	if err != nil {
		return nil, err
	}
	options.Dialer = dialTLS(options.Dialer, secure)
	return redisstore.NewClient(options), nil
}

// redisDialTimeout bounds connecting, and then the handshake.
const redisDialTimeout = 5 * time.Second

// dialTLS returns a dialer whose connections have TLS.
func dialTLS(plain redisstore.Dialer, c *ossl.Context) redisstore.Dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := plain(ctx, network, address)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, redisDialTimeout)
		defer cancel()
		secure := c.Client(conn, "")
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return secure, nil
	}
}

// watch notices that the store goes away, and that it comes back. A server without clients learns
// it from the polls of the ticket keys; lookups and writes that fail bring one forward.
func (r *redisStore) watch(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for failed := uint64(0); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		stats, before := r.sessions.Stats(), failed
		if failed = stats.Errors + stats.PutsDropped; failed > before || !r.up.Load() {
			r.poll(ctx, log)
		} else {
			r.note(ctx, r.keys.Stats().LastError, log)
		}
	}
}

// poll asks the store.
func (r *redisStore) poll(ctx context.Context, log *slog.Logger) {
	bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r.note(ctx, r.keys.Sync(bounded), log)
}

// note logs a change of the store's state.
func (r *redisStore) note(ctx context.Context, err error, log *slog.Logger) {
	switch up := err == nil; {
	case ctx.Err() != nil || r.up.Swap(up) == up:
	case up:
		log.Info("redis answers again")
	default:
		log.Warn("redis fails: clients make full handshakes meanwhile", "error", err)
	}
}

// readPassword reads the file of the password, if there is one, for connections to come.
func (r *redisStore) readPassword(file string) error {
	if file == "" {
		return nil
	}
	text, err := readPassword(file)
	if err != nil {
		return err
	}
	password := string(text)
	clear(text)
	r.password.Store(&password)
	return nil
}

// openPrivate opens a file that others can't read.
func openPrivate(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		err = fmt.Errorf("%s has the mode %04o: others must not have access to it (chmod 600)", name, info.Mode().Perm())
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// readSecret reads a secret of 64 hexadecimal digits.
func readSecret(name string) (secret session.Secret, err error) {
	f, err := openPrivate(name)
	if err != nil {
		return secret, err
	}
	defer f.Close()
	text := make([]byte, 2*len(secret)+3) // with the end of a line, and one more
	defer clear(text)
	n, err := readFull(f, text)
	if err != nil {
		return secret, err
	}
	raw, err := hex.DecodeString(strings.TrimRight(string(text[:n]), "\r\n"))
	if err != nil || len(raw) != len(secret) {
		return secret, fmt.Errorf("%s must hold %d hexadecimal digits, such as from 'openssl rand -hex %d'",
			name, 2*len(secret), len(secret))
	}
	return session.Secret(raw), nil
}
