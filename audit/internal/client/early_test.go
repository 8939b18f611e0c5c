package client_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// waitFor reads lines until one has the text.
func waitFor(t *testing.T, lines *bufio.Reader, text string) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("the server never printed %q", text)
		}
	}
}

func TestInteropEarlyData(t *testing.T) {
	for _, replay := range []bool{false, true} {
		t.Run(fmt.Sprintf("replay protection %v", !replay), func(t *testing.T) {
			flags := []string{"-early_data"}
			if replay {
				flags = append(flags, "-no_anti_replay")
			}
			address, lines := client.OpenSSL(t, testcert.Root(testcert.Template{}), flags...)
			first, err := client.Handshake13(client.Connect(t, address), &client.Config{})
			if err != nil {
				t.Fatal(err)
			}
			sessions, err := first.ReadSessions(1)
			if err != nil || len(sessions) != 1 || sessions[0].MaxEarly == 0 {
				t.Fatalf("sessions %+v, %v", sessions, err)
			}
			first.Close()
			config := &client.Config{Session: sessions[0], Early: []byte("GET /first HTTP/1.0\n")}
			second, err := client.Handshake13(client.Connect(t, address), config)
			if err != nil {
				t.Fatal(err)
			}
			if s := second.State; !s.Resumed || !s.EarlyAccepted || bytes.Contains(s.FirstFlight, config.Early) {
				t.Errorf("state is %+v", s)
			}
			waitFor(t, lines, "GET /first")
			second.Close()

			// The same bytes again: the server takes the data if it has no protection.
			conn := client.Connect(t, address)
			if _, err := conn.Write(second.State.FirstFlight); err != nil {
				t.Fatal(err)
			}
			if replay {
				waitFor(t, lines, "GET /first")
			} else {
				conn.SetDeadline(time.Now().Add(10 * time.Second))
				if n, err := conn.Read(make([]byte, 1)); n != 1 {
					t.Error("no answer to the replay:", err)
				}
			}
			conn.Close()
			if replay {
				return
			}
			// A used session isn't taken again; the handshake goes on without early data.
			config.Early = bytes.Repeat([]byte("early "), 1000)
			third, err := client.Handshake13(client.Connect(t, address), config)
			if err != nil || third.State.EarlyAccepted {
				t.Fatalf("the session again: %v, %+v", err, third)
			}
		})
	}
}

func TestInteropKeyUpdate(t *testing.T) {
	address, _ := client.OpenSSL(t, testcert.Root(testcert.Template{}), "-rev")
	c, err := client.Handshake13(client.Connect(t, address), &client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.UpdateKeys(c); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("abc\n")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "cba\n" {
		t.Errorf("read %q, %v", got, err)
	}
	c.Close()
}
