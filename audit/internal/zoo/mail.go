package zoo

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// mailServers speak SMTP before TLS.
func mailServers() []*Server {
	server := func(name, about string, keeps bool, expect ...Verdict) *Server {
		return &Server{
			Name: name, About: about, Protocol: "smtp", Expect: goVerdicts(expect...),
			start: func(r *Running) error {
				config := goConfig(r.use(pki.ecdsa()))
				return r.listen("127.0.0.1", func(conn net.Conn) { answerSMTP(conn, config, keeps) })
			},
		}
	}
	late := server("smtp-late", "SMTP that keeps new clients waiting for the end of its greeting", false)
	late.Slow = true
	late.Options = hurry
	late.start = func(r *Running) error {
		config := goConfig(r.use(pki.ecdsa()))
		var first sync.Once
		return r.listen("127.0.0.1", func(conn net.Conn) {
			first.Do(func() {
				io.WriteString(conn, "220-zoo waits\r\n")
				time.Sleep(4 * time.Second) // longer than the audit waits
			})
			answerSMTP(conn, config, false)
		})
	}
	guessed := server("smtp-guessed", "SMTP on a port that isn't known for it", false)
	guessed.Protocol = "tls"
	return []*Server{
		late, guessed, postgres(),
		server("smtp", "SMTP with STARTTLS", false),
		server("smtp-injection", "SMTP that executes within TLS what came before TLS", true,
			Verdict{"starttls-injection", "the server keeps the bytes after STARTTLS"}),
	}
}

// postgres is a PostgreSQL server on a port that isn't known for it. Like PostgreSQL before version
// 17, it closes connections that begin with TLS.
func postgres() *Server {
	return &Server{
		Name: "postgres-guessed", About: "PostgreSQL on a port that isn't known for it", Slow: true,
		Expect: without(goVerdicts(), noIDs.Rule), // PostgreSQL can't resume
		start: func(r *Running) error {
			config := goConfig(r.use(pki.ecdsa()))
			return r.listen("127.0.0.1", func(conn net.Conn) {
				request := make([]byte, 8)
				if _, err := io.ReadFull(conn, request); err != nil || request[0] != 0 {
					return
				}
				io.WriteString(conn, "S")
				goTLS(config)(conn)
			})
		},
	}
}

// answerSMTP answers commands until the client closes the connection, or is silent for long. A
// server that keeps the bytes after STARTTLS takes them for the first commands within TLS.
func answerSMTP(conn net.Conn, config *tls.Config, keeps bool) {
	conn.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(conn, "220 zoo ESMTP\r\n")
	in := bufio.NewReader(conn)
	for encrypted := false; ; {
		line, err := in.ReadString('\n')
		if err != nil {
			break
		}
		command, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " ")
		answer := "502 no\r\n"
		switch {
		case command == "EHLO" && encrypted:
			answer = "250-zoo\r\n250 8BITMIME\r\n"
		case command == "EHLO":
			answer = "250-zoo\r\n250 STARTTLS\r\n"
		case command == "NOOP":
			answer = "250 OK\r\n"
		case command == "QUIT":
			answer = "221 bye\r\n"
		case command == "STARTTLS" && !encrypted:
			answer = "220 go\r\n"
		}
		if _, err := io.WriteString(conn, answer); err != nil || command == "QUIT" {
			break
		}
		if command == "STARTTLS" && !encrypted {
			encrypted = true
			kept, _ := in.Peek(in.Buffered())
			conn = tls.Server(conn, config)
			in = bufio.NewReader(conn)
			if keeps {
				in = bufio.NewReader(io.MultiReader(strings.NewReader(string(kept)), conn))
			}
		}
	}
	conn.Close()
}
