package redisstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl/session/redisstore"
)

// readCommand reads a command as clients send it and returns its name.
func readCommand(r *bufio.Reader) (name string, err error) {
	number := func(kind byte) (int, error) {
		line, err := r.ReadString('\n')
		if err != nil || len(line) < 4 || line[0] != kind {
			return 0, errors.Join(err, io.ErrUnexpectedEOF)
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	words, err := number('*')
	for i := 0; i < words && err == nil; i++ {
		var n int
		if n, err = number('$'); err != nil {
			return "", err
		}
		word := make([]byte, n+2)
		if _, err = io.ReadFull(r, word); i == 0 {
			name = strings.ToLower(string(word[:n]))
		}
	}
	return name, err
}

// lie dials a server that greets as Redis does and answers everything else with the same bytes. If
// end is set it then hangs up.
func lie(answer string, end bool) redisstore.Dialer {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			r := bufio.NewReader(server)
			for {
				name, err := readCommand(r)
				if err != nil {
					return
				}
				reply, last := answer, end
				switch name {
				case "hello":
					reply, last = "-ERR unknown command\r\n", false
				case "client":
					reply, last = "+OK\r\n", false
				}
				if _, err := io.WriteString(server, reply); err != nil || last {
					return
				}
			}
		}()
		return client, nil
	}
}

var lies = []string{
	"+OK\r\n", "+\r\n", "-ERR no\r\n", "-\r\n", "-LOADING Redis is loading\r\n", "-MOVED 1 127.0.0.1:1\r\n", "-READONLY no\r\n",
	":42\r\n", ":\r\n", ":9223372036854775808\r\n", "$5\r\nhello\r\n", "$0\r\n\r\n", "$-1\r\n", "$-2\r\n", "$\r\n", "$x\r\n",
	"$5\r\nhel", "$1000000\r\nshort", "$1099511627776\r\n", "$9223372036854775807\r\n", "$99999999999999999999\r\n",
	"*0\r\n", "*-1\r\n", "*1\r\n", "*1\r\n$1\r\na\r\n", "*1000000000\r\n", "*2\r\n:1\r\n$-1\r\n", strings.Repeat("*1\r\n", 100_000),
	"%1\r\n+a\r\n+b\r\n", "%1000000000\r\n", "~1\r\n:1\r\n", ">1\r\n+x\r\n",
	">2\r\n$7\r\nmessage\r\n:1\r\n+OK\r\n", "_\r\n", "#t\r\n", "#x\r\n",
	",nan\r\n", "(12345678901234567890\r\n", "=7\r\ntxt:abc\r\n", "=2\r\nab\r\n", "!3\r\nERR\r\n",
	"|1\r\n+a\r\n+b\r\n+OK\r\n", "\r\n", "\x00\xff",
	"HTTP/1.1 400 Bad Request\r\n\r\n", "+QUEUED\r\n", "+OK\r\n+OK\r\n+OK\r\n", "$2\r\nhiXX", strings.Repeat("+", 200_000),
}

// TestLiar: for any answer of a server, a session is a miss or an error, ticket keys are an error,
// and nothing panics or allocates memory for data that doesn't come.
func TestLiar(t *testing.T) {
	t.Parallel()
	for i, answer := range lies {
		for _, end := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d,end=%v", i, end), func(t *testing.T) {
				t.Parallel()
				client := redisstore.NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: lie(answer, end)})
				defer client.Close()
				checkLiar(t, client, answer)
			})
		}
	}
}

func checkLiar(t *testing.T, client redis.UniversalClient, answer string) {
	ctx := t.Context()
	s := newStore(t, client, redisstore.Config{Timeout: 40 * time.Millisecond, Failures: 1 << 20})
	for i := range 3 {
		if err := s.Put(ctx, id(i), value(i), in(time.Hour)); err != nil && !errors.Is(err, redisstore.ErrUnavailable) {
			t.Errorf("%.50q: Put: %v", answer, err)
		}
		if got, err := s.Get(ctx, id(i+10), i == 1); got != nil {
			t.Errorf("%.50q: Get: %q, %v", answer, got, err)
		}
		if err := s.Remove(ctx, id(i)); err != nil {
			t.Errorf("%.50q: Remove: %v", answer, err)
		}
	}
	c := fleetKeys
	c.Timeout = 40 * time.Millisecond
	keys, err := redisstore.NewKeys(client, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Sync(ctx); err == nil {
		t.Errorf("%.50q: keys in step", answer)
	}
	if held, _ := keys.Ring().Snapshot(); len(held) != 0 {
		t.Errorf("%.50q: %d keys", answer, len(held))
	}
}

func FuzzLiar(f *testing.F) {
	for _, answer := range lies {
		if len(answer) < 1000 {
			f.Add([]byte(answer))
		}
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		client := redisstore.NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: lie(string(answer), true)})
		defer client.Close()
		s := newStore(t, client, redisstore.Config{Timeout: 20 * time.Millisecond})
		if got, err := s.Get(t.Context(), id(1), false); got != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// TestHang uses a store to which connecting, writing or reading hangs, with a client that no
// context interrupts. Calls return when their contexts are done; when calls that hang hold all
// slots, others return at once and start nothing.
func TestHang(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	defer close(ended)
	dialers := map[string]redisstore.Dialer{
		"connecting": func(context.Context, string, string) (net.Conn, error) {
			<-ended
			return nil, errors.New("the test has ended")
		},
		"writing": func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe() // nobody reads
			go func() { <-ended; server.Close() }()
			return client, nil
		},
		"reading": func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go io.Copy(io.Discard, server)
			go func() { <-ended; server.Close() }()
			return client, nil
		},
	}
	for name, dial := range dialers {
		t.Run(name, func(t *testing.T) {
			var hanging atomic.Int64
			counted := func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return &firstWrite{Conn: conn, counter: &hanging}, nil
			}
			client := redis.NewClient(&redis.Options{
				Addr: "127.0.0.1:1", Dialer: counted, ReadTimeout: -1, WriteTimeout: -1, MaxRetries: -1,
			})
			s := newStore(t, client, redisstore.Config{Timeout: 20 * time.Millisecond, Concurrency: 4, Failures: 1 << 20})
			// On a busy machine a call may be given up before it reaches a connection. It doesn't
			// hang then.
			connecting := name == "connecting" // the client abandons a call that waits for a connection
			for i := 0; i < 4 || !connecting && hanging.Load() < 4; i++ {
				got, err := s.Get(t.Context(), id(i), true)
				late := i >= 4 && errors.Is(err, redisstore.ErrUnavailable)
				if got != nil || !late && !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("call %d: %q, %v", i, got, err)
				}
				if i == 3000 {
					t.Fatalf("%d calls hang", hanging.Load())
				}
				if late {
					time.Sleep(time.Millisecond)
				}
			}
			for i := range 100 {
				if connecting && i == 5 {
					break
				}
				got, err := s.Get(t.Context(), id(i), true)
				waits := connecting && errors.Is(err, context.DeadlineExceeded)
				if got != nil || !waits && !errors.Is(err, redisstore.ErrUnavailable) {
					t.Fatalf("with all slots taken: %q, %v", got, err)
				}
			}
			if n := hanging.Load(); n > 4 {
				t.Errorf("%d calls hang", n)
			}
			// Writes wait behind one that hangs: the queue fills, and Close drops it.
			full := 0
			for i := range 2000 {
				if err := s.Put(t.Context(), id(i), value(i), in(time.Hour)); errors.Is(err, redisstore.ErrQueueFull) {
					full++
				} else if err != nil && !errors.Is(err, redisstore.ErrUnavailable) {
					t.Fatal(err)
				}
			}
			if full == 0 && s.Stats().PutsDropped == 0 {
				t.Error("nothing was dropped")
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// A firstWrite counts the first write to it.
type firstWrite struct {
	net.Conn
	once    sync.Once
	counter *atomic.Int64
}

func (c *firstWrite) Write(b []byte) (int, error) {
	c.once.Do(func() { c.counter.Add(1) })
	return c.Conn.Write(b)
}

// TestHangingWrite checks that a batch that hangs in a client that no context interrupts doesn't
// keep Gets from probing.
func TestHangingWrite(t *testing.T) {
	t.Parallel()
	ended, hangs := make(chan struct{}), make(chan struct{}, 1)
	defer close(ended)
	dial := func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			if _, err := server.Read(make([]byte, 1)); err != nil {
				return
			}
			select {
			case hangs <- struct{}{}:
			default:
			}
			_, _ = io.Copy(io.Discard, server)
		}()
		go func() { <-ended; server.Close() }()
		return client, nil
	}
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Dialer: dial, ReadTimeout: -1, WriteTimeout: -1, MaxRetries: -1})
	s := newStore(t, client, redisstore.Config{Timeout: 5 * time.Millisecond, Failures: 1, Cooldown: 5 * time.Millisecond})
	eventually(t, "a batch to hang", func() bool {
		select {
		case <-hangs:
			return true
		default:
		}
		if s.Stats().Queued > 0 {
			return false
		}
		// The second write hangs, or the first if it reaches a connection before it is given up, as
		// on a busy machine.
		if err := s.Put(t.Context(), id(0), value(0), in(time.Hour)); err != nil && !errors.Is(err, redisstore.ErrUnavailable) {
			t.Fatal(err)
		}
		return false
	})
	eventually(t, "the batch to be given up", func() bool { return s.Stats().BreakerOpens > 0 })
	probes := 0
	eventually(t, "probes", func() bool {
		_, err := s.Get(t.Context(), id(1), false)
		if errors.Is(err, context.DeadlineExceeded) {
			probes++
		} else if !errors.Is(err, redisstore.ErrUnavailable) {
			t.Fatal(err)
		}
		return probes == 3
	})
	if n := s.Stats().Queued; n != 1 {
		t.Errorf("%d writes queued", n)
	}
}
