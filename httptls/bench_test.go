package httptls_test

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"io"
	"net/http"
	"testing"
)

// Both stacks use the same groups, suites and keys.
func benchServer(b *testing.B, s *stack, key crypto.Signer) *running {
	return s.start(b, &http.Server{
		TLSConfig: &tls.Config{
			Certificates:           []tls.Certificate{*leaf(key)},
			CurvePreferences:       []tls.CurveID{tls.X25519},
			SessionTicketsDisabled: true,
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.Header().Set("Content-Type", "application/octet-stream")
				if _, err := io.Copy(w, r.Body); err != nil {
					b.Error(err)
				}
				return
			}
			_, _ = w.Write(page)
		}),
	})
}

var page = bytes.Repeat([]byte("a page of some text. "), 50)

func benchClient(b *testing.B, s *stack, http2 bool) *http.Client {
	config := clientConfig()
	config.CurvePreferences = []tls.CurveID{tls.X25519}
	return s.client(b, &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 16}, http2)
}

func get(b *testing.B, c *http.Client, url string) {
	resp, err := c.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	drain(b, resp, len(page))
}

func post(b *testing.B, c *http.Client, url string) {
	resp, err := c.Post(url, "application/octet-stream", bytes.NewReader(page))
	if err != nil {
		b.Fatal(err)
	}
	drain(b, resp, len(page))
}

func drain(b *testing.B, resp *http.Response, want int) {
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || n != int64(want) || resp.StatusCode != http.StatusOK {
		b.Fatalf("%s, %d bytes, %v", resp.Status, n, err)
	}
	_ = resp.Body.Close()
}

func eachRow(b *testing.B, f func(b *testing.B, s *stack, key crypto.Signer, http2 bool)) {
	keys := []struct {
		name string
		key  crypto.Signer
	}{{"rsa2048", rsaKey()}, {"p256", ecKey()}}
	for _, proto := range []string{"h1", "h2"} {
		for _, k := range keys {
			for _, s := range stacks {
				b.Run("proto="+proto+"/cert="+k.name+"/stack="+s.name, func(b *testing.B) { f(b, s, k.key, proto == "h2") })
			}
		}
	}
}

// BenchmarkGetPost alternates between a GET and a POST of 1 KB, each one operation, on a kept-alive
// connection.
func BenchmarkGetPost(b *testing.B) {
	eachRow(b, func(b *testing.B, s *stack, key crypto.Signer, http2 bool) {
		server := benchServer(b, s, key)
		client := benchClient(b, s, http2)
		url := server.url("/")
		get(b, client, url)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%2 == 0 {
				get(b, client, url)
			} else {
				post(b, client, url)
			}
		}
	})
}

// BenchmarkNewConnection is a GET on a new connection.
func BenchmarkNewConnection(b *testing.B) {
	eachRow(b, func(b *testing.B, s *stack, key crypto.Signer, http2 bool) {
		server := benchServer(b, s, key)
		client := benchClient(b, s, http2)
		url := server.url("/")
		b.ReportAllocs()
		for b.Loop() {
			get(b, client, url)
			client.CloseIdleConnections()
		}
	})
}
